//! Writing items of a collection.
//!
//! A write is a function that runs inside the store's transaction: it is shown the living item and says what becomes of it
//! ([`Decision`]). A write that meets a dead item, under its own `_id` or under a unique key that it wants, removes that item
//! with every trace in its own commit (T15).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bson::{Document, KEY_BYTES_MAX, RawDocument, Value, ValueRef};
use bytes::Bytes;
use document::{ItemNumber, Sequence};
use mql::Context;
use mql::index::ID_INDEX_NAME;
use parking_lot::Mutex;
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Ticket, Time, Transaction, transact};

use super::footprint::{DocumentKeys, ItemFootprint, changed_terms, split_entry};
use super::indexes::{CollectionIndex, ID_INDEX, IndexList};
use super::receipts::{Ledger, Receipt, Receipts};
use super::{BsonRecord, Collection, Found, keys};
use crate::Engine;
use crate::alarm::Alarm;
use crate::budget::Budget;
use crate::burial;
use crate::charge::Charge;
use crate::definition::OwnTtl;
use crate::error::{Error, Result};
use crate::events::{self, Events};
use crate::expiry::{Countdown, Millis};
use crate::gate::{self, Gate};
use crate::header::{Header, Record};
use crate::history::{self, Fate, Manner, Position};
use crate::hold;
use crate::limits::{COLLECTION_ITEM_BYTES_MAX, INSERT_CHUNK_BYTES, INSERT_CHUNK_ITEMS};
use crate::lsn::WriteNumber;
use crate::obituary::CollectionKeeper;
use crate::purge::set_aside;

/// Which item a write is about.
#[derive(Debug, Clone)]
pub enum Target {
    /// The item of that `_id`, if it lives.
    Id(Value),
    /// The item of that number, if it lives.
    Number(ItemNumber),
}

/// What becomes of an item.
#[derive(Debug, Clone)]
pub enum Decision {
    /// Nothing: this is not a write (T9).
    Keep,
    /// A new item, with the `_id` that the document has. For a target that is not there.
    Insert(RawDocument),
    /// Another document with the same `_id`. One that is the same to the byte is no write (T9).
    Replace(RawDocument),
    /// The same, and the client has asked for a change of parts of it: feeds tell the two apart.
    Update(RawDocument),
    /// It is deleted.
    Delete,
}

/// What a function says of the item that it was shown.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What becomes of the item.
    pub decision: Decision,
    /// What a repetition of the same statement is answered with.
    pub answer: Option<RawDocument>,
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Verdict {
        Verdict { decision, answer: None }
    }
}

/// What a write did.
#[derive(Debug, Clone, Default)]
pub struct Modified {
    /// The item before it.
    pub before: Option<Found>,
    /// The item behind it.
    pub after: Option<Found>,
    /// What the function gave as its answer; for a statement that had run before, the answer recorded then.
    pub answer: Option<RawDocument>,
    /// Whether the statement had run before: then nothing was done now, and `before` and `after` are not told.
    pub repeated: bool,
    /// How the item was changed, if it was.
    pub(super) manner: Manner,
    /// What it cost: a write, or a look at what is kept.
    pub charge: Charge,
    /// Where the write stands in the feeds of all versions; none if nothing was written.
    pub position: Option<Position>,
}

/// A document that was inserted.
#[derive(Debug, Clone, Copy)]
pub struct Inserted {
    /// What it cost.
    pub charge: Charge,
    /// Where its commit stands in the feeds of all versions; none if its statement had run before.
    pub position: Option<Position>,
}

impl Modified {
    /// Whether something was written.
    pub fn is_write(&self) -> bool {
        let version = |found: &Option<Found>| found.as_ref().map(|found| found.sequence);
        version(&self.before) != version(&self.after)
    }
}

