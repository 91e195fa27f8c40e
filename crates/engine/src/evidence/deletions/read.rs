//! Reads and verifies deletion records.

use storage::{Direction, KeyRange, Keyspace, Read};

use super::log::Head;
use super::verify::{Tampering, Verifier};
use crate::Engine;
use crate::catalog::owner::Owner;
use crate::keys::{self, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::limits::{DELETION_PAGE_BYTES, DELETION_PAGE_ENTRIES};

/// The log of one physical partition, also of a dropped container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionLog {
    /// Its number, which every line has.
    pub log: u32,
    /// The last name of the database.
    pub database: String,
    /// The last name of the container or collection.
    pub container: String,
    /// Whether entries are still added.
    pub is_open: bool,
    /// The number of entries.
    pub count: u64,
    /// The hash of the last entry.
    pub head: String,
}

/// Some lines of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionPage {
    /// The log as it was when the lines were read.
    pub log: DeletionLog,
    /// Whole lines, each with its end.
    pub lines: Vec<u8>,
    /// The number of the last of these lines: the next page begins behind it.
    pub last: u64,
}

/// A deletion record that is missing, or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeletionGap {
    /// Entries of a log that has no head.
    #[error("log {log} has entries, but its head is missing")]
    NoEnd {
        /// The number of the log.
        log: u32,
    },
    /// A container whose owner wants a record, and that has none.
    #[error("the deletion record of '{database}/{container}' is on, but log {log} is missing or closed")]
    NoLog {
        /// The number that the log should have.
        log: u32,
        /// The container's database.
        database: String,
        /// The container's name.
        container: String,
    },
}

impl DeletionLog {
    fn new(partition: PartitionId, head: Head) -> DeletionLog {
        let (log, head_text) = (partition.0, head.hash_text());
        let Head { count, is_open, database, container, .. } = head;
        DeletionLog { log, database, container, is_open, count, head: head_text }
    }
}

impl Engine {
    /// Returns every log, also those of dropped containers.
    pub fn deletion_logs(&self) -> Result<Vec<DeletionLog>> {
        let snapshot = self.store.snapshot()?;
        let heads = KeyRange::prefix(keys::DELETION_HEADS);
        let log = |entry: storage::Result<(bytes::Bytes, bytes::Bytes)>| {
            let (key, value) = entry?;
            Ok(DeletionLog::new(keys::deletion_head(&key)?, Head::decode(&value)?))
        };
        snapshot.scan(Keyspace::Deletion, heads, Direction::Forward).map(log).collect()
    }

    /// Returns the logs of a container or collection, one for each physical partition.
    pub fn deletion_logs_of(&self, owner: &Owner) -> Result<Vec<DeletionLog>> {
        let snapshot = self.store.snapshot()?;
        let mut logs = Vec::new();
        for partition in owner.partitions() {
            let head = Head::load(&*snapshot, partition.id)?;
            logs.extend(head.map(|head| DeletionLog::new(partition.id, head)));
        }
        Ok(logs)
    }

