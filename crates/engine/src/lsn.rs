//! LSNs as clients see them: the commits of one range, counted.
//!
//! Clients work out how far a reader of the change feed lags behind as a difference of LSNs, so the LSN of a range counts the
//! commits that wrote or deleted items in it, and nothing else: a transactional batch is one; the purge, an expiry, a
//! renewal by a read, a hold and an index build are none. The store's sequence, which runs over all containers, stays what
//! etags, item numbers, feeds, cutoffs and tokens are made of (decision 0027).
//!
//! ```text
//!   sequence of the store   41   42   43   44   45   46          commits of everybody
//!   LSN of range 0          41   42   .    .    43   .           41: made there; then its own commits
//!   LSN of range 1          41   .    42   43   .    44
//! ```
//!
//! A partition begins at the sequence of its creation, and one of an older store at the last sequence of that store. So an
//! LSN is never above the sequence of its commit, and no number that a client has kept is ahead of the partition, not even
//! after its container was dropped and made again under the same name. A header stores the difference to the commit number,
//! which is small. Collections of the MongoDB API have no LSNs: there the difference is always 0, and takes no byte.
//!
//! The count lies in the partition's total. A copy in memory saves readers that look-up: it is raised when a commit is
//! durable and before it is answered, so it is neither ahead of what a crash would leave nor behind what a client was shown.

use std::sync::atomic::{AtomicU64, Ordering};

use document::Sequence;
use storage::Transaction;

use crate::Engine;
use crate::container::Partition;
use crate::counters;
use crate::error::{Error, Result};
use crate::events::{self, Events};
use crate::keys::PartitionId;

/// A range of a container and an LSN of it. The two belong together: a number says nothing about another range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeLsn {
    /// The position of the range in its container.
    pub range: usize,
    /// How many of its commits, from its beginning on, a client has seen.
    pub lsn: u64,
}

/// The highest LSN of a partition that is durable or was shown.
#[derive(Debug, Default)]
pub(crate) struct KnownLsn(AtomicU64);

impl KnownLsn {
    /// Returns the LSN; 0 if it is not known yet.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Raises it to at least this one.
    pub(crate) fn raise(&self, lsn: u64) {
        self.0.fetch_max(lsn, Ordering::AcqRel);
    }
}

/// What a write of an item is numbered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteNumber {
    /// Its place among all events of the store.
    pub(crate) sequence: Sequence,
    /// The LSN of its commit; in a collection, which has none, the number of the commit.
    pub(crate) lsn: u64,
}

impl WriteNumber {
    /// The number of a write where LSNs are not counted.
    pub(crate) fn uncounted(sequence: Sequence) -> WriteNumber {
        WriteNumber { sequence, lsn: events::commit_of(sequence) }
    }

    /// How far the LSN is behind the number of the commit: what is stored of it.
    pub(crate) fn behind(self) -> u64 {
        events::commit_of(self.sequence).saturating_sub(self.lsn)
    }
}

/// The writes of one transaction in one partition of a container.
#[derive(Debug)]
pub(crate) struct Writes {
    partition: PartitionId,
    events: Events,
    last: Option<WriteNumber>,
}

impl Writes {
    pub(crate) fn new(partition: PartitionId) -> Writes {
        Writes { partition, events: Events::default(), last: None }
    }

    /// Numbers the next write. The first one of a commit takes the partition's next LSN.
    pub(crate) fn next(&mut self, tx: &mut Transaction<'_>) -> Result<WriteNumber> {
        let sequence = self.events.next(tx);
        let commit = events::commit_of(sequence);
        let lsn = match self.last {
            Some(last) if events::commit_of(last.sequence) == commit => last.lsn,
            _ => counters::next_lsn(tx, self.partition, commit)?,
        };
        let number = WriteNumber { sequence, lsn };
        self.last = Some(number);
        Ok(number)
    }
}

impl Partition {
    /// The LSN of the range: all commits up to it are in every snapshot that is taken from now on.
    pub fn lsn(&self) -> u64 {
        self.known_lsn.get()
    }

