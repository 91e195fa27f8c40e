//! The purge: physical removal of expired items, in bounded steps that return when the next one is due.
//!
//! Each partition knows when it is next due: when its first item expires, as the last sweep found or a write since
//! has set. A step visits the partitions that are due and sweeps each in one transaction, from the queue's *purge
//! cursor* to the first living entry. So its cost follows the items that it removes, and is zero while none is due (T19).
//! The cursor is the first position after the last entry that was passed. It is stored, because a log-structured store is
//! slow to scan a range whose entries were just removed. An item that joins a date queue before the cursor, with a date in the past, moves
//! the cursor back.
//!
//! An item that cannot be removed, because it or what it needs is damaged, is set aside (`set_aside.rs`) and the
//! sweep continues. An item with entries in several queues is removed with all of them when the sweep reaches the
//! first.
//!
//! A sweep decides by what it reads inside its transaction, by trusted time: it removes only an item that exists
//! and has expired, with exactly its own footprint (T22). Candidates found outside would not be safe: a write that ran
//! before the search may commit after it, and the cursor would pass its entry for ever. A sweep takes no sequence, so no
//! number reveals whether it has run. When it has emptied a queue's expired prefix, it drops the cutoffs that covered it
//! (T12).
//!
//! Partitions take turns, so that a large one does not starve a small one.

mod copies;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod damaged_place_tests;
mod figures;
mod front;
#[cfg(test)]
mod front_tests;
mod pace;
#[cfg(test)]
mod pace_tests;
mod prepare;
mod retention;
#[cfg(test)]
mod set_aside_tests;
mod shortage;
mod stream;
mod sweep;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use document::Sequence;
use parking_lot::Mutex;
use storage::{Durability, Lanes, Time, Transaction, transact_in_background, transact_with};

use crate::Engine;
use crate::access::gate::{Gate, View};
use crate::catalog::container::Partition;
use crate::catalog::owner::Owner;
use crate::catalog::turn::Turn;
use crate::entries::set_aside::SetAside;
use crate::evidence::archive::{PurgeNews, Removable};
use crate::expiry::{Policy, QueuePosition};
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};

pub use copies::DiskCopy;
pub use figures::PurgeFigures;
pub use pace::{Backlog, Observation, Pace, PaceStatus, Slice};
use prepare::Prepared;
pub use retention::{RetentionReport, RetentionStatus};
use sweep::{ItemRemover, Swept, sweep};

/// The least that a sweep may remove of a partition, however many partitions wait.
const SHARE_MIN: usize = 8;

/// The most that one sweep removes: a write that arrives meanwhile waits for no more than that.
const SWEEP_ITEMS: usize = 512;

/// Partitions without urgency get one part in this many while others are urgent.
const CALM_PART: usize = 8;

/// How long a partition is left alone after its sweep failed.
const FAILURE_PAUSE_MS: u64 = 60_000;

/// How long an index build is left alone after it found no free space on the disk.
const ROOM_PAUSE_MS: u64 = 5_000;

/// The report of one step, and when the next one is due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Items removed.
    pub purged_items: u64,
    /// Their bytes.
    pub purged_bytes: u64,
    /// Items removed with background priority, by which the writer's time for them is known.
    pub background_items: u64,
    /// Entries written or removed by other background work: index builds, and removal of dropped containers and old
    /// indexes.
    pub other_entries: u64,
    /// When the next step is due; `None` if no item will ever expire under the present rules.
    pub next_due: Option<Time>,
    /// Whether users used the store during the step.
    pub concurrent_use: ConcurrentUse,
    /// Whether a retention promise requires the purge to go on beside users (T24).
    pub urgent: bool,
    /// Whether a container waits for units that users leave unused (T20).
    pub out_of_units: bool,
}

/// Whether users used the store while a step ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConcurrentUse {
    /// No use by others was seen.
    #[default]
    Absent,
    /// Users are present: the step ended early for them, unless it was urgent.
    Present,
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
    /// Steps that removed items.
    pub passes: u64,
    /// When a step last ran.
    pub last_step: Option<Time>,
    /// When the next step is due.
    pub next_due: Option<Time>,
    /// The pace of the purge, and whether it is sufficient.
    pub pace: PaceStatus,
}