    /// Returns lines of a log behind an entry.
    pub fn deletion_page(&self, log: u32, after: u64) -> Result<DeletionPage> {
        let (snapshot, partition) = (self.store.snapshot()?, PartitionId(log));
        let head = Head::load(&*snapshot, partition)?;
        let head = head.ok_or_else(|| Error::NotFound { what: format!("deletion record {log}") })?;
        let mut page =
            DeletionPage { log: DeletionLog::new(partition, head), lines: Vec::new(), last: after };
        let range = KeyRange::prefix(keys::deletions(partition));
        let range = range.after(Key::Deletion(partition, after).encode().1);
        let entries = snapshot.scan(Keyspace::Deletion, range, Direction::Forward);
        for entry in entries.take(DELETION_PAGE_ENTRIES) {
            let (key, line) = entry?;
            page.last = keys::deletion_number(&key)?;
            page.lines.extend_from_slice(&line);
            page.lines.push(b'\n');
            if page.lines.len() >= DELETION_PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }

    /// Verifies a stored log against its own head, with no entry behind it.
    pub fn verify_deletion_log(&self, log: &DeletionLog) -> Result<std::result::Result<(), Tampering>> {
        verify(&*self.store.snapshot()?, PartitionId(log.log))
    }

    /// Returns what the logs alone cannot show: entries whose log has no head, and containers whose log is missing.
    pub fn deletion_gaps(&self) -> Result<Vec<DeletionGap>> {
        let catalog = self.catalog();
        let recording = catalog
            .owned_partitions()
            .filter(|(_, partition)| partition.policy.read().lifecycle.deletion_record);
        let recording = recording
            .map(|(owner, partition)| ((owner.database().to_owned(), owner.name().to_owned()), partition.id));
        gaps(&*self.store.snapshot()?, recording)
    }
}

/// Verifies the log of a partition against its own head.
pub(crate) fn verify(
    reader: &dyn Read,
    partition: PartitionId,
) -> Result<std::result::Result<(), Tampering>> {
    let head = Head::load(reader, partition)?;
    let head = head.ok_or_else(|| Error::NotFound { what: format!("deletion record {}", partition.0) })?;
    let mut verifier = Verifier::default();
    let entries = KeyRange::prefix(keys::deletions(partition));
    for entry in reader.scan(Keyspace::Deletion, entries, Direction::Forward) {
        if let Err(tampering) = verifier.line(&entry?.1) {
            return Ok(Err(tampering));
        }
    }
    Ok(verifier.finish(Some(&head.hash_text()), Some(head.count)).map(drop))
}

/// Returns the partitions of entries whose log has no head, and those whose log is missing although the settings call
/// for it, with the names of database and container.
pub(crate) fn gaps(
    reader: &dyn Read,
    recording: impl IntoIterator<Item = ((String, String), PartitionId)>,
) -> Result<Vec<DeletionGap>> {
    let mut gaps = Vec::new();
    let mut range = KeyRange::prefix(keys::DELETIONS);
    while let Some(entry) = reader.scan(Keyspace::Deletion, range.clone(), Direction::Forward).next() {
        let partition = keys::deletion_log(&entry?.0)?;
        if Head::load(reader, partition)?.is_none() {
            gaps.push(DeletionGap::NoEnd { log: partition.0 });
        }
        range = range.after(Key::Deletion(partition, u64::MAX).encode().1);
    }
    for ((database, container), partition) in recording {
        if !Head::load(reader, partition)?.is_some_and(|head| head.is_open) {
            gaps.push(DeletionGap::NoLog { log: partition.0, database, container });
        }
    }
    Ok(gaps)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use storage::{ClockOptions, Lanes, ManualClock, MemoryStore, Store, Time, Transaction, transact};

    use super::*;
    use crate::ContainerDefinition;

    /// Returns a container with a deletion record, after its store was changed without the engine's knowledge.
    fn tampered(
        tamper: impl Fn(&mut Transaction<'_>, PartitionId) + Send + 'static,
    ) -> (Engine, DeletionLog) {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(ClockOptions::new(clock)).expect("a store"));
        let engine = Engine::open(store).expect("an engine");
        let database = engine.create_database("db", None).expect("created");
        let definition = br#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        let definition = ContainerDefinition::from_value(&document::parse_json(definition).expect("JSON"));
        let container =
            engine.create_container(&database, definition.expect("valid"), None).expect("created");
        let owner = Owner::Container(container);
        engine.change_lifecycle(&owner, |settings| settings.deletion_record = true).expect("a valid setting");
        let log = engine.deletion_logs_of(&owner).expect("logs").remove(0);
        let partition = PartitionId(log.log);
        let lane = Lanes::one(u64::from(log.log));
        let change = move |tx: &mut Transaction<'_>| {
            tamper(tx, partition);
            Ok::<_, Error>(())
        };
        transact(&*engine.store, lane, change).wait().expect("committed");
        (engine, log)
    }

    #[test]
    fn entries_behind_the_end_are_told() {
        let (engine, log) = tampered(|_, _| ());
        assert_eq!((engine.verify_deletion_log(&log), engine.deletion_gaps()), (Ok(Ok(())), Ok(vec![])));
        let (engine, log) = tampered(|tx, partition| {
            let mut head = Head::load(tx, partition).expect("read").expect("there");
            let (keyspace, key) = Key::DeletionHead(partition).encode();
            let kept = tx.get(keyspace, &key).expect("read").expect("there");
            head.append(tx, partition, "purged", "");
            tx.put(keyspace, key, kept);
        });
        let expected = Tampering::Count { found: 2, expected: 1 };
        assert_eq!(engine.verify_deletion_log(&log), Ok(Err(expected)));
    }

    #[test]
    fn a_missing_head_and_a_record_closed_against_its_setting_are_reported() {
        let no_log = |log: &DeletionLog| DeletionGap::NoLog {
            log: log.log,
            database: "db".to_owned(),
            container: "c".to_owned(),
        };
        let (engine, log) = tampered(|tx, partition| {
            let (keyspace, key) = Key::DeletionHead(partition).encode();
            tx.remove(keyspace, key);
        });
        assert_eq!(engine.deletion_gaps(), Ok(vec![DeletionGap::NoEnd { log: log.log }, no_log(&log)]));
        let (engine, log) = tampered(|tx, partition| {
            let mut head = Head::load(tx, partition).expect("read").expect("there");
            head.is_open = false;
            head.append(tx, partition, "closed", "");
        });
        assert_eq!(engine.deletion_gaps(), Ok(vec![no_log(&log)]));
    }
}
