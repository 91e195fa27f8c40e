//! The evidence of expired items: the lines of the archive, and the deletion records.

use document::{Document, Value, parse_json};
use engine::ArchiveDirectory;

use super::World;
use crate::body;
use crate::calendar;
use crate::deletion_records;
use crate::model::Body;
use crate::operation::KEYS;

/// A line of the archive or an entry of the deletion record about one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvidenceEntry {
    /// Its partition key.
    pub(crate) key: usize,
    /// Its id.
    pub(crate) id: String,
    /// Its `_ts`.
    pub(crate) ts: u64,
    /// When it expired.
    pub(crate) expired_ms: u64,
    /// The rule by which it expired,
    pub(crate) rule: String,
    /// and the rule's seconds.
    pub(crate) seconds: i64,
    /// What the client had stored, in the archive.
    pub(crate) body: Option<Body>,
}

/// Returns the directory of a container's archive.
pub(super) fn directory(container: &str) -> ArchiveDirectory {
    ArchiveDirectory::parse(container).expect("the name is plain")
}

impl World {
    /// Makes the volume of an archive full, or writable again.
    pub(crate) fn fill_archive(&self, container: &str, full: bool) -> Result<(), String> {
        self.archive.set_full(container, full);
        let retried = if full { Ok(()) } else { self.process().engine.retry_archives(None) };
        retried.map_err(|error| error.to_string())
    }

    /// Returns the entries of a container's archive.
    pub(crate) fn archived(&self, container: &'static str) -> Result<Vec<EvidenceEntry>, String> {
        self.archive.lines(container).iter().map(|line| entry(container, line)).collect()
    }

    /// Returns the entries about purged items in a container's deletion record.
    pub(crate) fn recorded(&self, container: &'static str) -> Result<Vec<EvidenceEntry>, String> {
        let Ok(owner) = self.owner(container) else { return Ok(Vec::new()) };
        let lines = deletion_records::purged_lines(&self.process().engine, &owner)?;
        lines.iter().map(|line| entry(container, line)).collect()
    }

    /// Verifies every deletion record, those of deleted containers included.
    pub(crate) fn verify_records(&self) -> Result<(), String> {
        deletion_records::verify(&self.process().engine)
    }
}

fn entry(container: &'static str, line: &str) -> Result<EvidenceEntry, String> {
    let value = parse_json(line.as_bytes()).map_err(|error| format!("{line}: {error}"))?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| value.get(name).and_then(Value::as_i64);
    let key = value.get("partitionKey").map(Value::to_json).ok_or_else(|| format!("no key in {line}"))?;
    let key = (0..KEYS).find(|number| body::partition_key(container, *number).to_json() == key);
    let item = value.get("item").map(Document::from_value).transpose().map_err(|error| error.to_string())?;
    let body = item.map(|item| body::from_document(container, &item)).transpose()?;
    let read = || {
        Some(EvidenceEntry {
            key: key?,
            id: text("id")?,
            ts: number("_ts")?.unsigned_abs(),
            expired_ms: calendar::milliseconds(&text("expired")?)?,
            rule: text("rule")?,
            seconds: number("seconds")?,
            body,
        })
    };
    read().ok_or_else(|| format!("it cannot be read: {line}"))
}
