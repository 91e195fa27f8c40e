//! What the purge tells of itself (T23): what waits for it, since when, and what it has done.
//!
//! What waits is counted from the store's counters, exactly and without reading items. Whether anything waits at all is told
//! by the first entry of each queue, so a container in which nothing is dead costs one look per queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use storage::{Direction, Keyspace, Read, Time};

use super::{Backlog, set_aside};
use crate::Engine;
use crate::archive::unarchived;
use crate::container::Partition;
use crate::counters::{self, Tally};
use crate::error::Result;
use crate::expiry::Place;
use crate::gate::{Gate, View};
use crate::holder::Holder;
use crate::keys;

/// Figures of the purge in one container or collection, or in all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeFigures {
    /// What has expired and waits for its removal. Items that are set aside do not wait.
    pub backlog: Tally,
    /// When the oldest of it expired.
    pub oldest_death: Option<Time>,
    /// What was removed since the engine was opened.
    pub purged: Tally,
    /// Expired items that cannot be removed and were set aside.
    pub set_aside: u64,
    /// When something was last removed.
    pub last_pass: Option<Time>,
    /// When the purge will look again; none if nothing will ever be due as things stand.
    pub next_due: Option<Time>,
}

impl PurgeFigures {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: PurgeFigures) -> PurgeFigures {
        PurgeFigures {
            backlog: self.backlog.plus(other.backlog),
            oldest_death: self.oldest_death.into_iter().chain(other.oldest_death).min(),
            purged: self.purged.plus(other.purged),
            set_aside: self.set_aside + other.set_aside,
            last_pass: self.last_pass.max(other.last_pass),
            next_due: self.next_due.into_iter().chain(other.next_due).min(),
        }
    }
}

impl Engine {
    /// The purge's figures for one container or collection.
    pub fn purge_figures(&self, holder: &Holder) -> Result<PurgeFigures> {
        let views = View::open_all(&*self.store, holder.partitions())?;
        let mut sum = PurgeFigures::default();
        for (partition, view) in holder.partitions().iter().zip(&views) {
            sum = sum.plus(of_partition(&*view.snapshot, &view.gate, partition)?);
        }
        Ok(sum)
    }

    /// What waits in all containers and collections in which something is due; none while the purge is stopped.
    pub fn backlog(&self) -> Result<Option<Backlog>> {
        if self.is_purge_stopped()? {
            return Ok(None);
        }
        let (now, catalog) = (self.store.now()?, self.catalog());
        let mut sum = PurgeFigures::default();
        for (_, partition) in catalog.holdings().filter(|(_, partition)| partition.next_look.is_due(now)) {
            let view = View::open(&*self.store, partition)?;
            sum = sum.plus(of_partition(&*view.snapshot, &view.gate, partition)?);
        }
        let age = sum.oldest_death.map_or(0, |death| now.millis_since(death));
        Ok(Some(Backlog { items: sum.backlog.items, age: Duration::from_millis(age) }))
    }

    /// The purge's figures for every container and collection.
    pub fn purge_figures_of_all(&self) -> Result<Vec<(Holder, PurgeFigures)>> {
        let catalog = self.catalog();
        let mut all: Vec<(Holder, PurgeFigures)> = Vec::new();
        for (holder, partition) in catalog.holdings() {
            let view = View::open(&*self.store, partition)?;
            let figures = of_partition(&*view.snapshot, &view.gate, partition)?;
            match all.last_mut() {
                // The partitions of a container follow each other.
                Some((last, sum)) if Arc::ptr_eq(&last.partitions()[0], &holder.partitions()[0]) => {
                    *sum = sum.plus(figures);
                }
                _ => all.push((holder, figures)),
            }
        }
        Ok(all)
    }
}

fn of_partition(reader: &dyn Read, gate: &Gate, partition: &Partition) -> Result<PurgeFigures> {
    let oldest_death = oldest_death(reader, gate)?;
    let (backlog, set_aside) = match oldest_death {
        // Anybody may ask for figures at any time, so they look at no more than a few items.
        Some(_) => {
            let dead = counters::dead_at_most(reader, gate.partition, &gate.policy, gate.now)?.tally;
            let set_aside = set_aside::tally(reader, gate.partition)?;
            (without(dead.plus(unarchived::sum(reader, gate.partition)?), set_aside), set_aside.items)
        }
        None => (Tally::default(), set_aside::count(reader, gate.partition)?),
    };
    let (purged, last_pass) = partition.purged.get();
    let next_due = partition.next_look.get();
    Ok(PurgeFigures { backlog, oldest_death, purged, set_aside, last_pass, next_due })
}

