//! Legal holds (T31): while a container or an item is held, nothing of it expires, or can be changed or deleted.
//!
//! A held *container* has no delays (`expiry`), so no item expires; cutoffs cover the items that had expired before the
//! hold, and these are not purged. A held *item* leaves the queues of expiry: a flag in its header marks it as held, and
//! a separate entry has the reason and the time of the hold. Neither its sequence nor its `_ts` changes, so no client
//! sees a new version.
//!
//! When an item's hold is lifted, the item joins its queues again, by the rules then in force: with its own `_ts`, in
//! the newest generations of the date rules. If it is overdue, it has expired; where instants of expiry are reported,
//! it expires at the lift, and is removed. A cutoff that an earlier, stricter rule has left in its queue can prevent the
//! lift: a cutoff covers every entry up to a base, and must not cover the item, which was held at that time. Then the
//! purge has to empty that prefix first, and the lift waits for it.
//!
//! Code that changes or removes a stored item calls [`check_item`]; code that removes a whole partition calls
//! [`check_partition`].

use std::sync::Arc;

use document::ItemNumber;
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Time, Transaction, transact};

use crate::Engine;
use crate::access::browse;
use crate::access::gate::{Gate, View};
use crate::catalog::collection::Collection;
use crate::catalog::container::{Container, Partition};
use crate::catalog::hold_note::HoldNote;
use crate::catalog::home::home_of_key;
use crate::catalog::owner::Owner;
use crate::catalog::remove;
use crate::collection::CollectionContext;
use crate::entries::traces::Home;
use crate::expiry::QueuePosition;
use crate::expiry::header::{Body, Record};
use crate::feed::history::{self, WriteEffect};
use crate::keys::{self, Key};
use crate::types::error::{Error, Result};
use crate::types::item_address::ItemAddress;
use crate::types::limits::{HELD_PAGE, HOLD_REASON_BYTES_MAX, LIFT_STEP, LIFT_STEPS_MAX};
use crate::write::container_schema::ContainerContext;
use crate::write::context::WriteContext;
use crate::write::held::check_container;
use crate::write::schema::ItemSchema;

/// A held item.
#[derive(Debug, Clone)]
pub struct HeldItem {
    /// Its number; the next page of a list begins behind it.
    pub number: ItemNumber,
    /// Since when it is held.
    pub since: Time,
    /// The reason of the hold.
    pub reason: String,
    /// The address of the item.
    pub address: ItemAddress,
}

/// The result of a lift.
enum Lifted {
    /// The item is in its queues again, and expires then, if at all.
    Free(Option<Time>),
    /// The purge has to empty a prefix first.
    Waits,
}

impl Engine {
    /// Holds a living item, or changes the reason of its hold.
    pub fn hold_item(&self, item_owner: &Owner, item: &ItemAddress, reason: &str) -> Result<()> {
        if reason.len() > HOLD_REASON_BYTES_MAX {
            let (what, actual) = ("the reason of the hold", reason.len());
            return Err(Error::TooLarge { what, actual, limit: HOLD_REASON_BYTES_MAX });
        }
        let reason = reason.to_owned();
        let target = LocatedItem::new(item_owner, item)?;
        transact(&*self.store, target.lane(), move |tx| {
            target.work(tx, Hold { reason: &reason })?;
            // A hold must succeed even on a full disk, because the purge continues there.
            tx.use_reserve();
            Ok(())
        })
        .wait()
    }

    /// Lifts the hold of an item: the rules in force apply to it again. Fails if the item is not held.
    pub fn lift_item(&self, item_owner: &Owner, item: &ItemAddress) -> Result<()> {
        let target = LocatedItem::new(item_owner, item)?;
        for _ in 0..LIFT_STEPS_MAX {
            let lifting = target.clone();
            let lifted = transact(&*self.store, target.lane(), move |tx| {
                let lifted = lifting.work(tx, Lift)?;
                // A lift must succeed on a full disk: it lets the item expire or be deleted.
                tx.use_reserve();
                Ok::<_, Error>(lifted)
            })
            .wait()?;
            if let Lifted::Free(due) = lifted {
                if let Some(due) = due {
                    target.partition.next_due.not_after(due);
                    self.alarm.set(due);
                }
                return Ok(());
            }
            if self.is_purge_stopped()? {
                break;
            }
            target.partition.next_due.at_once();
            self.purge_at_once(Some(item_owner), LIFT_STEP)?;
        }
        Err(Error::Unavailable(
            "an earlier change of expiry rules keeps items expired that are not removed yet; resume the purge, or run bolide \
             check --repair if it has set items aside"
                .into(),
        ))
    }

