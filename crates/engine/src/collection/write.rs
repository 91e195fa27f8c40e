//! Writing items of a collection.
//!
//! A write is a function that runs inside the store's transaction: it is shown the living item and says what becomes of it
//! ([`Decision`]). A write that meets a dead item, under its own `_id` or under a unique key that it wants, removes that item
//! with every trace in its own commit (T15).

use std::cell::Cell;
use std::sync::Arc;

use bson::{Document, RawDocument, Value, ValueRef};
use document::{ItemNumber, Sequence};
use parking_lot::Mutex;
use storage::{Keyspace, Lanes, Ticket, Time, Transaction, transact};

use super::receipts::{Ledger, Receipt, Receipts};
use super::{BsonRecord, Collection, Found, keys};
use crate::Engine;
use crate::alarm::Alarm;
use crate::definition::OwnTtl;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::footprint::Traces;
use crate::gate::{self, Gate};
use crate::header::{Header, Record};
use crate::limits::{INSERT_CHUNK_BYTES, INSERT_CHUNK_ITEMS};

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
            let modified = desk.modify(tx, &mut Events::default(), &target, decide)?;
            if let Some((mut ledger, statement)) = ledger.filter(|_| modified.is_write()) {
                ledger.record(tx, statement, modified.answer.clone());
                desk.wake_at(ledger.close(tx));
            }
            desk.ring(&alarm);
            Ok(modified)
        })
    }

    /// Inserts documents, each whole or not at all, in bounded transactions. The answer tells of each in turn; after an error
    /// an ordered insert tells of no further one, because it has not tried it. A document whose statement has run before is
    /// not inserted again.
    pub fn insert(
        &self,
        collection: &Arc<Collection>,
        documents: Vec<RawDocument>,
        ordered: bool,
        receipts: Option<Receipts>,
    ) -> Ticket<Result<Vec<Result<()>>>> {
        if receipts.as_ref().is_some_and(|receipts| receipts.statements.len() != documents.len()) {
            return Ticket::ready(Err(Error::invalid("an insert must have a statement for each document")));
        }
        let receipts = receipts.map(Arc::new);
        let outcomes: Arc<Mutex<Vec<Result<()>>>> = Arc::default();
        let mut ticket = Ticket::ready(Ok(Vec::new()));
        for chunk in chunks(documents) {
            let (collection, alarm) = (Arc::clone(collection), Arc::clone(&self.alarm));
            let (outcomes, receipts) = (Arc::clone(&outcomes), receipts.clone());
            // Jobs run and become durable in the order of submission, so the last one answers for all.
            ticket = transact(&*self.store, lane(&collection), move |tx| {
                let mut outcomes = outcomes.lock();
                let desk = Desk::open(tx, &collection)?;
                desk.insert_chunk(tx, chunk, ordered, receipts.as_deref(), &mut outcomes)?;
                desk.ring(&alarm);
                Ok(outcomes.clone())
            });
        }
        ticket
    }
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
}

impl Draft {
    pub(super) fn new(document: RawDocument) -> Result<Draft> {
        if document.get("_id").is_none() {
            return Err(Error::invalid("a document without '_id'"));
        }
        let ttl = OwnTtl::of_bson(document.view());
        Ok(Draft { document, ttl })
    }

    fn id(&self) -> ValueRef<'_> {
        self.document.get("_id").unwrap_or(ValueRef::Null)
    }

    /// The version that the draft becomes now (T9).
    fn into_record(self, now: Time, number: ItemNumber, sequence: Sequence) -> BsonRecord {
        let header = Header { sequence, ts: now.seconds(), ttl: self.ttl, bases: Vec::new() };
        Record { number, header, body: self.document }
    }
}

/// A collection inside a transaction: everything that its writes go through.
pub(crate) struct Desk {
    collection: Arc<Collection>,
    gate: Gate,
    /// When the first of the items written here dies.
    due: Cell<Option<Time>>,
    /// When the background has something else to do.
    wake: Cell<Option<Time>>,
}

impl Desk {
    /// Opens a collection inside a transaction.
    pub(crate) fn open(tx: &Transaction<'_>, collection: &Arc<Collection>) -> Result<Desk> {
        let gate = Gate::for_write(tx, collection.partition.id)?;
        Ok(Desk { collection: Arc::clone(collection), gate, due: Cell::new(None), wake: Cell::new(None) })
    }

    /// Tells the purge of what was written.
    pub(super) fn ring(&self, alarm: &Alarm) {
        if let Some(due) = self.due.get() {
            self.collection.partition.next_look.not_after(due);
            alarm.set(due);
        }
        if let Some(wake) = self.wake.get() {
            alarm.set(wake);
        }
    }

