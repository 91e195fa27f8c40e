//! The real engine over a memory store, its disk and the machine's clocks: the whole state of a process, and the part that a
//! crash leaves.
//!
//! A world executes steps and reports the observed state as plain data in the types of the model. It makes no checks.

mod evidence;
mod history;
mod owner;
pub(crate) mod translate;
mod watermarks;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{
    BatchError, Container, Database, Engine, FeedStart, MemoryArchive, Options, Outcome, Precondition,
    PurgeReport, QueryPage, QueryRequest, Scope, SlidingRenewal,
};
use storage::{
    ClockOptions, CrashMode, Direction, KeyRange, Keyspace, ManualClock, MemoryDisk, MemoryStore, Store,
    TestClock,
};

use crate::body;
use crate::clock::ClockReading;
use crate::digest::Digest;
use crate::model::{Answer, Body, Change, Consent, Countdown, DefaultTtl, Guard, Indexing, Name, Stamp};
use crate::operation::{CONTAINERS, Fault, Filter, QueryScope};
pub(crate) use evidence::EvidenceEntry;
pub(crate) use history::{SeenEvent, SeenHistory};
pub(crate) use owner::{Figures, SeenSettings};
use translate::{
    answer_of, container_answer, effect, engine_consent, engine_countdown, item_name, kind, operation,
    parse_definition, precondition, seen_default_ttl, seen_item, seen_row,
};

const DATABASE: &str = "simulated";

/// Whether this world's purge runs: the twin's never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purging {
    /// Purge steps run.
    On,
    /// Purge steps only read the clock, as a purge would.
    Off,
}

/// An item as the engine returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenItem {
    /// What the client stored.
    pub(crate) body: Body,
    /// `_ts`
    pub(crate) ts: u64,
    /// Etag, number, sequence.
    pub(crate) stamp: Stamp,
    /// Its stored size.
    pub(crate) bytes: u64,
}

/// The answer to one request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// How it ended.
    pub(crate) answer: Answer,
    /// The returned items, one for each operation that returned one, with the operation's answer.
    pub(crate) items: Vec<(Answer, SeenItem)>,
    /// Charges and LSNs, which must not show whether the purge has run.
    pub(crate) figures: Vec<(u64, u64)>,
    /// The seconds that each of the items has left.
    pub(crate) left: Vec<Option<u64>>,
    /// Countdowns that are still to be restarted.
    renewals: Vec<SlidingRenewal>,
}

impl PartialEq for Reply {
    fn eq(&self, other: &Reply) -> bool {
        let shown = |reply: &Reply| {
            (reply.answer.clone(), reply.items.clone(), reply.figures.clone(), reply.left.clone())
        };
        shown(self) == shown(other)
    }
}

/// One page of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenPage {
    /// Its items.
    pub(crate) items: Vec<SeenItem>,
    /// The token of the next page.
    pub(crate) continuation: Option<String>,
    /// Charge, LSN, metrics.
    pub(crate) figures: String,
}

/// The visible state of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenContainer {
    /// Its resource id.
    pub(crate) rid: String,
    /// Its etag.
    pub(crate) etag: String,
    /// Its `D`.
    pub(crate) default_ttl: DefaultTtl,
    /// A listing of it.
    pub(crate) items: Vec<SeenItem>,
    /// Live items by the counters.
    pub(crate) usage_items: u64,
    /// Live bytes by the counters.
    pub(crate) usage_bytes: u64,
    /// Answers to point reads, by key and id.
    pub(crate) reads: BTreeMap<(usize, String), Answer>,
    /// The change feed from its beginning.
    pub(crate) feed: SeenPage,
    /// The listing's charge and metrics.
    pub(crate) figures: String,
    /// The LSN of its range, as errors show it and as the feed does.
    pub(crate) lsns: (u64, u64),
    /// The settings of its owner.
    pub(crate) lifecycle_settings: SeenSettings,
}

/// The visible state of a store, without that of the purge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// By name.
    pub(crate) containers: BTreeMap<&'static str, SeenContainer>,
    /// The last sequence.
    pub(crate) sequence: u64,
}