impl Engine {
    /// Shows the living target to `decide`, inside the store's transaction, and does what it says. The function may be shown
    /// nothing; then it may only keep or insert.
    pub fn modify(
        &self,
        collection: &Arc<Collection>,
        target: Target,
        decide: impl FnOnce(Option<&Found>, Time) -> Result<Verdict> + Send + 'static,
        receipt: Option<Receipt>,
    ) -> Ticket<Result<Modified>> {
        let toll = match self.admit_collection(collection) {
            Ok(toll) => toll,
            Err(refused) => return Ticket::ready(Err(refused)),
        };
        let (collection, alarm) = (Arc::clone(collection), Arc::clone(&self.alarm));
        transact(&*self.store, lane(&collection), move |tx| {
            let desk = Desk::open(tx, &collection)?;
            let mut ledger = None;
            if let Some(Receipt { session, number, statement }) = &receipt {
                let opened = Ledger::open(tx, session, *number)?;
                if let Some(answer) = opened.recorded(tx, *statement)? {
                    return Ok(Modified { answer, repeated: true, ..Modified::default() });
                }
                ledger = Some((opened, *statement));
            }
            let mut modified = desk.modify(tx, &mut Events::default(), &target, decide)?;
            modified.position = modified.is_write().then(|| position(tx));
            if let Some((mut ledger, statement)) = ledger.filter(|_| modified.is_write()) {
                ledger.record(tx, statement, modified.answer.clone());
                desk.wake_at(ledger.close(tx));
            }
            tx.check_room()?;
            desk.finish(tx, &alarm);
            toll.pay(modified.charge);
            Ok(modified)
        })
    }

    /// Inserts documents, each whole or not at all, in bounded transactions. The answer tells of each in turn what it cost; after an error
    /// an ordered insert tells of no further one, because it has not tried it. A document whose statement has run before is
    /// not inserted again.
    pub fn insert(
        &self,
        collection: &Arc<Collection>,
        documents: Vec<RawDocument>,
        ordered: bool,
        receipts: Option<Receipts>,
    ) -> Ticket<Result<Vec<Result<Inserted>>>> {
        if receipts.as_ref().is_some_and(|receipts| receipts.statements.len() != documents.len()) {
            return Ticket::ready(Err(Error::invalid("an insert must have a statement for each document")));
        }
        let (receipts, budget) = (receipts.map(Arc::new), self.budget_of_collection(collection));
        let outcomes: Arc<Mutex<Result<Vec<Result<Inserted>>>>> = Arc::new(Mutex::new(Ok(Vec::new())));
        let list = collection.indexes();
        let mut ticket = Ticket::ready(Ok(Vec::new()));
        let mut chunks = chunks(documents).into_iter().peekable();
        while let Some(chunk) = chunks.next() {
            let (collection, alarm) = (Arc::clone(collection), Arc::clone(&self.alarm));
            let (outcomes, receipts, budget) = (Arc::clone(&outcomes), receipts.clone(), budget.clone());
            let chunk: Vec<_> = chunk.into_iter().map(|document| Draft::new(&list, document)).collect();
            let is_last = chunks.peek().is_none();
            // Jobs run and become durable in the order of submission, so the last one answers for all. One that fails leaves
            // its error to those behind it, which then do nothing.
            ticket = transact(&*self.store, lane(&collection), move |tx| {
                let mut told = outcomes.lock();
                let outcomes = told.as_mut().map_err(|error| error.clone())?;
                let inserted = Desk::open(tx, &collection).and_then(|desk| {
                    desk.insert_chunk(tx, chunk, ordered, (receipts.as_deref(), &budget), outcomes)?;
                    desk.finish(tx, &alarm);
                    Ok(())
                });
                match inserted {
                    Ok(()) if is_last => Ok(std::mem::take(outcomes)),
                    Ok(()) => Ok(Vec::new()),
                    Err(error) => {
                        *told = Err(error.clone());
                        Err(error)
                    }
                }
            });
        }
        ticket
    }
}

/// Where the writes of a transaction stand in the feeds of all versions: behind the last of them.
pub(super) fn position(tx: &Transaction<'_>) -> Position {
    Position::of_change(tx.trusted_time(), events::last_of_commit(tx.last_sequence()))
}

fn lane(collection: &Collection) -> Lanes {
    Lanes::one(u64::from(collection.partition.id.0))
}

/// Documents in pieces that one transaction may insert.
fn chunks(documents: Vec<RawDocument>) -> Vec<Vec<RawDocument>> {
    let mut chunks: Vec<Vec<RawDocument>> = Vec::new();
    let mut bytes = 0;
    for document in documents {
        let fits = |chunk: &&mut Vec<RawDocument>| {
            chunk.len() < INSERT_CHUNK_ITEMS && bytes + document.as_bytes().len() <= INSERT_CHUNK_BYTES
        };
        if let Some(chunk) = chunks.last_mut().filter(fits) {
            bytes += document.as_bytes().len();
            chunk.push(document);
        } else {
            bytes = document.as_bytes().len();
            chunks.push(vec![document]);
        }
    }
    chunks
}

