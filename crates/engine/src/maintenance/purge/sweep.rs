//! One sweep: inside its transaction, from each queue's purge cursor to the first living entry. Entries whose lines
//! are not in the archive (T32) are left. Items that writes have moved aside are removed first. Damaged items are set
//! aside.

use std::cell::RefCell;
use std::sync::Arc;

use document::ItemNumber;
use storage::{Direction, Keyspace, Read, Time, Transaction};

use super::prepare::{Prepared, Removal};
use crate::access::gate::Gate;
use crate::catalog::container::Partition;
use crate::catalog::owner::Owner;
use crate::collection::CollectionSchema;
use crate::entries::queues::{from_cursor, next_due};
use crate::entries::set_aside::{self, SetAside};
use crate::evidence::archive::{Batch, Removable, unarchived};
use crate::evidence::removal;
use crate::evidence::removal::Removed;
use crate::expiry::{Millis, Policy, Queue};
use crate::feed::history;
use crate::index::footprint::Footprint;
use crate::keys::{self, Key};
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::limits::SWEEP_ENTRIES;
use crate::write::container_schema::ContainerSchema;
use crate::write::schema::ItemSchema;

/// The report of one sweep.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) items: u64,
    pub(super) bytes: u64,
    /// The policy without cutoffs that cover no item any more.
    pub(super) policy: Option<Policy>,
    /// When the first remaining item of the partition expires; now if the limit was reached.
    pub(super) next_due: Option<Time>,
    /// Entries removed.
    entries: usize,
    /// Events trimmed from the feed of all versions.
    pub(super) trimmed: u64,
    /// When the first of the removed items had expired.
    pub(super) oldest_expiry: Option<Time>,
    /// The charge that users would have paid for deleting the items.
    pub(super) charge: Charge,
    /// Whether an expired item was left because it is not in the archive.
    left: bool,
    /// How often the store was used besides the transaction, to archive and to prepare.
    pub(super) own_operations: u64,
    /// Whether it ended at its limit, so that there may be more.
    more: bool,
    /// Expired items that cannot be removed and were not set aside before.
    pub(super) set_aside: Vec<SetAside>,
}

impl Swept {
    /// Returns the report of a sweep that did nothing and is due again then.
    pub(super) fn again_at(due: Time) -> Swept {
        Swept { next_due: Some(due), ..Swept::default() }
    }

    fn count(&mut self, removed: &Removed) {
        self.oldest_expiry = self.oldest_expiry.into_iter().chain(removed.expired_at).min();
        self.items += 1;
        self.bytes += removed.bytes;
        self.entries += removed.entries;
        self.charge += removed.charge;
    }

    /// Sets an item aside that cannot be removed.
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

    /// Returns whether so many entries are removed that the rest waits for the next sweep: items differ in their number
    /// of entries.
    fn is_full(&self) -> bool {
        self.entries >= SWEEP_ENTRIES
    }
}

/// The remover of expired items, by the form of their bodies.
#[expect(clippy::large_enum_variant, reason = "there is one for each transaction, on its stack")]
pub(super) enum ItemRemover {
    Container(ContainerSchema, RefCell<Prepared>),
    Collection(CollectionSchema),
}

impl ItemRemover {
    pub(super) fn new(
        tx: &Transaction<'_>,
        gate: &Gate,
        owner: &Owner,
        partition: &Arc<Partition>,
        prepared: Prepared,
    ) -> Result<ItemRemover> {
        match owner {
            Owner::Container(container) => {
                let schema = ContainerSchema::open(tx, container, partition)?;
                let prepared = RefCell::new(prepared.under(gate, &schema.maintained));
                Ok(ItemRemover::Container(schema, prepared))
            }
            Owner::Collection(collection) => {
                Ok(ItemRemover::Collection(CollectionSchema::open(tx, collection)?))
            }
        }
    }

