//! Writing items: what is known before the transaction is worked out on the caller's thread ([`Prepared`]); what depends
//! on the current state happens inside it ([`Prepared::apply`]).
//!
//! A write that meets a dead item, under its own id or under a unique value that it wants, removes that item with every
//! trace in its own commit (T15): for the caller it was never there, and the purge will find nothing left to do.

use std::sync::Arc;

use document::{Document, ItemNumber, PartitionKey, PartitionKeyDefinition, ValueRef, check_item_id};
use query::Context;
use storage::{Keyspace, Lanes, Ticket, Time, Transaction, transact_noting};

use crate::Engine;
use crate::alarm::Alarm;
use crate::burial;
use crate::charge::Charge;
use crate::container::{Container, Partition};
use crate::counters;
use crate::definition::OwnTtl;
use crate::error::{Error, Result};
use crate::expiry::Countdown;
use crate::footprint::{Footprint, Home};
use crate::gate::{Found, Gate};
use crate::header::{Header, Record};
use crate::history::{self, Fate, Manner};
use crate::hold;
use crate::holder::Holder;
use crate::index::{Drafted, Upkeep};
use crate::item::{Item, SYSTEM_PROPERTIES};
use crate::limits::{
    self, BATCH_ANSWER_BYTES_MAX, BATCH_OPERATIONS_MAX, PATCH_CONDITION_STEPS_MAX, UNIQUE_VALUES_BYTES_MAX,
};
use crate::lsn::{RangeLsn, WriteNumber, Writes};
use crate::operation::{BatchError, Effect, ItemName, Operation, Outcome, Precondition};
use crate::patch::Patch;
use crate::purge::set_aside;
use crate::touch;

impl Engine {
    /// As [`write_with`](Engine::write_with); the countdown of an item that is replaced begins again.
    pub fn write(
        &self,
        container: &Arc<Container>,
        key: Option<PartitionKey>,
        operation: Operation,
    ) -> Ticket<Result<Outcome>> {
        self.write_with(container, key, operation, Countdown::Restart)
    }

