//! Legal holds (T31): while a container or an item is held, nothing of it dies, is changed or deleted, by anyone.
//!
//! A held *container* has no delays (`expiry`), so nobody dies; what was dead before the hold is remembered by cutoffs, and
//! stays where it is. A held *item* leaves the queues of expiry: its header says that it is held, and an entry of its own says
//! why and since when. Neither its sequence nor its `_ts` changes, so no client sees a new version.
//!
//! When an item's hold is lifted, it joins its queues again, by the rules then in force: with its own `_ts`, in the newest
//! generations of the date rules. If it is overdue, it is dead; where somebody is told of deaths, it dies at the lift, and goes. One
//! thing may be in its way: a cutoff that an earlier, stricter rule has left in its queue. It covers all up to a base, and
//! the item, which was held at that time, must not be among them. Then the purge first has to do its work there, and the
//! lift sees to it.
//!
//! Whoever changes or removes a stored item asks [`check_item`], whoever removes a whole partition [`check_partition`].

use std::sync::Arc;

use bson::{RawDocument, ValueRef};
use document::{Document, ItemNumber, PartitionKey};
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Time, Transaction, transact};

use crate::Engine;
use crate::burial;
use crate::catalog::{load_policy, put, remove};
use crate::collection::{Collection, Desk};
use crate::container::{Container, Partition};
use crate::error::{Error, Result};
use crate::expiry::Place;
use crate::footprint::{Footprint, Home};
use crate::gate::{Gate, View};
use crate::header::{Body, Record};
use crate::history::{self, Fate};
use crate::holder::Holder;
use crate::index::{Drafted, Upkeep};
use crate::keys::{self, Key, PartitionId};
use crate::limits::{HELD_PAGE, HOLD_REASON_BYTES_MAX, LIFT_STEP, LIFT_STEPS_MAX};
use crate::write::{home_of_key, id_of, is_at_home};

/// Which item is meant.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemAddress {
    /// Of a container: partition key and id.
    Id(PartitionKey, String),
    /// Of a collection: `_id`.
    DocumentId(bson::Value),
}

impl ItemAddress {
    /// The document whose `_id` this is in Extended JSON.
    pub fn from_extended_json(id: &str) -> Result<ItemAddress> {
        let wrong =
            |why: bson::Error| Error::invalid(format!("'_id' cannot be read as Extended JSON: {why}"));
        bson::parse_extended_json(id).map(ItemAddress::DocumentId).map_err(wrong)
    }

    /// The `_id` of a document in Extended JSON.
    pub fn to_extended_json(&self) -> Option<String> {
        match self {
            ItemAddress::DocumentId(id) => Some(bson::to_extended_json(id.view(), true)),
            ItemAddress::Id(..) => None,
        }
    }
}

/// A held item.
#[derive(Debug, Clone)]
pub struct HeldItem {
    /// Its number; a list goes on behind it.
    pub number: ItemNumber,
    /// Since when it is held.
    pub since: Time,
    /// Why.
    pub reason: String,
    /// Which it is.
    pub address: ItemAddress,
}

/// What a lift has come to.
enum Lifted {
    /// The item stands in its queues again; the first of them kills it then.
    Free(Option<Time>),
    /// The purge has to be there first.
    Waits,
}

impl Engine {
    /// Holds a living item, or gives another reason for a hold.
    pub fn hold_item(&self, holder: &Holder, item: &ItemAddress, reason: &str) -> Result<()> {
        if reason.len() > HOLD_REASON_BYTES_MAX {
            let (what, actual) = ("the reason of the hold", reason.len());
            return Err(Error::TooLarge { what, actual, limit: HOLD_REASON_BYTES_MAX });
        }
        let reason = reason.to_owned();
        let target = LocatedItem::new(holder, item)?;
        transact(&*self.store, target.lane(), move |tx| {
            let gate = Gate::for_write(tx, target.partition.id)?;
            match &target.location {
                ItemLocation::Container(container, home, id) => {
                    let old = gate.by_id_key::<Document>(tx, &home.id_key(id))?.living();
                    let old = old.ok_or_else(|| Error::no_item(id))?;
                    let upkeep = Upkeep::load(tx, &target.partition)?;
                    let footprint = |record| {
                        Footprint::new(home, &container.definition, &upkeep, record, Drafted::default())
                    };
                    HoldNote::renew(tx, &gate, &old, &reason)?;
                    footprint(&held(&old)).replace(footprint(&old), tx)?;
                }
                ItemLocation::Collection(collection, id) => {
                    let desk = Desk::open(tx, collection)?;
                    let old = desk.living(tx, id)?;
                    let new = held(&old);
                    HoldNote::renew(tx, &gate, &old, &reason)?;
                    desk.rewrite(tx, &old, &new)?;
                }
            }
            // On a full disk the purge goes on, and what it must not take has to be said.
            tx.use_reserve();
            Ok(())
        })
        .wait()
    }

