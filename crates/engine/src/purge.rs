//! The purge: physical removal of what is dead, in bounded steps that say when they next want to run.
//!
//! The dead are a prefix of each mortal queue (see `expiry`), so a step reads the queue from where its *hand* stands and
//! stops at the first entry that lives: it costs what it removes, and nothing while nothing is due (T19). The hand is
//! kept, because an ordered log-structured store is slow to walk over what was just removed.
//!
//! A step looks at a snapshot, then removes in a transaction that decides anew for each candidate: only an item that is
//! there and dead *now, by trusted time* goes, with exactly its own footprint (T22). It takes no sequence, so nobody can
//! tell whether it has run. When a queue's dead prefix is empty, the cutoffs that it covered are forgotten.
//!
//! Containers take turns, one step each, so that a large one does not starve a small one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Time, Transaction, transact};

use crate::Engine;
use crate::container::{Container, Partition};
use crate::error::{Error, Result};
use crate::expiry::{Millis, Place, Policy, Queue};
use crate::footprint::{Footprint, Home};
use crate::gate::{Found, Gate, View};
use crate::keys::{self, Key, PartitionId};

/// What one step did, and when the next one is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Items removed.
    pub purged_items: u64,
    /// Their bytes.
    pub purged_bytes: u64,
    /// When there is something to do again: now if the step stopped at its limit, none if nothing will ever be due as
    /// things stand.
    pub next_due: Option<Time>,
}

/// Figures of the purge since the engine was opened (T23).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeStatus {
    /// Whether an operator has paused it.
    pub paused: bool,
    /// Items removed.
    pub purged_items: u64,
    /// Their bytes.
    pub purged_bytes: u64,
    /// When a step last ran.
    pub last_step: Option<Time>,
    /// When the next one is wanted.
    pub next_due: Option<Time>,
}

/// Where the purge stands in each mortal queue: the key of the last entry it removed. No entry lies before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hands {
    known: [Option<Vec<u8>>; Queue::MORTAL.len()],
}

impl Hands {
    /// The part of a queue from the hand on, up to and including `through`.
    fn range(
        &self,
        reader: &dyn Read,
        partition: PartitionId,
        queue: Queue,
        through: Millis,
    ) -> Result<KeyRange> {
        let start = if let Some(hand) = self.known.get(position(queue)).cloned().flatten() {
            hand
        } else {
            let (keyspace, key) = Key::Hand(partition, queue).encode();
            let stored = reader.get(keyspace, &key)?;
            stored.map_or_else(|| keys::queue_prefix(partition, queue), |hand| hand.to_vec())
        };
        let end = match through.checked_add(1) {
            Some(next) => keys::queue_base(partition, queue, next),
            None => keys::queue_base(partition, queue, Millis::MAX),
        };
        Ok(KeyRange::between(start.clone(), end.max(start)))
    }

    /// Whether the queue has an entry up to `through`.
    pub(crate) fn is_occupied(
        &self,
        reader: &dyn Read,
        partition: PartitionId,
        queue: Queue,
        through: Millis,
    ) -> Result<bool> {
        let range = self.range(reader, partition, queue, through)?;
        let first = reader.scan(Keyspace::Queue, range, Direction::Forward).next();
        Ok(first.transpose()?.is_some())
    }
}

fn position(queue: Queue) -> usize {
    Queue::MORTAL.iter().position(|mortal| *mortal == queue).unwrap_or(Queue::MORTAL.len())
}

impl Engine {
    /// Removes up to about `limit` dead items and says when to come back.
    pub fn purge_step(&self, limit: usize) -> Result<PurgeReport> {
        self.alarm.awake();
        let mut report = PurgeReport::default();
        if !self.purge.paused.load(Ordering::Acquire) && self.store.clock_status()?.suspect.is_none() {
            if self.clear_dropped(limit)? {
                report.next_due = Some(self.store.now()?);
            }
            let catalog = self.catalog();
            let partitions: Vec<_> = catalog.partitions().collect();
            let share = limit.div_ceil(partitions.len().max(1)).max(1);
            for (container, partition) in partitions {
                report.join(self.purge_partition(container, partition, share)?);
            }
        }
        self.purge.record(&report, self.store.now()?);
        self.alarm.sleep_until(report.next_due);
        Ok(report)
    }

    /// The purge's figures.
    pub fn purge_status(&self) -> PurgeStatus {
        self.purge.status()
    }

    /// Stops or restarts the purge. What is dead stays invisible either way.
    pub fn pause_purge(&self, paused: bool) {
        self.purge.paused.store(paused, Ordering::Release);
        self.alarm.ring();
    }

    /// Says what to call when the purge has something to do earlier than its last report said.
    pub fn on_purge_due(&self, ring: impl Fn() + Send + Sync + 'static) {
        self.alarm.on_ring(Box::new(ring));
    }

    fn purge_partition(
        &self,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
        limit: usize,
    ) -> Result<PurgeReport> {
        let view = View::open(&*self.store, partition)?;
        let mut report = PurgeReport::default();
        for queue in Queue::MORTAL {
            let Some(through) = view.gate.policy.dead_through(queue, view.gate.now) else { continue };
            let candidates = candidates(&view, partition, queue, through, limit)?;
            if candidates.is_empty() {
                self.forget_cutoffs(partition, queue, through)?;
            } else {
                report.join(self.remove(container, partition, queue, candidates)?);
                // Whatever is left, or a cutoff that can be forgotten now, is looked for in the next step.
                report.next_due = Some(view.gate.now);
            }
        }
        if report.next_due.is_none() {
            report.next_due = next_due(&view, partition)?;
        }
        Ok(report)
    }