/// The number of entries of each kind in the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Raw {
    /// By keyspace or kind.
    pub(crate) entries: BTreeMap<&'static str, u64>,
}

struct Process {
    store: Arc<MemoryStore>,
    engine: Engine,
    database: Arc<Database>,
}

/// One machine with one store.
pub(crate) struct World {
    disk: MemoryDisk,
    /// The archive; appended lines are durable.
    archive: Arc<MemoryArchive>,
    clock: Arc<ManualClock>,
    test_clock: bool,
    purging: Purging,
    process: Option<Process>,
    /// The oldest handle of each container that this process has, to be used now and then.
    handles: BTreeMap<&'static str, Arc<Container>>,
    ghosts: BTreeMap<&'static str, Arc<Container>>,
    /// All charges so far.
    charges: Cell<Digest>,
}

impl World {
    /// Creates a new machine with an empty disk.
    pub(crate) fn new(clock: Arc<ManualClock>, test_clock: bool, purging: Purging) -> Result<World, String> {
        let mut world = World {
            disk: MemoryDisk::new(),
            archive: Arc::default(),
            clock,
            test_clock,
            purging,
            process: None,
            handles: BTreeMap::new(),
            ghosts: BTreeMap::new(),
            charges: Cell::default(),
        };
        world.start()?;
        Ok(world)
    }

    /// Starts a process over what is on the disk.
    pub(crate) fn start(&mut self) -> Result<(), String> {
        let mut options = ClockOptions::new(self.clock.clone());
        options.test_clock = TestClock::running(self.test_clock);
        let store =
            MemoryStore::open(self.disk.clone(), options).map_err(|error| format!("open: {error}"))?;
        let store = Arc::new(store);
        let options = Options { archive: Some(self.archive.clone()), ..Options::default() };
        let engine = Engine::open_with(store.clone(), options).map_err(|error| format!("open: {error}"))?;
        let database = match engine.database(DATABASE) {
            Ok(database) => database,
            Err(_) => engine.create_database(DATABASE, None).map_err(|error| format!("database: {error}"))?,
        };
        self.process = Some(Process { store, engine, database });
        for name in CONTAINERS {
            if let Ok(container) = self.current(name) {
                self.handles.insert(name, container);
            }
        }
        Ok(())
    }

    /// Crashes the process, as by `kill -9`.
    pub(crate) fn crash(&mut self) {
        self.process = None;
        self.disk.clear_faults();
        self.handles.clear();
        self.ghosts.clear();
    }

