//! `bolide verify-log`: checks that a deletion record, exported or in its data directory, is unmodified, and reports
//! the first line that is not.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use engine::{DeletionGap, DeletionLog, Engine, Tampering, Verifier};

use crate::config::{self, Config};
use crate::data_location::DataLocation;
use crate::serve;
use crate::settings::{Origin, Settings};

/// No line of a record is this long.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// The exported record, JSON lines; '-' is standard input. Default: every record of the data directory, which is
    /// opened as the server would open it: to keep it unmodified, name a copy
    file: Option<PathBuf>,
    /// The hash that the server reported at some time: line N has it, or without --count any line. More lines may
    /// follow
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
    /// The number of lines at that time
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// Verifies the record; if the command line names a data directory, compares with the records in it, which no server
/// may have open.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    if request.file.is_none() && (request.head.is_some() || request.count.is_some()) {
        bail!("--head and --count apply to one record: name its exported file");
    }
    let names_data = settings.origin("data") == Origin::CommandLine;
    let stored = names_data.then(|| stored(&config::resolve(settings)?)).transpose()?;
    match (&request.file, stored) {
        (Some(file), stored) => verify_file(request, file, stored.as_ref().map(|stored| &*stored.logs)),
        (None, Some(stored)) => Ok(verify_stored(&stored)),
        (None, None) => bail!("name a file, or a data directory with --data"),
    }
}

/// A record in the store, and whether it is unmodified there.
type Verified = (DeletionLog, Result<(), Tampering>);

/// The records of a data directory.
struct Stored {
    logs: Vec<Verified>,
    gaps: Vec<DeletionGap>,
}

fn stored(config: &Config) -> Result<Stored> {
    if let DataLocation::Directory(path) = &config.location
        && !path.is_dir()
    {
        bail!("there is no data directory '{}'", path.display());
    }
    let engine = Engine::open(serve::open(config, serve::clock())?).context("cannot open the store")?;
    let verify = |log: DeletionLog| {
        let outcome = engine.verify_deletion_log(&log)?;
        Ok((log, outcome))
    };
    let logs = engine.deletion_logs()?.into_iter().map(verify).collect::<Result<Vec<_>>>();
    let gaps = engine.deletion_gaps();
    engine.close().context("cannot close the store")?;
    Ok(Stored { logs: logs?, gaps: gaps? })
}

fn verify_stored(Stored { logs, gaps }: &Stored) -> ExitCode {
    for (log, outcome) in logs {
        let DeletionLog { log, database, container, count, head, .. } = log;
        match outcome {
            Ok(()) => println!(
                "log {log} ({database}/{container}): {count} entries, all as they were written\n{head}"
            ),
            Err(tampering) => eprintln!("log {log} ({database}/{container}): {tampering}"),
        }
    }
    for gap in gaps {
        eprintln!("{gap}");
    }
    println!("{} deletion records", logs.len());
    verdict(gaps.is_empty() && logs.iter().all(|(_, outcome)| outcome.is_ok()))
}

fn verify_file(request: &Request, file: &Path, stored: Option<&[Verified]>) -> Result<ExitCode> {
    let name = file.display();
    let verifier = Verifier::with_noted(request.head.clone(), request.count);
    let outcome = read_file(file, verifier).with_context(|| format!("cannot read '{name}'"))?;
    let verifier = match outcome {
        Ok(verifier) => verifier,
        Err(tampering) => {
            eprintln!("{name}: {tampering}");
            return Ok(verdict(false));
        }
    };
    let (log, count) = (verifier.log(), verifier.count());
    let own = stored.and_then(|logs| logs.iter().find(|(known, _)| Some(u64::from(known.log)) == log));
    if let (Some(log), Some(_), None) = (log, stored, own) {
        eprintln!("{name}: the data directory has no log {log}");
        return Ok(verdict(false));
    }
    if let Some((DeletionLog { log, .. }, Err(tampering))) = own {
        eprintln!("log {log} of the data directory: {tampering}");
        return Ok(verdict(false));
    }
    let known = own.map(|(log, _)| log);
    match verifier.finish(known.map(|log| log.head.as_str()), known.map(|log| log.count)) {
        Ok(found) => {
            let log = log.unwrap_or_default();
            println!("{name}: log {log}: {count} entries, all as they were written\n{found}");
            if known.is_none() && request.head.is_none() {
                println!(
                    "Whether the record ends there is not known: compare count and hash with what the server told, or \
                     give them with --count and --head."
                );
            } else if let Some(later) = request.count.map(|noted| count - noted).filter(|later| *later > 0) {
                println!("{later} of them were written after that head was noted.");
            }
            Ok(verdict(true))
        }
        Err(tampering) => {
            eprintln!("{name}: {tampering}");
            Ok(verdict(false))
        }
    }
}

fn verdict(is_in_order: bool) -> ExitCode {
    if is_in_order { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reads all lines of a file.
#[expect(clippy::disallowed_methods, reason = "the server accesses files")]
fn read_file(path: &Path, mut verifier: Verifier) -> std::io::Result<Result<Verifier, Tampering>> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path)?)
    };
    let (mut source, mut line) = (BufReader::new(source), Vec::new());
    loop {
        line.clear();
        // A line longer than the limit is not a line of a record.
        if source.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(Ok(verifier));
        }
        if let Err(tampering) = verifier.line(&line) {
            return Ok(Err(tampering));
        }
    }
}
