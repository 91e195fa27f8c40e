//! A server process under measurement, and small blocking clients, one kept connection each.

mod bson;
mod process;
mod rest;
mod scram;
mod server;
mod wire;

pub use bson::{Bson, Fields, Value};
pub use process::{cpu_seconds_of, exact_cpu_seconds_of, resident_kib_of, switches_of, written_bytes_of};
pub use rest::{Answer, Client, KEY, date, sign, sign_link, sign_with};
pub use scram::Login;
pub use server::Server;
pub use wire::{WireClient, message};
