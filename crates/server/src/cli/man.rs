//! `bolide man`: the manual pages.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap_mangen::Man;

use crate::settings::Settings;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Write the pages of all commands to this directory, which must exist. Default: print the main page
    directory: Option<PathBuf>,
}

/// Prints or writes the pages.
pub(crate) fn run(request: &Request, _settings: &Settings) -> Result<ExitCode> {
    // The help command needs no page of its own.
    let command = super::described().disable_help_subcommand(true);
    if let Some(directory) = &request.directory {
        clap_mangen::generate_to(command, directory)
            .with_context(|| format!("cannot write the manual into '{}'", directory.display()))?;
    } else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
    }
    Ok(ExitCode::SUCCESS)
}
