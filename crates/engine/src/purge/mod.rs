//! The purge: physical removal of what is dead, in bounded steps that say when they next want to run.
//!
//! Each partition knows when it is next worth a look: when its first item dies, as the last look found or a write since has
//! set. A step visits the partitions whose time has come and sweeps each in one transaction: from where the queue's *hand*
//! stands to the first entry that lives. So it costs what it removes, and nothing while nothing is due (T19). The hand is the
//! first place behind the last entry that was passed. It is kept, because a log-structured store is slow to walk over what was
//! just removed; who joins a date queue before it, with a date in the past, moves it back.
//!
//! An item that cannot be removed, because it or what it needs is damaged, is set aside (`set_aside.rs`) and the sweep goes on.
//!
//! An item that stands in several queues goes with all its entries when the first of them is met.
//!
//! A sweep decides by what it reads inside its transaction, by trusted time: only an item that is there and dead goes, with
//! exactly its own footprint (T22). Candidates found outside would not do: a write that ran before them may commit after
//! they were looked for, and the hand would pass its entry for ever. A sweep takes no sequence, so nobody can tell whether
//! it has run. When it has emptied a queue's dead prefix, it forgets the cutoffs that covered it (T12).
//!
//! Partitions take turns, so that a large one does not starve a small one.

mod copies;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod damaged_place_tests;
mod figures;
mod pace;
#[cfg(test)]
mod pace_tests;
mod prepare;
mod retention;
pub(crate) mod set_aside;
#[cfg(test)]
mod set_aside_tests;
mod shortage;
mod stream;
mod sweep;

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use document::{ItemNumber, Sequence};
use parking_lot::Mutex;
use storage::{
    Direction, Extent, KeyRange, Keyspace, Lanes, Read, Time, Transaction, transact_in_background,
    transact_to,
};

use crate::Engine;
use crate::archive::{Leave, PurgeNews};
use crate::charge::Charge;
use crate::container::Partition;
use crate::error::{Error, Result};
use crate::expiry::{Millis, Place, Places, Policy, Queue};
use crate::gate::{Gate, View};
use crate::holder::Holder;
use crate::keys::{self, Key, PartitionId};

pub use copies::DiskCopy;
pub use figures::PurgeFigures;
pub(crate) use figures::Purged;
pub use pace::{Backlog, Observation, Pace, PaceStatus, Slice};
use prepare::Prepared;
pub(crate) use retention::Remains;
pub use retention::{RetentionReport, RetentionStatus};
use set_aside::SetAside;
pub(crate) use sweep::Removed;
use sweep::{Swept, Undertaker, sweep};

/// The least that a visited partition may remove in a sweep, however many wait.
const SHARE_MIN: usize = 8;

/// The most that one sweep removes: a write that comes meanwhile waits for no more than that.
const SWEEP_ITEMS: usize = 512;

/// What those without urgency may remove while others are urgent: one part in so many.
const CALM_PART: usize = 8;

/// How long a partition whose sweep failed is left alone.
const FAILURE_PAUSE_MS: u64 = 60_000;

/// How long an index build that finds no room on the disk is left alone.
const ROOM_PAUSE_MS: u64 = 5_000;

/// What one step did, and when the next one is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Items removed.
    pub purged_items: u64,
    /// Their bytes.
    pub purged_bytes: u64,
    /// Items removed with background priority, so that the writer's time for them is known.
    pub background_items: u64,
    /// Entries written or removed by other background work: index builds, and what dropped containers and old indexes left.
    pub other_entries: u64,
    /// When there is something to do again; none if nothing will ever be due as things stand.
    pub next_due: Option<Time>,
    /// Who else used the store meanwhile.
    pub neighbours: Neighbours,
    /// Whether a retention promise lets the purge wait for nobody (T24).
    pub urgent: bool,
    /// Whether a container waits for units that users leave unused (T20).
    pub out_of_units: bool,
}

/// Whether somebody else used the store while a step ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Neighbours {
    /// Nobody was seen.
    #[default]
    Absent,
    /// Users are there: the step ended early for them, unless it was urgent.
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
    /// Steps that removed something.
    pub passes: u64,
    /// When a step last ran.
    pub last_step: Option<Time>,
    /// When the next one is wanted.
    pub next_due: Option<Time>,
    /// How fast it goes, and whether that is enough.
    pub pace: PaceStatus,
}

