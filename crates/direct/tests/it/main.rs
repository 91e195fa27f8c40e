//! The client against a server that the test scripts.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod conversation;
mod peer;
mod tls;
