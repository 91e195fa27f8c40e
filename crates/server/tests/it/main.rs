//! The real binary, started as a user starts it.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod audit;
mod clock;
mod configuration;
mod connections;
mod direct;
mod directories;
mod evidence;
mod explorer;
mod keys;
mod lifecycle;
mod mongo;
mod mongo_client;
mod observability;
mod process;
mod readiness;
mod retention;
mod seed;
mod shared_memory;
mod tls;
mod tools;
mod transfer;
