//! Makes operations of the operating system fail: the first, the second, the third and so on until none is left to fail.
//!
//! strace makes them fail and records it: on the store's writer thread, on the threads that flush and compact, on those
//! that answer reads, and on all while the server starts. After a failed write or sync the server acknowledges no write any
//! more, the answers and the log give the reason, reads go on, and a restart finds everything that was acknowledged. The
//! server retries a failed merge by itself, and writes go on meanwhile. A failed read is answered with an error, never with
//! something else, and has no other effect.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bolide_bench::client::{Client, WireClient};
use fastrand::Rng;

use crate::disturb;
use crate::items;
use crate::ledger::Presence;
use crate::process::{Launch, Server};
use crate::recording;
use crate::tracer::{self, Injection, Threads, Tracer};
use crate::verify::{self, Feeds, Writers};
use crate::world::{self, CONTAINERS, World};
use crate::writer::Step;
use crate::{Effort, Outcome, Setting};

/// Steps of each writer.
const STEPS: usize = 25;
/// How long the server may take to flush, to compact, to notice that this failed, and to stop.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Within this time the server renews the lease of its clock twice, if asked for the time.
const TWO_LEASES: Duration = Duration::from_secs(12);
/// The store's writer thread, the one that flushes and the one that compacts.
const WRITER: &str = "bolide-writer";
const FLUSHER: &str = "fjall:worker";
const COMPACTOR: &str = "bolide-compact";
/// All other threads: those that answer reads are among them.
const READERS: Threads = Threads::AllBut(&[WRITER, FLUSHER, COMPACTOR]);
/// The log line for a merge that succeeds after a failure.
const MERGED_AGAIN: &str = "compaction works again";
/// Bytes that are allocated beyond the end of a journal.
const AHEAD: u64 = 64 << 10;
/// The file beside the data that says how far they go.
const MARKER: &str = "bolide.store";

/// The stage in which something fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// On the writer thread under concurrent writes.
    Writing,
    /// On this thread while tables are flushed, merged and rewritten.
    Tending(&'static str),
    /// On the threads that answer, while all tables are read.
    Reading,
    /// On the thread that flushes, while the server stops in order.
    Stopping,
    /// On all threads while the server starts on data that were not closed in order.
    Starting,
}

/// The files on which it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    Any,
    Journal,
    /// Every file that is there when the server starts.
    Present,
}

/// A row of the table of failures.
struct Failure {
    stage: Stage,
    call: &'static str,
    error: &'static str,
    files: Files,
    /// The least effort for which it runs.
    from: Effort,
}

const fn row(stage: Stage, call: &'static str, error: &'static str, files: Files, from: Effort) -> Failure {
    Failure { stage, call, error, files, from }
}

const FAILURES: [Failure; 26] = [
    row(Stage::Writing, "fdatasync", "EIO", Files::Journal, Effort::Quick),
    row(Stage::Writing, "write", "ENOSPC", Files::Journal, Effort::Quick),
    row(Stage::Writing, "write", "EIO", Files::Journal, Effort::Ordinary),
    // The writer opens, syncs and renames nothing but the marker once there are all keyspaces; it opens tables to read.
    row(Stage::Writing, "openat", "ENOSPC", Files::Any, Effort::Quick),
    row(Stage::Writing, "fsync", "EIO", Files::Any, Effort::Quick),
    row(Stage::Writing, "rename", "EIO", Files::Any, Effort::Quick),
    row(Stage::Tending(FLUSHER), "write", "ENOSPC", Files::Any, Effort::Ordinary),
    row(Stage::Tending(FLUSHER), "fsync", "EIO", Files::Any, Effort::Quick),
    row(Stage::Tending(FLUSHER), "openat", "EIO", Files::Any, Effort::Ordinary),
    row(Stage::Tending(COMPACTOR), "write", "ENOSPC", Files::Any, Effort::Quick),
    row(Stage::Tending(COMPACTOR), "fsync", "EIO", Files::Any, Effort::Ordinary),
    row(Stage::Tending(COMPACTOR), "openat", "EIO", Files::Any, Effort::Ordinary),
    row(Stage::Tending(COMPACTOR), "pread64", "EIO", Files::Any, Effort::Ordinary),
    row(Stage::Reading, "pread64", "EIO", Files::Any, Effort::Quick),
    row(Stage::Stopping, "write", "ENOSPC", Files::Any, Effort::Quick),
    row(Stage::Stopping, "fsync", "EIO", Files::Any, Effort::Quick),
    row(Stage::Starting, "fsync", "EIO", Files::Any, Effort::Quick),
    row(Stage::Starting, "rename", "EIO", Files::Any, Effort::Quick),
    row(Stage::Starting, "ftruncate", "EIO", Files::Any, Effort::Ordinary),
    row(Stage::Starting, "unlink", "EIO", Files::Any, Effort::Ordinary),
    row(Stage::Starting, "mkdir", "ENOSPC", Files::Any, Effort::Ordinary),
    row(Stage::Starting, "copy_file_range", "ENOSPC", Files::Any, Effort::Ordinary),
    row(Stage::Starting, "openat", "EIO", Files::Present, Effort::Quick),
    row(Stage::Starting, "read", "EIO", Files::Present, Effort::Quick),
    row(Stage::Starting, "pread64", "EIO", Files::Present, Effort::Quick),
    row(Stage::Starting, "write", "ENOSPC", Files::Present, Effort::Ordinary),
];

pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    if !recording::is_possible() {
        return Ok(Outcome::Skipped("strace is missing: apt-get install strace".to_owned()));
    }
    let most = setting.rounds(1, 8, 1000);
    let mut failures = Failures::new(setting, place)?;
    let mut told = Vec::new();
    for failure in FAILURES.iter().filter(|failure| failure.from <= setting.effort) {
        let Failure { stage, call, error, .. } = failure;
        let name = format!("{call} fails with {error} ({stage:?})");
        let mut count = 0;
        while count < most {
            let struck = failures.one(failure, count + 1);
            if !struck.with_context(|| format!("{name}, number {}", count + 1))? {
                break;
            }
            count += 1;
        }
        ensure!(count > 0, "{name}: nothing was struck, so nothing was shown");
        told.push(format!("{stage:?} {call} {error} {count}"));
    }
    Ok(Outcome::Held(format!(
        "{} writes acknowledged, {} refused, {} reads that failed and said so; failures of each kind: {}",
        failures.all_writers.acknowledged(),
        failures.refused,
        failures.failed_reads,
        told.join(", ")
    )))
}

struct Failures {
    launch: Launch,
    /// The file that strace writes.
    trace: PathBuf,
    world: World,
    all_writers: Writers,
    refused: u64,
    failed_reads: u64,
}

impl Failures {
    fn new(setting: &Setting, place: &Path) -> Result<Failures> {
        let mut random = Rng::with_seed(setting.seed);
        let launch = Launch::new(&setting.server, place);
        let (world, all_writers) = (World::default(), Writers::new(2, 1, &mut random));
        let server = launch.start()?;
        let mut client = Client::connect(&server.address)?;
        world.make(&mut client, &mut WireClient::connect(&server.mongo)?)?;
        server.kill()?;
        let trace = place.join("failures.strace");
        Ok(Failures { launch, trace, world, all_writers, refused: 0, failed_reads: 0 })
    }

    /// Runs one failure; returns whether there was an operation of that number to fail.
    fn one(&mut self, failure: &Failure, number: u64) -> Result<bool> {
        let injection = Injection { call: failure.call, error: failure.error, number };
        match failure.stage {
            Stage::Writing => self.while_writing(&injection, failure.files),
            Stage::Tending(thread) => self.while_tending(&injection, thread),
            Stage::Reading => self.while_reading(&injection),
            Stage::Stopping => self.while_stopping(&injection),
            Stage::Starting => self.while_starting(&injection, failure.files),
        }
    }

    /// Returns a server whose log begins now, compared with the ledger.
    fn start(&mut self) -> Result<Server> {
        let server = self.launch.start()?;
        verify::everything(&self.world, &server, &mut self.all_writers, Feeds::LeftAlone)?;
        self.launch.forget_log()?;
        Ok(server)
    }

    fn attach(
        &self,
        server: &Server,
        threads: Threads,
        injection: &Injection,
        paths: &[PathBuf],
    ) -> Result<Tracer> {
        Tracer::attach(server.id(), threads, injection, paths, &self.trace)
    }

