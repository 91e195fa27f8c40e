//! The binary `bolide`: reads the settings and runs the command, by default the server.
//!
//! This crate provides the real clocks, files, threads and signals; everything below receives them as arguments.

mod admission_metrics;
mod archive;
mod audit;
mod background;
mod bounded_archive;
mod cli;
mod client;
mod clock_log;
mod config;
mod data_location;
mod files;
mod format;
mod host;
mod host_name;
mod key_file;
mod key_strength;
mod keys;
mod logging;
mod mongo_sweep;
mod namespace;
mod pages;
mod processors;
mod scratch;
mod seed;
mod serve;
mod settings;
mod tls;
mod transfer;

use std::process::ExitCode;

/// Requests allocate many small objects and pass them between threads, which costs a good sixth of every operation with
/// the system's allocator.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cli::run()
}
