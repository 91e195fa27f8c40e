//! The binary `bolide`: reads the settings and does what the command line says, mostly to serve until told to stop.
//!
//! This is where the world comes in: real clocks, files, threads, signals. Everything below gets them handed in.

mod admission_figures;
mod archive;
mod audit;
mod background;
mod bounded_archive;
mod cli;
mod client;
mod clock_log;
mod config;
mod data_location;
mod figures;
mod files;
mod host;
mod host_name;
mod key_file;
mod key_strength;
mod keys;
mod logging;
mod mongo_sweep;
mod pages;
mod place;
mod processors;
mod scratch;
mod seed;
mod serve;
mod settings;
mod tls;
mod transfer;

use std::process::ExitCode;

/// Requests are made of many small pieces that threads hand to each other, which costs the system's allocator a good sixth of
/// every operation.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cli::run()
}
