//! Archive and deletion record of collections against the model, as `evidence` has it for containers.

use document::{Value, parse_json};

use super::Workload;
use super::bson_form;
use super::machine::NAMES;
use super::model::{Expiry, Model};
use super::types::Cause;
use crate::calendar;
use crate::coverage::CoveragePoint;
use crate::evidence_check::{EvidenceCheck, ExpectedExpiry};
use crate::model::Evidence;

/// A line of the archive or an entry of the deletion record about one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EvidenceEntry {
    id: i32,
    ts: u64,
    expired_ms: u64,
    cause: Cause,
    /// The document as JSON, in the archive.
    json: Option<String>,
}

impl ExpectedExpiry for Expiry {
    type EvidenceEntry = EvidenceEntry;
    type Subject = (i32, u64);

    fn subject(entry: &EvidenceEntry) -> Self::Subject {
        (entry.id, entry.ts)
    }

    fn is_about(&self, entry: &EvidenceEntry) -> bool {
        (entry.id, entry.ts) == (self.doc.id, self.ts)
            && entry.json.as_ref().is_none_or(|told| *told == bson_form::json(&self.doc))
    }

    fn is_exact(&self, entry: &EvidenceEntry) -> bool {
        entry.expired_ms == self.time_ms && self.causes.contains(&entry.cause)
    }
}

impl Workload {
    /// Checks all evidence. `purged` means that the purge has nothing left to do, so that the evidence must be complete.
    pub(super) fn check_evidence(&mut self, purged: bool) -> Result<(), String> {
        let lines = entries(&self.main.archived())?;
        let backlog = self.main.backlog()?;
        for name in NAMES {
            let waits = self.model.collections.get(name).is_some_and(|it| it.hold) || self.archive_is_full;
            let left = if purged && !waits { 0 } else { backlog.get(name).copied().unwrap_or(0) };
            let archived = archive(&self.model, name, &lines).check_complete(left)?;
            let entries = entries(&self.main.recorded(name)?)?;
            let record = EvidenceCheck {
                place: format!("the record of {name}"),
                expired: self.model.expiries_in(name),
                owed: self.model.owed(name, Evidence::Record),
                told: &entries,
            };
            record.check_truth()?;
            record.check_once()?;
            let recorded = record.check_complete(left)?;
            self.coverage.reach_if(archived, CoveragePoint::DocumentArchived);
            self.coverage.reach_if(recorded, CoveragePoint::DocumentRecorded);
        }
        // All collections share one archive: its lines may be of a dropped collection.
        let owed = NAMES.into_iter().flat_map(|name| self.model.owed(name, Evidence::Archive)).collect();
        let expired = self.model.expiries.iter().collect();
        EvidenceCheck { place: "the archive".to_owned(), expired, owed, told: &lines }.check_truth()?;
        if purged { self.main.verify_records() } else { Ok(()) }
    }

    /// Checks that all documents that expired in a dropped collection are in its archive.
    pub(super) fn check_archive_of_dropped(&self, before: &Model, name: &'static str) -> Result<(), String> {
        archive(before, name, &entries(&self.main.archived())?).check_complete(0).map(drop)
    }
}

fn archive<'a>(model: &'a Model, name: &'static str, told: &'a [EvidenceEntry]) -> EvidenceCheck<'a, Expiry> {
    let owed = model.owed(name, Evidence::Archive);
    EvidenceCheck { place: format!("the archive of {name}"), expired: model.expiries_in(name), owed, told }
}

fn entries(lines: &[String]) -> Result<Vec<EvidenceEntry>, String> {
    lines.iter().map(|line| entry(line)).collect()
}

fn entry(line: &str) -> Result<EvidenceEntry, String> {
    let value = parse_json(line.as_bytes()).map_err(|error| format!("{line}: {error}"))?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let number = |name: &str| value.get(name).and_then(Value::as_i64);
    let read = || {
        let seconds = number("seconds")?;
        let cause = match text("rule")? {
            "ttl" => Cause::Ttl(seconds),
            "defaultTtl" => Cause::Default(seconds),
            "dateIndex" => match text("index") {
                Some(index) => Cause::Date { field: Some(bson_form::field_of(index)?), seconds },
                None => Cause::Date { field: None, seconds },
            },
            _ => return None,
        };
        Some(EvidenceEntry {
            id: value.get("_id")?.get("$numberInt").and_then(Value::as_str)?.parse().ok()?,
            ts: number("_ts")?.unsigned_abs(),
            expired_ms: calendar::milliseconds(text("expired")?)?,
            cause,
            json: value.get("item").map(Value::to_json),
        })
    };
    read().ok_or_else(|| format!("it cannot be read: {line}"))
}