    /// The range at that LSN.
    pub fn range_lsn(&self) -> RangeLsn {
        RangeLsn { range: self.index, lsn: self.lsn() }
    }

    /// The range at an LSN that is about to be shown: it is in the store, though its commit may not be answered yet.
    pub(crate) fn show(&self, lsn: u64) -> RangeLsn {
        self.known_lsn.raise(lsn);
        RangeLsn { range: self.index, lsn }
    }
}

impl Engine {
    /// Begins to count in the partitions of a store that an older version has written.
    pub(crate) fn adopt_uncounted(&self) -> Result<()> {
        let catalog = self.catalog();
        let uncounted = catalog.partitions().map(|(_, partition)| partition).filter(|it| it.lsn() == 0);
        let uncounted: Vec<_> = uncounted.cloned().collect();
        if uncounted.is_empty() {
            return Ok(());
        }
        let ids: Vec<PartitionId> = uncounted.iter().map(|partition| partition.id).collect();
        let lsn = self.change(move |tx| {
            let lsn = tx.last_sequence();
            for id in ids {
                counters::begin_lsns(tx, id, lsn)?;
            }
            // A full disk must not keep a store from being opened.
            tx.use_reserve();
            Ok(lsn)
        })?;
        for partition in uncounted {
            partition.known_lsn.raise(lsn);
        }
        Ok(())
    }
}