    /// Returns a page of the items that are held individually, in the order of their creation, behind the item of a
    /// number.
    pub fn held_items(&self, item_owner: &Owner, after: Option<ItemNumber>) -> Result<Vec<HeldItem>> {
        let mut all = Vec::new();
        for view in View::open_all(&*self.store, item_owner.partitions())? {
            let range = KeyRange::prefix(keys::holds(view.gate.partition));
            let range = match after {
                Some(number) => range.after(Key::Held(view.gate.partition, number).encode().1),
                None => range,
            };
            for entry in view.snapshot.scan(Keyspace::Counter, range, Direction::Forward).take(HELD_PAGE) {
                let (key, value) = entry?;
                let (number, note) = (keys::held_number(&key)?, HoldNote::decode(&value)?);
                let found = browse::look(&view, item_owner, number)?;
                let gone = || Error::Corrupt(format!("item {} is held and not there", number.0));
                let address = found.ok_or_else(gone)?.address;
                all.push(HeldItem { number, since: note.since, reason: note.reason, address });
            }
        }
        all.sort_by_key(|held| held.number);
        all.truncate(HELD_PAGE);
        Ok(all)
    }
}

/// The item of a request, located outside of its transaction.
#[derive(Clone)]
pub(crate) struct LocatedItem {
    partition: Arc<Partition>,
    owner: LocatedOwner,
    id_key: Vec<u8>,
    names: ItemNames,
}

/// How errors name an item and its hold.
#[derive(Clone)]
struct ItemNames {
    item: String,
    /// What a living item that is not held lacks.
    hold: String,
    /// What is missing when a hold is to be lifted and no living item is there.
    absent: String,
}

/// The owner of an item, with its logical partition.
#[derive(Clone)]
enum LocatedOwner {
    Container(Arc<Container>, Arc<Home>),
    Collection(Arc<Collection>),
}

impl LocatedItem {
    pub(crate) fn new(item_owner: &Owner, item: &ItemAddress) -> Result<LocatedItem> {
        match (item_owner, item) {
            (Owner::Container(container), ItemAddress::Id(key, id)) => {
                let home = home_of_key(container, Some(key.clone()))?;
                let (partition, id_key) =
                    (Arc::clone(container.partition_of(&home.effective)), home.id_key(id));
                let owner = LocatedOwner::Container(Arc::clone(container), Arc::new(home));
                let hold = format!("a hold on {id:?}");
                let names = ItemNames { item: id.clone(), absent: hold.clone(), hold };
                Ok(LocatedItem { partition, owner, id_key, names })
            }
            (Owner::Collection(collection), ItemAddress::DocumentId(id)) => {
                let (item, hold) = (bson::shell_text(id.view()), format!("a hold on {id:?}"));
                let names = ItemNames { absent: format!("item '{item}'"), item, hold };
                let (partition, id_key) = (Arc::clone(&collection.partition), collection.id_key(id.view()));
                let owner = LocatedOwner::Collection(Arc::clone(collection));
                Ok(LocatedItem { partition, owner, id_key, names })
            }
            (Owner::Container(_), ItemAddress::DocumentId(_)) => {
                Err(Error::invalid("An item of a container is named by 'id' and 'partitionKey'."))
            }
            (Owner::Collection(_), ItemAddress::Id(..)) => {
                Err(Error::invalid("A document of a collection is named by '_id'."))
            }
        }
    }

    pub(crate) fn lane(&self) -> Lanes {
        Lanes::one(u64::from(self.partition.id.0))
    }

    /// Returns whether the item expires when its hold is lifted.
    pub(crate) fn is_overdue(&self, tx: &mut Transaction<'_>) -> Result<bool> {
        self.work(tx, IsOverdue)
    }

    /// Does work in the write context of the item's owner.
    fn work<W: ItemWork>(&self, tx: &mut Transaction<'_>, work: W) -> Result<W::Output> {
        match &self.owner {
            LocatedOwner::Container(container, home) => {
                let context = ContainerContext::open(tx, container, &self.partition, home)?;
                work.run(self, tx, &context)
            }
            LocatedOwner::Collection(collection) => {
                let context = CollectionContext::open(tx, collection)?;
                work.run(self, tx, &context)
            }
        }
    }