    /// Removes a dead item with every trace; returns how many entries it had.
    pub(crate) fn clear(&self, tx: &mut Transaction<'_>, dead: &BsonRecord) -> Result<usize> {
        let traces = self.traces(dead);
        let entries = traces.entries();
        traces.remove(tx)?;
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
        let after = match (decision, old) {
            (Decision::Keep, _) => before.clone(),
            (Decision::Insert(document), None) => {
                Some(self.insert(tx, events, Draft::new(document)?)?.into())
            }
            (Decision::Replace(document), Some(old)) if document == old.body => before.clone(),
            (Decision::Replace(document), Some(old)) => {
                Some(self.replace(tx, events, &old, Draft::new(document)?)?.into())
            }
            (Decision::Delete, Some(old)) => {
                self.delete(tx, events, &old)?;
                None
            }
            (Decision::Insert(_), Some(_)) => return Err(Error::invalid("an insert over a living item")),
            (Decision::Replace(_) | Decision::Delete, None) => {
                return Err(Error::invalid("a change of an item that is not there"));
            }
        };
        Ok(Modified { before, after, answer, repeated: false })
    }

    /// Inserts documents and tells of each, behind what `outcomes` tells already.
    fn insert_chunk(
        &self,
        tx: &mut Transaction<'_>,
        chunk: Vec<RawDocument>,
        ordered: bool,
        receipts: Option<&Receipts>,
        outcomes: &mut Vec<Result<()>>,
    ) -> Result<()> {
        let mut events = Events::default();
        let mut ledger = match receipts {
            Some(Receipts { session, number, .. }) => Some(Ledger::open(tx, session, *number)?),
            None => None,
        };
        for document in chunk {
            if ordered && outcomes.last().is_some_and(Result::is_err) {
                break;
            }
            let statement = receipts.and_then(|receipts| receipts.statements.get(outcomes.len()).copied());
            if let Some((ledger, statement)) = ledger.as_ref().zip(statement)
                && ledger.recorded(tx, statement)?.is_some()
            {
                outcomes.push(Ok(()));
                continue;
            }
            let outcome = Draft::new(document).and_then(|draft| self.insert(tx, &mut events, draft));
            if let Err(error @ (Error::Corrupt(_) | Error::Unavailable(_))) = outcome {
                return Err(error);
            }
            if let Some((ledger, statement)) = ledger.as_mut().zip(statement).filter(|_| outcome.is_ok()) {
                ledger.record(tx, statement, None);
            }
            outcomes.push(outcome.map(drop));
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
    fn insert(&self, tx: &mut Transaction<'_>, events: &mut Events, draft: Draft) -> Result<BsonRecord> {
        match self.gate.by_id_key(tx, &self.id_key(draft.id()))? {
            gate::Found::Living(_) => {
                let value = Document::new().with("_id", draft.id().to_value());
                return Err(Error::DuplicateKey {
                    index: "_id_".into(),
                    pattern: RawDocument::from_document(&Document::new().with("_id", 1)),
                    value: RawDocument::from_document(&value),
                });
            }
            gate::Found::Dead(dead) => self.bury(tx, &dead)?,
            gate::Found::Nobody => {}
        }
        let sequence = events.next(tx);
        let record = draft.into_record(self.gate.now, ItemNumber(sequence.0), sequence);
        self.traces(&record).insert(tx)?;
        self.note_death(&record);
        Ok(record)
    }

    fn replace(
        &self,
        tx: &mut Transaction<'_>,
        events: &mut Events,
        old: &BsonRecord,
        draft: Draft,
    ) -> Result<BsonRecord> {
        if self.id_key(draft.id()) != self.id_key(id_of(old)) {
            return Err(Error::invalid("a document cannot be given another '_id'"));
        }
        let sequence = events.next(tx);
        let record = draft.into_record(self.gate.now, old.number, sequence);
        self.traces(&record).replace(&self.traces(old), tx)?;
        self.note_death(&record);
        Ok(record)
    }

    fn delete(&self, tx: &mut Transaction<'_>, events: &mut Events, old: &BsonRecord) -> Result<()> {
        events.next(tx);
        self.clear(tx, old).map(drop)
    }

    /// Removes a dead item that is in the way. It takes no sequence: nobody can tell who removed it, or when.
    fn bury(&self, tx: &mut Transaction<'_>, dead: &BsonRecord) -> Result<()> {
        if !self.gate.may_destroy(tx, dead) {
            return Err(Error::ClockSuspect { what: "the place of an expired item is taken" });
        }
        self.clear(tx, dead).map(drop)
    }

    fn traces(&self, record: &BsonRecord) -> Traces {
        let mut traces = Traces::new(self.gate.partition, record);
        traces.lead(Keyspace::Id, self.id_key(id_of(record)));
        traces
    }

    fn id_key(&self, id: ValueRef<'_>) -> Vec<u8> {
        keys::id(self.gate.partition, id, &self.collection.definition.collation)
    }

    fn note_death(&self, record: &BsonRecord) {
        let due = self.gate.policy.death(&record.header);
        self.due.set(self.due.get().into_iter().chain(due).min());
    }

    /// The background has something else to do then.
    fn wake_at(&self, due: Option<Time>) {
        self.wake.set(self.wake.get().into_iter().chain(due).min());
    }
}

fn id_of(record: &BsonRecord) -> ValueRef<'_> {
    record.body.get("_id").unwrap_or(ValueRef::Null)
}