    /// Removes an expired item with every trace. Returns `None` if the item is not there or has not expired.
    fn remove(&self, tx: &mut Transaction<'_>, gate: &Gate, number: ItemNumber) -> Result<Option<Removed>> {
        match self {
            ItemRemover::Container(schema, prepared) => {
                let mut prepared = prepared.borrow_mut();
                let mut removed = match prepared.take(number) {
                    Some(expected) => remove(tx, gate, schema, expected, Footprint::remove_if_named)?,
                    None => None,
                };
                if removed.is_none() {
                    removed = remove_found(tx, gate, schema, number)?;
                }
                if removed.is_some() {
                    prepared.front.removed(number);
                }
                Ok(removed)
            }
            ItemRemover::Collection(schema) => {
                let removed = remove_found(tx, gate, schema, number)?;
                // Not every entry is a term of an index, so this is never too little.
                let charge = |removed: &Removed| Charge::write(removed.bytes, removed.entries as u64);
                Ok(removed.map(|removed| Removed { charge: charge(&removed), ..removed }))
            }
        }
    }

    /// Sets the partition's watermark as far as the removals allow, which makes them cheaper.
    fn set_watermark(
        &self,
        tx: &mut Transaction<'_>,
        partition: keys::PartitionId,
        policy: &Policy,
    ) -> Result<()> {
        match self {
            // The remaining entries of an index that is being cleared may be of any item.
            ItemRemover::Container(schema, _) if schema.maintained.clearing().next().is_some() => Ok(()),
            ItemRemover::Container(_, prepared) => {
                prepared.borrow().front.set_watermark(tx, partition, policy)
            }
            ItemRemover::Collection(_) => Ok(()),
        }
    }
}

/// Looks an item up and removes it if it has expired.
fn remove_found<S: ItemSchema>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    schema: &S,
    number: ItemNumber,
) -> Result<Option<Removed>> {
    let Some(record) = gate.by_number(tx, number)?.expired()? else { return Ok(None) };
    let found = Removal::new(schema, record)?;
    remove(tx, gate, schema, found, |footprint, tx| footprint.remove(tx).map(|()| true))
}