    /// Runs one operation. `key` is the partition key that came with the request; without it, the item's own counts
    /// (create, upsert and replace only).
    pub fn write_with(
        &self,
        container: &Arc<Container>,
        key: Option<PartitionKey>,
        operation: Operation,
        countdown: Countdown,
    ) -> Ticket<Result<Outcome>> {
        if let Err(error) = self.prepare_countings(container, countdown) {
            return Ticket::ready(Err(error));
        }
        let prepared = match Prepared::new(container, key, operation) {
            Ok(prepared) => prepared,
            Err(error) => return Ticket::ready(Err(error)),
        };
        let desk = self.desk(container, &prepared.home);
        let toll = match self.admit(container, &desk.partition) {
            Ok(toll) => toll,
            Err(refused) => return Ticket::ready(Err(refused)),
        };
        let partition = prepared.home.partition;
        let counted = Arc::clone(&desk.partition);
        let run = move |tx: &mut Transaction<'_>| {
            let gate = Gate::for_write(tx, partition)?;
            let upkeep = Upkeep::load(tx, &desk.partition)?;
            let room = Room { gate: &gate, upkeep: &upkeep, desk: &desk, countdown };
            let outcome = prepared.apply(tx, &room, &mut Writes::new(partition))?;
            tx.check_room()?;
            toll.pay(outcome.charge);
            Ok(outcome)
        };
        let lanes = Lanes::one(u64::from(partition.0));
        transact_noting(&*self.store, lanes, run, move |outcome: &Outcome| {
            counted.known_lsn.raise(outcome.range.lsn);
        })
    }

    /// As [`batch_with`](Engine::batch_with); the countdowns of items that are replaced begin again.
    pub fn batch(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operations: Vec<Operation>,
    ) -> Ticket<std::result::Result<Vec<Outcome>, BatchError>> {
        self.batch_with(container, key, operations, Countdown::Restart)
    }

    /// Runs all operations of one logical partition in one commit, or none of them.
    pub fn batch_with(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operations: Vec<Operation>,
        countdown: Countdown,
    ) -> Ticket<std::result::Result<Vec<Outcome>, BatchError>> {
        if let Err(error) = self.prepare_countings(container, countdown) {
            return Ticket::ready(Err(error.into()));
        }
        let prepared = match prepare_batch(container, key, operations) {
            Ok(prepared) => prepared,
            Err(error) => return Ticket::ready(Err(error)),
        };
        let desk = self.desk(container, &prepared[0].home);
        let toll = match self.admit(container, &desk.partition) {
            Ok(toll) => toll,
            Err(refused) => return Ticket::ready(Err(refused.into())),
        };
        let partition = prepared[0].home.partition;
        let counted = Arc::clone(&desk.partition);
        let run = move |tx: &mut Transaction<'_>| {
            let gate = Gate::for_write(tx, partition)?;
            let upkeep = Upkeep::load(tx, &desk.partition)?;
            let room = Room { gate: &gate, upkeep: &upkeep, desk: &desk, countdown };
            let mut writes = Writes::new(partition);
            let (mut outcomes, mut bytes) = (Vec::with_capacity(prepared.len()), 0);
            for (index, operation) in prepared.into_iter().enumerate() {
                let outcome = operation.apply(tx, &room, &mut writes);
                let outcome = outcome.map_err(|error| BatchError { index: Some(index), error })?;
                bytes += outcome.item.as_ref().map_or(0, |item| item.body.as_bytes().len());
                if bytes > BATCH_ANSWER_BYTES_MAX {
                    let (what, limit) = ("the answer to the batch", BATCH_ANSWER_BYTES_MAX);
                    return Err(Error::TooLarge { what, actual: bytes, limit }.into());
                }
                outcomes.push(outcome);
            }
            tx.check_room()?;
            toll.pay(outcomes.iter().map(|outcome: &Outcome| outcome.charge).sum());
            Ok(outcomes)
        };
        let lanes = Lanes::one(u64::from(partition.0));
        transact_noting(&*self.store, lanes, run, move |outcomes: &Vec<Outcome>| {
            // Whatever it was, it saw all that was written before it in the batch.
            if let Some(last) = outcomes.last() {
                counted.known_lsn.raise(last.range.lsn);
            }
        })
    }

    /// A countdown that goes on may begin in the past, which needs rules of its own. They are made once in the life of a
    /// container, before its first write of this kind; who cannot wait for that has it done elsewhere.
    pub fn prepare_countings(&self, container: &Arc<Container>, countdown: Countdown) -> Result<()> {
        if container.is_prepared_for(countdown) {
            return Ok(());
        }
        self.open_countings(&Holder::Container(Arc::clone(container)))
    }

    fn desk(&self, container: &Arc<Container>, home: &Home) -> Desk {
        let partition = Arc::clone(container.partition_of(&home.effective));
        Desk { container: Arc::clone(container), partition, alarm: Arc::clone(&self.alarm) }
    }
}

fn prepare_batch(
    container: &Container,
    key: &PartitionKey,
    operations: Vec<Operation>,
) -> std::result::Result<Vec<Prepared>, BatchError> {
    check_batch_size(operations.len())?;
    let prepare = |(index, operation)| {
        Prepared::new(container, Some(key.clone()), operation)
            .map_err(|error| BatchError { index: Some(index), error })
    };
    operations.into_iter().enumerate().map(prepare).collect()
}

/// Refuses a batch with no or too many operations; the words are the service's, clients look for them.
pub fn check_batch_size(operations: usize) -> Result<()> {
    match operations {
        0 => Err(Error::invalid("Batch request has no operations.")),
        1..=BATCH_OPERATIONS_MAX => Ok(()),
        _ => Err(Error::invalid(format!(
            "Batch request has more operations than what is supported. It has {operations}, the limit is \
             {BATCH_OPERATIONS_MAX}."
        ))),
    }
}

/// What every operation of a transaction has at hand.
struct Desk {
    container: Arc<Container>,
    partition: Arc<Partition>,
    alarm: Arc<Alarm>,
}

/// An operation that has passed every check that needs no state.
struct Prepared {
    home: Home,
    action: Action,
}

enum Action {
    Create(Draft),
    Upsert(Draft, Precondition),
    Replace(ItemName, Draft, Precondition),
    Patch(ItemName, Patch, Precondition),
    Delete(ItemName, Precondition),
    Read(ItemName, Precondition),
}

