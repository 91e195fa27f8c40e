//! The binary `bolide`: reads the configuration, opens the store, serves until told to stop.
//!
//! This is where the world comes in: real clocks, files, threads, signals. Everything below gets them handed in.

mod archive;
mod background;
mod clock;
mod config;
mod host;
mod serve;
mod settings;
mod tls;
mod verify_log;

use std::process::ExitCode;

use config::Task;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let task = match config::load() {
        Ok(task) => task,
        Err(config::Exit::Help(code)) => return code,
        Err(config::Exit::Wrong(error)) => {
            eprintln!("error: {error:#}");
            return ExitCode::from(2);
        }
    };
    log_to_stderr();
    let (outcome, failure) = match task {
        Task::Serve(config) => (serve::run(*config).map(|()| ExitCode::SUCCESS), ExitCode::FAILURE),
        // A record that was tampered with is a failure; one that cannot be read is another.
        Task::VerifyLog(request, config) => (verify_log::run(&request, config.as_deref()), ExitCode::from(2)),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        failure
    })
}

/// Standard output is for the connection string, so the log goes to standard error. `BOLIDE_LOG` sets its level.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("BOLIDE_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
