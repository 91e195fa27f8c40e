//! One sweep: inside its transaction, from where each queue's hand stands to the first entry that lives. Entries whose lines are
//! not in the archive (T32) are left. What writes have moved aside goes first. What is damaged is set aside.

use std::cell::RefCell;
use std::sync::Arc;

use document::ItemNumber;
use storage::{Direction, Keyspace, Read, Time, Transaction};

use super::prepare::{Prepared, Removal};
use super::set_aside::{self, SetAside};
use super::{from_hand, next_due};
use crate::archive::{Batch, Leave, unarchived};
use crate::burial;
use crate::charge::Charge;
use crate::collection::Desk;
use crate::container::{Container, Partition};
use crate::error::{Error, Result};
use crate::expiry::{Millis, Policy, Queue};
use crate::footprint::Footprint;
use crate::gate::Gate;
use crate::history;
use crate::holder::Holder;
use crate::index::Upkeep;
use crate::keys::{self, Key};
use crate::limits::SWEEP_ENTRIES;

/// What one sweep did.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) items: u64,
    pub(super) bytes: u64,
    /// The policy without cutoffs that cover nothing any more.
    pub(super) policy: Option<Policy>,
    /// When the partition's first item dies that is left; now if the limit was reached.
    pub(super) next_due: Option<Time>,
    /// Entries removed.
    entries: usize,
    /// Events trimmed of the feed of all versions.
    pub(super) trimmed: u64,
    /// When the first of the removed had died.
    pub(super) oldest_death: Option<Time>,
    /// What users would have paid for deleting them.
    pub(super) charge: Charge,
    /// Whether something dead was left because it is not in the archive.
    left: bool,
    /// How often the store was used besides the transaction, to archive and to prepare.
    pub(super) own_operations: u64,
    /// Whether it ended at its limit, so that there may be more.
    more: bool,
    /// Expired items that cannot be removed and were not known yet.
    pub(super) set_aside: Vec<SetAside>,
}

impl Swept {
    /// Nothing was done, and is to be done then.
    pub(super) fn again_at(due: Time) -> Swept {
        Swept { next_due: Some(due), ..Swept::default() }
    }

    fn count(&mut self, removed: &Removed) {
        self.oldest_death = self.oldest_death.into_iter().chain(removed.died).min();
        self.items += 1;
        self.bytes += removed.bytes;
        self.entries += removed.entries;
        self.charge += removed.charge;
    }

    /// Leaves an item that cannot be removed.
    fn set_aside(
        &mut self,
        tx: &mut Transaction<'_>,
        gate: &Gate,
        number: ItemNumber,
        why: &str,
    ) -> Result<()> {
        self.set_aside.extend(set_aside::put(tx, gate.partition, number, why)?);
        Ok(())
    }

    /// Whether so many entries are gone that the rest waits for the next sweep: items differ in what they leave behind.
    fn is_full(&self) -> bool {
        self.entries >= SWEEP_ENTRIES
    }
}

/// What one item was.
pub(crate) struct Removed {
    /// When it had died.
    pub(crate) died: Option<Time>,
    pub(crate) bytes: u64,
    pub(crate) entries: usize,
    pub(crate) charge: Charge,
}

/// Who removes dead items, after the form of their bodies.
#[expect(clippy::large_enum_variant, reason = "there is one for each transaction, on its stack")]
pub(super) enum Undertaker<'a> {
    Container(&'a Container, Upkeep, RefCell<Prepared>),
    Collection(Desk),
}

