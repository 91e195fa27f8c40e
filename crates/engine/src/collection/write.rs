//! Writing documents of a collection.
//!
//! A write is a function that runs inside the store's transaction: it gets the living document and decides how to change it
//! ([`Decision`]). [`write::context`](crate::write::context) then carries out the decision, as for containers.

use std::sync::Arc;

use bson::{RawDocument, Value};
use document::ItemNumber;
use parking_lot::Mutex;
use storage::{Lanes, Ticket, Time, Transaction, transact};

use super::document_keys::DocumentKeys;
use super::receipts::{Ledger, Receipt, Receipts};
use super::schema::{CollectionContext, CollectionSchema};
use super::{BsonRecord, Collection, LivingDocument};
use crate::Engine;
use crate::catalog::budget::Budget;
use crate::catalog::collection_indexes::IndexList;
use crate::definition::OwnTtl;
use crate::feed::history::Manner;
use crate::keys::Position;
use crate::types::alarm::Alarm;
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::events::{self, Events};
use crate::types::limits::{COLLECTION_ITEM_BYTES_MAX, INSERT_CHUNK_BYTES, INSERT_CHUNK_ITEMS};
use crate::write::schema::Draft;

/// The target of a write.
#[derive(Debug, Clone)]
pub enum Target {
    /// The living item with that `_id`.
    Id(Value),
    /// The living item with that number.
    Number(ItemNumber),
}

/// What a write does to an item.
#[derive(Debug, Clone)]
pub enum Decision {
    /// Nothing: this is not a write (T9).
    Keep,
    /// A new item, with the `_id` of the document. For a missing target.
    Insert(RawDocument),
    /// Another document with the same `_id`. An identical one is not a write (T9).
    Replace(RawDocument),
    /// Does the same as `Replace`, for a client that requested a change of parts of it: feeds distinguish the two.
    Update(RawDocument),
    /// It is deleted.
    Delete,
}

/// The decision of a function about an item.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// What the write does to the item.
    pub decision: Decision,
    /// The answer to a repetition of the same statement.
    pub answer: Option<RawDocument>,
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Verdict {
        Verdict { decision, answer: None }
    }
}

/// The result of a write.
#[derive(Debug, Clone, Default)]
pub struct Modified {
    /// The item before it.
    pub before: Option<LivingDocument>,
    /// The item after it.
    pub after: Option<LivingDocument>,
    /// The answer of the function; for a statement that had run before, the answer recorded then.
    pub answer: Option<RawDocument>,
    /// Whether the statement had run before: then nothing was done now, and `before` and `after` are absent.
    pub repeated: bool,
    /// How the item was changed, if it was.
    pub(super) manner: Manner,
    /// Its charge: of a write, or of a read if the item was kept.
    pub charge: Charge,
    /// The position of the write in the feeds of all versions; none if nothing was written.
    pub position: Option<Position>,
}

/// A document that was inserted.
#[derive(Debug, Clone, Copy)]
pub struct Inserted {
    /// The charge.
    pub charge: Charge,
    /// The position of its commit in the feeds of all versions; none if its statement had run before.
    pub position: Option<Position>,
}

impl Modified {
    /// Returns whether something was written.
    pub fn is_write(&self) -> bool {
        let version = |found: &Option<LivingDocument>| found.as_ref().map(|found| found.sequence);
        version(&self.before) != version(&self.after)
    }
}

impl Engine {
    /// Passes the living target to `decide`, inside the store's transaction, and carries out its decision. Without a living
    /// target the function may only keep or insert.
    pub fn modify(
        &self,
        collection: &Arc<Collection>,
        target: Target,
        decide: impl FnOnce(Option<&LivingDocument>, Time) -> Result<Verdict> + Send + 'static,
        receipt: Option<Receipt>,
    ) -> Ticket<Result<Modified>> {
        let pending = match self.admit_collection(collection) {
            Ok(pending) => pending,
            Err(refused) => return Ticket::ready(Err(refused)),
        };
        let (collection, alarm) = (Arc::clone(collection), Arc::clone(&self.alarm));
        transact(&*self.store, lane(&collection), move |tx| {
            let context = CollectionContext::open(tx, &collection)?;
            let mut ledger = None;
            if let Some(Receipt { session, number, statement }) = &receipt {
                let opened = Ledger::open(tx, session, *number)?;
                if let Some(answer) = opened.recorded(tx, *statement)? {
                    return Ok(Modified { answer, repeated: true, ..Modified::default() });
                }
                ledger = Some((opened, *statement));
            }
            let mut modified = context.modify(tx, &mut Events::default(), &target, decide)?;
            modified.position = modified.is_write().then(|| position(tx));
            if let Some((mut ledger, statement)) = ledger.filter(|_| modified.is_write()) {
                ledger.record(tx, statement, modified.answer.clone());
                wake(&alarm, ledger.close(tx));
            }
            tx.check_free_space()?;
            context.finish(tx, &alarm);
            pending.pay(modified.charge);
            Ok(modified)
        })
    }