impl Engine {
    /// Removes about `limit` dead items at most and says when to come back; a piece of index work is done besides, also
    /// while the purge is paused. Damage in a partition keeps nothing else from being done; the first such error is returned
    /// at the end.
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
                // A build waits for room on the disk. The purge makes some, and does not wait with it.
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
            let waiting = self.purge.waiting(catalog.holdings(), now);
            let (urgent, calm) = self.by_urgency(waiting);
            report.urgent = !urgent.is_empty();
            outcome = outcome.and(self.visit(&urgent, limit, Manners::Insist, &mut report));
            let left = if report.urgent { limit.div_ceil(CALM_PART) } else { limit };
            outcome = outcome.and(self.visit(&calm, left, Manners::Yield, &mut report));
        }
        let looks = catalog.holdings().filter_map(|(_, partition)| partition.next_look.get());
        let next_due = looks.chain(report.next_due).min();
        if !is_stopped {
            report.next_due = next_due;
        }
        self.purge.record(&report, self.store.now()?);
        // Also while it is stopped: then there is nothing to do at that time, but no write has to ring either.
        self.alarm.sleep_until(next_due);
        outcome.and(indexes).and(sessions).map(|_| report)
    }

    /// Removes about `limit` dead items at most on an operator's demand, of one container or collection or of all, whoever
    /// else uses the store; says when something there dies next. Does nothing while the purge is stopped.
    pub fn purge_at_once(&self, of: Option<&Holder>, limit: usize) -> Result<PurgeReport> {
        let mut report = PurgeReport::default();
        if self.is_purge_stopped()? {
            return Ok(report);
        }
        let catalog = self.catalog();
        let chosen = |partition: &Arc<Partition>| {
            of.is_none_or(|holder| holder.partitions().iter().any(|own| own.id == partition.id))
        };
        let holdings = || catalog.holdings().filter(|(_, partition)| chosen(partition));
        let waiting = self.purge.waiting(holdings(), self.store.now()?);
        let outcome = self.visit(&waiting, limit, Manners::Insist, &mut report);
        let next_look = |(_, partition): (Holder, &Arc<Partition>)| {
            // Not while the background, which has taken the look that was due, is about to say when the next one is.
            let _alone = partition.sweeping.lock();
            partition.next_look.get()
        };
        report.next_due = holdings().filter_map(next_look).min();
        self.purge.count(&report);
        // What is left is for the loop, which may have been about to sleep.
        self.alarm.ring();
        outcome.map(|()| report)
    }

    /// Whether nothing may be purged now: an operator has paused it, or the clock is suspect (T34).
    pub(crate) fn is_purge_stopped(&self) -> Result<bool> {
        Ok(self.purge.paused.load(Ordering::Acquire) || self.store.clock_status()?.suspect.is_some())
    }

    /// The purge's figures.
    pub fn purge_status(&self) -> PurgeStatus {
        self.purge.status()
    }

    /// Takes note of how fast the purge goes, for [`purge_status`](Engine::purge_status).
    pub fn note_purge_pace(&self, pace: PaceStatus) {
        self.purge.figures.lock().pace = pace;
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

    /// Those whom a promise lets wait no longer (T24), and the others.
    fn by_urgency(&self, waiting: Vec<Visit>) -> (Vec<Visit>, Vec<Visit>) {
        waiting.into_iter().partition(|(_, partition)| {
            let promised = partition.policy.read().lifecycle.max_purge_delay.is_some();
            let is_urgent = || retention::is_urgent(&View::open(&*self.store, partition)?);
            // Where it cannot be told there is damage, and the sweep will say so.
            promised && is_urgent().unwrap_or(false)
        })
    }

    /// Sweeps waiting partitions in turns while there is room. Each has a share of every round, so that a large one takes no
    /// more of a step than a small one may; and a sweep is short, so that nobody waits long behind one (T20).
    fn visit(
        &self,
        waiting: &[Visit],
        limit: usize,
        manners: Manners,
        report: &mut PurgeReport,
    ) -> Result<()> {
        let share = limit.div_ceil(waiting.len().max(1)).clamp(SHARE_MIN, SWEEP_ITEMS);
        let mut turns: VecDeque<&Visit> = waiting.iter().collect();
        let (mut room, mut outcome) = (limit, Ok(()));
        while room > 0
            && let Some(visit) = turns.pop_front()
        {
            let (holder, partition) = visit;
            let (now, before) = (self.store.now()?, self.store.operations());
            let budget = self.budget(holder, partition);
            let affordable = match manners {
                Manners::Yield => budget.left_over().map_or(SWEEP_ITEMS, affordable),
                Manners::Insist => SWEEP_ITEMS,
            };
            if affordable == 0 {
                report.out_of_units |= partition.next_look.is_due(now);
                continue;
            }
            let alone = partition.sweeping.lock();
            if !partition.next_look.take(now) {
                continue;
            }
            // How often the sweep itself used the store.
            let mut own = 1;
            match self.sweep(holder, partition, manners, share.min(room).min(affordable)) {
                Ok(swept) => {
                    own += swept.own_operations;
                    if manners == Manners::Yield {
                        report.background_items += swept.items;
                        budget.spend_left_over(swept.charge);
                    }
                    report.purged_items += swept.items;
                    report.purged_bytes += swept.bytes;
                    report.other_entries += swept.trimmed;
                    partition.purged.add(swept.items, swept.bytes, now);
                    self.tell_set_aside(holder, &swept);
                    room -= room.min(swept.items.max(1) as usize);
                    turns.push_back(visit);
                }
                Err(error) => {
                    partition.next_look.not_after(now.plus_millis(FAILURE_PAUSE_MS));
                    outcome = outcome.and(Err(in_holder(error, holder)));
                }
            }
            drop(alone);
            self.purge.visited(partition.id);
            if self.store.operations() > before + own {
                report.neighbours = Neighbours::Present;
                if manners == Manners::Yield {
                    break;
                }
            }
        }
        outcome
    }

    /// Has the log name the items that a sweep has set aside.
    fn tell_set_aside(&self, holder: &Holder, swept: &Swept) {
        for SetAside { number, reason } in &swept.set_aside {
            let container = format!("{}/{}", holder.database(), holder.name());
            self.news.tell(PurgeNews::SetAside { container, item: number.0, reason: reason.clone() });
        }
    }

    /// One transaction that removes what is dead in a partition, up to `limit` items. What has to be archived before is, while
    /// nobody waits for it.
    fn sweep(
        &self,
        holder: &Holder,
        partition: &Arc<Partition>,
        manners: Manners,
        limit: usize,
    ) -> Result<Swept> {
        let (leave, mut own_operations) = self.archive_ahead(holder, partition)?;
        // What a power failure brings back is as dead as before, and goes again. But what the deletion record says stands.
        let is_recorded = partition.policy.read().lifecycle.deletion_record;
        let extent = match manners {
            Manners::Yield if !is_recorded => Extent::Written,
            Manners::Yield | Manners::Insist => Extent::Synced,
        };
        let prepared = match (manners, holder) {
            (Manners::Yield, Holder::Container(container)) => {
                own_operations += 1;
                Prepared::read(&View::open(&*self.store, partition)?, container, partition, limit)
            }
            _ => Prepared::default(),
        };
        let (id, holder, swept) = (partition.id, holder.clone(), Arc::clone(partition));
        let granted = leave.clone();
        let fits = move |policy: &Policy| policy.lifecycle.deletion_record == is_recorded;
        let sweep = move |tx: &mut Transaction<'_>| match Gate::for_write(tx, id) {
            // Not even what was dead before the hold may go; lifting it asks for a look.
            Ok(gate) if gate.policy.lifecycle.hold.is_some() => Ok(Swept::default()),
            Ok(gate) if !tx.clock_is_suspect() && granted.fits(&gate.policy) && fits(&gate.policy) => {
                let undertaker = Undertaker::new(tx, &gate, &holder, &swept, prepared)?;
                sweep(tx, &gate, &undertaker, &granted, limit)
            }
            // The clock has become suspect since the step began, or the owner wants another archive or record: the look is
            // still wanted.
            Ok(gate) => Ok(Swept::again_at(gate.now)),
            Err(Error::OwnerNotFound { .. }) => Ok(Swept::default()),
            Err(error) => Err(error),
        };
        let lanes = Lanes::one(u64::from(id.0));
        let ticket = match manners {
            Manners::Yield => transact_in_background(&*self.store, lanes, extent, sweep),
            Manners::Insist => transact_to(&*self.store, lanes, extent, sweep),
        };
        let mut swept = ticket.wait()?;
        swept.own_operations = own_operations;
        if let Leave::Archived(batch) = &leave {
            partition.archive.swept(batch, swept.items);
        }
        if let Some(policy) = swept.policy.clone() {
            partition.install(policy);
        }
        if let Some(due) = swept.next_due {
            partition.next_look.not_after(due);
        }
        if let Some(death) = swept.oldest_death {
            partition.remains.note(death);
        }
        if swept.trimmed > 0 {
            partition.remains.note(self.store.now()?);
        }
        Ok(swept)
    }
}

