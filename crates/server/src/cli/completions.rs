//! `bolide completions`: a script for completing commands, options and their values in a shell.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::settings::Settings;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// The shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script; docs/configuration.md describes where each shell looks for it.
pub(crate) fn run(request: &Request, _settings: &Settings) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(request.shell, &mut super::described(), super::NAME, &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
