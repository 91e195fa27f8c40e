//! The retention promise (T24): how long the bytes of an expired item may stay in the data directory.
//!
//! Two things must happen within `maxPurgeDelay` of an expiry: the purge removes the item, and the store removes its
//! bytes from the files ([`storage::Store::scrub`]). The bound is divided like this:
//!
//! ```text
//!   expiry           1/4               1/2                                    bound
//!     |---------------|-----------------|---------------------------------------|
//!     purge when idle   purge at once     scrub; the rest is for the scrub        a miss: metric and log line
//!                       (urgent)          itself and for another attempt
//! ```
//!
//! A partition remembers in memory when the oldest item expired that was removed and not scrubbed. After a start that
//! is unknown, so the first check of a promise scrubs. A scrub rewrites whole keyspaces, so one serves every
//! container.
//!
//! A hold, an archive that cannot be written, a paused purge, a damaged item, a suspect clock and a reader with an old
//! snapshot, whose data must stay, take precedence over the promise; a miss is still reported. Copies of items outside
//! of the store are removed in time by `copies`; a copy that was removed too late is reported as a miss if a scrub ran
//! before.

use std::sync::atomic::{AtomicU64, Ordering};

use storage::{Keyspace, Scrubbed, Time};

use super::figures::oldest_expiry;
use super::{FAILURE_PAUSE_MS, expiry_at, in_holder};
use crate::Engine;
use crate::access::gate::{Gate, View};
use crate::catalog::container::Partition;
use crate::catalog::unscrubbed::UnscrubbedBytes;
use crate::entries::set_aside;
use crate::evidence::archive::unarchived;
use crate::expiry::QueuePosition;
use crate::keys;
use crate::types::error::{Error, Result};
use document::ItemNumber;
use std::collections::BTreeMap;
use storage::Read;

/// The pause before a scrub that readers prevented is tried again: a small part of the bound, within limits.
const RETRY_PART: u64 = 16;
const RETRY_MIN_MS: u64 = 1000;
const RETRY_MAX_MS: u64 = 60_000;

/// The report of one check of the promises.
#[derive(Debug, Default)]
pub struct RetentionReport {
    /// Containers whose bound has passed since the last check, for the log.
    pub missed: Vec<String>,
    /// Failures: partitions where damage hides what has expired, or the scrub. Everything else was done.
    pub failures: Vec<Error>,
    /// Whether a scrub was run, and how it ended.
    pub scrubbed: Option<Scrubbed>,
    /// When the next check is due; `None` as long as there is no promise.
    pub next_due: Option<Time>,
}

/// Figures of all promises since the engine was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionStatus {
    /// Bounds that passed while expired bytes were still there.
    pub missed: u64,
    /// Scrubs that left nothing behind.
    pub scrubs: u64,
    /// Scrubs that a reader prevented.
    pub held_scrubs: u64,
}

/// The figures, as they are counted.
#[derive(Debug, Default)]
pub(super) struct RetentionState {
    missed: AtomicU64,
    scrubs: AtomicU64,
    held_scrubs: AtomicU64,
}

