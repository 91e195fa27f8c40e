//! HTTP: the socket, framing, host names, and the codec between its messages and those of `message/`.

pub(crate) mod answer;
pub(crate) mod framing;
pub(crate) mod head;
pub(crate) mod host_check;
pub(crate) mod socket;
