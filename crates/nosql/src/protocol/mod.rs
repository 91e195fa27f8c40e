//! The elements of the protocol, below any request: header names, errors and their codes, paths, session tokens, dates,
//! consistency levels, the strictness of the gateway, limits.

pub(crate) mod activity;
pub(crate) mod consistency;
pub(crate) mod date;
pub(crate) mod error;
pub(crate) mod gateway;
pub(crate) mod headers;
pub(crate) mod json;
pub mod limits;
pub(crate) mod path;
pub(crate) mod script_kind;
pub(crate) mod session;
