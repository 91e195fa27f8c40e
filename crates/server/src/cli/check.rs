//! `bolide check`: whether a data directory is consistent with its items and its catalog, and its repair.

use std::process::ExitCode;

use anyhow::{Context, Result};
use engine::check::{self, Progress, Report};
use storage::Store;

use super::bar::Bar;
use super::offline;
use crate::settings::Settings;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Rebuild everything derived from the items: entries by id, unique keys, queues, indexes, counters, records. Other
    /// findings are reported and left as they are. Take a backup or a copy of the directory first
    #[arg(long)]
    repair: bool,
}

/// Exits with status 0 if everything is in order, possibly after the repair, and with 1 otherwise.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let (store, path) = offline::open(settings)?;
    let mut bar = Bar::new("checking");
    let mut progress = |Progress { place, items, of }: Progress<'_>| bar.at(items, of, place);
    let outcome = if request.repair {
        check::repair(&store, &mut progress)
            .map(|repair| (repair.after, Some((repair.before, repair.repaired))))
    } else {
        check::check(&store, &mut progress).map(|report| (report, None))
    };
    drop(bar);
    let closed = store.close().with_context(|| format!("cannot close '{}'", path.display()));
    let (left, repaired) = outcome.with_context(|| format!("cannot inspect '{}'", path.display()))?;
    closed?;
    if let Some((before, repaired)) = repaired {
        tell(&before);
        println!("repaired {repaired} of {} findings; left:", before.found());
    }
    tell(&left);
    println!("{}", summary(&left));
    Ok(if left.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(report: &Report) {
    for finding in &report.told {
        println!("{finding}");
    }
    let untold = report.found() - report.told.len() as u64;
    if untold > 0 {
        let counts = report.counts.iter().map(|(subject, (found, _))| format!("{found} {}", subject.name()));
        println!("and {untold} more; total: {}", counts.collect::<Vec<_>>().join(", "));
    }
    for what in &report.unchecked {
        println!("not checked until that is repaired: {what}");
    }
}

fn summary(report: &Report) -> String {
    let Report { items, entries, .. } = report;
    let looked_at = format!("checked {items} items and {entries} entries");
    match (report.found(), report.repairable()) {
        (0, _) => format!("{looked_at}: everything is in order"),
        (found, 0) => format!("{looked_at}: {found} findings, none of which can be repaired"),
        (found, repairable) => {
            format!("{looked_at}: {found} findings, {repairable} of which --repair can repair")
        }
    }
}