    /// Lifts the hold of an item: the rules in force apply to it again. An error if it is not held.
    pub fn lift_item(&self, holder: &Holder, item: &ItemAddress) -> Result<()> {
        let target = LocatedItem::new(holder, item)?;
        for _ in 0..LIFT_STEPS_MAX {
            let lifting = target.clone();
            let lifted = transact(&*self.store, target.lane(), move |tx| {
                let lifted = lifting.lift(tx)?;
                // Lifted, it may die or be deleted.
                tx.use_reserve();
                Ok::<_, Error>(lifted)
            })
            .wait()?;
            if let Lifted::Free(due) = lifted {
                if let Some(due) = due {
                    target.partition.next_look.not_after(due);
                    self.alarm.set(due);
                }
                return Ok(());
            }
            if self.is_purge_stopped()? {
                break;
            }
            target.partition.next_look.at_once();
            self.purge_at_once(Some(holder), LIFT_STEP)?;
        }
        Err(Error::Unavailable(
            "an earlier change of expiry rules keeps items expired that are not removed yet; resume the purge, or run bolide \
             check --repair if it has set items aside"
                .into(),
        ))
    }

    /// Items that are held one by one, in the order of their creation, behind the one of a number; at most a page of them.
    pub fn held_items(&self, holder: &Holder, after: Option<ItemNumber>) -> Result<Vec<HeldItem>> {
        let mut all = Vec::new();
        for view in View::open_all(&*self.store, holder.partitions())? {
            let range = KeyRange::prefix(keys::holds(view.gate.partition));
            let range = match after {
                Some(number) => range.after(Key::Held(view.gate.partition, number).encode().1),
                None => range,
            };
            for entry in view.snapshot.scan(Keyspace::Counter, range, Direction::Forward).take(HELD_PAGE) {
                let (key, value) = entry?;
                let (number, note) = (keys::held_number(&key)?, HoldNote::decode(&value)?);
                let gone = || Error::Corrupt(format!("item {} is held and not there", number.0));
                let (snapshot, gate) = (&*view.snapshot, &view.gate);
                let address = match holder {
                    Holder::Container(container) => {
                        let found = gate.by_number::<Document>(snapshot, number)?.living();
                        let found = found.ok_or_else(gone)?;
                        let key = Home::of(gate.partition, &container.definition, &found)?.key;
                        ItemAddress::Id(key, id_of(&found).to_owned())
                    }
                    Holder::Collection(_) => {
                        let found = gate.by_number::<RawDocument>(snapshot, number)?.living();
                        let id = found.ok_or_else(gone)?.body.get("_id").map(ValueRef::to_value);
                        ItemAddress::DocumentId(id.unwrap_or(bson::Value::Null))
                    }
                };
                all.push(HeldItem { number, since: note.since, reason: note.reason, address });
            }
        }
        all.sort_by_key(|held| held.number);
        all.truncate(HELD_PAGE);
        Ok(all)
    }
}

/// Refuses a change or removal of an item that is held, or whose container is.
pub(crate) fn check_item<B: Body>(tx: &Transaction<'_>, gate: &Gate, record: &Record<B>) -> Result<()> {
    check_container(gate)?;
    match HoldNote::of(tx, gate, record)? {
        Some(note) => Err(Error::Held { what: "the item", reason: note.reason }),
        None => Ok(()),
    }
}

/// Refuses to change or remove anything in a held container.
fn check_container(gate: &Gate) -> Result<()> {
    match &gate.policy.lifecycle.hold {
        Some(reason) => Err(Error::Held { what: "the container", reason: reason.clone() }),
        None => Ok(()),
    }
}

/// Refuses to remove or rename what has a hold, on all of it or on an item.
pub(crate) fn check_partition(tx: &Transaction<'_>, partition: PartitionId) -> Result<()> {
    if let Some(reason) = load_policy(tx, partition)?.lifecycle.hold {
        return Err(Error::Held { what: "the container", reason });
    }
    let holds = KeyRange::prefix(keys::holds(partition));
    match tx.scan(Keyspace::Counter, holds, Direction::Forward).next().transpose()? {
        Some((_, note)) => {
            Err(Error::Held { what: "an item in it", reason: HoldNote::decode(&note)?.reason })
        }
        None => Ok(()),
    }
}

