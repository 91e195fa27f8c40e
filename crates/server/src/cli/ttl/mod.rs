//! `bolide ttl`: what expires and when: reports, forecasts, dry runs, holds, and the purge.

mod forecast;
mod hold;
mod purge;
mod report;

use std::process::ExitCode;

use anyhow::Result;

use crate::client::{Client, Endpoint};
use crate::settings::Settings;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Report the expiry rules and the live and expired items of one container, or of all
    Report(report::Request),
    /// Forecast what expires in each of the next minutes, hours or days
    Forecast(forecast::Request),
    /// Show which items another default time to live would expire at once; changes nothing
    DryRun(forecast::DryRun),
    /// Hold a container or an item: nothing in it expires, is changed or deleted
    #[command(subcommand)]
    Hold(hold::Request),
    /// Control the background purge of expired items
    #[command(subcommand)]
    Purge(purge::Request),
}

/// Runs the command.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    let client = &mut client;
    match &request.task {
        Task::Report(request) => report::run(request, client),
        Task::Forecast(request) => forecast::run(request, client),
        Task::DryRun(request) => forecast::dry_run(request, client),
        Task::Hold(request) => hold::run(request, client),
        Task::Purge(request) => purge::run(request, client),
    }?;
    Ok(ExitCode::SUCCESS)
}
