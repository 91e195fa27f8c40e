//! The report of a check: findings, each with its location in words and what can be done about it.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use storage::{Keyspace, Lanes, Store, transact};

use crate::types::error::{Error, Result};

/// The largest number of findings that are reported in full; all are counted.
const TOLD_MAX: usize = 1000;
/// The most that one transaction of a repair writes.
const FIXES_MAX: usize = 1000;
const FIX_BYTES_MAX: usize = 1 << 20;

/// The subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Bytes that the store cannot read.
    File,
    /// Databases, containers, collections and what belongs to them.
    Catalog,
    /// Expiry rules.
    Policy,
    /// Entries of an unknown partition.
    Partition,
    /// A key of an unknown kind.
    Key,
    /// An item itself.
    Item,
    /// The entry from an id to its item.
    Id,
    /// A unique key.
    Unique,
    /// A queue position.
    Queue,
    /// An event of the change feed.
    Feed,
    /// An entry of an index.
    Index,
    /// A shape of the index: its count or its places.
    Shape,
    /// A number of items and bytes.
    Counter,
    /// A purge cursor.
    Hand,
    /// The note of a hold.
    Hold,
    /// The record of a sliding renewal.
    Touch,
    /// The feed of all versions, and items that wait to be archived.
    History,
    /// The deletion record.
    Deletion,
    /// A session and its receipts.
    Receipt,
}

impl Subject {
    /// Returns its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::File => "file",
            Subject::Catalog => "catalog",
            Subject::Policy => "policy",
            Subject::Partition => "partition",
            Subject::Key => "key",
            Subject::Item => "item",
            Subject::Id => "id",
            Subject::Unique => "unique key",
            Subject::Queue => "queue",
            Subject::Feed => "feed",
            Subject::Index => "index",
            Subject::Shape => "shape",
            Subject::Counter => "counter",
            Subject::Hand => "purge cursor",
            Subject::Hold => "hold",
            Subject::Touch => "sliding renewal",
            Subject::History => "history",
            Subject::Deletion => "deletion record",
            Subject::Receipt => "receipt",
        }
    }
}

/// What can be done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// It is derived from the items and can be rebuilt.
    Repair,
    /// It cannot be repaired, for this reason.
    Refused(&'static str),
}

/// A problem in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its subject.
    pub subject: Subject,
    /// Its location: container or collection, and the item if it is known.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// What can be done.
    pub remedy: Remedy,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}: {}", self.subject.name(), self.place, self.what)?;
        match self.remedy {
            Remedy::Repair => write!(out, " (can be repaired)"),
            Remedy::Refused(reason) => write!(out, " (cannot be repaired: {reason})"),
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The first findings.
    pub told: Vec<Finding>,
    /// How many there are of each kind, and how many of those can be repaired.
    pub counts: BTreeMap<Subject, (u64, u64)>,
    /// Comparisons that were skipped because of a finding.
    pub unchecked: Vec<String>,
    /// Items that were checked.
    pub items: u64,
    /// Their entries, which were looked up.
    pub entries: u64,
}

impl Report {
    /// Returns the number of findings.
    pub fn found(&self) -> u64 {
        self.counts.values().map(|(found, _)| found).sum()
    }

    /// Returns how many of them can be repaired.
    pub fn repairable(&self) -> u64 {
        self.counts.values().map(|(_, repairable)| repairable).sum()
    }

    /// Returns whether nothing was found.
    pub fn is_sound(&self) -> bool {
        self.counts.is_empty()
    }
}

/// One entry that a repair writes or removes.
#[derive(Debug, Clone)]
pub(super) enum Fix {
    Put(Keyspace, Vec<u8>, Bytes),
    Remove(Keyspace, Vec<u8>),
}

/// Collects findings, and turns them into fixes.
pub(super) struct FindingLog<'a> {
    pub(super) report: Report,
    /// Where fixes are written; `None` if the check does not repair.
    store: Option<&'a dyn Store>,
    waiting: Vec<Fix>,
    waiting_bytes: usize,
    /// Findings whose fixes were written.
    pub(super) repaired: u64,
    /// Set once a read fails: entries that seem to be missing may exist.
    blind: bool,
}

/// Why nothing is repaired in a store that cannot be read.
const BLIND: &str = "a part of the store cannot be read, so this finding may be wrong; restore a backup";

impl<'a> FindingLog<'a> {
    pub(super) fn new(store: Option<&'a dyn Store>) -> FindingLog<'a> {
        let report = Report::default();
        FindingLog { report, store, waiting: Vec::new(), waiting_bytes: 0, repaired: 0, blind: false }
    }

    /// Reports a problem in something that is derived from the items.
    pub(super) fn fix(
        &mut self,
        subject: Subject,
        place: &str,
        what: impl Into<String>,
        fixes: impl IntoIterator<Item = Fix>,
    ) -> Result<()> {
        if self.blind {
            self.refuse(subject, place, what, BLIND);
            return Ok(());
        }
        self.tell(subject, place, what.into(), Remedy::Repair);
        if self.store.is_none() {
            return Ok(());
        }
        for fix in fixes {
            self.waiting_bytes += match &fix {
                Fix::Put(_, key, value) => key.len() + value.len(),
                Fix::Remove(_, key) => key.len(),
            };
            self.waiting.push(fix);
        }
        self.repaired += 1;
        if self.waiting.len() >= FIXES_MAX || self.waiting_bytes >= FIX_BYTES_MAX {
            self.write()
        } else {
            Ok(())
        }
    }

    /// Reports a problem in something that cannot be derived.
    pub(super) fn refuse(
        &mut self,
        subject: Subject,
        place: &str,
        what: impl Into<String>,
        reason: &'static str,
    ) {
        self.tell(subject, place, what.into(), Remedy::Refused(reason));
    }

    /// Reports a failed read; from here on nothing is repaired.
    pub(super) fn unreadable(&mut self, place: &str, what: &str, error: &Error) {
        self.blind = true;
        let what = format!("{what} cannot be read: {error}");
        self.tell(Subject::File, place, what, Remedy::Refused("the bytes are lost; restore a backup"));
    }

    fn tell(&mut self, subject: Subject, place: &str, what: String, remedy: Remedy) {
        let (found, repairable) = self.report.counts.entry(subject).or_default();
        *found += 1;
        *repairable += u64::from(remedy == Remedy::Repair);
        if self.report.told.len() < TOLD_MAX {
            self.report.told.push(Finding { subject, place: place.to_owned(), what, remedy });
        }
    }

    /// Writes the pending fixes.
    pub(super) fn write(&mut self) -> Result<()> {
        let Some(store) = self.store.filter(|_| !self.waiting.is_empty()) else { return Ok(()) };
        let fixes = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let mend = move |tx: &mut storage::Transaction<'_>| {
            for fix in fixes {
                match fix {
                    Fix::Put(keyspace, key, value) => tx.put(keyspace, key, value),
                    Fix::Remove(keyspace, key) => tx.remove(keyspace, key),
                }
            }
            Ok::<_, Error>(())
        };
        transact(store, Lanes::all(), mend).wait()
    }
}
