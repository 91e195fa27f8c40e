//! The retention promise (T24): how long the bytes of a dead item may stay in the data directory.
//!
//! Two things must happen within `maxPurgeDelay` of a death: the purge removes the item, and the store gets the removed bytes
//! out of its files ([`storage::Store::scrub`]). The bound is spent so:
//!
//! ```text
//!   death            1/4               1/2                                    bound
//!     |---------------|-----------------|---------------------------------------|
//!     purge when idle   purge at once     scrub; what is left is for the scrub    a miss: metric and log line
//!                       (urgent)          itself and for another try
//! ```
//!
//! A partition remembers in memory when the oldest item died that was removed and not scrubbed. After a start nobody knows, so
//! the first look at a promise scrubs. A scrub rewrites whole keyspaces, so one serves every container.
//!
//! A hold, an archive that cannot be written, a paused purge, damage of an item and a suspect clock come before the promise; a
//! miss is told all the same. So does a reader who holds an old snapshot: what it may see is not taken from it. Copies of items outside of the
//! store are removed in time by `copies`; one that was removed too late is told as a miss if a scrub came before.

use std::sync::atomic::{AtomicU64, Ordering};

use storage::{Keyspace, Scrubbed, Time};

use super::figures::oldest_death;
use super::{FAILURE_PAUSE_MS, in_holder, set_aside};
use crate::Engine;
use crate::container::Partition;
use crate::error::{Error, Result};
use crate::gate::{Gate, View};
use crate::header::Header;

/// Pause before a scrub that readers held up is tried again; a small part of the bound, within limits.
const RETRY_PART: u64 = 16;
const RETRY_MIN_MS: u64 = 1000;
const RETRY_MAX_MS: u64 = 60_000;

/// What a look at the promises came to.
#[derive(Debug, Default)]
pub struct RetentionReport {
    /// Containers whose bound has passed since the last look, for the log.
    pub missed: Vec<String>,
    /// What could not be done: where nobody can tell what is dead, because of damage, or the scrub. The rest was.
    pub failures: Vec<Error>,
    /// Whether a scrub was run, and how it ended.
    pub scrubbed: Option<Scrubbed>,
    /// When to look again; none as long as nobody was promised anything.
    pub next_due: Option<Time>,
}

/// Figures of all promises since the engine was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionStatus {
    /// Bounds that passed while dead bytes were still there.
    pub missed: u64,
    /// Scrubs that left nothing behind.
    pub scrubs: u64,
    /// Scrubs that somebody who reads held up.
    pub held_scrubs: u64,
}

/// The figures as they grow.
#[derive(Debug, Default)]
pub(super) struct RetentionState {
    missed: AtomicU64,
    scrubs: AtomicU64,
    held_scrubs: AtomicU64,
}

impl Engine {
    /// Looks after all promises; scrubs the store if it is time, which takes long. Damage in a partition keeps nothing else from
    /// being done.
    pub fn retention_step(&self) -> Result<RetentionReport> {
        let mut report = RetentionReport::default();
        let mut scrub: Option<(Time, u64)> = None;
        let now = self.store.now()?;
        let copies = self.purge.copies.remove_due(now);
        report.next_due = copies.next_due;
        for (holder, partition) in self.catalog().holdings() {
            let Some(bound_ms) = bound_ms(partition) else { continue };
            let mut late = copies.late.iter().filter(|(late, _)| *late == partition.id);
            if late.any(|(_, as_of)| partition.remains.was_scrubbed_since(*as_of)) {
                report.missed.push(format!("{}/{}", holder.database(), holder.name()));
            }
            let removed = partition.remains.oldest();
            let mut expiries = self.expiries_of_remaining(partition).unwrap_or_else(|error| {
                let again = now.plus_millis(FAILURE_PAUSE_MS);
                report.next_due = report.next_due.into_iter().chain([again]).min();
                report.failures.push(in_holder(error, &holder));
                Vec::new()
            });
            expiries.extend(removed.and_then(Removed::death));
            expiries.sort_unstable();
            let (late, coming): (Vec<Time>, Vec<Time>) =
                expiries.into_iter().partition(|expiry| expiry.plus_millis(bound_ms) <= now);
            // Each of them: what is told of an early one would hide a later one, and must not.
            if late.into_iter().filter(|expiry| partition.remains.miss(*expiry)).count() > 0 {
                report.missed.push(format!("{}/{}", holder.database(), holder.name()));
            }
            let next = coming.first().map(|expiry| expiry.plus_millis(bound_ms));
            report.next_due = report.next_due.into_iter().chain(next).min();
            if let Some(removed) = removed {
                let due = removed.death().map_or(now, |death| death.plus_millis(bound_ms / 2));
                scrub = scrub.into_iter().chain([(due, bound_ms)]).min();
            }
        }
        self.purge.retention.missed.fetch_add(report.missed.len() as u64, Ordering::Relaxed);
        if let Some((due, bound_ms)) = scrub {
            let next = if due <= now {
                let retry = (bound_ms / RETRY_PART).clamp(RETRY_MIN_MS, RETRY_MAX_MS);
                let scrubbed = self.scrub();
                // What was removed meanwhile is due at the earliest then, too.
                let pause = if let Ok(Scrubbed::Done) = scrubbed { bound_ms / 2 } else { retry };
                match scrubbed {
                    Ok(scrubbed) => report.scrubbed = Some(scrubbed),
                    // A miss is told all the same.
                    Err(error) => report.failures.push(error),
                }
                self.store.now()?.plus_millis(pause)
            } else {
                due
            };
            report.next_due = report.next_due.into_iter().chain([next]).min();
        }
        Ok(report)
    }

