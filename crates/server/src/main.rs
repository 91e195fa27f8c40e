//! The binary `bolide`: reads the configuration, opens the store, serves until told to stop.
//!
//! This is where the world comes in: real clocks, files, threads, signals. Everything below gets them handed in.

mod background;
mod clock;
mod config;
mod host;
mod serve;
mod settings;
mod tls;

use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let config = match config::load() {
        Ok(config) => config,
        Err(config::Exit::Help(code)) => return code,
        Err(config::Exit::Wrong(error)) => {
            eprintln!("error: {error:#}");
            return ExitCode::from(2);
        }
    };
    log_to_stderr();
    match serve::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Standard output is for the connection string, so the log goes to standard error. `BOLIDE_LOG` sets its level.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("BOLIDE_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
