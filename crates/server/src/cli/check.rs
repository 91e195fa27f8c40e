//! `bolide check`: is everything in a data directory as its items and its catalog call for, and the repair of what is not.

use std::process::ExitCode;

use anyhow::{Context, Result};
use engine::check::{self, Progress, Report};
use storage::Store;

use super::bar::Bar;
use super::offline;
use crate::settings::Settings;

/// What is to be done.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Write anew what follows from the items: entries by id, unique keys, queues, indexes, counters, notes. What follows from
    /// nothing else is told and left as it is. Take a backup or a copy of the directory before.
    #[arg(long)]
    repair: bool,
}

/// Ends with 0 if everything is in order, by now, and with 1 if something is not.
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
        println!("{repaired} of {} findings were repaired; what is left:", before.found());
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
        println!("and {untold} more; in all: {}", counts.collect::<Vec<_>>().join(", "));
    }
    for what in &report.unchecked {
        println!("not compared before that is repaired: {what}");
    }
}

fn summary(report: &Report) -> String {
    let Report { items, entries, .. } = report;
    let looked_at = format!("{items} items and {entries} entries were looked at");
    match (report.found(), report.repairable()) {
        (0, _) => format!("{looked_at}: everything is in order"),
        (found, 0) => format!("{looked_at}: {found} findings, none of which can be repaired"),
        (found, repairable) => {
            format!("{looked_at}: {found} findings, {repairable} of which --repair can repair")
        }
    }
}