    /// Ends the process cleanly.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        let closed = self.process().engine.close();
        self.crash();
        closed.map_err(|error| error.to_string())
    }

    /// Plans a fault for the next step.
    pub(crate) fn plan(&self, fault: Fault) {
        match fault {
            Fault::Crash { nth, kept } => {
                let mode = if kept { CrashMode::AfterCommit } else { CrashMode::BeforeCommit };
                self.disk.crash_after(nth - 1, mode);
            }
            Fault::Fail { nth, kept: false } => self.disk.fail_after(nth - 1),
            Fault::Fail { nth, kept: true } => self.disk.fail_sync_after(nth - 1),
        }
    }

    /// Returns `true` if the planned fault has happened; it will not any more.
    pub(crate) fn has_struck(&self) -> bool {
        let struck = !self.disk.fault_is_planned();
        self.disk.clear_faults();
        struck
    }

    /// Returns `true` if the store refuses writes.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.process().store.stats().poisoned
    }

    /// Returns how many commits crashes have undone after they were answered.
    pub(crate) fn undone(&self) -> u64 {
        self.disk.undone()
    }

    /// Returns how many commits the disk has taken.
    pub(crate) fn commits(&self) -> u64 {
        self.disk.commits()
    }

    /// Reads the clock.
    pub(crate) fn look(&self) -> Result<ClockReading, String> {
        let status = self.process().engine.clock_status().map_err(|error| error.to_string())?;
        Ok(ClockReading {
            now_ms: status.now.millis(),
            trusted_ms: status.trusted.millis(),
            suspect: status.suspect.is_some(),
            advanced_ms: status.advanced_ms,
        })
    }

    /// Accepts or rejects a suspect clock.
    pub(crate) fn judge_clock(&self, accept: bool) -> Result<(), String> {
        let engine = &self.process().engine;
        let judged = if accept { engine.accept_clock() } else { engine.reject_clock() };
        judged.map(drop).map_err(|error| error.to_string())
    }

    /// Moves the test clock.
    pub(crate) fn advance_clock(&self, seconds: u64) -> Result<(), String> {
        self.process().engine.advance_clock(seconds).map(drop).map_err(|error| error.to_string())
    }

    /// Runs one step of the purge, or only reads the clock if the purge is off.
    pub(crate) fn purge(&self, limit: usize) -> Result<Option<PurgeReport>, String> {
        match self.purging {
            Purging::On => {
                self.process().engine.purge_step(limit).map(Some).map_err(|error| error.to_string())
            }
            Purging::Off => self.look().map(|_| None),
        }
    }

    /// Runs one step of index builds, in the twin too: it is no purge.
    pub(crate) fn index_step(&self, limit: usize) -> Result<bool, String> {
        let report = self.process().engine.index_step(limit).map_err(|error| error.to_string())?;
        Ok(report.more)
    }

    /// Compares every entry of the store with those that follow from items and catalog.
    pub(crate) fn check_store(&self) -> Result<(), String> {
        let report = self.process().engine.check().map_err(|error| error.to_string())?;
        report.told.first().map_or(Ok(()), |finding| Err(format!("T22: {finding}")))?;
        watermarks::check(&*self.process().store)
    }

    /// Returns how many expired items wait for the purge.
    pub(crate) fn backlog(&self) -> u64 {
        self.backlogs().iter().map(|(_, items, _)| items).sum()
    }

    /// Returns the last sequence.
    pub(crate) fn sequence(&self) -> u64 {
        self.process().engine.last_sequence()
    }

    /// Makes a container.
    pub(crate) fn create_container(
        &mut self,
        name: &'static str,
        default_ttl: DefaultTtl,
        feed: Option<u32>,
        base: bool,
    ) -> Reply {
        let process = self.process();
        let made = parse_definition(name, default_ttl, Indexing::default(), feed, base)
            .and_then(|definition| process.engine.create_container(&process.database, definition, None));
        match made {
            Ok(container) => {
                self.handles.insert(name, container);
                Reply::plain(Answer::Created)
            }
            Err(error) => Reply::plain(answer_of(&error)),
        }
    }

    /// Removes a container; its handle stays, to be used after the deletion.
    pub(crate) fn delete_container(&mut self, name: &'static str) -> Reply {
        let deleted = self
            .current(name)
            .and_then(|container| self.process().engine.delete_container(&container, &Precondition::None));
        match deleted {
            Ok(()) => {
                if let Some(handle) = self.handles.remove(name) {
                    self.ghosts.insert(name, handle);
                }
                Reply::plain(Answer::Deleted)
            }
            Err(error) => Reply::plain(container_answer(&error)),
        }
    }

    /// Sets `defaultTtl` and the indexing policy.
    pub(crate) fn redefine(
        &self,
        name: &'static str,
        default_ttl: DefaultTtl,
        indexing: Indexing,
        consent: Consent,
    ) -> Reply {
        let replaced = self.current(name).and_then(|container| {
            let definition = parse_definition(name, default_ttl, indexing, None, false)?;
            let consent = engine_consent(consent);
            self.process().engine.replace_container_with(&container, definition, &Precondition::None, consent)
        });
        match replaced {
            Ok(_) => Reply::plain(Answer::Replaced),
            Err(error) => Reply::plain(container_answer(&error)),
        }
    }

    /// Removes the living items of a partition key.
    pub(crate) fn delete_partition(&self, name: &'static str, key: usize) -> Reply {
        let deleted = self.current(name).map_err(|error| container_answer(&error)).and_then(|container| {
            let key = body::partition_key(name, key);
            self.process().engine.delete_partition(&container, &key).map_err(|error| answer_of(&error))
        });
        match deleted {
            Ok(emptied) => Reply {
                answer: Answer::Deleted,
                items: Vec::new(),
                figures: vec![(emptied.charge.0, emptied.range.lsn)],
                left: Vec::new(),
                renewals: Vec::new(),
            },
            Err(answer) => Reply::plain(answer),
        }
    }

    /// Runs one operation through the current handle, or through the oldest that this process has.
    pub(crate) fn change(
        &self,
        name: &'static str,
        key: usize,
        change: &Change,
        countdown: Countdown,
        oldest: bool,
    ) -> Reply {
        let handle = match self.handles.get(name) {
            Some(handle) if oldest => Ok(handle.clone()),
            _ => self.current(name),
        };
        match handle {
            Ok(container) => {
                let reply = self.change_through(&container, name, key, change, countdown);
                self.touched(reply)
            }
            Err(error) => Reply::plain(container_answer(&error)),
        }
    }

    /// Restarts the countdowns that a read has to restart; listings and checks do not.
    fn touched(&self, mut reply: Reply) -> Reply {
        for renewal in std::mem::take(&mut reply.renewals) {
            match self.process().engine.renew(&renewal).map(engine::PendingRenewal::wait) {
                Some(Ok(left)) => reply.left = vec![left],
                Some(Err(error)) => reply.answer = answer_of(&error),
                None => {}
            }
        }
        reply
    }

    /// Runs one operation through the handle of a deleted container, if there is one.
    pub(crate) fn write_to_deleted(&self, name: &'static str, key: usize, change: &Change) -> Option<Reply> {
        let ghost = self.ghosts.get(name)?.clone();
        Some(self.change_through(&ghost, name, key, change, Countdown::Restart))
    }

    fn change_through(
        &self,
        container: &Arc<Container>,
        name: &'static str,
        key: usize,
        change: &Change,
        countdown: Countdown,
    ) -> Reply {
        let engine = &self.process().engine;
        let partition_key = body::partition_key(name, key);
        let outcome = match (change, operation(name, change)) {
            (Change::Read(which, guard), _) => {
                engine.read(container, &partition_key, &item_name(which), &precondition(guard))
            }
            (_, Ok(operation)) => {
                let countdown = engine_countdown(countdown);
                engine.write_with(container, Some(partition_key), operation, countdown).wait()
            }
            (_, Err(error)) => Err(error),
        };
        match outcome {
            Ok(outcome) => Reply::of(name, effect(outcome.effect), &[outcome]),
            Err(error) => Reply::plain(answer_of(&error)),
        }
    }

    /// Runs a transactional batch.
    pub(crate) fn batch(
        &self,
        name: &'static str,
        key: usize,
        changes: &[Change],
        countdown: Countdown,
    ) -> Reply {
        let container = match self.current(name) {
            Ok(container) => container,
            Err(error) => return Reply::plain(container_answer(&error)),
        };
        let operations = match changes.iter().map(|change| operation(name, change)).collect() {
            Ok(operations) => operations,
            Err(error) => return Reply::plain(Answer::Other(error.to_string())),
        };
        let partition_key = body::partition_key(name, key);
        match self
            .process()
            .engine
            .batch_with(&container, &partition_key, operations, engine_countdown(countdown))
            .wait()
        {
            Ok(outcomes) => {
                let answers = outcomes.iter().map(|outcome| effect(outcome.effect)).collect();
                Reply::of(name, Answer::Batch(answers), &outcomes)
            }
            Err(BatchError { index: Some(index), error }) => {
                Reply::plain(Answer::BatchFailed(index, Box::new(answer_of(&error))))
            }
            Err(BatchError { index: None, error }) => Reply::plain(answer_of(&error)),
        }
    }

    /// Returns one page of a query.
    pub(crate) fn page(
        &self,
        name: &'static str,
        filter: &Filter,
        scope: QueryScope,
        max_items: usize,
        continuation: Option<String>,
    ) -> Result<SeenPage, Answer> {
        let text = condition(filter).map(|condition| format!("SELECT * FROM c WHERE {condition}"));
        let page = self.query(name, text.as_deref(), scope, max_items, continuation)?;
        let items = page.rows.iter().map(|row| seen_row(name, row)).collect::<Result<_, _>>();
        Ok(SeenPage {
            items: items.map_err(Answer::Other)?,
            figures: format!("{:?} {:?} {:?} {:?}", page.charge, page.range, page.metrics, page.index),
            continuation: page.continuation,
        })
    }

    /// Runs a query that aggregates its items, or sorts them by their number; returns its rows and its figures.
    pub(crate) fn summary(
        &self,
        name: &'static str,
        filter: &Filter,
        scope: QueryScope,
    ) -> Result<(Vec<String>, String), Answer> {
        let condition = condition(filter).unwrap_or_else(|| "true".to_owned());
        let (mut rows, mut figures) = (Vec::new(), Vec::new());
        for text in [
            format!("SELECT VALUE COUNT(1) FROM c WHERE {condition}"),
            format!("SELECT VALUE SUM(c.n) FROM c WHERE {condition}"),
            format!("SELECT VALUE c.n FROM c WHERE {condition} ORDER BY c.n DESC"),
        ] {
            let page = self.query(name, Some(&text), scope, 1000, None)?;
            rows.push(page.rows.iter().map(|row| String::from_utf8_lossy(row)).collect::<Vec<_>>().join(" "));
            figures.push(format!("{:?} {:?} {:?}", page.charge, page.metrics, page.continuation));
        }
        Ok((rows, figures.join("; ")))
    }

    fn query(
        &self,
        name: &'static str,
        text: Option<&str>,
        scope: QueryScope,
        max_items: usize,
        continuation: Option<String>,
    ) -> Result<QueryPage, Answer> {
        let container = self.current(name).map_err(|error| container_answer(&error))?;
        let query = text.map(|text| query::parse(text, &[], &query::Dialect::default())).transpose();
        let query = query.map_err(|error| Answer::Other(error.to_string()))?;
        let key = match scope {
            QueryScope::Everywhere => None,
            QueryScope::Key(key) => Some(body::partition_key(name, key)),
            QueryScope::Prefix => Some(body::key_prefix()),
        };
        let request = QueryRequest {
            scope: Scope { key, range: None },
            continuation,
            ..QueryRequest::new(query.as_ref(), max_items)
        };
        let page = self.process().engine.query(&container, &request).map_err(|error| answer_of(&error))?;
        self.charged(page.charge.0);
        Ok(page)
    }

    /// Returns the changes of a container after a token, or from the beginning.
    pub(crate) fn changes(
        &self,
        name: &'static str,
        after: Option<String>,
        max_items: usize,
    ) -> Result<SeenPage, Answer> {
        let container = self.current(name).map_err(|error| container_answer(&error))?;
        let start = after.map_or(FeedStart::Beginning, FeedStart::After);
        let changes = self
            .process()
            .engine
            .changes(&container, &Scope::default(), &start, max_items)
            .map_err(|error| answer_of(&error))?;
        self.charged(changes.charge.0);
        let items = changes.items.iter().map(|item| seen_item(name, item)).collect::<Result<_, _>>();
        Ok(SeenPage {
            items: items.map_err(Answer::Other)?,
            continuation: Some(changes.continuation),
            figures: format!("{:?} {:?}", changes.charge, changes.range),
        })
    }

    /// Returns the visible state. `ids` are also read one by one.
    pub(crate) fn observe(&self, ids: &BTreeMap<&'static str, Vec<(usize, String)>>) -> Result<Seen, String> {
        let mut containers = BTreeMap::new();
        for name in CONTAINERS {
            let Ok(container) = self.current(name) else { continue };
            let ids = ids.get(name).map(Vec::as_slice).unwrap_or_default();
            containers.insert(name, self.observe_container(name, &container, ids)?);
        }
        Ok(Seen { containers, sequence: self.sequence() })
    }

    fn observe_container(
        &self,
        name: &'static str,
        container: &Arc<Container>,
        ids: &[(usize, String)],
    ) -> Result<SeenContainer, String> {
        let engine = &self.process().engine;
        // Before anything is read: a read raises it to what the store has.
        let known_lsn = container.partitions[0].lsn();
        let page = self
            .page(name, &Filter::All, QueryScope::Everywhere, 1000, None)
            .map_err(|answer| format!("{name}: the listing failed: {answer:?}"))?;
        if page.continuation.is_some() {
            return Err(format!("{name}: a small listing has a second page"));
        }
        let usage = engine.usage(container).map_err(|error| format!("{name}: usage: {error}"))?;
        let mut reads = BTreeMap::new();
        for (key, id) in ids {
            let read = Change::Read(Name::Id(id.clone()), Guard::None);
            let reply = self.change_through(container, name, *key, &read, Countdown::Restart);
            reads.insert((*key, id.clone()), reply.answer);
        }
        Ok(SeenContainer {
            rid: container.rid.to_string(),
            etag: container.etag().to_string(),
            default_ttl: seen_default_ttl(container),
            items: page.items,
            usage_items: usage.living.items,
            usage_bytes: usage.living.bytes,
            reads,
            feed: self
                .changes(name, None, 1000)
                .map_err(|answer| format!("{name}: the feed failed: {answer:?}"))?,
            figures: page.figures,
            lsns: (known_lsn, self.stored_lsn(container)?),
            lifecycle_settings: self.lifecycle_settings(name)?,
        })
    }

    /// Returns the LSN of a container's only range, as the store has it.
    fn stored_lsn(&self, container: &Container) -> Result<u64, String> {
        let page = self.process().engine.changes(container, &Scope::default(), &FeedStart::Now, 1);
        Ok(page.map_err(|error| error.to_string())?.range.lsn)
    }

    /// Counts every entry in the store, expired or live.
    pub(crate) fn raw(&self) -> Result<Raw, String> {
        let snapshot = self.process().store.snapshot().map_err(|error| error.to_string())?;
        let mut raw = Raw::default();
        for keyspace in Keyspace::ALL {
            for entry in snapshot.scan(keyspace, KeyRange::all(), Direction::Forward) {
                let (key, _) = entry.map_err(|error| error.to_string())?;
                *raw.entries.entry(kind(keyspace, &key)).or_default() += 1;
            }
        }
        Ok(raw)
    }

    /// Records a charge.
    pub(crate) fn charged(&self, hundredths: u64) {
        let mut charges = self.charges.get();
        charges.add(&hundredths.to_le_bytes());
        self.charges.set(charges);
    }

    /// Returns the digest of the stored bytes, and of all charges so far.
    pub(crate) fn digest(&self) -> Result<Digest, String> {
        let mut digest = Digest::of_store(&*self.process().store)?;
        digest.add(self.charges.get().line().as_bytes());
        Ok(digest)
    }

    fn current(&self, name: &str) -> engine::Result<Arc<Container>> {
        let process = self.process();
        process.engine.container(&process.database, name)
    }

    fn process(&self) -> &Process {
        self.process.as_ref().expect("a process runs between start and stop")
    }
}