/// Refuses to delete a logical partition in which an item is held.
pub(crate) fn check_home(reader: &dyn Read, gate: &Gate, container: &Container, home: &Home) -> Result<()> {
    check_container(gate)?;
    let holds = KeyRange::prefix(keys::holds(home.partition));
    for entry in reader.scan(Keyspace::Counter, holds, Direction::Forward) {
        let (key, note) = entry?;
        let found = gate.by_number::<Document>(reader, keys::held_number(&key)?)?.living();
        if found.is_some_and(|record| is_at_home(home, container, &record)) {
            return Err(Error::Held { what: "an item in it", reason: HoldNote::decode(&note)?.reason });
        }
    }
    Ok(())
}

/// The item of a request, found out of its transaction.
#[derive(Clone)]
pub(crate) struct LocatedItem {
    partition: Arc<Partition>,
    location: ItemLocation,
}

/// Where an item is looked up: by partition key and id, or by `_id`.
#[derive(Clone)]
enum ItemLocation {
    Container(Arc<Container>, Home, String),
    Collection(Arc<Collection>, bson::Value),
}

impl LocatedItem {
    pub(crate) fn new(holder: &Holder, item: &ItemAddress) -> Result<LocatedItem> {
        match (holder, item) {
            (Holder::Container(container), ItemAddress::Id(key, id)) => {
                let home = home_of_key(container, Some(key.clone()))?;
                let partition = Arc::clone(container.partition_of(&home.effective));
                Ok(LocatedItem {
                    partition,
                    location: ItemLocation::Container(Arc::clone(container), home, id.clone()),
                })
            }
            (Holder::Collection(collection), ItemAddress::DocumentId(id)) => {
                let partition = Arc::clone(&collection.partition);
                Ok(LocatedItem {
                    partition,
                    location: ItemLocation::Collection(Arc::clone(collection), id.clone()),
                })
            }
            (Holder::Container(_), ItemAddress::DocumentId(_)) => {
                Err(Error::invalid("An item of a container is named by 'id' and 'partitionKey'."))
            }
            (Holder::Collection(_), ItemAddress::Id(..)) => {
                Err(Error::invalid("A document of a collection is named by '_id'."))
            }
        }
    }

    pub(crate) fn lane(&self) -> Lanes {
        Lanes::one(u64::from(self.partition.id.0))
    }

    /// Whether the item expires when its hold is lifted.
    pub(crate) fn is_overdue(&self, tx: &Transaction<'_>) -> Result<bool> {
        let gate = Gate::for_write(tx, self.partition.id)?;
        check_container(&gate)?;
        let header = match &self.location {
            ItemLocation::Container(_, home, id) => {
                let old = gate.by_id_key::<Document>(tx, &home.id_key(id))?.living();
                let mut new = old.filter(|old| old.header.held).ok_or_else(|| not_held(id))?;
                new.header.held = false;
                gate.policy.settle_again(&mut new.header, &new.body, |_| None)?;
                new.header
            }
            ItemLocation::Collection(collection, id) => {
                let desk = Desk::open(tx, collection)?;
                let mut new = desk.living(tx, id)?;
                if !new.header.held {
                    return Err(not_held(id));
                }
                new.header.held = false;
                desk.settle_again(&mut new)?;
                new.header
            }
        };
        Ok(gate.policy.is_dead(&header, tx.trusted_time()))
    }