/// What waits for the purge of what has expired, where something does. Counters may be damaged as items are, so the difference
/// is kept from falling below what is known.
fn without(expired: Tally, set_aside: Tally) -> Tally {
    let Tally { items, bytes } = expired;
    Tally {
        items: items.saturating_sub(set_aside.items).max(1),
        bytes: bytes.saturating_sub(set_aside.bytes),
    }
}

/// When the first item expired that waits for the purge; not those that are set aside, which do not. Expiries are
/// in order along a queue, so its first entry tells.
pub(super) fn oldest_death(reader: &dyn Read, gate: &Gate) -> Result<Option<Time>> {
    // What was moved aside is not in a queue any more, and its bytes are still there.
    let mut oldest: Option<Time> = unarchived::oldest(reader, gate.partition)?;
    for queue in gate.policy.queues() {
        let Some(through) = gate.policy.dead_through(queue, gate.now) else { continue };
        let range = super::from_hand(reader, gate.partition, queue, through)?;
        let Some(entry) = reader.scan(Keyspace::Queue, range, Direction::Forward).next() else { continue };
        let (base, _) = keys::queue_entry(&entry?.0)?;
        oldest = super::death_at(gate, Place { queue, base }).into_iter().chain(oldest).min();
    }
    Ok(oldest)
}

/// What the purge has removed from one partition since the engine was opened.
#[derive(Debug, Default)]
pub(crate) struct Purged {
    items: AtomicU64,
    bytes: AtomicU64,
    /// Milliseconds; 0 if it has removed nothing.
    last_pass: AtomicU64,
}

impl Purged {
    pub(super) fn add(&self, items: u64, bytes: u64, now: Time) {
        if items > 0 {
            self.items.fetch_add(items, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.last_pass.store(now.millis(), Ordering::Relaxed);
        }
    }

    fn get(&self) -> (Tally, Option<Time>) {
        let tally =
            Tally { items: self.items.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) };
        let last = self.last_pass.load(Ordering::Relaxed);
        (tally, (last > 0).then(|| Time::from_millis(last)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;
    use document::ItemNumber;
    use storage::{KeyRange, Scan};

    use super::super::damage_tests::{ITEMS, Scene, container};
    use super::*;
    use crate::keys::Key;

    /// Counts the bytes of items that are read.
    struct CountingReader<'a>(&'a dyn Read, Cell<usize>);

    impl Read for CountingReader<'_> {
        fn get(&self, keyspace: Keyspace, key: &[u8]) -> storage::Result<Option<Bytes>> {
            let value = self.0.get(keyspace, key)?;
            if keyspace == Keyspace::Item {
                self.1.set(self.1.get() + value.as_ref().map_or(0, Bytes::len));
            }
            Ok(value)
        }

        fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_> {
            self.0.scan(keyspace, range, direction)
        }
    }

    #[test]
    fn t23_figures_read_few_of_the_items_that_are_set_aside() {
        const SET_ASIDE: u64 = 50;
        const ITEM_BYTES: usize = 100_000;
        let scene = Scene::new(container);
        scene.fill(0..ITEMS);
        let partition = scene.partition().id;
        scene.plant(move |tx| {
            for number in (0..SET_ASIDE).map(|number| ItemNumber(number << 32 | 1)) {
                let (keyspace, key) = Key::SetAside(partition, number).encode();
                tx.put(keyspace, key, "?");
                let (keyspace, key) = Key::Item(partition, number).encode();
                tx.put(keyspace, key, vec![0xFF; ITEM_BYTES]);
            }
        });
        let figures = || {
            let view = View::open(&*scene.store, scene.partition()).expect("a view");
            let reader = CountingReader(&*view.snapshot, Cell::new(0));
            let figures = of_partition(&reader, &view.gate, scene.partition()).expect("figures");
            (figures.set_aside, figures.backlog.items > 0, reader.1.get())
        };
        assert_eq!(figures(), (SET_ASIDE, false, 0), "nothing waits, so no size is asked for");
        scene.clock.advance(Duration::from_secs(200));
        let (set_aside, waits, read) = figures();
        assert_eq!((set_aside, waits), (SET_ASIDE, true));
        assert!((1..=set_aside::MEASURED_BYTES_MAX + ITEM_BYTES).contains(&read), "{read} bytes were read");
    }
}
