//! `bolide serve`, and `bolide` alone: the server.

use std::process::ExitCode;

use anyhow::Result;

use crate::settings::Settings;
use crate::{config, host, serve};

/// All that matters is in the settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {}

/// Serves until told to stop. A server that fails is not a wrong setting, and ends otherwise.
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
