//! The log of changes to watched collections themselves: created, dropped, renamed.

use bson::{Document, RawDocument, ValueRef};
use storage::{Direction, KeyRange, Keyspace, Read, Time, Transaction};

use crate::catalog::put;
use crate::catalog::watch::{WATCH_MS, Watch};
use crate::keys::Position;
use crate::keys::{self, Key, PartitionId};
use crate::types::error::{Error, Result};

/// How long trimming waits for more entries, so that it does not run for each of them.
const TRIM_PAUSE_MS: u64 = 60_000;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CatalogChange {
    /// A collection was created. Its feed is kept from here on.
    Create,
    /// The collection was dropped.
    Drop,
    /// The collection was renamed.
    Rename {
        database: String,
        name: String,
        /// Whether its feed is kept only from here on.
        begins: bool,
    },
    /// A database was dropped, after its collections.
    DropDatabase,
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) position: Position,
    pub(crate) change: CatalogChange,
    pub(crate) database: String,
    /// The collection; empty if the entry is about the database.
    pub(crate) name: String,
    pub(crate) partition: PartitionId,
}

impl LogEntry {
    /// Returns whether a watch covers it.
    pub(crate) fn concerns(&self, watch: &Watch) -> bool {
        match &self.change {
            CatalogChange::DropDatabase => watch.tells_end_of(&self.database),
            CatalogChange::Rename { database, name, .. } => {
                watch.covers(&self.database, &self.name) || watch.covers(database, name)
            }
            CatalogChange::Create | CatalogChange::Drop => watch.covers(&self.database, &self.name),
        }
    }

    /// Returns whether the feed of its collection begins with it.
    pub(crate) fn begins(&self) -> bool {
        matches!(self.change, CatalogChange::Create | CatalogChange::Rename { begins: true, .. })
    }

    fn encode(&self) -> Vec<u8> {
        let mut record = Document::new()
            .with("database", self.database.as_str())
            .with("name", self.name.as_str())
            .with("partition", i64::from(self.partition.0));
        match &self.change {
            CatalogChange::Create => record.push("kind", "create"),
            CatalogChange::Drop => record.push("kind", "drop"),
            CatalogChange::DropDatabase => record.push("kind", "dropDatabase"),
            CatalogChange::Rename { database, name, begins } => {
                record.push("kind", "rename");
                record.push("toDatabase", database.as_str());
                record.push("toName", name.as_str());
                record.push("begins", *begins);
            }
        }
        RawDocument::from_document(&record).as_bytes().to_vec()
    }

    fn decode(position: Position, value: bytes::Bytes) -> Option<LogEntry> {
        let record = RawDocument::parse(value).ok()?;
        let text = |name: &str| record.get(name).and_then(ValueRef::as_str).map(str::to_owned);
        let change = match record.get("kind")?.as_str()? {
            "create" => CatalogChange::Create,
            "drop" => CatalogChange::Drop,
            "dropDatabase" => CatalogChange::DropDatabase,
            "rename" => CatalogChange::Rename {
                database: text("toDatabase")?,
                name: text("toName")?,
                begins: record.get("begins")?.as_bool()?,
            },
            _ => return None,
        };
        let Some(ValueRef::Int64(partition)) = record.get("partition") else { return None };
        let partition = PartitionId(u32::try_from(partition).ok()?);
        Some(LogEntry { position, change, database: text("database")?, name: text("name")?, partition })
    }
}

/// Returns whether an entry is one of the log.
pub(crate) fn is_entry(key: &[u8], value: bytes::Bytes) -> bool {
    keys::watch_log_position(key).is_ok_and(|position| LogEntry::decode(position, value).is_some())
}

/// Adds an entry.
pub(crate) fn record(tx: &mut Transaction<'_>, entry: &LogEntry) {
    put(tx, Key::WatchLog(entry.position), entry.encode());
}

/// Returns the entries at and behind a position that a watch covers.
pub(crate) fn from(reader: &dyn Read, watch: &Watch, after: Position) -> Result<Vec<LogEntry>> {
    let start = std::ops::Bound::Included(Key::WatchLog(after).encode().1);
    let range = KeyRange { start, ..KeyRange::prefix(keys::WATCH_LOG) };
    let mut entries = Vec::new();
    for entry in reader.scan(Keyspace::Catalog, range, Direction::Forward) {
        let (key, value) = entry?;
        let position = keys::watch_log_position(&key)?;
        let entry = LogEntry::decode(position, value)
            .ok_or_else(|| Error::Corrupt("an entry of the log of watched collections".into()))?;
        if entry.concerns(watch) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Returns when the first entry is due to be trimmed. More entries may be due by then.
pub(crate) fn trim_due(reader: &dyn Read) -> Result<Option<Time>> {
    let first = reader.scan(Keyspace::Catalog, KeyRange::prefix(keys::WATCH_LOG), Direction::Forward).next();
    let due = |position: Position| position.time().plus_millis(WATCH_MS + TRIM_PAUSE_MS);
    first.map(|entry| keys::watch_log_position(&entry?.0).map(due)).transpose()
}

/// Removes some of the entries past the retention.
pub(crate) fn trim(tx: &mut Transaction<'_>, limit: usize) -> Result<u64> {
    let horizon = Time::from_millis(tx.trusted_time().millis().saturating_sub(WATCH_MS));
    let end = Key::WatchLog(Position::of_change(horizon, document::Sequence(0))).encode().1;
    let range = KeyRange::prefix(keys::WATCH_LOG).before(end);
    let doomed = tx.scan(Keyspace::Catalog, range, Direction::Forward).take(limit);
    let doomed = doomed.collect::<storage::Result<Vec<_>>>()?;
    for (key, _) in &doomed {
        tx.remove(Keyspace::Catalog, key.to_vec());
    }
    Ok(doomed.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back() {
        let rename = CatalogChange::Rename { database: "x".into(), name: "y".into(), begins: true };
        for change in [CatalogChange::Create, CatalogChange::Drop, rename, CatalogChange::DropDatabase] {
            let (database, name) = ("db".to_owned(), "c".to_owned());
            let entry =
                LogEntry { position: Position::before(3), change, database, name, partition: PartitionId(4) };
            assert_eq!(LogEntry::decode(entry.position, entry.encode().into()), Some(entry));
        }
        assert_eq!(LogEntry::decode(Position::before(3), bytes::Bytes::from_static(&[1])), None);
    }
}
