//! `GET /metrics`: figures of this server in Prometheus' text format.
//!
//! It requires no key, like the probes, but reveals no names: metrics by container require the account key as a bearer
//! token. Statistics that the store keeps are read on request, so a metric here costs nothing meanwhile.

use engine::{Api, Engine, Owner, PaceStatus, PurgeFigures};
use telemetry::{Kind, Page, Registry};

use crate::protocol::error::Error;

/// The reader of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// No key: sums only.
    Unauthenticated,
    /// The account key: metrics by container, too.
    Operator,
}

/// Returns the whole page.
pub(crate) fn page(engine: &Engine, registry: &Registry, reader: Reader) -> Result<String, Error> {
    let mut page = Page::default();
    registry.write(&mut page);
    clock(&mut page, engine)?;
    store(&mut page, engine);
    purge(&mut page, engine, reader)?;
    Ok(page.finish())
}

fn clock(page: &mut Page, engine: &Engine) -> Result<(), Error> {
    let clock = engine.clock_status()?;
    let times = [
        ("bolide_time_seconds", "The store's time.", clock.now.millis()),
        ("bolide_trusted_time_seconds", "The time by which data may be destroyed.", clock.trusted.millis()),
        (
            "bolide_clock_suspect_ahead_seconds",
            "How far the wall clock is ahead of the trusted time while it is suspect; else 0.",
            clock.suspect.map_or(0, |suspicion| suspicion.ahead_ms),
        ),
        ("bolide_test_clock_advance_seconds", "Advance of the test clock.", clock.advanced_ms),
    ];
    for (name, help, millis) in times {
        page.plain(name, Kind::Gauge, help, seconds(millis));
    }
    page.plain(
        "bolide_clock_offset_seconds",
        Kind::Gauge,
        "How far the store's time, without a test clock's advance, is ahead of the system clock; negative if behind.",
        clock.ahead_ms as f64 / 1000.0,
    );
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
    let deferred = store.deferred;
    let help = "Bytes of the memtables, which no table holds yet.";
    page.plain("bolide_store_memtable_bytes", Kind::Gauge, help, deferred.memtable_bytes);
    let help = "Full memtables that wait to be flushed to tables.";
    page.plain("bolide_store_sealed_memtables", Kind::Gauge, help, deferred.sealed_memtables as u64);
    let help = "Keyspaces with enough tables to merge, and the merge that is running.";
    page.plain("bolide_store_pending_merges", Kind::Gauge, help, deferred.pending_merges as u64);
    let disk = [
        ("bolide_disk_free_bytes", "Free bytes on the disk.", store.free_space.map(|disk| disk.free_bytes)),
        (
            "bolide_disk_reserved_bytes",
            "Bytes of the disk that only deletions, the purge and the store's own work may use.",
            store.free_space.map(|disk| disk.reserved_bytes),
        ),
    ];
    for (name, help, bytes) in disk {
        let mut family = page.family(name, Kind::Gauge, help);
        if let Some(bytes) = bytes {
            family.sample(&[], bytes);
        }
    }
    let help = "0 after a failed commit, and while disk space is below the reserve.";
    page.plain("bolide_store_writable", Kind::Gauge, help, u8::from(store.is_writable()));
    page.plain(
        "bolide_store_merging_fails",
        Kind::Gauge,
        "1 while compaction fails; it is retried until it succeeds.",
        u8::from(store.compaction_fails),
    );
}