/// A body that may be stored: a valid id, a valid ttl, no system properties, within limits.
struct Draft {
    id: String,
    ttl: OwnTtl,
    body: Document,
    /// What the index will have of it, as far as that is known.
    terms: Drafted,
}

impl Draft {
    fn new(body: &Document) -> Result<Draft> {
        let Some(root) = body.root().as_object() else {
            return Err(Error::invalid("The item must be a JSON object."));
        };
        let id = match root.get("id") {
            Some(id) => id.as_str().ok_or_else(|| Error::invalid("The item's 'id' must be a string."))?,
            None => return Err(Error::invalid("The item has no 'id'; a non-empty string is required.")),
        };
        check_item_id(id)?;
        let ttl = OwnTtl::of(root).map_err(|invalid| Error::InvalidTtl { text: invalid.text })?;
        let body = body.without(&SYSTEM_PROPERTIES);
        let draft = Draft { id: id.to_owned(), ttl, body, terms: Drafted::default() };
        let size = draft.body.as_bytes().len();
        if size > limits::ITEM_BYTES_MAX {
            return Err(Error::TooLarge { what: "the item", actual: size, limit: limits::ITEM_BYTES_MAX });
        }
        Ok(draft)
    }

    /// The same with its index terms, extracted before the transaction.
    fn with_terms(mut self, container: &Container, home: &Home) -> Draft {
        self.terms = Drafted::new(container.partition_of(&home.effective), &self.body);
        self
    }

    /// The version that the draft becomes now (T9), in the place of another or of none.
    fn into_record(
        self,
        room: &Room<'_>,
        write: WriteNumber,
        old: Option<&Record>,
    ) -> Result<(Record, Drafted)> {
        let number = old.map_or(ItemNumber(write.sequence.0), |old| old.number);
        let mut header = Header::numbered(write, room.gate.now.seconds(), self.ttl);
        let before = (room.countdown, old.map(|old| &old.header));
        room.gate.policy.settle(&mut header, &self.body, before, |_| None)?;
        Ok((Record { number, header, body: self.body }, self.terms))
    }
}

impl Prepared {
    fn new(container: &Container, key: Option<PartitionKey>, operation: Operation) -> Result<Prepared> {
        let (home, action) = match operation {
            Operation::Create { body } => {
                let (home, draft) = prepare_body(container, key, &body)?;
                (home, Action::Create(draft))
            }
            Operation::Upsert { body, precondition } => {
                let (home, draft) = prepare_body(container, key, &body)?;
                (home, Action::Upsert(draft, precondition))
            }
            Operation::Replace { name, body, precondition } => {
                let (home, draft) = prepare_body(container, key, &body)?;
                (home, Action::Replace(name, draft, precondition))
            }
            Operation::Patch { name, patch, precondition } => {
                patch.check_paths(&container.definition.partition_key)?;
                (home_of_key(container, key)?, Action::Patch(name, patch, precondition))
            }
            Operation::Delete { name, precondition } => {
                (home_of_key(container, key)?, Action::Delete(name, precondition))
            }
            Operation::Read { name, precondition } => {
                (home_of_key(container, key)?, Action::Read(name, precondition))
            }
        };
        Ok(Prepared { home, action })
    }

    fn apply(self, tx: &mut Transaction<'_>, room: &Room<'_>, writes: &mut Writes) -> Result<Outcome> {
        let mut job = Job { home: &self.home, room, writes };
        match self.action {
            Action::Create(draft) => job.create(tx, draft),
            Action::Upsert(draft, precondition) => job.upsert(tx, draft, &precondition),
            Action::Replace(name, draft, precondition) => {
                let old = job.living(tx, &name)?;
                job.replace(tx, &old, draft, &precondition)
            }
            Action::Patch(name, patch, precondition) => job.patch(tx, &name, &patch, &precondition),
            Action::Delete(name, precondition) => job.delete(tx, &name, &precondition),
            Action::Read(name, precondition) => job.read(tx, &name, &precondition),
        }
    }
}

