//! `GET /metrics`: figures of this server in Prometheus' text format.
//!
//! The door is open, as for the probes, but names nobody's data: figures by container are for whoever shows the account key
//! as a bearer token. What the store can count is read when it is asked for, so a figure here costs nothing meanwhile.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use engine::{Api, Engine, Holder, PurgeFigures};
use hyper::Response;

use crate::error::Error;
use crate::headers;

/// The status codes that are counted: every one there is.
const STATUSES: std::ops::Range<usize> = 100..600;

/// What was answered since the start.
pub(crate) struct Requests {
    by_status: Box<[AtomicU64]>,
    charge_hundredths: AtomicU64,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            by_status: STATUSES.map(|_| AtomicU64::new(0)).collect(),
            charge_hundredths: AtomicU64::new(0),
        }
    }
}

impl Requests {
    /// Counts an answer.
    pub(crate) fn count<B>(&self, response: &Response<B>) {
        let place = usize::from(response.status().as_u16()).checked_sub(STATUSES.start);
        if let Some(counter) = place.and_then(|place| self.by_status.get(place)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let charge = response.headers().get(&headers::REQUEST_CHARGE).and_then(|value| value.to_str().ok());
        let charge = charge.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        self.charge_hundredths.fetch_add((charge * 100.0).round() as u64, Ordering::Relaxed);
    }
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Anybody: sums only.
    Stranger,
    /// Someone who has the account key: figures by container too.
    Operator,
}

/// The whole page.
pub(crate) fn page(engine: &Engine, requests: &Requests, reader: Reader) -> Result<String, Error> {
    let mut page = Page::default();
    answers(&mut page, requests);
    clock(&mut page, engine)?;
    store(&mut page, engine);
    purge(&mut page, engine, reader)?;
    Ok(page.0)
}

fn answers(page: &mut Page, requests: &Requests) {
    page.head(
        "bolide_requests_total",
        Kind::Counter,
        "Requests of the NoSQL API by the status of their answer.",
    );
    for (status, counter) in STATUSES.zip(&requests.by_status) {
        let count = counter.load(Ordering::Relaxed);
        if count > 0 {
            page.sample("bolide_requests_total", &[("code", &status.to_string())], count);
        }
    }
    let hundredths = requests.charge_hundredths.load(Ordering::Relaxed);
    let units = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    page.plain("bolide_request_units_total", Kind::Counter, "Request units that those answers named.", units);
}

fn clock(page: &mut Page, engine: &Engine) -> Result<(), Error> {
    let clock = engine.clock_status()?;
    page.plain("bolide_time_seconds", Kind::Gauge, "The store's time.", seconds(clock.now.millis()));
    page.plain(
        "bolide_clock_suspect",
        Kind::Gauge,
        "1 while the clock is suspect and nothing is destroyed.",
        u8::from(clock.suspect.is_some()),
    );
    Ok(())
}

fn store(page: &mut Page, engine: &Engine) {
    let store = engine.storage_stats();
    page.plain("bolide_store_bytes", Kind::Gauge, "Bytes on disk, journal included.", store.disk_bytes);
    page.plain("bolide_store_journal_bytes", Kind::Gauge, "Bytes of the journal.", store.journal_bytes);
    page.plain("bolide_store_commits_total", Kind::Counter, "Commits; one serves many jobs.", store.commits);
    page.plain("bolide_store_jobs_total", Kind::Counter, "Transactions run.", store.jobs);
    page.plain("bolide_store_writable", Kind::Gauge, "0 after a failed commit.", u8::from(!store.poisoned));
}

fn purge(page: &mut Page, engine: &Engine, reader: Reader) -> Result<(), Error> {
    let status = engine.purge_status();
    let all = engine.purge_figures_of_all()?;
    let sum = all.iter().map(|(_, figures)| *figures).fold(PurgeFigures::default(), PurgeFigures::plus);
    let now = engine.now()?;
    let age =
        |figures: &PurgeFigures| seconds(figures.oldest_death.map_or(0, |oldest| now.millis_since(oldest)));
    page.plain(
        "bolide_purge_paused",
        Kind::Gauge,
        "1 while an operator has paused it.",
        u8::from(status.paused),
    );
    let (items, bytes) = (sum.backlog.items, sum.backlog.bytes);
    page.plain("bolide_purge_backlog_items", Kind::Gauge, "Dead items not removed yet.", items);
    page.plain("bolide_purge_backlog_bytes", Kind::Gauge, "Their bytes.", bytes);
    page.plain(
        "bolide_purge_oldest_age_seconds",
        Kind::Gauge,
        "How long the oldest of them has been dead; 0 if there is none.",
        age(&sum),
    );
    page.plain("bolide_purged_items_total", Kind::Counter, "Dead items removed.", status.purged_items);
    page.plain("bolide_purged_bytes_total", Kind::Counter, "Their bytes.", status.purged_bytes);
    page.plain("bolide_purge_passes_total", Kind::Counter, "Steps that removed something.", status.passes);
    let times = [
        ("bolide_purge_last_step_seconds", "When a step last ran.", status.last_step),
        ("bolide_purge_next_due_seconds", "When something is due next.", status.next_due),
    ];
    for (name, help, time) in times {
        if let Some(time) = time {
            page.plain(name, Kind::Gauge, help, seconds(time.millis()));
        }
    }
    let retention = engine.retention_status();
    for (name, help, count) in [
        ("bolide_retention_missed_total", "Retention bounds that were missed.", retention.missed),
        ("bolide_scrubs_total", "Scrubs that left nothing removed in the files.", retention.scrubs),
        ("bolide_scrubs_held_total", "Scrubs that somebody who reads held up.", retention.held_scrubs),
    ] {
        page.plain(name, Kind::Counter, help, count);
    }
    archives(page, engine);
    if reader == Reader::Operator {
        by_container(page, &all, age);
    }
    Ok(())
}

fn archives(page: &mut Page, engine: &Engine) {
    let sums = engine.archive_sums();
    page.plain(
        "bolide_archive_waiting_containers",
        Kind::Gauge,
        "Containers whose purge waits because their archive cannot be written.",
        sums.waiting,
    );
    for (name, help, count) in [
        ("bolide_archived_items_total", "Dead items written to archives.", sums.archived.items),
        ("bolide_archived_bytes_total", "Bytes of their lines.", sums.archived.bytes),
        ("bolide_archive_failures_total", "Tries to write archives that failed.", sums.failures),
    ] {
        page.plain(name, Kind::Counter, help, count);
    }
}

/// One metric after the other, as the format wants it. Containers without anything to tell are left out.
fn by_container(page: &mut Page, all: &[(Holder, PurgeFigures)], age: impl Fn(&PurgeFigures) -> String) {
    type Figure<'a> = &'a dyn Fn(&PurgeFigures) -> String;
    let telling = |figures: &PurgeFigures| figures.backlog.items > 0 || figures.purged.items > 0;
    let metrics: [(&str, Kind, &str, Figure<'_>); 5] = [
        (
            "bolide_container_purge_backlog_items",
            Kind::Gauge,
            "Dead items not removed yet, by container.",
            &|of| of.backlog.items.to_string(),
        ),
        ("bolide_container_purge_backlog_bytes", Kind::Gauge, "Their bytes.", &|of| {
            of.backlog.bytes.to_string()
        }),
        (
            "bolide_container_purge_oldest_age_seconds",
            Kind::Gauge,
            "How long the oldest has been dead.",
            &age,
        ),
        ("bolide_container_purged_items_total", Kind::Counter, "Dead items removed, by container.", &|of| {
            of.purged.items.to_string()
        }),
        ("bolide_container_purged_bytes_total", Kind::Counter, "Their bytes.", &|of| {
            of.purged.bytes.to_string()
        }),
    ];
    for (name, kind, help, figure) in metrics {
        page.head(name, kind, help);
        for (holder, figures) in all.iter().filter(|(_, figures)| telling(figures)) {
            let api = match holder.api() {
                Api::NoSql => "nosql",
                Api::MongoDb => "mongodb",
            };
            let labels = [("api", api), ("database", holder.database()), ("container", holder.name())];
            page.sample(name, &labels, figure(figures));
        }
    }
}

/// Milliseconds as seconds.
fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// The text as it grows.
#[derive(Default)]
struct Page(String);

impl Page {
    fn plain(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.sample(name, &[], value);
    }

    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}")
            .expect("text takes all that is written");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (position, (label, text)) in labels.iter().enumerate() {
            self.0.push(if position == 0 { '{' } else { ',' });
            write!(self.0, "{label}=\"{}\"", escaped(text)).expect("text takes all that is written");
        }
        self.0.push_str(if labels.is_empty() { " " } else { "} " });
        writeln!(self.0, "{value}").expect("text takes all that is written");
    }
}

/// A label's text as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_label() {
        let mut page = Page::default();
        page.sample("m", &[("container", "a\"} 1\nb\\")], 7);
        assert_eq!(page.0, "m{container=\"a\\\"} 1\\nb\\\\\"} 7\n");
    }
}