fn purge(page: &mut Page, engine: &Engine, reader: Reader) -> Result<(), Error> {
    let status = engine.purge_status();
    let all = engine.purge_figures_of_all()?;
    let sum = all.iter().map(|(_, figures)| *figures).fold(PurgeFigures::default(), PurgeFigures::plus);
    let now = engine.now()?;
    let age =
        |figures: &PurgeFigures| seconds(figures.oldest_expiry.map_or(0, |oldest| now.millis_since(oldest)));
    page.plain(
        "bolide_purge_paused",
        Kind::Gauge,
        "1 while an operator has paused it.",
        u8::from(status.paused),
    );
    let (items, bytes) = (sum.backlog.items, sum.backlog.bytes);
    page.plain("bolide_purge_backlog_items", Kind::Gauge, "Expired items not removed yet.", items);
    page.plain("bolide_purge_backlog_bytes", Kind::Gauge, "Their bytes.", bytes);
    page.plain(
        "bolide_purge_oldest_age_seconds",
        Kind::Gauge,
        "Time since the expiry of the oldest of them; 0 if there is none.",
        age(&sum),
    );
    page.plain(
        "bolide_purge_set_aside_items",
        Kind::Gauge,
        "Expired items that are damaged and cannot be removed; bolide check names them.",
        sum.set_aside,
    );
    pace(page, status.pace);
    page.plain("bolide_purged_items_total", Kind::Counter, "Expired items removed.", status.purged_items);
    page.plain("bolide_purged_bytes_total", Kind::Counter, "Their bytes.", status.purged_bytes);
    page.plain(
        "bolide_purge_passes_total",
        Kind::Counter,
        "Purge steps that removed something.",
        status.passes,
    );
    let times = [
        ("bolide_purge_last_step_seconds", "Time of the last purge step.", status.last_step),
        ("bolide_purge_next_due_seconds", "Time at which the next purge step is due.", status.next_due),
    ];
    for (name, help, time) in times {
        let mut family = page.family(name, Kind::Gauge, help);
        if let Some(time) = time {
            family.sample(&[], seconds(time.millis()));
        }
    }
    let retention = engine.retention_status();
    for (name, help, count) in [
        ("bolide_retention_missed_total", "Missed retention bounds.", retention.missed),
        (
            "bolide_scrubs_total",
            "Completed scrubs, which leave no removed bytes in the files.",
            retention.scrubs,
        ),
        (
            "bolide_scrubs_held_total",
            "Scrubs delayed by a reader with an old snapshot.",
            retention.held_scrubs,
        ),
    ] {
        page.plain(name, Kind::Counter, help, count);
    }
    archives(page, engine);
    if reader == Reader::Operator {
        by_container(page, &all, age);
    }
    Ok(())
}

/// Writes the rates of expiry and of the purge.
fn pace(page: &mut Page, purge: PaceStatus) {
    for (name, help, value) in [
        ("bolide_purge_expiring_per_second", "Items that expire per second.", purge.expiring_per_second),
        ("bolide_purge_purging_per_second", "Items removed per second.", purge.purging_per_second),
        (
            "bolide_purge_capacity_short",
            "1 while more expires than the purge can remove, and the backlog grows.",
            u64::from(purge.is_capacity_short),
        ),
    ] {
        page.plain(name, Kind::Gauge, help, value);
    }
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
        ("bolide_archived_items_total", "Expired items written to archives.", sums.archived.items),
        ("bolide_archived_bytes_total", "Bytes of their lines.", sums.archived.bytes),
        ("bolide_archive_failures_total", "Failed attempts to write an archive.", sums.failures),
    ] {
        page.plain(name, Kind::Counter, help, count);
    }
}

/// Writes one metric after the other, as the format requires. Containers without data are omitted.
fn by_container(page: &mut Page, all: &[(Owner, PurgeFigures)], age: impl Fn(&PurgeFigures) -> String) {
    type Figure<'a> = &'a dyn Fn(&PurgeFigures) -> String;
    let telling = |figures: &PurgeFigures| figures.backlog.items > 0 || figures.purged.items > 0;
    let metrics: [(&'static str, Kind, &str, Figure<'_>); 5] = [
        (
            "bolide_container_purge_backlog_items",
            Kind::Gauge,
            "Expired items not removed yet, by container.",
            &|of| of.backlog.items.to_string(),
        ),
        ("bolide_container_purge_backlog_bytes", Kind::Gauge, "Their bytes.", &|of| {
            of.backlog.bytes.to_string()
        }),
        (
            "bolide_container_purge_oldest_age_seconds",
            Kind::Gauge,
            "Time since the expiry of the oldest of them.",
            &age,
        ),
        (
            "bolide_container_purged_items_total",
            Kind::Counter,
            "Expired items removed, by container.",
            &|of| of.purged.items.to_string(),
        ),
        ("bolide_container_purged_bytes_total", Kind::Counter, "Their bytes.", &|of| {
            of.purged.bytes.to_string()
        }),
    ];
    for (name, kind, help, figure) in metrics {
        let mut family = page.family(name, kind, help);
        for (holder, figures) in all.iter().filter(|(_, figures)| telling(figures)) {
            let api = match holder.api() {
                Api::NoSql => "nosql",
                Api::MongoDb => "mongodb",
            };
            let labels = [("api", api), ("database", holder.database()), ("container", holder.name())];
            family.sample(&labels, figure(figures));
        }
    }
}

/// Milliseconds as seconds.
fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}