    fn while_writing(&mut self, injection: &Injection, files: Files) -> Result<bool> {
        let server = self.start()?;
        let paths = if files == Files::Journal { journals(&self.launch.data)? } else { Vec::new() };
        let tracer = self.attach(&server, Threads::Named(WRITER), injection, &paths)?;
        let (begun, mut refused) = (Instant::now(), self.write(&server, Some(&tracer))?);
        // The marker is written when the clock's lease is renewed, by the machine's time.
        while files == Files::Any && tracer.struck().is_none() && begun.elapsed() < TWO_LEASES {
            refused = refused.or(self.write_once(&server)?);
        }
        let struck = tracer.struck();
        match &struck {
            Some(line) if stops_writes(line) => self.has_stopped(&server, injection)?,
            Some(_) => {}
            None => ensure!(refused.is_none(), "nothing failed, and a write was refused: {refused:?}"),
        }
        self.end(server, tracer)?;
        Ok(struck.is_some())
    }

    /// Flushes, merges and rewrites tables, as a promise about removed bytes has it, with one of the threads failing.
    fn while_tending(&mut self, injection: &Injection, thread: &'static str) -> Result<bool> {
        let server = self.start()?;
        let tracer = self.attach(&server, Threads::Named(thread), injection, &[])?;
        let mut client = Client::connect(&server.address)?;
        let (before, begun) = (disturb::scrubs(&mut client)?, Instant::now());
        let provoked = self.provoke(&mut client);
        ensure!(
            provoked.is_ok() || tracer.struck().is_some(),
            "tables are not to be rewritten: {provoked:?}"
        );
        while tracer.struck().is_none() && disturb::scrubs(&mut client)? == before {
            ensure!(begun.elapsed() < MAX_WAIT, "tables are not rewritten");
            self.write_once(&server)?;
        }
        let struck = tracer.struck();
        if struck.is_some() && thread == COMPACTOR {
            self.goes_on(&server, injection)?;
        } else if struck.is_some() {
            // Writes that came before the failure was noticed are in the journal, where they belong.
            while self.write_once(&server)?.is_none() {
                ensure!(begun.elapsed() < MAX_WAIT, "{struck:?}: writes go on");
            }
            self.has_stopped(&server, injection)?;
        }
        self.end(server, tracer)?;
        // Nothing is promised any more.
        let server = self.start()?;
        disturb::promise(&mut Client::connect(&server.address)?, None)?;
        server.kill()?;
        Ok(struck.is_some())
    }

    /// Lets a hundred items expire whose bytes must all be removed.
    fn provoke(&mut self, client: &mut Client) -> Result<()> {
        let writer = self.all_writers.writers.last_mut().context("there are writers")?;
        writer.crowd(&self.world, client, 2)?;
        disturb::promise(client, Some(2))?;
        self.world.advance(client, 10)
    }

    fn while_reading(&mut self, injection: &Injection) -> Result<bool> {
        let server = self.start()?;
        self.write(&server, None)?;
        // Afterwards everything is in tables, and nothing in memory.
        ensure!(server.stop(MAX_WAIT)?.success(), "the server did not end in order");
        let server = self.launch.start()?;
        self.world.read_clock(&mut Client::connect(&server.address)?)?;
        let tracer = self.attach(&server, READERS, injection, &[])?;
        let failed = self.read(&server)?;
        let struck = tracer.struck();
        ensure!(struck.is_some() || failed == 0, "nothing failed, and {failed} reads did");
        self.failed_reads += failed;
        tracer.let_go()?;
        verify::everything(&self.world, &server, &mut self.all_writers, Feeds::LeftAlone)
            .context("once reads do not fail any more")?;
        ensure!(self.write_once(&server)?.is_none(), "reads failed, and with them later writes");
        server.kill()?;
        self.launch.inspect()?;
        Ok(struck.is_some())
    }

    /// Tables cannot be written when the server is to stop: it reports that, and the journal has the writes that they lack.
    fn while_stopping(&mut self, injection: &Injection) -> Result<bool> {
        let server = self.start()?;
        self.write(&server, None)?;
        let tracer = self.attach(&server, Threads::Named(FLUSHER), injection, &[])?;
        let status = server.stop(MAX_WAIT)?;
        let struck = tracer.struck();
        tracer.wait()?;
        ensure!(struck.is_none() == status.success(), "{struck:?}, and the server ended with {status}");
        if struck.is_some() {
            self.log_says_why(injection)?;
        }
        self.start().context("after the failure")?.kill()?;
        self.launch.inspect()?;
        Ok(struck.is_some())
    }

