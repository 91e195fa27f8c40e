//! Removes the entries of dropped containers: bounded steps over every keyspace of their partitions.
//!
//! These entries cannot be reached any more. The record that marks a partition as dropped also has the progress, so
//! that no step scans what earlier ones have removed, and after a restart the work continues where it was.

use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Transaction, transact, watermark};

use crate::Engine;
use crate::keys::{self, PARTITIONED, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::limits::DROP_CHUNK;

/// How far one partition has been cleared.
struct Progress {
    /// The index in [`PARTITIONED`]; the keyspaces before it are done.
    keyspace: usize,
    /// The last key removed there; empty if none was.
    last: Vec<u8>,
}

impl Progress {
    fn decode(value: &[u8]) -> Progress {
        match value.split_first() {
            Some((keyspace, last)) => Progress { keyspace: usize::from(*keyspace), last: last.to_vec() },
            None => Progress { keyspace: 0, last: Vec::new() },
        }
    }

    fn encode(&self) -> Vec<u8> {
        [&[self.keyspace as u8], self.last.as_slice()].concat()
    }

    fn range(&self, partition: PartitionId) -> KeyRange {
        let all = KeyRange::prefix(keys::partition(partition));
        if self.last.is_empty() { all } else { all.after(self.last.clone()) }
    }
}

impl Engine {
    /// Removes some entries of one dropped partition. Returns how many, or `None` if no partition is dropped.
    pub(crate) fn clear_dropped(&self, limit: usize) -> Result<Option<u64>> {
        let snapshot = self.store.snapshot()?;
        let dropped = KeyRange::prefix(keys::DROPPED_PARTITIONS);
        let Some(entry) = snapshot.scan(Keyspace::Catalog, dropped, Direction::Forward).next() else {
            return Ok(None);
        };
        let (note, _) = entry?;
        let partition = keys::dropped_partition(&note)
            .ok_or_else(|| Error::Corrupt("a note of a dropped partition".into()))?;
        let chunk = limit.clamp(1, DROP_CHUNK);
        let clear = move |tx: &mut Transaction<'_>| clear(tx, partition, note.to_vec(), chunk);
        transact(&*self.store, Lanes::one(u64::from(partition.0)), clear).wait().map(Some)
    }
}

fn clear(tx: &mut Transaction<'_>, partition: PartitionId, note: Vec<u8>, chunk: usize) -> Result<u64> {
    let Some(value) = tx.get(Keyspace::Catalog, &note)? else { return Ok(0) };
    let mut progress = Progress::decode(&value);
    let mut room = chunk;
    while let Some(&keyspace) = PARTITIONED.get(progress.keyspace) {
        let scan = tx.scan(keyspace, progress.range(partition), Direction::Forward);
        let doomed = scan.take(room).collect::<storage::Result<Vec<_>>>()?;
        room -= doomed.len();
        for (key, _) in doomed {
            progress.last = key.to_vec();
            tx.remove(keyspace, key.to_vec());
        }
        if room == 0 {
            tx.put(Keyspace::Catalog, note, progress.encode());
            return Ok(chunk as u64);
        }
        progress = Progress { keyspace: progress.keyspace + 1, last: Vec::new() };
    }
    tx.remove(Keyspace::Catalog, note);
    // A watermark above every number removes the entries that the purge left in tables; the partition's number is never reused.
    let prefix = partition.0.to_be_bytes();
    if watermark(tx, prefix)? > 0 {
        tx.set_watermark(prefix, u64::MAX)?;
    }
    Ok((chunk - room) as u64)
}
