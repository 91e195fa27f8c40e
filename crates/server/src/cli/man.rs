//! `bolide man`: the manual, in the form that `man` reads.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap_mangen::Man;

use crate::settings::Settings;

/// Where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Write the pages of all commands into this directory, which must exist; without it the first is printed.
    directory: Option<PathBuf>,
}

/// Prints or writes.
pub(crate) fn run(request: &Request, _settings: &Settings) -> Result<ExitCode> {
    // Its page would be a page about pages.
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