fn prepare_body(container: &Container, key: Option<PartitionKey>, body: &Document) -> Result<(Home, Draft)> {
    let home = home_of_body(container, key, body)?;
    let draft = Draft::new(body)?.with_terms(container, &home);
    Ok((home, draft))
}

/// What all operations of a transaction share in it.
struct Room<'a> {
    gate: &'a Gate,
    upkeep: &'a Upkeep,
    desk: &'a Desk,
    countdown: Countdown,
}

/// One operation inside its transaction.
struct Job<'a> {
    home: &'a Home,
    room: &'a Room<'a>,
    writes: &'a mut Writes,
}

impl Job<'_> {
    fn create(&mut self, tx: &mut Transaction<'_>, draft: Draft) -> Result<Outcome> {
        self.claim_id(tx, &draft.id)?;
        let write = self.writes.next(tx)?;
        let (record, terms) = draft.into_record(self.room, write, None)?;
        self.claim_unique_values(tx, &record)?;
        let footprint = self.footprint(&record, terms);
        let charge = Charge::write(record.size(), footprint.terms());
        footprint.insert(tx)?;
        self.keep_version(tx, None, &record)?;
        Ok(self.written(Effect::Created, record, charge))
    }

    fn upsert(
        &mut self,
        tx: &mut Transaction<'_>,
        draft: Draft,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        match self.at_id(tx, &draft.id)?.living() {
            Some(old) => self.replace(tx, &old, draft, precondition),
            None if precondition.needs_existence() => Err(Error::no_item(&draft.id)),
            None => self.create(tx, draft),
        }
    }

    fn replace(
        &mut self,
        tx: &mut Transaction<'_>,
        old: &Record,
        draft: Draft,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        check(old, precondition)?;
        hold::check_item(tx, self.room.gate, old)?;
        if id_of(old) != draft.id {
            self.claim_id(tx, &draft.id)?;
        }
        let write = self.writes.next(tx)?;
        let (record, terms) = draft.into_record(self.room, write, Some(old))?;
        self.claim_unique_values(tx, &record)?;
        let (footprint, before) = (self.footprint(&record, terms), self.footprint(old, Drafted::default()));
        let charge = Charge::replace(old.size(), record.size(), footprint.changed_terms(&before));
        footprint.replace(before, tx)?;
        self.keep_version(tx, Some(old), &record)?;
        Ok(self.written(Effect::Replaced, record, charge))
    }

    fn patch(
        &mut self,
        tx: &mut Transaction<'_>,
        name: &ItemName,
        patch: &Patch,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let old = self.living(tx, name)?;
        check(&old, precondition)?;
        let item = Item::new(self.room.desk.container.rid, old.clone());
        if let Some(condition) = &patch.condition {
            let context = Context::new(tx.time().millis(), 1).with_budget(PATCH_CONDITION_STEPS_MAX);
            let holds = condition.matches(&item, &context);
            // A condition that could not be decided is not one that does not hold.
            if let Some(fault) = context.fault() {
                return Err(fault.into());
            }
            if !holds {
                return Err(Error::PreconditionFailed {
                    what: format!("item '{name}' (condition of the patch)"),
                });
            }
        }
        let body = patch.apply(&old.body.to_value())?;
        let draft = Draft::new(&Document::from_value(&body)?)?;
        self.replace(tx, &old, draft, &Precondition::None)
    }

    fn delete(
        &mut self,
        tx: &mut Transaction<'_>,
        name: &ItemName,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let old = self.living(tx, name)?;
        check(&old, precondition)?;
        hold::check_item(tx, self.room.gate, &old)?;
        let write = self.writes.next(tx)?;
        let footprint = self.footprint(&old, Drafted::default());
        let charge = Charge::write(old.size(), footprint.terms());
        footprint.remove(tx)?;
        history::deleted(tx, self.room.gate, write, &old);
        self.wake_at(history::look_again(self.room.gate, tx.time()));
        let range = self.range_at(write.lsn);
        Ok(Outcome { effect: Effect::Deleted, item: None, charge, range, seconds_left: None, touch: None })
    }

    fn read(
        &self,
        tx: &mut Transaction<'_>,
        name: &ItemName,
        precondition: &Precondition,
    ) -> Result<Outcome> {
        let mut record = self.living(tx, name)?;
        touch::restart(tx, self.room.gate, &mut record)?;
        let seconds_left = self.room.gate.policy.seconds_left(&record.header, self.room.gate.now);
        let item = Item::new(self.room.desk.container.rid, record);
        let lsn = counters::lsn(tx, self.home.partition)?.unwrap_or_default();
        let outcome = read_outcome(item, precondition, self.range_at(lsn))?;
        Ok(Outcome { seconds_left, ..outcome })
    }

    /// The living item under a name, in this logical partition.
    fn living(&self, tx: &Transaction<'_>, name: &ItemName) -> Result<Record> {
        let found = match name {
            ItemName::Id(id) => self.at_id(tx, id)?.living(),
            ItemName::Number(number) => self
                .room
                .gate
                .by_number(tx, *number)
                .map_err(|error| error.at_item(format_args!("item '{name}'")))?
                .living()
                .filter(|record| is_at_home(self.home, &self.room.desk.container, record)),
        };
        found.ok_or_else(|| Error::no_item(name))
    }

    /// What lies at an id in this logical partition.
    fn at_id(&self, tx: &Transaction<'_>, id: &str) -> Result<Found> {
        self.room
            .gate
            .by_id_key(tx, &self.home.id_key(id))
            .map_err(|error| error.at_item(format_args!("item '{id}'")))
    }

    /// Makes room at an id: a dead holder goes, a living one is a conflict.
    fn claim_id(&self, tx: &mut Transaction<'_>, id: &str) -> Result<()> {
        match self.at_id(tx, id)? {
            Found::Living(_) => Err(Error::Exists { what: format!("item '{id}'") }),
            Found::Dead(record) => self.bury(tx, &record),
            Found::Damaged(item) => self.room.gate.check_expired(tx, &item.header),
            Found::Nobody => Ok(()),
        }
    }

    /// Makes room at every unique value of a new version: a dead holder goes, a living one is a conflict.
    fn claim_unique_values(&self, tx: &mut Transaction<'_>, record: &Record) -> Result<()> {
        for (index, unique) in self.room.desk.container.definition.unique_keys.iter().enumerate() {
            let key = self.home.unique_key(index, &unique.paths, record);
            let paths = || unique.paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            if key.len() > UNIQUE_VALUES_BYTES_MAX {
                return Err(Error::invalid(format!(
                    "The values at the unique key {} are too long: {} bytes with the partition key, the limit is \
                     {UNIQUE_VALUES_BYTES_MAX}.",
                    paths(),
                    key.len()
                )));
            }
            let found = self.room.gate.by_owner(tx, Keyspace::Unique, &key);
            match found
                .map_err(|error| error.at_item(format_args!("the item at the unique key {}", paths())))?
            {
                Found::Dead(holder) => self.bury(tx, &holder)?,
                Found::Damaged(holder) => self.room.gate.check_expired(tx, &holder.header)?,
                Found::Living(holder) if holder.number != record.number => {
                    return Err(Error::UniqueKeyTaken { paths: paths() });
                }
                Found::Living(_) | Found::Nobody => {}
            }
        }
        Ok(())
    }

    /// Removes a dead item with every trace. It takes no sequence: nobody can tell who removed it, or when.
    ///
    /// One that damage keeps from being removed stays as it is, and its place is taken all the same (T15): it leads nowhere any
    /// more, and whoever removes it later leaves alone what has become the new one's. The purge sets it aside and tells.
    fn bury(&self, tx: &mut Transaction<'_>, dead: &Record) -> Result<()> {
        self.room.gate.check_expired(tx, &dead.header)?;
        let Desk { container, partition, .. } = self.room.desk;
        let removed = set_aside::attempt(tx, |tx| {
            let due = burial::by_write(tx, self.room.gate, &**container, partition, dead)?;
            self.footprint(dead, Drafted::default()).remove(tx)?;
            Ok(due)
        })?;
        if let Ok(due) = removed {
            self.wake_at(due);
        }
        Ok(())
    }

    fn footprint(&self, record: &Record, terms: Drafted) -> Footprint {
        Footprint::new(self.home, &self.room.desk.container.definition, self.room.upkeep, record, terms)
    }

    fn written(&self, effect: Effect, record: Record, charge: Charge) -> Outcome {
        let Gate { policy, now, .. } = self.room.gate;
        self.wake_at(policy.death(&record.header));
        let seconds_left = policy.seconds_left(&record.header, *now);
        let range = self.range_at(record.header.lsn);
        let item = Some(Item::new(self.room.desk.container.rid, record));
        Outcome { effect, item, charge, range, seconds_left, touch: None }
    }

    /// The range that it runs in, at an LSN.
    fn range_at(&self, lsn: u64) -> RangeLsn {
        RangeLsn { range: self.room.desk.partition.index, lsn }
    }

    /// Records a version where all versions are kept; one that is dead already goes at once.
    fn keep_version(&self, tx: &mut Transaction<'_>, old: Option<&Record>, new: &Record) -> Result<()> {
        self.wake_at(history::look_again(self.room.gate, tx.time()));
        match history::written(tx, self.room.gate, old, new, Manner::Whole) {
            Fate::Stays => Ok(()),
            Fate::DeadOnArrival => {
                let Desk { container, partition, .. } = self.room.desk;
                self.wake_at(burial::on_arrival(tx, self.room.gate, &**container, partition, new)?);
                self.footprint(new, Drafted::default()).remove(tx)
            }
        }
    }

    /// The background has something to do in the partition then.
    fn wake_at(&self, due: Option<Time>) {
        if let Some(due) = due {
            self.room.desk.partition.next_look.not_after(due);
            self.room.desk.alarm.set(due);
        }
    }
}

