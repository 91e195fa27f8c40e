//! `bolide ttl`: what expires, when, and what may not: reports, forecasts, dry runs, holds, and the purge.

mod forecast;
mod hold;
mod purge;
mod report;

use std::process::ExitCode;

use anyhow::Result;

use crate::client::{Client, Endpoint};
use crate::settings::Settings;

/// What is asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Rules, living and expired items of one container, or of all.
    Report(report::Request),
    /// What expires in each of the next minutes, hours or days.
    Forecast(forecast::Request),
    /// What another default time to live would kill at once; nothing is changed.
    DryRun(forecast::DryRun),
    /// Hold a container or an item: nothing of it dies, is changed or deleted.
    #[command(subcommand)]
    Hold(hold::Request),
    /// The background work that removes what has expired.
    #[command(subcommand)]
    Purge(purge::Request),
}

/// Does it.
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
