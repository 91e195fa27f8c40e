//! Reading deletion records: the engine's door.

use storage::{Direction, KeyRange, Keyspace};

use super::log::Head;
use super::verify::{Tampering, Verifier};
use crate::Engine;
use crate::error::{Error, Result};
use crate::holder::Holder;
use crate::keys::{self, Key, PartitionId};
use crate::limits::{DELETION_PAGE_BYTES, DELETION_PAGE_ENTRIES};

/// The log of one physical partition, also of a container that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionLog {
    /// Its number, which every line names.
    pub log: u32,
    /// The database, as it was called last.
    pub database: String,
    /// The container or collection, as it was called last.
    pub container: String,
    /// Whether entries are still added.
    pub is_open: bool,
    /// How many entries there are.
    pub count: u64,
    /// The hash of the last one.
    pub head: String,
}

/// Some lines of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionPage {
    /// The log as it was when the lines were read.
    pub log: DeletionLog,
    /// Whole lines, each with its end.
    pub lines: Vec<u8>,
    /// The number of the last of them: the next page goes on behind it.
    pub last: u64,
}

impl DeletionLog {
    fn new(partition: PartitionId, head: Head) -> DeletionLog {
        let (log, head_text) = (partition.0, head.hash_text());
        let Head { count, is_open, database, container, .. } = head;
        DeletionLog { log, database, container, is_open, count, head: head_text }
    }
}

impl Engine {
    /// Every log there is, also those of containers that are gone.
    pub fn deletion_logs(&self) -> Result<Vec<DeletionLog>> {
        let snapshot = self.store.snapshot()?;
        let heads = KeyRange::prefix(keys::DELETION_HEADS);
        let log = |entry: storage::Result<(bytes::Bytes, bytes::Bytes)>| {
            let (key, value) = entry?;
            Ok(DeletionLog::new(keys::deletion_head(&key)?, Head::decode(&value)?))
        };
        snapshot.scan(Keyspace::Deletion, heads, Direction::Forward).map(log).collect()
    }

    /// The logs of a container or collection, one for each physical partition.
    pub fn deletion_logs_of(&self, holder: &Holder) -> Result<Vec<DeletionLog>> {
        let snapshot = self.store.snapshot()?;
        let mut logs = Vec::new();
        for partition in holder.partitions() {
            let head = Head::load(&*snapshot, partition.id)?;
            logs.extend(head.map(|head| DeletionLog::new(partition.id, head)));
        }
        Ok(logs)
    }

    /// Lines of a log behind an entry.
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

    /// Verifies a log as it lies in the store, against its own end.
    pub fn verify_deletion_log(&self, log: &DeletionLog) -> Result<std::result::Result<(), Tampering>> {
        let mut verifier = Verifier::default();
        loop {
            let page = self.deletion_page(log.log, verifier.count())?;
            if page.lines.is_empty() {
                return Ok(verifier.finish(Some(&log.head), Some(log.count)).map(drop));
            }
            for line in page.lines.split_inclusive(|byte| *byte == b'\n') {
                if verifier.count() >= log.count {
                    return Ok(verifier.finish(Some(&log.head), Some(log.count)).map(drop));
                }
                if let Err(tampering) = verifier.line(line) {
                    return Ok(Err(tampering));
                }
            }
        }
    }
}
