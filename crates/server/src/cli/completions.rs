//! `bolide completions`: what a shell needs to complete commands, options and their values.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::settings::Settings;

/// For whom.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// The shell that is to complete.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script; where each shell looks for it is told in docs/configuration.md.
pub(crate) fn run(request: &Request, _settings: &Settings) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(request.shell, &mut super::described(), super::NAME, &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