impl Reply {
    fn plain(answer: Answer) -> Reply {
        let (items, figures) = (Vec::new(), Vec::new());
        Reply { answer, items, figures, left: Vec::new(), renewals: Vec::new() }
    }

    fn of(name: &'static str, answer: Answer, outcomes: &[Outcome]) -> Reply {
        let mut reply = Reply::plain(answer);
        for outcome in outcomes {
            reply.figures.push((outcome.charge.0, outcome.range.lsn));
            reply.renewals.extend(outcome.renewal.clone());
            let Some(item) = &outcome.item else { continue };
            reply.left.push(outcome.seconds_left);
            match seen_item(name, item) {
                Ok(item) => reply.items.push((effect(outcome.effect), item)),
                Err(error) => reply.answer = Answer::Other(error),
            }
        }
        reply
    }

    /// Returns the stamps of what was written, in order.
    pub(crate) fn stamps(&self) -> Vec<Stamp> {
        let written = self.items.iter().filter(|(answer, _)| answer.is_write());
        written.map(|(_, item)| item.stamp.clone()).collect()
    }
}

/// Returns a filter as a query's condition.
fn condition(filter: &Filter) -> Option<String> {
    match filter {
        Filter::All => None,
        Filter::Id(id) => Some(format!("c.id = '{id}'")),
        Filter::NumberFrom(number) => Some(format!("c.n >= {number}")),
        Filter::Stamp(from, to) => Some(format!("c._ts >= {from} AND c._ts <= {to}")),
    }
}
