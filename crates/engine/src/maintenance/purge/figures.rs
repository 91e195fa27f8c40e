//! The purge's figures (T23): its backlog, the age of the backlog, and the items that it has removed.
//!
//! The backlog is computed from the store's counters, exactly and without reading items. Whether there is a backlog
//! follows from the first entry of each queue, so a container without expired items costs one lookup per queue.

use std::sync::Arc;
use std::time::Duration;

use storage::{Direction, Keyspace, Read, Time};

use super::Backlog;
use crate::Engine;
use crate::access::gate::{Gate, View};
use crate::catalog::container::Partition;
use crate::catalog::owner::Owner;
use crate::entries::counters::{self, Tally};
use crate::entries::queues::from_cursor;
use crate::entries::set_aside;
use crate::evidence::archive::unarchived;
use crate::expiry::QueuePosition;
use crate::keys;
use crate::types::error::Result;

/// Figures of the purge in one container or collection, or in all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeFigures {
    /// Expired items that wait for their removal. Items that are set aside do not wait.
    pub backlog: Tally,
    /// When the oldest of them expired.
    pub oldest_expiry: Option<Time>,
    /// Items removed since the engine was opened.
    pub purged: Tally,
    /// Expired items that cannot be removed and were set aside.
    pub set_aside: u64,
    /// When an item was last removed.
    pub last_pass: Option<Time>,
    /// When the purge is next due; `None` if no item will ever expire under the present rules.
    pub next_due: Option<Time>,
}

impl PurgeFigures {
    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: PurgeFigures) -> PurgeFigures {
        PurgeFigures {
            backlog: self.backlog.plus(other.backlog),
            oldest_expiry: self.oldest_expiry.into_iter().chain(other.oldest_expiry).min(),
            purged: self.purged.plus(other.purged),
            set_aside: self.set_aside + other.set_aside,
            last_pass: self.last_pass.max(other.last_pass),
            next_due: self.next_due.into_iter().chain(other.next_due).min(),
        }
    }
}

impl Engine {
    /// Returns the purge's figures for one container or collection.
    pub fn purge_figures(&self, owner: &Owner) -> Result<PurgeFigures> {
        let views = View::open_all(&*self.store, owner.partitions())?;
        let mut sum = PurgeFigures::default();
        for (partition, view) in owner.partitions().iter().zip(&views) {
            sum = sum.plus(of_partition(&*view.snapshot, &view.gate, partition)?);
        }
        Ok(sum)
    }

    /// Returns the backlog of all containers and collections in which items are due, or `None` while the purge is
    /// stopped.
    pub fn backlog(&self) -> Result<Option<Backlog>> {
        if self.is_purge_stopped()? {
            return Ok(None);
        }
        let (now, catalog) = (self.store.now()?, self.catalog());
        let mut sum = PurgeFigures::default();
        for (_, partition) in
            catalog.owned_partitions().filter(|(_, partition)| partition.next_due.is_due(now))
        {
            let view = View::open(&*self.store, partition)?;
            sum = sum.plus(of_partition(&*view.snapshot, &view.gate, partition)?);
        }
        let age = sum.oldest_expiry.map_or(0, |expiry| now.millis_since(expiry));
        Ok(Some(Backlog { items: sum.backlog.items, age: Duration::from_millis(age) }))
    }

    /// Returns the purge's figures for every container and collection but the system's own, where nothing expires.
    pub fn purge_figures_of_all(&self) -> Result<Vec<(Owner, PurgeFigures)>> {
        let catalog = self.catalog();
        let mut all: Vec<(Owner, PurgeFigures)> = Vec::new();
        for (owner, partition) in catalog.owned_partitions().filter(|(owner, _)| !owner.is_of_system()) {
            let view = View::open(&*self.store, partition)?;
            let figures = of_partition(&*view.snapshot, &view.gate, partition)?;
            match all.last_mut() {
                // The partitions of a container are adjacent.
                Some((last, sum)) if Arc::ptr_eq(&last.partitions()[0], &owner.partitions()[0]) => {
                    *sum = sum.plus(figures);
                }
                _ => all.push((owner, figures)),
            }
        }
        Ok(all)
    }
}

fn of_partition(reader: &dyn Read, gate: &Gate, partition: &Partition) -> Result<PurgeFigures> {
    let oldest_expiry = oldest_expiry(reader, gate)?;
    let (backlog, set_aside) = match oldest_expiry {
        // Figures may be requested at any time, so they read no more than a few items.
        Some(_) => {
            let expired_items =
                counters::expired_at_most(reader, gate.partition, &gate.policy, gate.now)?.tally;
            let set_aside = set_aside::tally(reader, gate.partition)?;
            (
                without(expired_items.plus(unarchived::sum(reader, gate.partition)?), set_aside),
                set_aside.items,
            )
        }
        None => (Tally::default(), set_aside::count(reader, gate.partition)?),
    };
    let (purged, last_pass) = partition.purged.get();
    let next_due = partition.next_due.get();
    Ok(PurgeFigures { backlog, oldest_expiry, purged, set_aside, last_pass, next_due })
}

/// Subtracts the items that are set aside from the expired ones. Counters may be damaged as items are, so the
/// difference does not fall below what is known.
fn without(expired: Tally, set_aside: Tally) -> Tally {
    let Tally { items, bytes } = expired;
    Tally {
        items: items.saturating_sub(set_aside.items).max(1),
        bytes: bytes.saturating_sub(set_aside.bytes),
    }
}

/// Returns when the first item expired that waits for the purge; items that are set aside do not wait. A queue is in
/// the order of expiry, so its first entry is enough.
pub(super) fn oldest_expiry(reader: &dyn Read, gate: &Gate) -> Result<Option<Time>> {
    // An item that was moved aside is not in a queue any more, but its bytes are still there.
    let mut oldest: Option<Time> = unarchived::oldest(reader, gate.partition)?;
    for queue in gate.policy.queues() {
        let Some(through) = gate.policy.expired_through(queue, gate.now) else { continue };
        let range = from_cursor(reader, gate.partition, queue, through)?;
        let Some(entry) = reader.scan(Keyspace::Queue, range, Direction::Forward).next() else { continue };
        let (base, _) = keys::queue_entry(&entry?.0)?;
        oldest = super::expiry_at(gate, QueuePosition { queue, base }).into_iter().chain(oldest).min();
    }
    Ok(oldest)
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