    /// When items expired whose bytes are still in their places: the oldest of those that wait for the purge, and each one that
    /// was set aside, which the purge does not come back to.
    fn expiries_of_remaining(&self, partition: &Partition) -> Result<Vec<Time>> {
        let view = View::open(&*self.store, partition)?;
        let mut expiries = set_aside::expiries(&*view.snapshot, &view.gate)?;
        expiries.extend(oldest_death(&*view.snapshot, &view.gate)?);
        Ok(expiries)
    }

    /// What became of the promises.
    pub fn retention_status(&self) -> RetentionStatus {
        let RetentionState { missed, scrubs, held_scrubs } = &self.purge.retention;
        RetentionStatus {
            missed: missed.load(Ordering::Relaxed),
            scrubs: scrubs.load(Ordering::Relaxed),
            held_scrubs: held_scrubs.load(Ordering::Relaxed),
        }
    }

    /// Gets all that was removed out of the files.
    fn scrub(&self) -> Result<Scrubbed> {
        let catalog = self.catalog();
        // What is removed from now on is for the next scrub; what this one does not manage, too.
        let taken: Vec<_> =
            catalog.holdings().map(|(_, partition)| (partition, partition.remains.take())).collect();
        let outcome = self.store.scrub(&keyspaces_of_items());
        let counter = match outcome {
            Ok(Scrubbed::Done) => Some(&self.purge.retention.scrubs),
            Ok(Scrubbed::Held) => Some(&self.purge.retention.held_scrubs),
            Err(_) => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        for (partition, removed) in taken {
            match outcome {
                Ok(Scrubbed::Done) => partition.remains.scrubbed(removed),
                _ => partition.remains.give_back(removed),
            }
        }
        Ok(outcome?)
    }
}

/// Where bytes of items lie that go with them. The others have numbers and times only, and from the deletion record, which
/// has ids, nothing goes.
fn keyspaces_of_items() -> Vec<Keyspace> {
    let plain = [Keyspace::Catalog, Keyspace::Queue, Keyspace::Counter, Keyspace::Deletion];
    Keyspace::ALL.into_iter().filter(|keyspace| !plain.contains(keyspace)).collect()
}

/// The bound that the owner of a partition was promised.
pub(super) fn bound_ms(partition: &Partition) -> Option<u64> {
    partition.policy.read().lifecycle.max_purge_delay.map(|seconds| u64::from(seconds) * 1000)
}

/// Whether the purge of a partition can no longer wait for idleness.
pub(super) fn is_urgent(view: &View) -> Result<bool> {
    let Some(bound) = view.gate.policy.lifecycle.max_purge_delay else { return Ok(false) };
    let patience_ms = u64::from(bound) * 1000 / 4;
    Ok(oldest_death(&*view.snapshot, &view.gate)?
        .is_some_and(|died| died.plus_millis(patience_ms) <= view.gate.now))
}

/// When the oldest item died that was removed from a partition and may still be in files.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// Milliseconds; 0 as long as nobody knows, because the store was opened since.
    oldest: AtomicU64,
    /// When the newest item expired that was removed, in milliseconds.
    newest: AtomicU64,
    /// When the newest item expired that a scrub got out of the files.
    scrubbed: AtomicU64,
    /// The death up to which misses were told.
    told: AtomicU64,
}