    /// Returns the held item, and the same item without its hold.
    fn released<S: ItemSchema>(
        &self,
        tx: &Transaction<'_>,
        context: &WriteContext<S>,
    ) -> Result<[Record<S::Body>; 2]> {
        check_container(&context.gate)?;
        let found = context.gate.by_id_key(tx, &self.id_key)?.living();
        let missing = |what: &String| Error::NotFound { what: what.clone() };
        let old = match found {
            Some(old) if old.header.held => old,
            Some(_) => return Err(missing(&self.names.hold)),
            None => return Err(missing(&self.names.absent)),
        };
        let mut new = old.clone();
        new.header.held = false;
        context.settle_lifted(&mut new)?;
        Ok([old, new])
    }
}

/// Work on a located item, the same for both APIs.
trait ItemWork {
    type Output;

    fn run<S: ItemSchema>(
        self,
        item: &LocatedItem,
        tx: &mut Transaction<'_>,
        context: &WriteContext<S>,
    ) -> Result<Self::Output>;
}

/// Holds the item.
struct Hold<'a> {
    reason: &'a str,
}

impl ItemWork for Hold<'_> {
    type Output = ();

    fn run<S: ItemSchema>(
        self,
        item: &LocatedItem,
        tx: &mut Transaction<'_>,
        context: &WriteContext<S>,
    ) -> Result<()> {
        let gate = &context.gate;
        let old = gate.by_id_key(tx, &item.id_key)?.living();
        let old = old.ok_or_else(|| Error::no_item(&item.names.item))?;
        HoldNote::renew(tx, gate.partition, gate.now, &old, self.reason)?;
        context.rewrite(tx, &old, &held(&old))
    }
}

/// Lifts the item's hold.
struct Lift;

impl ItemWork for Lift {
    type Output = Lifted;

    fn run<S: ItemSchema>(
        self,
        item: &LocatedItem,
        tx: &mut Transaction<'_>,
        context: &WriteContext<S>,
    ) -> Result<Lifted> {
        let (gate, [old, new]) = (&context.gate, item.released(tx, context)?);
        if waits(gate, &new) {
            return Ok(Lifted::Waits);
        }
        match history::lifted(tx, gate, &new) {
            WriteEffect::Stays => context.rewrite(tx, &old, &new)?,
            WriteEffect::ExpiredOnArrival => context.remove_on_arrival(tx, &old, &new)?,
        }
        free(tx, gate, &new)
    }
}

/// Returns whether the item expires when its hold is lifted.
struct IsOverdue;

impl ItemWork for IsOverdue {
    type Output = bool;

    fn run<S: ItemSchema>(
        self,
        item: &LocatedItem,
        tx: &mut Transaction<'_>,
        context: &WriteContext<S>,
    ) -> Result<bool> {
        let [_, new] = item.released(tx, context)?;
        Ok(context.gate.policy.is_expired(&new.header, tx.trusted_time()))
    }
}

/// Returns the same version, held.
fn held<B: Body + Clone>(old: &Record<B>) -> Record<B> {
    let mut new = old.clone();
    new.header.held = true;
    new.header.bases.clear();
    new
}

/// Returns whether a cutoff that is not meant for an item covers its position, while the rule in force does not expire
/// the item.
fn waits<B>(gate: &Gate, new: &Record<B>) -> bool {
    let is_overdue = |place| gate.policy.due(place).is_some_and(|due| due <= gate.now);
    !new.header.expiry_positions().any(is_overdue) && gate.policy.is_expired(&new.header, gate.now)
}

/// Ends a lift: removes the note, and moves the purge cursors back for the item.
fn free<B>(tx: &mut Transaction<'_>, gate: &Gate, new: &Record<B>) -> Result<Lifted> {
    remove(tx, Key::Held(gate.partition, new.number));
    for QueuePosition { queue, base } in new.header.expiry_positions() {
        let (keyspace, cursor) = Key::PurgeCursor(gate.partition, queue).encode();
        let entry = Key::Queue { partition: gate.partition, queue, base, number: new.number }.encode().1;
        if tx.get(keyspace, &cursor)?.is_some_and(|stands| *stands > *entry) {
            tx.put(keyspace, cursor, entry);
        }
    }
    Ok(Lifted::Free(gate.policy.expiry_time(&new.header)))
}