    /// Inserts documents, each whole or not at all, in bounded transactions. Returns the outcome of each in turn; an ordered insert
    /// ends with the first error and does not try the rest. A document whose statement has run before is not inserted again.
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
            let chunk: Vec<_> = chunk.into_iter().map(|document| draft(&list, document)).collect();
            let is_last = chunks.peek().is_none();
            // Jobs run and become durable in the order of submission, so the last ticket stands for all. One that fails leaves
            // its error to those behind it, which then do nothing.
            ticket = transact(&*self.store, lane(&collection), move |tx| {
                let mut told = outcomes.lock();
                let outcomes = told.as_mut().map_err(|error| error.clone())?;
                let inserted = CollectionContext::open(tx, &collection).and_then(|context| {
                    let receipts = receipts.as_deref();
                    let due = context.insert_chunk(tx, chunk, ordered, (receipts, &budget), outcomes)?;
                    context.finish(tx, &alarm);
                    wake(&alarm, due);
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

/// Returns the position after the last write of a transaction in the feeds of all versions.
pub(super) fn position(tx: &Transaction<'_>) -> Position {
    Position::of_change(tx.trusted_time(), events::last_of_commit(tx.last_sequence()))
}

/// Notes when background work is due.
pub(super) fn wake(alarm: &Alarm, due: Option<Time>) {
    if let Some(due) = due {
        alarm.set(due);
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
pub(super) type DocumentDraft = Draft<CollectionSchema>;

/// Checks a document and extracts its keys, as far as that can be done before the transaction.
pub(super) fn draft(list: &IndexList, document: RawDocument) -> Result<DocumentDraft> {
    if document.get("_id").is_none() {
        return Err(Error::invalid("a document without '_id'"));
    }
    let size = document.as_bytes().len();
    if size > COLLECTION_ITEM_BYTES_MAX {
        let limit = COLLECTION_ITEM_BYTES_MAX;
        return Err(Error::TooLarge { what: "the document", actual: size, limit });
    }
    let (ttl, extracted) = (OwnTtl::of_bson(document.view()), DocumentKeys::ahead(list, &document));
    Ok(Draft { body: document, ttl, extracted })
}

impl CollectionContext {
    /// Opens a collection inside the draft of a transaction. Before the transaction is replayed, its writes are recorded neither in
    /// the feed nor in the deletion record, and a document that arrives expired is neither removed nor moved aside.
    pub(super) fn open_draft(
        tx: &Transaction<'_>,
        collection: &Arc<Collection>,
    ) -> Result<CollectionContext> {
        let mut context = CollectionContext::open(tx, collection)?;
        if context.gate.policy.lifecycle.tells_instants() {
            let lifecycle = &mut Arc::make_mut(&mut context.gate.policy).lifecycle;
            (lifecycle.history_minutes, lifecycle.archive, lifecycle.deletion_record) = (None, None, false);
        }
        Ok(context)
    }

    pub(super) fn modify(
        &self,
        tx: &mut Transaction<'_>,
        events: &mut Events,
        target: &Target,
        decide: impl FnOnce(Option<&LivingDocument>, Time) -> Result<Verdict>,
    ) -> Result<Modified> {
        let old = self.find(tx, target)?;
        let before = old.clone().map(LivingDocument::from);
        let Verdict { decision, answer } = decide(before.as_ref(), self.gate.now)?;
        let manner = if matches!(decision, Decision::Update(_)) { Manner::Parts } else { Manner::Whole };
        let told = |(record, charge): (BsonRecord, Charge)| (Some(record.into()), charge);
        let (after, charge) = match (decision, old) {
            (Decision::Keep, old) => (before.clone(), looked_at(old.as_ref())),
            (Decision::Insert(document), None) => {
                told(self.insert(tx, events, draft(self.schema.list(), document)?)?)
            }
            (Decision::Replace(document) | Decision::Update(document), Some(old)) if document == old.body => {
                (before.clone(), looked_at(Some(&old)))
            }
            (Decision::Replace(document) | Decision::Update(document), Some(old)) => {
                told(self.replace(tx, events, &old, draft(self.schema.list(), document)?, manner)?)
            }
            (Decision::Delete, Some(old)) => (None, self.delete(tx, events, &old)?.charge),
            (Decision::Insert(_), Some(_)) => return Err(Error::invalid("an insert over a living item")),
            (Decision::Replace(_) | Decision::Update(_) | Decision::Delete, None) => {
                return Err(Error::invalid("a change of an item that is not there"));
            }
        };
        Ok(Modified { before, after, answer, repeated: false, manner, charge, position: None })
    }

    /// Inserts documents and appends the outcome of each to `outcomes`. Returns when the receipts are due to be removed.
    fn insert_chunk(
        &self,
        tx: &mut Transaction<'_>,
        chunk: Vec<Result<DocumentDraft>>,
        ordered: bool,
        (receipts, budget): (Option<&Receipts>, &Budget),
        outcomes: &mut Vec<Result<Inserted>>,
    ) -> Result<Option<Time>> {
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
                let pending = budget.admit()?;
                let (record, charge) = self.insert(tx, &mut events, draft)?;
                tx.check_free_space()?;
                pending.pay(charge);
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
        Ok(ledger.and_then(|ledger| ledger.close(tx)))
    }

    /// Returns the living item that a target names.
    pub(super) fn find(&self, tx: &Transaction<'_>, target: &Target) -> Result<Option<BsonRecord>> {
        let found = match target {
            Target::Id(id) => self.gate.by_id_key(tx, &self.schema.collection().id_key(id.view()))?,
            Target::Number(number) => self.gate.by_number(tx, *number)?,
        };
        Ok(found.living())
    }
}

/// Returns the charge for reading an item and keeping it.
fn looked_at(kept: Option<&BsonRecord>) -> Charge {
    kept.map_or(Charge::default(), |kept| Charge::read(kept.size()))
}