impl Engine {
    /// Removes at most about `limit` expired items and reports when the next step is due. It also does a piece of
    /// index work, even while the purge is paused. Damage in a partition does not keep the others from being purged;
    /// the first such error is returned at the end.
    pub fn purge_step(&self, limit: usize) -> Result<PurgeReport> {
        let mut report = PurgeReport::default();
        let mut outcome = Ok(());
        self.alarm.awake();
        let mut indexes = Ok(());
        for index in [self.index_step(limit), self.collection_index_step(limit)] {
            match index {
                Ok(index) => {
                    report.other_entries += index.entries;
                    let due = if index.more { Some(self.store.now()?) } else { None };
                    report.next_due = due.or(report.next_due);
                }
                // A build waits for free space on the disk. The purge makes some, and does not wait with it.
                Err(Error::NoRoom(_)) => {
                    let later = self.store.now()?.plus_millis(ROOM_PAUSE_MS);
                    report.next_due = report.next_due.or(Some(later));
                }
                Err(error) => indexes = indexes.and(Err(error)),
            }
        }
        let sessions = self.forget_sessions(limit);
        if let Ok(sessions) = &sessions {
            report.other_entries += sessions.entries;
            report.next_due = sessions.next_due.into_iter().chain(report.next_due).min();
        }
        let catalog = self.catalog();
        let is_stopped = self.is_purge_stopped()?;
        if !is_stopped {
            let now = self.store.now()?;
            match self.clear_dropped(limit) {
                Ok(Some(cleared)) => {
                    report.other_entries += cleared;
                    report.next_due = Some(now);
                }
                Ok(None) => {}
                Err(error) => outcome = Err(error),
            }
            match self.release_retired(limit) {
                Ok((released, due)) => {
                    report.other_entries += released;
                    report.next_due = due.into_iter().chain(report.next_due).min();
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
            let waiting = self.purge.waiting(catalog.owned_partitions(), now);
            let (urgent, calm) = self.by_urgency(waiting);
            report.urgent = !urgent.is_empty();
            outcome = outcome.and(self.visit(&urgent, limit, StepPriority::Insist, &mut report));
            let left = if report.urgent { limit.div_ceil(CALM_PART) } else { limit };
            outcome = outcome.and(self.visit(&calm, left, StepPriority::Yield, &mut report));
        }
        let looks = catalog.owned_partitions().filter_map(|(_, partition)| partition.next_due.get());
        let next_due = looks.chain(report.next_due).min();
        if !is_stopped {
            report.next_due = next_due;
        }
        self.purge.record(&report, self.store.now()?);
        // Also while the purge is stopped: the step at that time then does nothing, but no write has to wake the loop
        // either.
        self.alarm.sleep_until(next_due);
        outcome.and(indexes).and(sessions).map(|_| report)
    }

    /// Removes at most about `limit` expired items on an operator's request, of one container or collection or of
    /// all, even beside users. Reports when the next item there expires. Does nothing while the purge is stopped.
    pub fn purge_at_once(&self, of: Option<&Owner>, limit: usize) -> Result<PurgeReport> {
        let mut report = PurgeReport::default();
        if self.is_purge_stopped()? {
            return Ok(report);
        }
        let catalog = self.catalog();
        let chosen = |partition: &Arc<Partition>| {
            of.is_none_or(|owner| owner.partitions().iter().any(|own| own.id == partition.id))
        };
        let owned_partitions = || catalog.owned_partitions().filter(|(_, partition)| chosen(partition));
        let waiting = self.purge.waiting(owned_partitions(), self.store.now()?);
        let outcome = self.visit(&waiting, limit, StepPriority::Insist, &mut report);
        let next_visit = |(_, partition): (Owner, &Arc<Partition>)| {
            // Not while a background sweep, which has taken the due visit, is about to set the next due time.
            let _alone = partition.sweeping.lock();
            partition.next_due.get()
        };
        report.next_due = owned_partitions().filter_map(next_visit).min();
        self.purge.count(&report);
        // The rest is for the loop, which may have been about to sleep.
        self.alarm.ring();
        outcome.map(|()| report)
    }

    /// Returns whether nothing may be purged now: an operator has paused the purge, or the clock is suspect (T34).
    pub(crate) fn is_purge_stopped(&self) -> Result<bool> {
        Ok(self.purge.paused.load(Ordering::Acquire) || self.store.clock_status()?.suspect.is_some())
    }

    /// Returns the purge's figures.
    pub fn purge_status(&self) -> PurgeStatus {
        self.purge.status()
    }

    /// Stores the pace of the purge for [`purge_status`](Engine::purge_status).
    pub fn note_purge_pace(&self, pace: PaceStatus) {
        self.purge.figures.lock().pace = pace;
    }

    /// Pauses or resumes the purge. Expired items stay invisible either way.
    pub fn pause_purge(&self, paused: bool) {
        self.purge.paused.store(paused, Ordering::Release);
        self.alarm.ring();
    }

    /// Sets the callback to call when the purge is due earlier than its last report said.
    pub fn on_purge_due(&self, ring: impl Fn() + Send + Sync + 'static) {
        self.alarm.on_ring(Box::new(ring));
    }

    /// Splits the partitions into those whose retention promise is urgent (T24), and the others.
    fn by_urgency(&self, waiting: Vec<Visit>) -> (Vec<Visit>, Vec<Visit>) {
        waiting.into_iter().partition(|(_, partition)| {
            let promised = partition.policy.read().lifecycle.max_purge_delay.is_some();
            let is_urgent = || retention::is_urgent(&View::open(&*self.store, partition)?);
            // If this fails, the partition is damaged, and the sweep will report it.
            promised && is_urgent().unwrap_or(false)
        })
    }

    /// Sweeps waiting partitions in turns, up to the limit. Each has the same share of every round, so that a large one
    /// takes no more of a step than a small one; and a sweep is short, so that no write waits long for one (T20).
    fn visit(
        &self,
        waiting: &[Visit],
        limit: usize,
        priority: StepPriority,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let share = limit.div_ceil(waiting.len().max(1)).clamp(SHARE_MIN, SWEEP_ITEMS);
        let mut turns: VecDeque<&Visit> = waiting.iter().collect();
        let (mut room, mut outcome) = (limit, Ok(()));
        while room > 0
            && let Some(visit) = turns.pop_front()
        {
            let (owner, partition) = visit;
            let (now, before) = (self.store.now()?, self.store.operations());
            let budget = self.budget(owner, partition);
            let affordable = match priority {
                StepPriority::Yield => budget.left_over().map_or(SWEEP_ITEMS, affordable),
                StepPriority::Insist => SWEEP_ITEMS,
            };
            if affordable == 0 {
                report.out_of_units |= partition.next_due.is_due(now);
                continue;
            }
            let alone = partition.sweeping.lock();
            if !partition.next_due.take(now) {
                continue;
            }
            // How often the sweep itself used the store.
            let mut own = 1;
            match self.sweep(owner, partition, priority, share.min(room).min(affordable)) {
                Ok(swept) => {
                    own += swept.own_operations;
                    if priority == StepPriority::Yield {
                        report.background_items += swept.items;
                        budget.spend_left_over(swept.charge);
                    }
                    report.purged_items += swept.items;
                    report.purged_bytes += swept.bytes;
                    report.other_entries += swept.trimmed;
                    partition.purged.add(swept.items, swept.bytes, now);
                    self.report_set_aside(owner, &swept);
                    room -= room.min(swept.items.max(1) as usize);
                    turns.push_back(visit);
                }
                Err(error) => {
                    partition.next_due.not_after(now.plus_millis(FAILURE_PAUSE_MS));
                    outcome = outcome.and(Err(in_holder(error, owner)));
                }
            }
            drop(alone);
            self.purge.turn.begin(partition.id);
            if self.store.operations() > before + own {
                report.concurrent_use = ConcurrentUse::Present;
                if priority == StepPriority::Yield {
                    break;
                }
            }
        }
        outcome
    }

    /// Queues the items that a sweep has set aside for the log.
    fn report_set_aside(&self, owner: &Owner, swept: &Swept) {
        for SetAside { number, reason } in &swept.set_aside {
            let container = format!("{}/{}", owner.database(), owner.name());
            self.news.tell(PurgeNews::SetAside { container, item: number.0, reason: reason.clone() });
        }
    }

    /// Runs one transaction that removes expired items of a partition, up to `limit`. Items with an archive are archived
    /// before, outside of the transaction.
    fn sweep(
        &self,
        owner: &Owner,
        partition: &Arc<Partition>,
        priority: StepPriority,
        limit: usize,
    ) -> Result<Swept> {
        let (leave, mut own_operations) = self.archive_ahead(owner, partition)?;
        // Items that a power failure restores have still expired, and are removed again. But the entries of a deletion
        // record must be durable.
        let is_recorded = partition.policy.read().lifecycle.deletion_record;
        let durability = match priority {
            StepPriority::Yield if !is_recorded => Durability::Buffered,
            StepPriority::Yield | StepPriority::Insist => Durability::Sync,
        };
        let prepared = match (priority, owner) {
            (StepPriority::Yield, Owner::Container(container)) => {
                own_operations += 1;
                Prepared::read(&View::open(&*self.store, partition)?, container, partition, limit)
            }
            _ => Prepared::default(),
        };
        let (id, owner, swept) = (partition.id, owner.clone(), Arc::clone(partition));
        let granted = leave.clone();
        let fits = move |policy: &Policy| policy.lifecycle.deletion_record == is_recorded;
        let sweep = move |tx: &mut Transaction<'_>| match Gate::for_write(tx, id) {
            // Under a hold even items that had expired before must stay; lifting it makes the partition due.
            Ok(gate) if gate.policy.lifecycle.hold.is_some() => Ok(Swept::default()),
            Ok(gate) if !tx.clock_is_suspect() && granted.fits(&gate.policy) && fits(&gate.policy) => {
                let remover = ItemRemover::new(tx, &gate, &owner, &swept, prepared)?;
                sweep(tx, &gate, &remover, &granted, limit)
            }
            // The clock has become suspect since the step began, or the owner has changed the archive or the record:
            // the partition stays due.
            Ok(gate) => Ok(Swept::again_at(gate.now)),
            Err(Error::OwnerNotFound { .. }) => Ok(Swept::default()),
            Err(error) => Err(error),
        };
        let lanes = Lanes::one(u64::from(id.0));
        let ticket = match priority {
            StepPriority::Yield => transact_in_background(&*self.store, lanes, durability, sweep),
            StepPriority::Insist => transact_with(&*self.store, lanes, durability, sweep),
        };
        let mut swept = ticket.wait()?;
        swept.own_operations = own_operations;
        if let Removable::Archived(batch) = &leave {
            partition.archive.swept(batch, swept.items);
        }
        if let Some(policy) = swept.policy.clone() {
            partition.install(policy);
        }
        if let Some(due) = swept.next_due {
            partition.next_due.not_after(due);
        }
        if let Some(expiry) = swept.oldest_expiry {
            partition.unscrubbed.note(expiry);
        }
        if swept.trimmed > 0 {
            partition.unscrubbed.note(self.store.now()?);
        }
        Ok(swept)
    }
}

/// Returns how many items such a charge pays for. Their real cost is known after their removal; an excess is repaid
/// later.
fn affordable(left_over: Charge) -> usize {
    usize::try_from(left_over.0.div_ceil(Charge::write(1, 0).0)).unwrap_or(usize::MAX)
}

/// Adds the name of the container to an error about damage.
fn in_holder(error: Error, owner: &Owner) -> Error {
    match error {
        Error::Corrupt(what) => Error::Corrupt(format!("container '{}': {what}", owner.name())),
        other => other,
    }
}

/// How a step behaves beside users.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepPriority {
    /// It ends when it sees other use of the store.
    Yield,
    /// It continues.
    Insist,
}