/// Removes an item. Changes nothing and returns `None` if its footprint shows that it does not exist any more.
fn remove<S: ItemSchema>(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    schema: &S,
    Removal { record, footprint }: Removal<S::Body>,
    clear: impl FnOnce(Footprint, &mut Transaction<'_>) -> Result<bool>,
) -> Result<Option<Removed>> {
    let (entries, charge) = (footprint.entries(), Charge::write(record.size(), footprint.index.terms()));
    if !clear(footprint, tx)? {
        return Ok(None);
    }
    let entries = entries + removal::by_purge(tx, gate, schema.source(), &record)?;
    Ok(Some(Removed {
        expired_at: gate.expiry_time_of(&record.header),
        bytes: record.size(),
        entries,
        charge,
    }))
}

pub(super) fn sweep(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    items: &ItemRemover,
    leave: &Removable,
    limit: usize,
) -> Result<Swept> {
    let (id, now) = (gate.partition, gate.now);
    let mut swept = Swept::default();
    sweep_aside(tx, gate, leave, limit, &mut swept)?;
    let mut policy = Arc::clone(&gate.policy);
    for queue in policy.queues() {
        let Some(through) = policy.expired_through(queue, now) else { continue };
        let emptied = sweep_queue(tx, gate, items, leave, (queue, through, limit), &mut swept)?;
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
    if let Removable::Archived(batch) = leave
        && swept.items == 0
    {
        sweep_batch(tx, gate, items, batch, limit, &mut swept)?;
    }
    items.set_watermark(tx, id, &policy)?;
    swept.next_due = match leave {
        Removable::Nothing(retry_at) if swept.left => Some(*retry_at),
        _ if swept.left || swept.more || swept.items as usize >= limit || swept.is_full() => Some(now),
        _ => next_due(tx, id, &policy)?,
    };
    let trimmed = history::trim(tx, gate)?;
    swept.trimmed = trimmed.entries;
    swept.next_due = trimmed.next_due.into_iter().chain(swept.next_due).min();
    Ok(swept)
}

/// Removes items that writes have moved aside, as far as they are in the archive.
fn sweep_aside(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    leave: &Removable,
    limit: usize,
    swept: &mut Swept,
) -> Result<()> {
    if unarchived::sum(tx, gate.partition)?.items == 0 {
        return Ok(());
    }
    if let Removable::Archived(batch) = leave {
        for (number, why) in &batch.contents.damaged_aside {
            swept.set_aside(tx, gate, *number, why)?;
        }
    }
    let keys = match leave {
        Removable::All => unarchived::waiting(tx, gate.partition)?
            .take(limit)
            .map(|entry| Ok(entry?.0.to_vec()))
            .collect::<Result<Vec<_>>>()?,
        Removable::Archived(batch) => batch.contents.aside.clone(),
        Removable::Nothing(_) => Vec::new(),
    };
    for key in keys {
        if swept.items as usize >= limit || swept.is_full() {
            break;
        }
        let (_, number) = keys::unarchived_entry(&key)?;
        match set_aside::attempt(tx, |tx| removal::of_aside(tx, gate, &key))? {
            Ok(removed) => removed.iter().for_each(|removed| swept.count(removed)),
            Err(why) => swept.set_aside(tx, gate, number, &why)?,
        }
    }
    swept.left |= unarchived::waiting(tx, gate.partition)?.next().is_some();
    Ok(())
}

/// Removes the expired items of one queue up to a base, as far as they are in the archive. Returns whether none is
/// left.
fn sweep_queue(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    items: &ItemRemover,
    leave: &Removable,
    (queue, through, limit): (Queue, Millis, usize),
    swept: &mut Swept,
) -> Result<bool> {
    let room = limit.saturating_sub(swept.items as usize);
    let range = from_cursor(tx, gate.partition, queue, through)?;
    let scan = tx.scan(Keyspace::Queue, range, Direction::Forward);
    let expired_items = scan.take(room).collect::<storage::Result<Vec<_>>>()?;
    swept.more |= expired_items.len() >= room;
    let (mut removed, mut passed) = (0, 0);
    for (at, (entry, _)) in expired_items.iter().enumerate() {
        if swept.is_full() {
            break;
        }
        let (_, number) = keys::queue_entry(entry)?;
        let outcome = match leave.damage(number) {
            Some(why) => Err(why.to_owned()),
            None if !leave.covers(number) => {
                // An item that was written with a date in the past comes before those of the batch, and waits for the
                // next one.
                swept.left = true;
                continue;
            }
            None => set_aside::attempt(tx, |tx| expired(items.remove(tx, gate, number)?, number))?,
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
    // Only entries of items that are set aside may be before the cursor, and these must be: a later sweep that began with
    // one would find it due for ever.
    if let Some((last, _)) = expired_items[..passed].last() {
        let (keyspace, key) = Key::PurgeCursor(gate.partition, queue).encode();
        tx.put(keyspace, key, keys::behind_queue_entry(last)?);
    }
    Ok(expired_items.len() < room && removed == expired_items.len() && !swept.is_full())
}

/// Removes the items of a batch wherever they are in the queue. So many items may have joined before them that a
/// sweep does not get that far; and if the batch were given up for that, the next one could fare no better, with the
/// same lines once more.
fn sweep_batch(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    items: &ItemRemover,
    batch: &Batch,
    limit: usize,
    swept: &mut Swept,
) -> Result<()> {
    for number in batch.contents.items.keys() {
        if swept.items as usize >= limit || swept.is_full() {
            break;
        }
        match set_aside::attempt(tx, |tx| items.remove(tx, gate, *number))? {
            Ok(removed) => removed.iter().for_each(|removed| swept.count(removed)),
            Err(why) => swept.set_aside(tx, gate, *number, &why)?,
        }
    }
    Ok(())
}

/// Returns what was removed for an entry of a queue's expired prefix, which has only expired items.
fn expired(removed: Option<Removed>, number: ItemNumber) -> Result<Removed> {
    removed.ok_or_else(|| {
        Error::Corrupt(format!(
            "item {} has an entry in an expired prefix, but is missing or has not expired",
            number.0
        ))
    })
}
