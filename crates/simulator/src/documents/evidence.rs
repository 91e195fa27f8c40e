//! Archive and deletion record of collections against the model, as `evidence` has it for containers.

use document::{Value, parse_json};

use super::Life;
use super::form;
use super::machine::NAMES;
use super::model::{Death, Model};
use super::words::Cause;
use crate::calendar;
use crate::coverage::Reach;
use crate::inquest::{Case, Inquest};
use crate::model::Evidence;

/// What a line or an entry tells of one dead document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Testimony {
    id: i32,
    ts: u64,
    expired_ms: u64,
    cause: Cause,
    /// The document as JSON, in the archive.
    json: Option<String>,
}

impl Case for Death {
    type Testimony = Testimony;
    type Subject = (i32, u64);

    fn subject(testimony: &Testimony) -> Self::Subject {
        (testimony.id, testimony.ts)
    }

    fn is_about(&self, testimony: &Testimony) -> bool {
        (testimony.id, testimony.ts) == (self.doc.id, self.ts)
            && testimony.json.as_ref().is_none_or(|told| *told == form::json(&self.doc))
    }

    fn is_exact(&self, testimony: &Testimony) -> bool {
        testimony.expired_ms == self.time_ms && self.causes.contains(&testimony.cause)
    }
}

impl Life {
    /// Looks at all evidence there is. `purged` says that the purge has nothing left to do, so that it must be complete.
    pub(super) fn check_evidence(&mut self, purged: bool) -> Result<(), String> {
        let lines = testimonies(&self.main.archived())?;
        let backlog = self.main.backlog()?;
        for name in NAMES {
            let waits = self.model.collections.get(name).is_some_and(|it| it.hold) || self.archive_is_full;
            let left = if purged && !waits { 0 } else { backlog.get(name).copied().unwrap_or(0) };
            let archived = archive(&self.model, name, &lines).check_complete(left)?;
            let entries = testimonies(&self.main.recorded(name)?)?;
            let record = Inquest {
                place: format!("the record of {name}"),
                died: self.model.deaths_in(name),
                owed: self.model.owed(name, Evidence::Record),
                told: &entries,
            };
            record.check_truth()?;
            record.check_once()?;
            let recorded = record.check_complete(left)?;
            self.coverage.reach_if(archived, Reach::DocumentArchived);
            self.coverage.reach_if(recorded, Reach::DocumentRecorded);
        }
        // All collections share one archive: what it tells may be of a collection that is gone.
        let owed = NAMES.into_iter().flat_map(|name| self.model.owed(name, Evidence::Archive)).collect();
        let died = self.model.deaths.iter().collect();
        Inquest { place: "the archive".to_owned(), died, owed, told: &lines }.check_truth()?;
        if purged { self.main.verify_records() } else { Ok(()) }
    }

    /// All who died in a collection that is gone are in its archive.
    pub(super) fn check_archive_of_dropped(&self, before: &Model, name: &'static str) -> Result<(), String> {
        archive(before, name, &testimonies(&self.main.archived())?).check_complete(0).map(drop)
    }
}

fn archive<'a>(model: &'a Model, name: &'static str, told: &'a [Testimony]) -> Inquest<'a, Death> {
    let owed = model.owed(name, Evidence::Archive);
    Inquest { place: format!("the archive of {name}"), died: model.deaths_in(name), owed, told }
}

fn testimonies(lines: &[String]) -> Result<Vec<Testimony>, String> {
    lines.iter().map(|line| testimony(line)).collect()
}

fn testimony(line: &str) -> Result<Testimony, String> {
    let value = parse_json(line.as_bytes()).map_err(|error| format!("{line}: {error}"))?;
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let number = |name: &str| value.get(name).and_then(Value::as_i64);
    let read = || {
        let seconds = number("seconds")?;
        let cause = match text("rule")? {
            "ttl" => Cause::Ttl(seconds),
            "defaultTtl" => Cause::Default(seconds),
            "dateIndex" => match text("index") {
                Some(index) => Cause::Date { field: Some(form::field_of(index)?), seconds },
                None => Cause::Date { field: None, seconds },
            },
            _ => return None,
        };
        Some(Testimony {
            id: value.get("_id")?.get("$numberInt").and_then(Value::as_str)?.parse().ok()?,
            ts: number("_ts")?.unsigned_abs(),
            expired_ms: calendar::milliseconds(text("expired")?)?,
            cause,
            json: value.get("item").map(Value::to_json),
        })
    };
    read().ok_or_else(|| format!("it cannot be read: {line}"))
}