/// A partition that waits for its sweep, with its owner.
type Visit = (Owner, Arc<Partition>);

/// Returns when an entry of the expired prefix expired. A cutoff covers a whole prefix of its queue, so everything
/// that it covers was written before it.
fn expiry_at(gate: &Gate, place: QueuePosition) -> Option<Time> {
    let moment = gate.policy.instant(place, Sequence(0))?;
    Some(Time::from_millis(moment.time.max(0).unsigned_abs()))
}

/// The purge's switch, figures and turn.
#[derive(Debug, Default)]
pub(crate) struct PurgeState {
    paused: AtomicBool,
    figures: Mutex<PurgeStatus>,
    turn: Turn,
    retention: retention::RetentionState,
    copies: Arc<copies::Copies>,
}

impl PurgeState {
    /// Returns the partitions that are due, beginning behind the one that was visited last.
    fn waiting<'a>(
        &self,
        partitions: impl Iterator<Item = (Owner, &'a Arc<Partition>)>,
        now: Time,
    ) -> Vec<Visit> {
        let mut waiting: Vec<Visit> = partitions
            .filter(|(_, partition)| partition.next_due.is_due(now))
            .map(|(owner, partition)| (owner, Arc::clone(partition)))
            .collect();
        self.turn.sort(&mut waiting, |(_, partition)| partition.id);
        waiting
    }

    fn record(&self, report: &PurgeReport, now: Time) {
        self.count(report);
        let mut figures = self.figures.lock();
        figures.last_step = Some(now);
        figures.next_due = report.next_due;
    }

    fn count(&self, report: &PurgeReport) {
        let mut figures = self.figures.lock();
        figures.purged_items += report.purged_items;
        figures.purged_bytes += report.purged_bytes;
        figures.passes += u64::from(report.purged_items > 0);
    }

    fn status(&self) -> PurgeStatus {
        PurgeStatus { paused: self.paused.load(Ordering::Acquire), ..*self.figures.lock() }
    }
}