/// A document that may be stored.
pub(super) struct Draft {
    document: RawDocument,
    ttl: OwnTtl,
    /// Its keys, for the indexes that were known when it was made.
    keys: DocumentKeys,
}

impl Draft {
    /// Checks a document and extracts its keys, as far as that can be done before the transaction.
    pub(super) fn new(list: &IndexList, document: RawDocument) -> Result<Draft> {
        if document.get("_id").is_none() {
            return Err(Error::invalid("a document without '_id'"));
        }
        let size = document.as_bytes().len();
        if size > COLLECTION_ITEM_BYTES_MAX {
            let limit = COLLECTION_ITEM_BYTES_MAX;
            return Err(Error::TooLarge { what: "the document", actual: size, limit });
        }
        let keys = DocumentKeys::ahead(list, &document);
        Ok(Draft { ttl: OwnTtl::of_bson(document.view()), keys, document })
    }

    fn id(&self) -> ValueRef<'_> {
        self.document.get("_id").unwrap_or(ValueRef::Null)
    }
}

/// A collection inside a transaction: everything that its writes go through.
pub(crate) struct Desk {
    pub(super) collection: Arc<Collection>,
    pub(super) gate: Gate,
    pub(super) list: Arc<IndexList>,
    /// Items that the same transaction rewrites: what they hold by now counts for nothing.
    pub(super) rewritten: BTreeSet<ItemNumber>,
    /// What is new about indexes: that they are multikey, that they have cut keys.
    noted: RefCell<BTreeMap<u32, (bool, bool)>>,
    /// When the purge has something to do: the first of the items written here dies, or the feed is to be trimmed.
    due: Cell<Option<Time>>,
    /// When the background has something else to do.
    wake: Cell<Option<Time>>,
}

impl Desk {
    /// Opens a collection inside a transaction.
    pub(crate) fn open(tx: &Transaction<'_>, collection: &Arc<Collection>) -> Result<Desk> {
        let gate = Gate::for_write(tx, collection.partition.id)?;
        let list = collection.indexes_at(tx)?;
        Ok(Desk {
            collection: Arc::clone(collection),
            gate,
            list,
            rewritten: BTreeSet::new(),
            noted: RefCell::default(),
            due: Cell::new(None),
            wake: Cell::new(None),
        })
    }

    /// Opens a collection inside the draft of a transaction: what is done there is not kept in the feed or in the deletion
    /// record, nor what is dead on arrival removed or moved aside, before the transaction is replayed.
    pub(super) fn open_draft(tx: &Transaction<'_>, collection: &Arc<Collection>) -> Result<Desk> {
        let mut desk = Desk::open(tx, collection)?;
        if desk.gate.policy.lifecycle.tells_instants() {
            let lifecycle = &mut Arc::make_mut(&mut desk.gate.policy).lifecycle;
            (lifecycle.history_minutes, lifecycle.archive, lifecycle.deletion_record) = (None, None, false);
        }
        Ok(desk)
    }