impl Engine {
    /// Checks all promises and scrubs the store if it is time, which takes long. Damage in a partition does not keep
    /// the others from being checked.
    pub fn retention_step(&self) -> Result<RetentionReport> {
        let mut report = RetentionReport::default();
        let mut scrub: Option<(Time, u64)> = None;
        let now = self.store.now()?;
        let copies = self.purge.copies.remove_due(now);
        report.next_due = copies.next_due;
        for (owner, partition) in self.catalog().owned_partitions() {
            let Some(bound_ms) = bound_ms(partition) else { continue };
            let mut late = copies.late.iter().filter(|(late, _)| *late == partition.id);
            if late.any(|(_, as_of)| partition.unscrubbed.was_scrubbed_since(*as_of)) {
                report.missed.push(format!("{}/{}", owner.database(), owner.name()));
            }
            let removed = partition.unscrubbed.oldest();
            let mut expiries = self.expiries_of_remaining(partition).unwrap_or_else(|error| {
                let again = now.plus_millis(FAILURE_PAUSE_MS);
                report.next_due = report.next_due.into_iter().chain([again]).min();
                report.failures.push(in_holder(error, &owner));
                Vec::new()
            });
            expiries.extend(removed.and_then(UnscrubbedBytes::expiry_time));
            expiries.sort_unstable();
            let (late, coming): (Vec<Time>, Vec<Time>) =
                expiries.into_iter().partition(|expiry| expiry.plus_millis(bound_ms) <= now);
            // All of them are counted: stopping at an early one would hide a later one.
            if late.into_iter().filter(|expiry| partition.unscrubbed.miss(*expiry)).count() > 0 {
                report.missed.push(format!("{}/{}", owner.database(), owner.name()));
            }
            let next = coming.first().map(|expiry| expiry.plus_millis(bound_ms));
            report.next_due = report.next_due.into_iter().chain(next).min();
            if let Some(removed) = removed {
                let due =
                    removed.expiry_time().map_or(now, |expired_at| expired_at.plus_millis(bound_ms / 2));
                scrub = scrub.into_iter().chain([(due, bound_ms)]).min();
            }
        }
        self.purge.retention.missed.fetch_add(report.missed.len() as u64, Ordering::Relaxed);
        if let Some((due, bound_ms)) = scrub {
            let next = if due <= now {
                let retry = (bound_ms / RETRY_PART).clamp(RETRY_MIN_MS, RETRY_MAX_MS);
                let scrubbed = self.scrub();
                // Items removed meanwhile are not due before that either.
                let pause = if let Ok(Scrubbed::Done) = scrubbed { bound_ms / 2 } else { retry };
                match scrubbed {
                    Ok(scrubbed) => report.scrubbed = Some(scrubbed),
                    // A miss is reported all the same.
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

    /// Returns when the items expired that are still there: the oldest of those that wait for the purge, and each one
    /// that was set aside, because the purge does not return to those.
    fn expiries_of_remaining(&self, partition: &Partition) -> Result<Vec<Time>> {
        let view = View::open(&*self.store, partition)?;
        let mut expiries = set_aside_expiries(&*view.snapshot, &view.gate)?;
        expiries.extend(oldest_expiry(&*view.snapshot, &view.gate)?);
        Ok(expiries)
    }

    /// Returns the figures of the promises.
    pub fn retention_status(&self) -> RetentionStatus {
        let RetentionState { missed, scrubs, held_scrubs } = &self.purge.retention;
        RetentionStatus {
            missed: missed.load(Ordering::Relaxed),
            scrubs: scrubs.load(Ordering::Relaxed),
            held_scrubs: held_scrubs.load(Ordering::Relaxed),
        }
    }

    /// Removes the bytes of all removed items from the files.
    fn scrub(&self) -> Result<Scrubbed> {
        let catalog = self.catalog();
        // Items removed from now on are for the next scrub, and so are all if this one fails.
        let taken: Vec<_> = catalog
            .owned_partitions()
            .map(|(_, partition)| (partition, partition.unscrubbed.take()))
            .collect();
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
                Ok(Scrubbed::Done) => partition.unscrubbed.scrubbed(removed),
                _ => partition.unscrubbed.give_back(removed),
            }
        }
        Ok(outcome?)
    }
}

/// Returns the keyspaces with bytes of items that are removed with them. The others have numbers and times only; the
/// deletion record, which has ids, is never removed.
fn keyspaces_of_items() -> Vec<Keyspace> {
    let plain = [Keyspace::Catalog, Keyspace::Queue, Keyspace::Counter, Keyspace::Deletion];
    Keyspace::ALL.into_iter().filter(|keyspace| !plain.contains(keyspace)).collect()
}

/// Returns the bound that the owner of a partition was promised.
pub(super) fn bound_ms(partition: &Partition) -> Option<u64> {
    partition.policy.read().lifecycle.max_purge_delay.map(|seconds| u64::from(seconds) * 1000)
}

/// Returns whether the purge of a partition can no longer wait for idle time.
pub(super) fn is_urgent(view: &View) -> Result<bool> {
    let Some(bound) = view.gate.policy.lifecycle.max_purge_delay else { return Ok(false) };
    let max_wait_ms = u64::from(bound) * 1000 / 4;
    Ok(oldest_expiry(&*view.snapshot, &view.gate)?
        .is_some_and(|expired_at| expired_at.plus_millis(max_wait_ms) <= view.gate.now))
}

/// Returns when the items expired that are set aside, those included that a write had moved aside before.
fn set_aside_expiries(reader: &dyn Read, gate: &Gate) -> Result<Vec<Time>> {
    let numbers = set_aside::numbers(reader, gate.partition)?;
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let mut expiries: BTreeMap<ItemNumber, Time> = BTreeMap::new();
    let mut note = |number, at: Time| {
        expiries.entry(number).and_modify(|known| *known = at.min(*known)).or_insert(at);
    };
    for queue in gate.policy.queues() {
        for entry in set_aside::passed(reader, gate.partition, queue)? {
            let (base, number) = entry?;
            if let Some(at) = expiry_at(gate, QueuePosition { queue, base }) {
                note(number, at);
            }
        }
    }
    for entry in unarchived::entries(reader, gate.partition) {
        let (expired_at, number) = keys::unarchived_entry(&entry?.0)?;
        if numbers.contains(&number) {
            note(number, Time::from_millis(expired_at.max(0).unsigned_abs()));
        }
    }
    Ok(expiries.into_values().collect())
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
    use crate::{ContainerDefinition, Operation, Owner};

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
            let owner = Owner::Container(Arc::clone(&container));
            engine
                .change_lifecycle(&owner, |settings| settings.max_purge_delay = Some(60))
                .expect("a valid setting");
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
