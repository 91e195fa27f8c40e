//! A request and its answer as types, whichever protocol carries them, and the memory that both take. The codecs are in
//! `http/` and `direct/`.

pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod fields;
mod form;
pub(crate) mod options;
pub(crate) mod payer;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod throughput;
pub(crate) mod unread;
pub(crate) mod work;