/// What a scrub is about to get out of the files: the expiries of the oldest and the newest.
#[derive(Debug, Clone, Copy)]
struct Taken {
    oldest: u64,
    newest: u64,
}

/// Removed bytes that may still be in files.
#[derive(Debug, Clone, Copy)]
enum Removed {
    /// Of before the start.
    Unknown,
    /// Of items of which the oldest died then.
    Since(Time),
}

impl Removed {
    fn death(self) -> Option<Time> {
        match self {
            Removed::Unknown => None,
            Removed::Since(death) => Some(death),
        }
    }
}

impl Remains {
    const NOTHING: u64 = u64::MAX;

    /// Of a partition from which nothing was ever removed.
    pub(crate) fn nothing() -> Remains {
        Remains { oldest: AtomicU64::new(Self::NOTHING), ..Remains::default() }
    }

    /// An item that died then was removed.
    pub(crate) fn note(&self, death: Time) {
        self.newest.fetch_max(death.millis(), Ordering::AcqRel);
        self.oldest.fetch_min(death.millis().max(1), Ordering::AcqRel);
    }

    /// A write is about to remove a dead item that it found in its way.
    pub(crate) fn note_burial(&self, gate: &Gate, header: &Header) {
        if let Some(died) = gate.death_of(header) {
            self.note(died);
        }
    }

    fn oldest(&self) -> Option<Removed> {
        match self.oldest.load(Ordering::Acquire) {
            Self::NOTHING => None,
            0 => Some(Removed::Unknown),
            millis => Some(Removed::Since(Time::from_millis(millis))),
        }
    }

    fn take(&self) -> Taken {
        let oldest = self.oldest.swap(Self::NOTHING, Ordering::AcqRel);
        Taken { oldest, newest: self.newest.load(Ordering::Acquire) }
    }

    fn give_back(&self, taken: Taken) {
        self.oldest.fetch_min(taken.oldest, Ordering::AcqRel);
    }

    fn scrubbed(&self, taken: Taken) {
        self.scrubbed.fetch_max(taken.newest, Ordering::AcqRel);
    }

    /// Whether a scrub got an item out of the files that expired after that time.
    fn was_scrubbed_since(&self, time: Time) -> bool {
        self.scrubbed.load(Ordering::Acquire) > time.millis()
    }

    /// Whether the miss of an item that expired then is news. Bounds pass in the order of expiries.
    fn miss(&self, death: Time) -> bool {
        self.told.fetch_max(death.millis().max(1), Ordering::AcqRel) < death.millis().max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use document::{Document, parse_json};
    use storage::{ClockOptions, Lanes, ManualClock, MemoryStore, transact};

    use super::*;
    use crate::catalog::put;
    use crate::keys::Key;
    use crate::{ContainerDefinition, Holder, Operation};

    #[test]
    fn t24_damage_in_one_container_keeps_no_other_promise_from_being_looked_after() {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let make = |name: &str| {
            let text = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"]}},"defaultTtl":10}}"#);
            let definition = ContainerDefinition::from_value(&parse_json(text.as_bytes()).expect("JSON"));
            let container =
                engine.create_container(&database, definition.expect("valid"), None).expect("made");
            let holder = Holder::Container(Arc::clone(&container));
            engine.change_lifecycle(&holder, |wishes| wishes.max_purge_delay = Some(60)).expect("a wish");
            let body = Document::from_json(br#"{"id":"x","pk":"a"}"#).expect("JSON");
            engine.write(&container, None, Operation::Create { body }).wait().expect("created");
            container
        };
        let containers = ["a", "b", "c"].map(make);
        let id = containers[1].partitions[0].id;
        let damage = transact(&*engine.store, Lanes::all(), move |tx| {
            put(tx, Key::UnarchivedTotal(id), vec![1]);
            Ok::<_, Error>(())
        });
        damage.wait().expect("damaged");
        clock.advance(Duration::from_secs(70));
        let look = engine.retention_step().expect("a look");
        assert_eq!(look.missed, ["db/a", "db/c"]);
        let [Error::Corrupt(text)] = &look.failures[..] else { panic!("{:?}", look.failures) };
        assert!(text.starts_with("container 'b': "), "{text}");
        let again = engine.now().expect("a time").plus_millis(FAILURE_PAUSE_MS);
        assert_eq!(look.next_due, Some(again), "it is tried again");
    }
}