    fn while_starting(&mut self, injection: &Injection, files: Files) -> Result<bool> {
        // Leaves work for recovery: in tables, in the journal, and beyond its end.
        let server = self.start()?;
        self.write(&server, None)?;
        ensure!(server.stop(MAX_WAIT)?.success(), "the server did not end in order");
        let server = self.start()?;
        self.write(&server, None)?;
        server.kill()?;
        for journal in journals(&self.launch.data)? {
            allocate_ahead(&journal)?;
        }
        let _ = std::fs::remove_file(&self.trace);
        let mut launch = self.launch.clone();
        let paths = if files == Files::Present { present(&self.launch.data)? } else { Vec::new() };
        launch.wrapper = ["strace", "-D", "-f"].map(OsString::from).to_vec();
        launch.wrapper.extend(injection.words(&self.trace, &paths));
        let started = launch.start();
        let process = started.as_ref().map(Server::id).ok();
        if let Ok(server) = started {
            server.kill()?;
        }
        if let Some(process) = process {
            recording::wait_for_end(&self.trace, process)?;
        }
        let struck = tracer::struck(&self.trace);
        ensure!(struck.is_some() || process.is_some(), "the server does not start: {}", launch.last_words());
        if process.is_none() {
            self.log_says_why(injection)?;
        }
        self.start().context("after the failure")?.kill()?;
        self.launch.inspect()?;
        Ok(struck.is_some())
    }

    /// Ends the server first: a detaching tracer might let a call succeed.
    fn end(&mut self, server: Server, tracer: Tracer) -> Result<()> {
        server.kill()?;
        tracer.wait()?;
        self.launch.inspect()
    }

    /// Runs all writers; returns why the first write was refused, if one was. Nothing is acknowledged after a failure
    /// that stops writes.
    fn write(&mut self, server: &Server, tracer: Option<&Tracer>) -> Result<Option<String>> {
        let mut client = Client::connect(&server.address)?;
        let mut why = None;
        for step in 0..STEPS {
            if step % 5 == 4 && self.world.advance(&mut client, 10).is_err() {
                client = Client::connect(&server.address)?;
            }
            let failed = tracer.and_then(Tracer::struck).filter(|line| stops_writes(line));
            let before = self.all_writers.acknowledged();
            let refused = self.write_once(server)?;
            if let Some(line) = failed {
                ensure!(
                    self.all_writers.acknowledged() == before,
                    "{line}: a write was acknowledged afterwards"
                );
            }
            why = why.or(refused);
        }
        Ok(why)
    }

    /// Runs one step of every writer; returns why a write was refused, if one was.
    fn write_once(&mut self, server: &Server) -> Result<Option<String>> {
        let (mut client, mut wire) = (Client::connect(&server.address)?, WireClient::connect(&server.mongo)?);
        let steps = self.all_writers.writers.iter_mut().map(|writer| writer.step(&self.world, &mut client));
        let mut steps: Vec<Step> = steps.collect::<Result<_>>()?;
        for writer in &mut self.all_writers.wire_writers {
            steps.push(writer.step(&self.world, &mut wire)?);
        }
        let mut why = None;
        for step in steps {
            match step {
                Step::Answered => {}
                Step::Refused(_, text) => {
                    self.refused += 1;
                    why = why.or(Some(text));
                }
                Step::Lost => bail!("the server went away: {}", self.launch.last_words()),
            }
        }
        Ok(why)
    }

