//! What can be read of the dead: the lines of the archive, and the deletion records.

use document::{Document, Value, parse_json};
use engine::ArchiveDirectory;

use super::World;
use crate::body;
use crate::calendar;
use crate::model::Body;
use crate::operation::KEYS;
use crate::records;

/// What a line or an entry tells of one dead item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Testimony {
    /// Its partition key.
    pub(crate) key: usize,
    /// Its id.
    pub(crate) id: String,
    /// Its `_ts`.
    pub(crate) ts: u64,
    /// When it died.
    pub(crate) expired_ms: u64,
    /// By which rule,
    pub(crate) rule: String,
    /// and how long that gave.
    pub(crate) seconds: i64,
    /// What the client had stored, in the archive.
    pub(crate) body: Option<Body>,
}

/// The directory of a container's archive.
pub(super) fn directory(container: &str) -> ArchiveDirectory {
    ArchiveDirectory::parse(container).expect("the name is plain")
}

impl World {
    /// The volume of an archive is full, or not any more.
    pub(crate) fn fill_archive(&self, container: &str, full: bool) -> Result<(), String> {
        self.archive.set_full(container, full);
        let retried = if full { Ok(()) } else { self.process().engine.retry_archives(None) };
        retried.map_err(|error| error.to_string())
    }

    /// All that the archive of a container tells.
    pub(crate) fn archived(&self, container: &'static str) -> Result<Vec<Testimony>, String> {
        self.archive.lines(container).iter().map(|line| testimony(container, line)).collect()
    }

    /// All that the deletion record of a container tells of purged items.
    pub(crate) fn recorded(&self, container: &'static str) -> Result<Vec<Testimony>, String> {
        let Ok(holder) = self.holder(container) else { return Ok(Vec::new()) };
        let lines = records::purged_lines(&self.process().engine, &holder)?;
        lines.iter().map(|line| testimony(container, line)).collect()
    }

    /// Every record there is, also of containers that are gone, is in order.
    pub(crate) fn verify_records(&self) -> Result<(), String> {
        records::verify(&self.process().engine)
    }
}

fn testimony(container: &'static str, line: &str) -> Result<Testimony, String> {
    let value = parse_json(line.as_bytes()).map_err(|error| format!("{line}: {error}"))?;
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| value.get(name).and_then(Value::as_i64);
    let key = value.get("partitionKey").map(Value::to_json).ok_or_else(|| format!("no key in {line}"))?;
    let key = (0..KEYS).find(|number| body::partition_key(container, *number).to_json() == key);
    let item = value.get("item").map(Document::from_value).transpose().map_err(|error| error.to_string())?;
    let body = item.map(|item| body::from_document(container, &item)).transpose()?;
    let read = || {
        Some(Testimony {
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