    /// The collection as evidence names it.
    pub(crate) fn keeper(&self) -> CollectionKeeper<'_> {
        CollectionKeeper { collection: &self.collection, indexes: &self.list }
    }

    /// Ends the work of a transaction: what was learned of the indexes is written down, and the background told what waits
    /// for it.
    pub(super) fn finish(&self, tx: &mut Transaction<'_>, alarm: &Alarm) {
        self.store_traits(tx);
        if let Some(due) = self.due.get() {
            self.collection.partition.next_look.not_after(due);
            alarm.set(due);
        }
        if let Some(wake) = self.wake.get() {
            alarm.set(wake);
        }
    }

    /// Removes an item with every trace; returns how many entries it had.
    pub(crate) fn clear(&self, tx: &mut Transaction<'_>, record: &BsonRecord) -> Result<usize> {
        let footprint = self.footprint(record);
        let entries = footprint.entries();
        footprint.remove(tx)?;
        Ok(entries)
    }

    pub(super) fn modify(
        &self,
        tx: &mut Transaction<'_>,
        events: &mut Events,
        target: &Target,
        decide: impl FnOnce(Option<&Found>, Time) -> Result<Verdict>,
    ) -> Result<Modified> {
        let old = self.find(tx, target)?;
        let before = old.clone().map(Found::from);
        let Verdict { decision, answer } = decide(before.as_ref(), self.gate.now)?;
        let manner = if matches!(decision, Decision::Update(_)) { Manner::Parts } else { Manner::Whole };
        let told = |(record, charge): (BsonRecord, Charge)| (Some(record.into()), charge);
        let (after, charge) = match (decision, old) {
            (Decision::Keep, old) => (before.clone(), looked_at(old.as_ref())),
            (Decision::Insert(document), None) => {
                told(self.insert(tx, events, Draft::new(&self.list, document)?)?)
            }
            (Decision::Replace(document) | Decision::Update(document), Some(old)) if document == old.body => {
                (before.clone(), looked_at(Some(&old)))
            }
            (Decision::Replace(document) | Decision::Update(document), Some(old)) => {
                told(self.replace(tx, events, &old, Draft::new(&self.list, document)?, manner)?)
            }
            (Decision::Delete, Some(old)) => (None, self.delete(tx, events, &old)?),
            (Decision::Insert(_), Some(_)) => return Err(Error::invalid("an insert over a living item")),
            (Decision::Replace(_) | Decision::Update(_) | Decision::Delete, None) => {
                return Err(Error::invalid("a change of an item that is not there"));
            }
        };
        Ok(Modified { before, after, answer, repeated: false, manner, charge, position: None })
    }

    /// Inserts documents and tells of each, behind what `outcomes` tells already.
    fn insert_chunk(
        &self,
        tx: &mut Transaction<'_>,
        chunk: Vec<Result<Draft>>,
        ordered: bool,
        (receipts, budget): (Option<&Receipts>, &Budget),
        outcomes: &mut Vec<Result<Inserted>>,
    ) -> Result<()> {
        let mut events = Events::default();
        let mut ledger = match receipts {
            Some(Receipts { session, number, .. }) => Some(Ledger::open(tx, session, *number)?),
            None => None,
        };
        for draft in chunk {
            if ordered && outcomes.last().is_some_and(Result::is_err) {
                break;
            }
            let statement = receipts.and_then(|receipts| receipts.statements.get(outcomes.len()).copied());
            if let Some((ledger, statement)) = ledger.as_ref().zip(statement)
                && ledger.recorded(tx, statement)?.is_some()
            {
                outcomes.push(Ok(Inserted { charge: Charge::default(), position: None }));
                continue;
            }
            let outcome = draft.and_then(|draft| {
                let toll = budget.admit()?;
                let (record, charge) = self.insert(tx, &mut events, draft)?;
                tx.check_room()?;
                toll.pay(charge);
                Ok((record, charge))
            });
            if let Err(error @ (Error::Corrupt(_) | Error::Unavailable(_) | Error::NoRoom(_))) = outcome {
                return Err(error);
            }
            if let Some((ledger, statement)) = ledger.as_mut().zip(statement).filter(|_| outcome.is_ok()) {
                ledger.record(tx, statement, None);
            }
            let position = Some(position(tx));
            outcomes.push(outcome.map(|(_, charge)| Inserted { charge, position }));
        }
        self.wake_at(ledger.and_then(|ledger| ledger.close(tx)));
        Ok(())
    }

    /// The living item that a target names.
    fn find(&self, tx: &Transaction<'_>, target: &Target) -> Result<Option<BsonRecord>> {
        let found = match target {
            Target::Id(id) => self.gate.by_id_key(tx, &self.id_key(id.view()))?,
            Target::Number(number) => self.gate.by_number(tx, *number)?,
        };
        Ok(found.living())
    }

    /// Every check comes before the first put, so an item that is refused leaves nothing behind in its transaction but the
    /// removal of dead ones.
    pub(super) fn insert(
        &self,
        tx: &mut Transaction<'_>,
        events: &mut Events,
        draft: Draft,
    ) -> Result<(BsonRecord, Charge)> {
        let found = self.gate.by_id_key(tx, &self.id_key(draft.id()));
        match found
            .map_err(|error| error.at_item(format_args!("document {}", bson::shell_text(draft.id()))))?
        {
            gate::Found::Living(_) => return Err(duplicate_id(draft.id())),
            gate::Found::Dead(dead) => self.bury(tx, &dead)?,
            gate::Found::Damaged(item) => self.gate.check_expired(tx, &item.header)?,
            gate::Found::Nobody => {}
        }
        let Draft { document, ttl, keys } = draft;
        // A new item is in all of them, also in those that are being built.
        let keys = keys.current(&self.list, &document, |_| true)?;
        for index in self.list.kept().filter(|index| index.spec.is_unique()) {
            self.claim(tx, index, keys.of(index.number), None, &document)?;
        }
        let sequence = events.next(tx);
        let record = self.record(ItemNumber(sequence.0), sequence, ttl, document)?;
        let footprint = self.footprint_in(&record, &keys, |index| index.has(record.number));
        let terms = footprint.charged_keys(&self.list, &record).len() as u64;
        let charge = Charge::write(record.size(), terms);
        footprint.insert(tx)?;
        self.keep_version(tx, None, &record, Manner::Whole)?;
        self.note_traits(&keys, id_of(&record));
        self.note_death(&record);
        Ok((record, charge))
    }

    pub(super) fn replace(
        &self,
        tx: &mut Transaction<'_>,
        events: &mut Events,
        old: &BsonRecord,
        draft: Draft,
        manner: Manner,
    ) -> Result<(BsonRecord, Charge)> {
        if self.id_key(draft.id()) != self.id_key(id_of(old)) {
            return Err(Error::invalid("a document cannot be given another '_id'"));
        }
        hold::check_item(tx, &self.gate, old)?;
        let Draft { document, ttl, keys } = draft;
        let number = old.number;
        let is_in = |index: &CollectionIndex| index.has(number);
        let keys = keys.current(&self.list, &document, is_in)?;
        let old_keys = DocumentKeys::stored(&self.list, &old.body, is_in);
        for index in self.list.kept().filter(|index| index.spec.is_unique() && is_in(index)) {
            let known = old_keys.of(index.number);
            let wanted = keys.of(index.number).iter().filter(|key| !known.contains(key));
            self.claim(tx, index, wanted, Some(number), &document)?;
        }
        let record = self.record(number, events.next(tx), ttl, document)?;
        let before = self.footprint_in(old, &old_keys, is_in);
        let footprint = self.footprint_in(&record, &keys, is_in);
        let terms = changed_terms(
            &footprint.charged_keys(&self.list, &record),
            &before.charged_keys(&self.list, old),
        );
        let charge = Charge::replace(old.size(), record.size(), terms);
        footprint.replace(before, tx)?;
        self.keep_version(tx, Some(old), &record, manner)?;
        self.note_traits(&keys, id_of(&record));
        self.note_death(&record);
        Ok((record, charge))
    }

    /// The version that a document becomes now (T9).
    fn record(
        &self,
        number: ItemNumber,
        sequence: Sequence,
        ttl: OwnTtl,
        body: RawDocument,
    ) -> Result<BsonRecord> {
        let mut header = Header::new(sequence, self.gate.now.seconds(), ttl);
        let date = |index| self.date(index, &body);
        self.gate.policy.settle(&mut header, &body, (Countdown::Restart, None), date)?;
        Ok(Record { number, header, body })
    }

    /// Gives a stored item that stood in no queue its places back.
    pub(crate) fn settle_again(&self, record: &mut BsonRecord) -> Result<()> {
        let Record { header, body, .. } = record;
        self.gate.policy.settle_again(header, body, |index| self.date(index, body))
    }

    /// The date by which an index makes a document die.
    fn date(&self, index: u32, body: &RawDocument) -> Option<Millis> {
        self.list.get(index)?.spec.earliest_date(body.view())
    }

    /// The living item of an `_id`.
    pub(crate) fn living(&self, tx: &Transaction<'_>, id: &Value) -> Result<BsonRecord> {
        let found = self.find(tx, &Target::Id(id.clone()))?;
        found.ok_or_else(|| Error::no_item(bson::shell_text(id.view())))
    }

    /// Puts another header in front of a version.
    pub(crate) fn rewrite(&self, tx: &mut Transaction<'_>, old: &BsonRecord, new: &BsonRecord) -> Result<()> {
        self.footprint(new).replace(self.footprint(old), tx)
    }

    pub(super) fn delete(
        &self,
        tx: &mut Transaction<'_>,
        events: &mut Events,
        old: &BsonRecord,
    ) -> Result<Charge> {
        hold::check_item(tx, &self.gate, old)?;
        let sequence = events.next(tx);
        history::deleted(tx, &self.gate, WriteNumber::uncounted(sequence), old);
        self.note_due(history::look_again(&self.gate, self.gate.now));
        let footprint = self.footprint(old);
        let terms = footprint.charged_keys(&self.list, old).len() as u64;
        footprint.remove(tx)?;
        Ok(Charge::write(old.size(), terms))
    }

    /// Records a version where all versions are kept; one that is dead already goes at once.
    fn keep_version(
        &self,
        tx: &mut Transaction<'_>,
        old: Option<&BsonRecord>,
        new: &BsonRecord,
        manner: Manner,
    ) -> Result<()> {
        self.note_due(history::look_again(&self.gate, self.gate.now));
        match history::written(tx, &self.gate, old, new, manner) {
            Fate::Stays => Ok(()),
            Fate::DeadOnArrival => {
                let partition = &self.collection.partition;
                self.note_due(burial::on_arrival(tx, &self.gate, &self.keeper(), partition, new)?);
                self.clear(tx, new).map(drop)
            }
        }
    }

    /// Removes a dead item that is in the way. It takes no sequence: nobody can tell who removed it, or when. One that damage keeps
    /// from being removed stays as it is for the purge to set aside, and its place is taken all the same (T15).
    fn bury(&self, tx: &mut Transaction<'_>, dead: &BsonRecord) -> Result<()> {
        self.gate.check_expired(tx, &dead.header)?;
        let partition = &self.collection.partition;
        let removed = set_aside::attempt(tx, |tx| {
            let due = burial::by_write(tx, &self.gate, &self.keeper(), partition, dead)?;
            self.clear(tx, dead)?;
            Ok(due)
        })?;
        if let Ok(due) = removed {
            self.note_due(due);
        }
        Ok(())
    }

    /// Makes room at keys of a unique index: a dead holder goes, a living one other than the item itself is a conflict.
    fn claim<'k>(
        &self,
        tx: &mut Transaction<'_>,
        index: &CollectionIndex,
        wanted: impl IntoIterator<Item = &'k Vec<u8>>,
        own: Option<ItemNumber>,
        document: &RawDocument,
    ) -> Result<()> {
        for key in wanted {
            for holder in self.holders(tx, index, key)? {
                if Some(holder) == own || self.rewritten.contains(&holder) {
                    continue;
                }
                match self.gate.by_number(tx, holder)? {
                    gate::Found::Living(_) => return Err(duplicate(index, key, document)?),
                    gate::Found::Dead(dead) => self.bury(tx, &dead)?,
                    gate::Found::Damaged(item) => self.gate.check_expired(tx, &item.header)?,
                    gate::Found::Nobody => return Err(no_holder(holder)),
                }
            }
        }
        Ok(())
    }

    /// Refuses an item that is brought into a unique index whose keys living items have.
    pub(super) fn check_unique(
        &self,
        tx: &Transaction<'_>,
        index: &CollectionIndex,
        keys: &DocumentKeys,
        record: &BsonRecord,
    ) -> Result<()> {
        if !index.spec.is_unique() {
            return Ok(());
        }
        for key in keys.of(index.number) {
            for holder in self.holders(tx, index, key)? {
                if holder == record.number {
                    continue;
                }
                match self.gate.by_number::<RawDocument>(tx, holder)? {
                    gate::Found::Living(_) => return Err(duplicate(index, key, &record.body)?),
                    gate::Found::Dead(_) | gate::Found::Damaged(_) => {}
                    gate::Found::Nobody => return Err(no_holder(holder)),
                }
            }
        }
        Ok(())
    }

    /// The items that have a key in an index, dead ones included.
    fn holders(&self, tx: &Transaction<'_>, index: &CollectionIndex, key: &[u8]) -> Result<Vec<ItemNumber>> {
        let prefix = keys::entries(self.gate.partition, index.number, key);
        let length = prefix.len();
        let scan = tx.scan(Keyspace::Index, KeyRange::prefix(prefix), Direction::Forward);
        let holder = |entry: storage::Result<(Bytes, Bytes)>| {
            let (key, _) = entry?;
            let number = split_entry(length, &key).filter(|(rest, _)| rest.is_empty());
            let number = number.map(|(_, number)| number);
            number.ok_or_else(|| Error::Corrupt("an entry of an index that continues another".into()))
        };
        scan.map(holder).collect()
    }

    /// Everything that a stored version of an item leaves.
    fn footprint(&self, record: &BsonRecord) -> ItemFootprint {
        let is_in = |index: &CollectionIndex| index.has(record.number);
        let keys = DocumentKeys::stored(&self.list, &record.body, is_in);
        self.footprint_in(record, &keys, is_in)
    }

    /// Everything that a version of an item leaves, in some of the indexes.
    pub(super) fn footprint_in(
        &self,
        record: &BsonRecord,
        keys: &DocumentKeys,
        is_in: impl Fn(&CollectionIndex) -> bool,
    ) -> ItemFootprint {
        let id_key = self.id_key(id_of(record));
        ItemFootprint::new(self.gate.partition, &self.list, record, id_key, keys, is_in)
    }

    pub(super) fn id_key(&self, id: ValueRef<'_>) -> Vec<u8> {
        keys::id(self.gate.partition, id, &self.collection.definition.collation)
    }

    fn note_death(&self, record: &BsonRecord) {
        self.note_due(self.gate.policy.death(&record.header));
    }

    /// The purge has something to do in the collection then.
    fn note_due(&self, due: Option<Time>) {
        self.due.set(self.due.get().into_iter().chain(due).min());
    }

    /// Remembers what is new about indexes that a document comes into.
    pub(super) fn note_traits(&self, keys: &DocumentKeys, id: ValueRef<'_>) {
        let mut noted = self.noted.borrow_mut();
        for (number, entries) in keys.iter() {
            let Some(index) = self.list.get(number) else { continue };
            if (entries.multikey && !index.multikey) || (entries.cut && !index.cut) {
                let (multikey, cut) = noted.entry(number).or_default();
                (*multikey, *cut) = (*multikey || entries.multikey, *cut || entries.cut);
            }
        }
        // Only a long value can have a cut key, and few ids are long.
        if !self.list.indexes[0].cut && self.id_key(id).len() > KEY_BYTES_MAX {
            noted.entry(ID_INDEX).or_default().1 = true;
        }
    }

    /// Writes down what was noted.
    pub(super) fn store_traits(&self, tx: &mut Transaction<'_>) {
        if self.noted.borrow().is_empty() {
            return;
        }
        let mut list = (*self.list).clone();
        self.add_traits(&mut list);
        list.store(tx, self.gate.partition);
    }

    /// Adds what was noted to a list.
    pub(super) fn add_traits(&self, list: &mut IndexList) {
        let noted = self.noted.take();
        for index in &mut list.indexes {
            if let Some((multikey, cut)) = noted.get(&index.number) {
                (index.multikey, index.cut) = (index.multikey || *multikey, index.cut || *cut);
            }
        }
    }

    /// The background has something else to do then.
    fn wake_at(&self, due: Option<Time>) {
        self.wake.set(self.wake.get().into_iter().chain(due).min());
    }
}