    /// Reads everything in every way; returns how many reads failed. Those that do not fail must be right.
    fn read(&self, server: &Server) -> Result<u64> {
        let (mut client, mut failed) = (Client::connect(&server.address)?, 0);
        for (at, name) in CONTAINERS.iter().enumerate() {
            let rules = self.world.rules[at].lock().clone();
            let all = world::living(&mut client, name, 0);
            failed += u64::from(all.is_err());
            for (writer, item) in self
                .all_writers
                .writers
                .iter()
                .flat_map(|writer| writer.items[at].iter().map(move |item| (writer, item)))
            {
                let before = self.world.now();
                let answer = client.read(name, &writer.pk(), &item.id)?;
                let (presence, rev) =
                    (item.entry.presence(&rules, before), item.entry.version.map(|it| it.rev));
                let missing = all.as_ref().is_ok_and(|all| !all.contains_key(&item.id));
                ensure!(!missing || presence != Presence::There, "{} is not in the feed of {name}", item.id);
                let is_right = match answer.status {
                    200 => {
                        Some(items::version(&serde_json::from_str(&answer.body)?, 0)?.rev) == rev
                            && presence != Presence::Gone
                    }
                    404 => presence != Presence::There,
                    500.. => {
                        failed += 1;
                        true
                    }
                    _ => false,
                };
                ensure!(is_right, "{} of {name}: {} {} ({presence:?})", item.id, answer.status, answer.body);
            }
        }
        match world::living_documents(&mut WireClient::connect(&server.mongo)?, 0) {
            Err(_) => failed += 1,
            Ok(all) => {
                for item in self.all_writers.wire_writers.iter().flat_map(|writer| &writer.items) {
                    let presence = item.entry.presence(&self.world.date_rules, self.world.now());
                    let is_there = all.contains_key(&item.id) || presence != Presence::There;
                    ensure!(is_there, "document {} is not found", item.id);
                }
            }
        }
        Ok(failed)
    }

    /// Checks that the server retries a failed merge by itself, while writes go on. They stop, as after a failed commit,
    /// only if the list of tables may have reached the disk.
    fn goes_on(&mut self, server: &Server, injection: &Injection) -> Result<()> {
        let begun = Instant::now();
        while !self.launch.logged().contains(MERGED_AGAIN) {
            if self.write_once(server)?.is_some() {
                return self.has_stopped(server, injection);
            }
            ensure!(begun.elapsed() < MAX_WAIT, "tables are not merged again: {}", self.launch.last_words());
        }
        let mut client = Client::connect(&server.address)?;
        let status = client.admin("GET", "/_bolide/status", "")?.expect(200)?;
        ensure!(status.body.contains("\"mergingFails\":false"), "the status says otherwise: {}", status.body);
        ensure!(self.write_once(server)?.is_none(), "a write is refused after tables were merged again");
        self.log_says_why(injection)
    }

    /// Checks that writes are refused with the reason, and that reads work as before.
    fn has_stopped(&mut self, server: &Server, injection: &Injection) -> Result<()> {
        let mut client = Client::connect(&server.address)?;
        for name in CONTAINERS {
            let answer = client.read(name, "p0", "w0-0")?;
            ensure!(
                matches!(answer.status, 200 | 404),
                "a read is answered {}: {}",
                answer.status,
                answer.body
            );
        }
        let answer = client.upsert(CONTAINERS[0], "p", "{\"id\":\"another\",\"pk\":\"p\"}")?;
        ensure!(
            answer.status == 503 && answer.body.contains("no more writes"),
            "a write after a failure is answered {}: {}",
            answer.status,
            answer.body
        );
        let status = client.admin("GET", "/_bolide/status", "")?.expect(200)?;
        ensure!(status.body.contains("\"writable\":false"), "the status says nothing: {}", status.body);
        let ready = client.request("GET", "/ready", "", "")?;
        ensure!(ready.status == 503, "a server that takes no writes says that it is ready");
        self.log_says_why(injection)
    }

    fn log_says_why(&self, injection: &Injection) -> Result<()> {
        let (why, log) = (injection.text(), self.launch.logged());
        ensure!(log.contains(why), "the log does not say '{why}': {log}");
        Ok(())
    }
}

/// Returns `true` if the server may acknowledge nothing after this failure: any but a failure to open a table for reading.
fn stops_writes(line: &str) -> bool {
    !line.contains("openat(") || line.contains(MARKER)
}

/// Lets a journal have zeroes behind its last commit, as a new one has; recovery cuts them off.
fn allocate_ahead(journal: &Path) -> Result<()> {
    let file = OpenOptions::new().write(true).open(journal)?;
    Ok(file.set_len(file.metadata()?.len() + AHEAD)?)
}

fn journals(data: &Path) -> Result<Vec<PathBuf>> {
    let mut files = present(data)?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    Ok(files)
}

/// Returns the files below a directory.
fn present(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(present(&path)?) } else { files.push(path) }
    }
    Ok(files)
}