/// How many items such a charge pays for: what they cost is known when they are gone, and what was too much is made up for
/// later.
fn affordable(left_over: Charge) -> usize {
    usize::try_from(left_over.0.div_ceil(Charge::write(1, 0).0)).unwrap_or(usize::MAX)
}

/// Damage with the name of the container it is in.
fn in_holder(error: Error, holder: &Holder) -> Error {
    match error {
        Error::Corrupt(what) => Error::Corrupt(format!("container '{}': {what}", holder.name())),
        other => other,
    }
}

/// How a step behaves towards others who use the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manners {
    /// It ends when somebody else is seen.
    Yield,
    /// It goes on.
    Insist,
}

/// A partition that waits for its sweep, with what it belongs to.
type Visit = (Holder, Arc<Partition>);

/// When an entry of the dead died. A cutoff covers a whole prefix of its queue, so what it covers was written before it.
fn death_at(gate: &Gate, place: Place) -> Option<Time> {
    let moment = gate.policy.instant(place, Sequence(0))?;
    Some(Time::from_millis(moment.time.max(0).unsigned_abs()))
}

/// When the first entry of any queue dies.
fn next_due(reader: &dyn Read, id: PartitionId, policy: &Policy) -> Result<Option<Time>> {
    let mut earliest: Option<Time> = None;
    for queue in policy.queues() {
        let range = from_hand(reader, id, queue, Millis::MAX)?;
        let Some(entry) = reader.scan(Keyspace::Queue, range, Direction::Forward).next() else { continue };
        let (base, _) = keys::queue_entry(&entry?.0)?;
        earliest = policy.due(Place { queue, base }).into_iter().chain(earliest).min();
    }
    Ok(earliest)
}