fn check(old: &Record, precondition: &Precondition) -> Result<()> {
    let etag = document::Etag::new(old.header.sequence, old.header.ts);
    precondition.check(&etag, format_args!("item '{}'", id_of(old)))
}

/// A read's answer, given the caller's condition.
pub(crate) fn read_outcome(item: Item, precondition: &Precondition, range: RangeLsn) -> Result<Outcome> {
    let effect = match precondition {
        _ if precondition.admits(&item.etag) => Effect::Read,
        Precondition::IfNoneMatch(_) | Precondition::IfAbsent => Effect::NotModified,
        _ => return Err(Error::PreconditionFailed { what: format!("item '{}'", item.id()) }),
    };
    let charge = Charge::read(item.body.as_bytes().len() as u64);
    Ok(Outcome { effect, item: Some(item), charge, range, seconds_left: None, touch: None })
}

/// Whether an item that was found by number belongs to the logical partition that was asked for.
pub(crate) fn is_at_home(home: &Home, container: &Container, record: &Record) -> bool {
    Home::of(home.partition, &container.definition, record).is_ok_and(|actual| actual == *home)
}

/// The home of an operation that carries only a partition key.
pub(crate) fn home_of_key(container: &Container, key: Option<PartitionKey>) -> Result<Home> {
    match key {
        Some(key) => Ok(home(container, complete(key, &container.definition.partition_key)?)),
        None => Err(Error::invalid("The partition key of the item is required for this operation.")),
    }
}

/// The home of an operation that carries a body; a key beside it must agree with it.
fn home_of_body(container: &Container, given: Option<PartitionKey>, body: &Document) -> Result<Home> {
    let definition = &container.definition.partition_key;
    let key = PartitionKey::extract(definition, body.root())?;
    if let Some(given) = given {
        let given = complete(given, definition)?;
        if given != key {
            return Err(Error::KeyMismatch { given: given.to_json(), expected: key.to_json() });
        }
    }
    Ok(home(container, key))
}

fn home(container: &Container, key: PartitionKey) -> Home {
    let effective = key.effective(&container.definition.partition_key);
    Home { partition: container.partition_of(&effective).id, key, effective }
}

/// A key as it came with a request, with one part per path.
fn complete(key: PartitionKey, definition: &PartitionKeyDefinition) -> Result<PartitionKey> {
    key.complete(definition).map_err(|key| Error::KeyMismatch {
        given: key.to_json(),
        expected: format!("{} parts", definition.paths.len()),
    })
}

pub(crate) fn id_of(record: &Record) -> &str {
    record.body.get("id").and_then(ValueRef::as_str).unwrap_or_default()
}
