//! The MongoDB front end over real sockets.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod authentication;
mod client;
mod diagnostics;
mod fail_points;
mod handshake;
mod hostile;
mod scram;
mod sessions;
mod tls;