/// Whether a queue has an entry up to `through` that the purge has not passed.
pub(crate) fn is_waiting(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
) -> Result<bool> {
    has_entry(reader, from_hand(reader, partition, queue, through)?)
}

/// Whether a queue has an entry up to `through`, those of items that are set aside included: what is there has to stay expired
/// when rules change (T13), though the purge has passed it.
pub(crate) fn is_occupied(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
) -> Result<bool> {
    has_entry(reader, with_set_aside(reader, partition, queue, through)?)
}

fn has_entry(reader: &dyn Read, range: KeyRange) -> Result<bool> {
    Ok(reader.scan(Keyspace::Queue, range, Direction::Forward).next().transpose()?.is_some())
}

/// The part of a queue that may have entries, up to and including `through`: from the hand on, or all of it where items are set
/// aside, whose entries lie before the hand.
pub(crate) fn with_set_aside(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
) -> Result<KeyRange> {
    if set_aside::is_empty(reader, partition)? {
        return from_hand(reader, partition, queue, through);
    }
    Ok(through_base(partition, queue, keys::queue_prefix(partition, queue), through))
}

/// The part of a queue from the hand on, up to and including `through`. No entry lies before the hand but those of items that
/// are set aside.
pub(crate) fn from_hand(
    reader: &dyn Read,
    partition: PartitionId,
    queue: Queue,
    through: Millis,
) -> Result<KeyRange> {
    let (keyspace, key) = Key::Hand(partition, queue).encode();
    let hand = reader.get(keyspace, &key)?;
    let start = hand.map_or_else(|| keys::queue_prefix(partition, queue), |hand| hand.to_vec());
    Ok(through_base(partition, queue, start, through))
}