impl<'a> Undertaker<'a> {
    pub(super) fn new(
        tx: &Transaction<'_>,
        gate: &Gate,
        holder: &'a Holder,
        partition: &Partition,
        prepared: Prepared,
    ) -> Result<Undertaker<'a>> {
        match holder {
            Holder::Container(container) => {
                let upkeep = Upkeep::load(tx, partition)?;
                let prepared = RefCell::new(prepared.under(gate, &upkeep));
                Ok(Undertaker::Container(container, upkeep, prepared))
            }
            Holder::Collection(collection) => Ok(Undertaker::Collection(Desk::open(tx, collection)?)),
        }
    }

    /// Removes a dead item with every trace. None if it is not a dead one.
    fn remove(&self, tx: &mut Transaction<'_>, gate: &Gate, number: ItemNumber) -> Result<Option<Removed>> {
        match self {
            Undertaker::Container(container, upkeep, prepared) => {
                if let Some(expected) = prepared.borrow_mut().take(number)
                    && let Some(removed) = remove(tx, gate, container, expected, Footprint::remove_if_named)?
                {
                    return Ok(Some(removed));
                }
                let Some(record) = gate.by_number(tx, number)?.expired()? else { return Ok(None) };
                let found = Removal::new(gate, container, upkeep, record)?;
                remove(tx, gate, container, found, |footprint, tx| footprint.remove(tx).map(|()| true))
            }
            Undertaker::Collection(desk) => {
                let Some(record) = gate.by_number(tx, number)?.expired()? else { return Ok(None) };
                let entries =
                    burial::by_purge(tx, gate, &desk.keeper(), &record)? + desk.clear(tx, &record)?;
                // Not every entry is a term of an index, so this is never too little.
                let charge = Charge::write(record.size(), entries as u64);
                Ok(Some(Removed {
                    died: gate.death_of(&record.header),
                    bytes: record.size(),
                    entries,
                    charge,
                }))
            }
        }
    }
}