fn id_of(record: &BsonRecord) -> ValueRef<'_> {
    record.body.get("_id").unwrap_or(ValueRef::Null)
}

/// What it costs to look at an item and leave it.
fn looked_at(kept: Option<&BsonRecord>) -> Charge {
    kept.map_or(Charge::default(), |kept| Charge::read(kept.size()))
}

/// The error about an `_id` that a living item has.
fn duplicate_id(id: ValueRef<'_>) -> Error {
    let value = Document::new().with("_id", id.to_value());
    Error::DuplicateKey {
        index: ID_INDEX_NAME.into(),
        pattern: RawDocument::from_document(&Document::new().with("_id", 1)),
        value: RawDocument::from_document(&value),
    }
}

/// The error about a key of a unique index that a living item has.
fn duplicate(index: &CollectionIndex, key: &[u8], document: &RawDocument) -> Result<Error> {
    let value = index.spec.key_value(document.view(), key, &Context::at(0))?;
    Ok(Error::DuplicateKey {
        index: index.spec.name().to_owned(),
        pattern: RawDocument::from_document(index.spec.key_pattern()),
        value: RawDocument::from_document(&value),
    })
}

fn no_holder(number: ItemNumber) -> Error {
    Error::Corrupt(format!("an index entry of item {}, which is not there", number.0))
}