/// The part of a queue that the purge's cursor has passed. Only items that are set aside have entries in it.
fn before_hand(reader: &dyn Read, partition: PartitionId, queue: Queue) -> Result<KeyRange> {
    let start = keys::queue_prefix(partition, queue);
    let (keyspace, key) = Key::Hand(partition, queue).encode();
    let hand = reader.get(keyspace, &key)?.map_or_else(|| start.clone(), |hand| hand.to_vec());
    Ok(KeyRange { start: Bound::Included(start.clone()), end: Bound::Excluded(hand.max(start)) })
}

/// The part of a queue from a place on, up to and including `through`.
fn through_base(partition: PartitionId, queue: Queue, start: Vec<u8>, through: Millis) -> KeyRange {
    let end = match through.checked_add(1) {
        Some(base) => Bound::Excluded(keys::queue_base(partition, queue, base).max(start.clone())),
        None => KeyRange::prefix(keys::queue_prefix(partition, queue)).end,
    };
    KeyRange { start: Bound::Included(start), end }
}

/// Makes way for an item that joins date queues: a date may lie before what the hand has passed, and no entry may. In the
/// other queues nobody joins among the dead.
pub(crate) fn let_in(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    places: &Places,
    number: ItemNumber,
) -> Result<()> {
    for Place { queue, base } in &places.dates {
        let (keyspace, hand) = Key::Hand(partition, *queue).encode();
        let entry = Key::Queue { partition, queue: *queue, base: *base, number }.encode().1;
        if tx.get(keyspace, &hand)?.is_some_and(|stands| *stands > *entry) {
            tx.put(keyspace, hand, entry);
        }
    }
    Ok(())
}

/// When a partition is next worth a look: milliseconds; 0 at once, the maximum never.
#[derive(Debug, Default)]
pub(crate) struct NextLook(AtomicU64);

impl NextLook {
    const NEVER: u64 = u64::MAX;

    /// Something in the partition dies at `due`.
    pub(crate) fn not_after(&self, due: Time) {
        self.0.fetch_min(due.millis(), Ordering::AcqRel);
    }

    /// The partition's policy has changed.
    pub(crate) fn at_once(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Whether the time has come.
    fn is_due(&self, now: Time) -> bool {
        self.0.load(Ordering::Acquire) <= now.millis()
    }

    /// True once if the time has come. What is set from then on is kept for the next look; what was set before belongs to
    /// a transaction that has run, and the sweep, which runs after it, sees its writes.
    fn take(&self, now: Time) -> bool {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |at| {
                (at <= now.millis()).then_some(Self::NEVER)
            })
            .is_ok()
    }

    pub(crate) fn get(&self) -> Option<Time> {
        let at = self.0.load(Ordering::Acquire);
        (at != Self::NEVER).then(|| Time::from_millis(at))
    }
}

/// The purge's switch, figures and turn.
#[derive(Debug, Default)]
pub(crate) struct PurgeState {
    paused: AtomicBool,
    figures: Mutex<PurgeStatus>,
    last_visited: Mutex<Option<PartitionId>>,
    retention: retention::RetentionState,
    copies: Arc<copies::Copies>,
}

impl PurgeState {
    /// The partitions whose time has come, beginning behind the one that was visited last.
    fn waiting<'a>(
        &self,
        partitions: impl Iterator<Item = (Holder, &'a Arc<Partition>)>,
        now: Time,
    ) -> Vec<Visit> {
        let mut waiting: Vec<Visit> = partitions
            .filter(|(_, partition)| partition.next_look.is_due(now))
            .map(|(holder, partition)| (holder, Arc::clone(partition)))
            .collect();
        let last = *self.last_visited.lock();
        waiting.sort_by_key(|(_, partition)| (Some(partition.id) <= last, partition.id));
        waiting
    }

    fn visited(&self, partition: PartitionId) {
        *self.last_visited.lock() = Some(partition);
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