    /// One transaction that removes those candidates that are dead when it runs.
    fn remove(
        &self,
        container: &Arc<Container>,
        partition: &Arc<Partition>,
        queue: Queue,
        candidates: Vec<(Vec<u8>, ItemNumber)>,
    ) -> Result<PurgeReport> {
        let (id, owner) = (partition.id, Arc::clone(container));
        let removal = move |tx: &mut Transaction<'_>| -> Result<(PurgeReport, Option<Vec<u8>>)> {
            let gate = match Gate::for_write(tx, id) {
                Ok(gate) => gate,
                Err(Error::OwnerNotFound { .. }) => return Ok(Default::default()),
                Err(error) => return Err(error),
            };
            let (mut report, mut hand) = (PurgeReport::default(), None);
            for (entry, number) in candidates {
                if let Found::Dead(record) = gate.by_number(tx, number)?
                    && gate.may_destroy(tx, &record)
                {
                    report.purged_items += 1;
                    report.purged_bytes += record.size();
                    let home = Home::of(id, &owner.definition, &record)?;
                    Footprint::new(&home, &owner.definition, &record).remove(tx)?;
                }
                // The hand never passes an entry that is still there.
                if tx.get(Keyspace::Queue, &entry)?.is_some() {
                    break;
                }
                hand = Some(entry);
            }
            if let Some(hand) = &hand {
                let (keyspace, key) = Key::Hand(id, queue).encode();
                tx.put(keyspace, key, hand.clone());
            }
            Ok((report, hand))
        };
        let (report, hand) = transact(&*self.store, Lanes::one(u64::from(id.0)), removal).wait()?;
        if hand.is_some() {
            partition.hands.lock().known[position(queue)] = hand;
        }
        Ok(report)
    }

    /// Drops the cutoffs that cover nothing any more, so that TTL switched off leaves no work behind (T12).
    fn forget_cutoffs(&self, partition: &Arc<Partition>, queue: Queue, through: Millis) -> Result<()> {
        if partition.policy.read().forget(queue, through).is_none() {
            return Ok(());
        }
        let id = partition.id;
        let forgetting = move |tx: &mut Transaction<'_>| -> Result<Option<Policy>> {
            let (keyspace, key) = Key::Policy(id).encode();
            let Some(bytes) = tx.get(keyspace, &key)? else { return Ok(None) };
            let next = Policy::decode(&bytes)?.forget(queue, through);
            if let Some(next) = &next {
                tx.put(keyspace, key, next.encode());
            }
            Ok(next)
        };
        let next = transact(&*self.store, Lanes::one(u64::from(id.0)), forgetting).wait()?;
        if let Some(next) = next {
            partition.install(next);
        }
        Ok(())
    }
}

/// The first entries of a queue's dead prefix, from the hand on.
fn candidates(
    view: &View,
    partition: &Partition,
    queue: Queue,
    through: Millis,
    limit: usize,
) -> Result<Vec<(Vec<u8>, ItemNumber)>> {
    let hands = partition.hands.lock().clone();
    let range = hands.range(&*view.snapshot, partition.id, queue, through)?;
    let mut found = Vec::new();
    for entry in view.snapshot.scan(Keyspace::Queue, range, Direction::Forward).take(limit) {
        let (key, _) = entry?;
        let (_, number) = keys::queue_entry(&key)?;
        found.push((key.to_vec(), number));
    }
    Ok(found)
}

/// When the first entry of any queue dies.
fn next_due(view: &View, partition: &Partition) -> Result<Option<Time>> {
    let hands = partition.hands.lock().clone();
    let mut earliest: Option<Time> = None;
    for queue in Queue::MORTAL {
        let range = hands.range(&*view.snapshot, partition.id, queue, Millis::MAX)?;
        let Some(entry) = view.snapshot.scan(Keyspace::Queue, range, Direction::Forward).next() else {
            continue;
        };
        let (base, _) = keys::queue_entry(&entry?.0)?;
        if let Some(due) = view.gate.policy.due(Place { queue, base }) {
            earliest = Some(earliest.map_or(due, |earliest| earliest.min(due)));
        }
    }
    Ok(earliest)
}

impl PurgeReport {
    fn join(&mut self, other: PurgeReport) {
        self.purged_items += other.purged_items;
        self.purged_bytes += other.purged_bytes;
        self.next_due = match (self.next_due, other.next_due) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

/// The purge's switch and figures.
#[derive(Debug, Default)]
pub(crate) struct PurgeState {
    paused: std::sync::atomic::AtomicBool,
    figures: parking_lot::Mutex<PurgeStatus>,
}

impl PurgeState {
    fn record(&self, report: &PurgeReport, now: Time) {
        let mut figures = self.figures.lock();
        figures.purged_items += report.purged_items;
        figures.purged_bytes += report.purged_bytes;
        figures.last_step = Some(now);
        figures.next_due = report.next_due;
    }

    fn status(&self) -> PurgeStatus {
        PurgeStatus { paused: self.paused.load(Ordering::Acquire), ..*self.figures.lock() }
    }
}
