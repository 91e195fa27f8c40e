//! The client against a server that says what the test tells it to.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod conversation;
mod peer;
mod tls;