/// Removes an item of a container; none, with nothing done, if its footprint says that it is not there any more.
fn remove(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    container: &Container,
    Removal { record, footprint }: Removal,
    clear: impl FnOnce(Footprint, &mut Transaction<'_>) -> Result<bool>,
) -> Result<Option<Removed>> {
    let (entries, charge) = (footprint.entries(), Charge::write(record.size(), footprint.terms()));
    if !clear(footprint, tx)? {
        return Ok(None);
    }
    let entries = entries + burial::by_purge(tx, gate, container, &record)?;
    Ok(Some(Removed { died: gate.death_of(&record.header), bytes: record.size(), entries, charge }))
}

pub(super) fn sweep(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    undertaker: &Undertaker<'_>,
    leave: &Leave,
    limit: usize,
) -> Result<Swept> {
    let (id, now) = (gate.partition, gate.now);
    let mut swept = Swept::default();
    sweep_aside(tx, gate, leave, limit, &mut swept)?;
    let mut policy = Arc::clone(&gate.policy);
    for queue in policy.queues() {
        let Some(through) = policy.dead_through(queue, now) else { continue };
        let emptied = sweep_queue(tx, gate, undertaker, leave, (queue, through, limit), &mut swept)?;
        if emptied
            && policy.cutoffs.iter().any(|cutoff| cutoff.queue == queue)
            && let Some(next) = policy.forget(queue, through, &set_aside::bases(tx, id, queue)?)
        {
            let (keyspace, key) = Key::Policy(id).encode();
            tx.put(keyspace, key, next.encode());
            policy = Arc::new(next.clone());
            swept.policy = Some(next);
        }
    }
    if let Leave::Archived(batch) = leave
        && swept.items == 0
    {
        sweep_batch(tx, gate, undertaker, batch, limit, &mut swept)?;
    }
    swept.next_due = match leave {
        Leave::Nothing(retry_at) if swept.left => Some(*retry_at),
        _ if swept.left || swept.more || swept.items as usize >= limit || swept.is_full() => Some(now),
        _ => next_due(tx, id, &policy)?,
    };
    let trimmed = history::trim(tx, gate)?;
    swept.trimmed = trimmed.entries;
    swept.next_due = trimmed.next_due.into_iter().chain(swept.next_due).min();
    Ok(swept)
}

/// Removes what writes have moved aside, as far as it is in the archive.
fn sweep_aside(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    leave: &Leave,
    limit: usize,
    swept: &mut Swept,
) -> Result<()> {
    if unarchived::sum(tx, gate.partition)?.items == 0 {
        return Ok(());
    }
    if let Leave::Archived(batch) = leave {
        for (number, why) in &batch.contents.damaged_aside {
            swept.set_aside(tx, gate, *number, why)?;
        }
    }
    let keys = match leave {
        Leave::All => unarchived::waiting(tx, gate.partition)?
            .take(limit)
            .map(|entry| Ok(entry?.0.to_vec()))
            .collect::<Result<Vec<_>>>()?,
        Leave::Archived(batch) => batch.contents.aside.clone(),
        Leave::Nothing(_) => Vec::new(),
    };
    for key in keys {
        if swept.items as usize >= limit || swept.is_full() {
            break;
        }
        let (_, number) = keys::unarchived_entry(&key)?;
        match set_aside::attempt(tx, |tx| burial::of_aside(tx, gate, &key))? {
            Ok(removed) => removed.iter().for_each(|removed| swept.count(removed)),
            Err(why) => swept.set_aside(tx, gate, number, &why)?,
        }
    }
    swept.left |= unarchived::waiting(tx, gate.partition)?.next().is_some();
    Ok(())
}

/// Removes the dead of one queue up to a base, as far as they are in the archive. Returns whether none is left.
fn sweep_queue(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    undertaker: &Undertaker<'_>,
    leave: &Leave,
    (queue, through, limit): (Queue, Millis, usize),
    swept: &mut Swept,
) -> Result<bool> {
    let room = limit.saturating_sub(swept.items as usize);
    let range = from_hand(tx, gate.partition, queue, through)?;
    let scan = tx.scan(Keyspace::Queue, range, Direction::Forward);
    let dead = scan.take(room).collect::<storage::Result<Vec<_>>>()?;
    swept.more |= dead.len() >= room;
    let (mut removed, mut passed) = (0, 0);
    for (at, (entry, _)) in dead.iter().enumerate() {
        if swept.is_full() {
            break;
        }
        let (_, number) = keys::queue_entry(entry)?;
        let outcome = match leave.damage(number) {
            Some(why) => Err(why.to_owned()),
            None if !leave.covers(number) => {
                // An item that came with a date in the past stands before those of the batch, and waits for the next one.
                swept.left = true;
                continue;
            }
            None => set_aside::attempt(tx, |tx| expired(undertaker.remove(tx, gate, number)?, number))?,
        };
        match outcome {
            Ok(item) => {
                swept.count(&item);
                removed += 1;
            }
            Err(why) => swept.set_aside(tx, gate, number, &why)?,
        }
        passed += usize::from(passed == at);
    }
    // No entry may lie before the hand but those of items that are set aside, and those must: a later sweep that began with one
    // would find it due for ever.
    if let Some((last, _)) = dead[..passed].last() {
        let (keyspace, key) = Key::Hand(gate.partition, queue).encode();
        tx.put(keyspace, key, keys::behind_queue_entry(last)?);
    }
    Ok(dead.len() < room && removed == dead.len() && !swept.is_full())
}

/// Removes items of a batch wherever they stand: so many may have come before them since that a sweep does not get so far, and
/// if it were given up for that, another batch could fare no better, with the same lines once more.
fn sweep_batch(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    undertaker: &Undertaker<'_>,
    batch: &Batch,
    limit: usize,
    swept: &mut Swept,
) -> Result<()> {
    for number in batch.contents.items.keys() {
        if swept.items as usize >= limit || swept.is_full() {
            break;
        }
        match set_aside::attempt(tx, |tx| undertaker.remove(tx, gate, *number))? {
            Ok(removed) => removed.iter().for_each(|removed| swept.count(removed)),
            Err(why) => swept.set_aside(tx, gate, *number, &why)?,
        }
    }
    Ok(())
}

/// What was removed at an entry of a queue's expired prefix, where only expired items stand.
fn expired(removed: Option<Removed>, number: ItemNumber) -> Result<Removed> {
    removed.ok_or_else(|| {
        Error::Corrupt(format!(
            "item {} has an entry among the expired and is not there or has not expired",
            number.0
        ))
    })
}
