//! HTTP: the socket, framing, a request's head as types, the body of an answer and what every answer carries.

pub(crate) mod body;
pub(crate) mod catch;
pub(crate) mod framing;
pub(crate) mod host_check;
pub(crate) mod payer;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod socket;
pub(crate) mod throughput;
pub(crate) mod unread;
pub(crate) mod work;