    fn lift(&self, tx: &mut Transaction<'_>) -> Result<Lifted> {
        let gate = Gate::for_write(tx, self.partition.id)?;
        check_container(&gate)?;
        match &self.location {
            ItemLocation::Container(container, home, id) => {
                let old = gate.by_id_key::<Document>(tx, &home.id_key(id))?.living();
                let old = old.filter(|old| old.header.held).ok_or_else(|| not_held(id))?;
                let mut new = old.clone();
                new.header.held = false;
                gate.policy.settle_again(&mut new.header, &new.body, |_| None)?;
                if waits(&gate, &new) {
                    return Ok(Lifted::Waits);
                }
                let upkeep = Upkeep::load(tx, &self.partition)?;
                let footprint =
                    |record| Footprint::new(home, &container.definition, &upkeep, record, Drafted::default());
                match history::lifted(tx, &gate, &new) {
                    Fate::Stays => footprint(&new).replace(footprint(&old), tx)?,
                    Fate::DeadOnArrival => {
                        burial::on_arrival(tx, &gate, &**container, &self.partition, &new)?;
                        footprint(&old).remove(tx)?;
                    }
                }
                free(tx, &gate, &new)
            }
            ItemLocation::Collection(collection, id) => {
                let desk = Desk::open(tx, collection)?;
                let old = desk.living(tx, id)?;
                if !old.header.held {
                    return Err(not_held(id));
                }
                let mut new = old.clone();
                new.header.held = false;
                desk.settle_again(&mut new)?;
                if waits(&gate, &new) {
                    return Ok(Lifted::Waits);
                }
                match history::lifted(tx, &gate, &new) {
                    Fate::Stays => desk.rewrite(tx, &old, &new)?,
                    Fate::DeadOnArrival => {
                        burial::on_arrival(tx, &gate, &desk.keeper(), &self.partition, &new)?;
                        desk.clear(tx, &old)?;
                    }
                }
                free(tx, &gate, &new)
            }
        }
    }
}

fn not_held(name: impl std::fmt::Debug) -> Error {
    Error::NotFound { what: format!("a hold on {name:?}") }
}

/// The same version, held.
fn held<B: Body + Clone>(old: &Record<B>) -> Record<B> {
    let mut new = old.clone();
    new.header.held = true;
    new.header.bases.clear();
    new
}

/// Whether a cutoff that is not meant for an item covers its place, while the rule in force lets it live.
fn waits<B>(gate: &Gate, new: &Record<B>) -> bool {
    let is_overdue = |place| gate.policy.due(place).is_some_and(|due| due <= gate.now);
    !new.header.mortal_places().any(is_overdue) && gate.policy.is_dead(&new.header, gate.now)
}

/// Ends a lift: the note goes, and the purge's hand makes way.
fn free<B>(tx: &mut Transaction<'_>, gate: &Gate, new: &Record<B>) -> Result<Lifted> {
    remove(tx, Key::Held(gate.partition, new.number));
    for Place { queue, base } in new.header.mortal_places() {
        let (keyspace, hand) = Key::Hand(gate.partition, queue).encode();
        let entry = Key::Queue { partition: gate.partition, queue, base, number: new.number }.encode().1;
        if tx.get(keyspace, &hand)?.is_some_and(|stands| *stands > *entry) {
            tx.put(keyspace, hand, entry);
        }
    }
    Ok(Lifted::Free(gate.policy.death(&new.header)))
}

/// Whether these bytes are the note of a hold.
pub(crate) fn is_note(value: &[u8]) -> bool {
    HoldNote::decode(value).is_ok()
}

/// The note of a hold whose own was lost.
pub(crate) fn lost_note(now: Time) -> Vec<u8> {
    [&now.millis().to_be_bytes()[..], b"reason and beginning of this hold were lost; it was repaired"]
        .concat()
}

/// What is written down about a hold: since when, and why.
struct HoldNote {
    since: Time,
    reason: String,
}

impl HoldNote {
    /// The note of an item, if it is held.
    fn of<B>(tx: &Transaction<'_>, gate: &Gate, record: &Record<B>) -> Result<Option<HoldNote>> {
        if !record.header.held {
            return Ok(None);
        }
        let (keyspace, key) = Key::Held(gate.partition, record.number).encode();
        let missing = || Error::Corrupt(format!("item {} is held without a note", record.number.0));
        HoldNote::decode(&tx.get(keyspace, &key)?.ok_or_else(missing)?).map(Some)
    }

    /// Writes down why an item is held. Another reason does not change since when.
    fn renew<B>(tx: &mut Transaction<'_>, gate: &Gate, record: &Record<B>, reason: &str) -> Result<()> {
        let since = HoldNote::of(tx, gate, record)?.map_or(gate.now, |note| note.since);
        let value = [&since.millis().to_be_bytes(), reason.as_bytes()].concat();
        put(tx, Key::Held(gate.partition, record.number), value);
        Ok(())
    }

    fn decode(value: &[u8]) -> Result<HoldNote> {
        let parse = || {
            let (since, reason) = value.split_first_chunk()?;
            let since = Time::from_millis(u64::from_be_bytes(*since));
            Some(HoldNote { since, reason: str::from_utf8(reason).ok()?.to_owned() })
        };
        parse().ok_or_else(|| Error::Corrupt("the note of a hold".into()))
    }
}
