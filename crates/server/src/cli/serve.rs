//! `bolide serve`, and `bolide` without a command: the server.

use std::process::ExitCode;

use anyhow::Result;

use crate::settings::Settings;
use crate::{config, host, serve};

/// Arguments of the command: none.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {}

/// Runs the server until it is stopped. A server that fails exits with another status than a wrong setting.
pub(crate) fn run(_request: &Request, settings: &Settings) -> Result<ExitCode> {
    super::remark(settings);
    // Before files are shared out.
    host::raise_open_files();
    let config = config::resolve(settings)?;
    Ok(serve::run(config).map_or_else(
        |error| {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}