/// What is wrong with an LSN that is ahead of its commit.
pub(crate) fn ahead(lsn: u64, commit: u64) -> Error {
    Error::Corrupt(format!("LSN {lsn} is ahead of commit {commit}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use document::{Document, PartitionKey, parse_json};
    use storage::{
        ClockOptions, CrashMode, Direction, KeyRange, Keyspace, ManualClock, MemoryDisk, MemoryStore, Read,
        Store, Time,
    };

    use super::*;
    use crate::counters::Total;
    use crate::header::{Header, Record};
    use crate::keys::Key;
    use crate::{Container, ContainerDefinition, FeedStart, ItemName, Operation, Precondition, Scope};

    fn open(disk: &MemoryDisk) -> (Arc<MemoryStore>, crate::Result<Engine>) {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::open(disk.clone(), ClockOptions::new(clock)).expect("a store");
        let store = Arc::new(store);
        (Arc::clone(&store), Engine::open(store))
    }

    fn container(engine: &Engine, name: &str) -> Arc<Container> {
        let database = engine.database("db").expect("made");
        engine.container(&database, name).expect("made")
    }

    fn write(engine: &Engine, name: &str, id: &str) -> (u64, RangeLsn) {
        let body = Document::from_json(format!(r#"{{"id":"{id}","pk":"p"}}"#).as_bytes()).expect("JSON");
        let operation = Operation::Upsert { body, precondition: Precondition::None };
        let outcome = engine.write(&container(engine, name), None, operation).wait().expect("written");
        (outcome.item.expect("an item").lsn, outcome.range)
    }

    /// What lies there as version 7 wrote it: no LSN in totals, headers and recorded deletes.
    fn make_older(engine: &Engine) {
        let catalog = engine.catalog();
        let ids: Vec<_> = catalog.partitions().map(|(_, partition)| partition.id).collect();
        let strip = move |tx: &mut Transaction<'_>| {
            for id in ids {
                let (keyspace, key) = Key::Total(id).encode();
                let total = Total::decode(&tx.get(keyspace, &key)?.expect("a total"))?;
                match total.tally.items {
                    0 => tx.remove(keyspace, key),
                    _ => tx.put(keyspace, key, total.tally.encode()),
                }
                let all = KeyRange::prefix(crate::keys::partition(id));
                let items = tx.scan(Keyspace::Item, all, Direction::Forward);
                for (key, value) in items.collect::<storage::Result<Vec<_>>>()? {
                    let record = Record::<Document>::decode(crate::keys::item_number(&key)?, &value)?;
                    let lsn = events::commit_of(record.header.sequence);
                    let header = Header { lsn, ..record.header.clone() };
                    tx.put(Keyspace::Item, key.to_vec(), Record { header, ..record }.encode());
                }
            }
            Ok(())
        };
        engine.change(strip).expect("stripped");
    }

    fn older_store() -> MemoryDisk {
        let disk = MemoryDisk::new();
        let engine = open(&disk).1.expect("an engine");
        let database = engine.create_database("db", None).expect("made");
        for name in ["a", "b", "empty"] {
            let text = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"]}}}}"#);
            let value = parse_json(text.as_bytes()).expect("JSON");
            let definition = ContainerDefinition::from_value(&value).expect("valid");
            engine.create_container(&database, definition, None).expect("made");
        }
        for n in 0..5 {
            write(&engine, "a", &format!("a{n}"));
            write(&engine, "b", &format!("b{n}"));
        }
        make_older(&engine);
        disk
    }

    #[test]
    fn partitions_of_an_older_store_begin_at_its_last_sequence_and_its_items_show_their_commits() {
        let disk = older_store();
        let (store, engine) = open(&disk);
        let engine = engine.expect("it is taken over");
        let last = store.last_sequence();
        for (_, partition) in engine.catalog().partitions() {
            assert_eq!(partition.lsn(), last, "no token that a client holds is ahead");
        }
        let page = engine.changes(&container(&engine, "a"), &Scope::default(), &FeedStart::Beginning, 9);
        let page = page.expect("a page");
        assert_eq!((page.items.len(), page.range.lsn), (5, last));
        assert!(page.items.iter().all(|item| item.lsn == events::commit_of(item.sequence)));
        assert_eq!(write(&engine, "a", "new"), (last + 1, RangeLsn { range: 0, lsn: last + 1 }));
        assert_eq!(write(&engine, "b", "new").0, last + 1, "which was the third commit since");
        assert_eq!(write(&engine, "empty", "new").0, last + 1);
        assert_eq!(write(&engine, "a", "a0").0, last + 2);
        assert!(engine.check().expect("a report").is_sound());
        drop((store, engine));
        let engine = open(&disk).1.expect("it opens again");
        assert_eq!(container(&engine, "a").partitions[0].lsn(), last + 2, "it is taken over once");
        let key = PartitionKey::from_header(r#"["p"]"#).expect("a key");
        let name = ItemName::Id("a0".to_owned());
        let read = engine.read(&container(&engine, "a"), &key, &name, &Precondition::None).expect("there");
        assert_eq!((read.item.expect("an item").lsn, read.range.lsn), (last + 2, last + 2));
    }

    #[test]
    fn a_crash_while_an_older_store_is_taken_over_leaves_it_older_or_newer() {
        for mode in [CrashMode::BeforeCommit, CrashMode::AfterCommit] {
            let disk = older_store();
            disk.crash_after(0, mode);
            let (store, engine) = open(&disk);
            assert!(engine.is_err(), "{mode:?}: it crashed");
            drop(store);
            disk.clear_faults();
            let (store, engine) = open(&disk);
            let engine = engine.expect("it is taken over");
            let last = store.last_sequence();
            assert!(engine.catalog().partitions().all(|(_, partition)| partition.lsn() == last), "{mode:?}");
            assert!(engine.check().expect("a report").is_sound(), "{mode:?}");
        }
    }

    #[test]
    fn a_store_that_is_not_taken_over_yet_is_sound() {
        let disk = older_store();
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::open(disk, ClockOptions::new(clock)).expect("a store");
        let report = crate::check::check(&store, &mut |_| ()).expect("a report");
        assert!(report.is_sound(), "{:#?}", report.told);
    }

    #[test]
    fn a_total_reads_back_with_and_without_its_lsn() {
        for lsn in [None, Some(0), Some(u64::MAX)] {
            let total = Total { lsn, ..Total::default() };
            let bytes = Bytes::from(total.encode());
            assert_eq!(bytes.len(), if lsn.is_some() { 24 } else { 16 });
            assert_eq!(Total::decode(&bytes), Ok(total));
        }
        for length in [0, 8, 15, 17, 23, 25] {
            assert!(Total::decode(&vec![0; length]).is_err(), "{length}");
        }
    }
}
