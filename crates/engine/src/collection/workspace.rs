//! Transactions over several documents: a private draft of the store, and its commit.
//!
//! A [`Workspace`] has one snapshot and one `now` (T16). Its writes run through the same functions as all others, over a draft
//! that only it sees ([`storage::Scratch`]): it reads its own writes, and its unique keys, ids and rules are checked with
//! each write. The commit writes the result in one transaction of the store:
//!
//! ```text
//!   draft:   item 7: x -> y -> z     item 9: deleted     new: a, b -> c
//!   commit:  7 and 9 must be living and at the versions that the snapshot has, else conflict;
//!            other items that it has read must be living (`reliance`)
//!            9 deleted, 7 becomes z, a and c inserted
//! ```
//!
//! Only the last version of each item is written. Those versions were checked against each other in the draft, so that at the
//! commit a key counts as taken only by items that the workspace has not written: another write has taken it meanwhile,
//! which is a conflict like any other. When the transaction is retried, it finds that the key is taken.
//!
//! Numbers and sequences of a draft have no meaning outside of it: new items get theirs with the commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bson::{RawDocument, ValueRef};
use document::{ItemNumber, Sequence};
use storage::{Lanes, Read, Scratch, Ticket, Time, Transaction, transact};

use super::claims::{Claim, Claimant, ReleaseWait};
use super::receipts::{Ledger, Receipt};
use super::reliance::Reliance;
use super::schema::CollectionContext;
use super::write::{Modified, Target, Verdict, draft, position, wake};
use super::{BsonRecord, Collection, LivingDocument, Reading};
use crate::Engine;
use crate::access::gate::{Gate, LookupResult};
use crate::catalog::load_policy;
use crate::expiry::header::Header;
use crate::feed::history::Manner;
use crate::keys::Position;
use crate::keys::{Key, PartitionId};
use crate::types::charge::Charge;
use crate::types::error::{Error, Result};
use crate::types::events::Events;
use crate::types::limits::WORKSPACE_BYTES_MAX;
use crate::write::schema::ItemSchema as _;

/// An open transaction. Dropping it discards it.
pub struct Workspace {
    draft: Scratch,
    now: Time,
    sequence: u64,
    touched: BTreeMap<PartitionId, CollectionWrites>,
    /// What it has read.
    reliance: Reliance,
    claimant: Claimant,
}

/// The writes of a workspace in one collection.
struct CollectionWrites {
    collection: Arc<Collection>,
    items: BTreeMap<ItemNumber, Pending>,
}

/// The writes of a workspace to one item.
struct Pending {
    /// The version that the snapshot has; `None` if the item is new.
    base: Option<Sequence>,
    /// The new document; `None` if the item is deleted.
    next: Option<RawDocument>,
    /// How an existing item is changed: as a whole if any of the writes replaced it as a whole.
    manner: Manner,
}

/// The result of a workspace.
struct Outcome {
    touched: BTreeMap<PartitionId, CollectionWrites>,
    reliance: Reliance,
    claimant: Claimant,
}

impl Engine {
    /// Begins a transaction over several documents.
    pub fn begin(&self) -> Result<Workspace> {
        // No rule changes between the snapshot and its time, so the rules in the snapshot are those in force (see `gate`).
        let _change = self.changes.lock();
        let snapshot = self.store.snapshot()?;
        let clock = self.store.clock_status()?;
        let sequence = self.store.last_sequence();
        let draft = Scratch::new(snapshot, clock, sequence);
        let claimant = Claimant::new(&self.claims);
        let (touched, reliance) = (BTreeMap::new(), Reliance::default());
        Ok(Workspace { draft, now: clock.now, sequence, touched, reliance, claimant })
    }

    /// Commits a workspace, all or nothing. Fails with [`Error::Conflict`] if an item that it relies on was changed, deleted or has
    /// expired since it began. With a receipt, a commit that was already made succeeds again. Returns the position of the commit in
    /// the feeds of all versions, if this call has written anything.
    pub fn commit(&self, workspace: Workspace, receipt: Option<Receipt>) -> Ticket<Result<Option<Position>>> {
        let Outcome { touched, reliance, claimant } = match workspace.outcome() {
            Ok(outcome) => outcome,
            Err(error) => return Ticket::ready(Err(error)),
        };
        let alarm = Arc::clone(&self.alarm);
        let partitions = touched.keys().copied().chain(reliance.partitions());
        let lanes: Lanes = partitions.map(|partition| u64::from(partition.0)).collect();
        transact(&*self.store, lanes, move |tx| {
            // Until this has run, no other transaction takes what it writes.
            let _held = claimant;
            let mut ledger = None;
            if let Some(Receipt { session, number, statement }) = &receipt {
                let opened = Ledger::open(tx, session, *number)?;
                if opened.recorded(tx, *statement)?.is_some() {
                    return Ok(None);
                }
                ledger = Some((opened, *statement));
            }
            reliance.check(tx)?;
            let before = tx.last_sequence();
            let contexts = replay(tx, touched)?;
            let written = (tx.last_sequence() > before).then(|| position(tx));
            if let Some((mut ledger, statement)) = ledger {
                ledger.record(tx, statement, None);
                wake(&alarm, ledger.close(tx));
            }
            for context in contexts {
                context.finish(tx, &alarm);
            }
            Ok(written)
        })
    }
}

impl Engine {
    /// Returns whether open transactions have written anything at all. Cheap.
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// Returns whether an open transaction has written the target.
    pub fn is_claimed(&self, collection: &Collection, target: &Target) -> bool {
        self.claims.holds(&claim_of(collection, target))
    }

    /// Calls `ring` when the open transaction that has written the target ends, with a commit or without, unless the result is
    /// dropped before. Returns `None`, and never calls it, if there is no such transaction. A transaction may write the target
    /// between this call and the caller's write: then the caller's write wins, and the transaction conflicts.
    pub fn when_released(
        &self,
        collection: &Collection,
        target: &Target,
        ring: impl FnOnce() + Send + 'static,
    ) -> Option<ReleaseWait> {
        self.claims.when_released(&claim_of(collection, target), Box::new(ring))
    }
}

fn claim_of(collection: &Collection, target: &Target) -> Claim {
    let partition = collection.partition.id;
    match target {
        Target::Id(id) => Claim::Id(collection.id_key(id.view())),
        Target::Number(number) => Claim::Item(partition, *number),
    }
}

impl Workspace {
    /// Returns the time of the transaction.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns whether it has written anything.
    pub fn has_written(&self) -> bool {
        self.touched.values().any(|touched| !touched.items.is_empty())
    }

    /// Returns the collections that it has written to.
    pub fn written(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.touched.values().filter(|touched| !touched.items.is_empty()).map(|touched| &touched.collection)
    }

    /// Reads collections as the transaction sees them, its own writes included.
    pub fn reading(&mut self, collections: &[&Arc<Collection>]) -> Result<Reading<'_>> {
        for collection in collections {
            self.adopt(collection)?;
        }
        Reading::of_draft(self, collections, self.sequence)
    }

    pub(super) fn draft(&self) -> &Scratch {
        &self.draft
    }

    /// Returns the gate to a collection as the transaction sees it.
    pub(super) fn gate(&self, collection: &Collection) -> Result<Gate> {
        let partition = collection.partition.id;
        let policy = Arc::new(load_policy(&self.draft, partition)?);
        Ok(Gate { partition, policy, now: self.now })
    }

    /// Notes that it has read an item. Items that it has written are checked anyway, or are new.
    pub(super) fn rely_on(&self, collection: &Collection, gate: &Gate, number: ItemNumber) -> Result<()> {
        let written = self.touched.get(&gate.partition);
        if written.is_some_and(|touched| touched.items.contains_key(&number)) {
            return Ok(());
        }
        let (keyspace, key) = Key::Item(gate.partition, number).encode();
        if let Some(bytes) = self.draft.get(keyspace, &key)? {
            let (header, _) = Header::decode(&bytes)?;
            self.reliance.note(collection, gate, &header);
        }
        Ok(())
    }

    /// Does what [`Engine::modify`] does, within the transaction.
    pub fn modify(
        &mut self,
        collection: &Arc<Collection>,
        target: &Target,
        decide: impl FnOnce(Option<&LivingDocument>, Time) -> Result<Verdict>,
    ) -> Result<Modified> {
        self.adopt(collection)?;
        let modified = self.draft.run(|tx| {
            let context = CollectionContext::open_draft(tx, collection)?;
            let modified = context.modify(tx, &mut Events::default(), target, decide)?;
            context.schema.store_notes(tx);
            Ok::<_, Error>(modified)
        })?;
        if modified.is_write() {
            self.note(collection, modified.before.as_ref(), modified.after.as_ref(), modified.manner)?;
        } else if let Some(shown) = &modified.before {
            self.rely_on(collection, &self.gate(collection)?, shown.number)?;
        }
        self.check_size()?;
        Ok(modified)
    }

    /// Inserts a document, within the transaction, and returns its charge.
    pub fn insert(&mut self, collection: &Arc<Collection>, document: RawDocument) -> Result<Charge> {
        self.adopt(collection)?;
        let (inserted, charge): (LivingDocument, Charge) = self.draft.run(|tx| {
            let context = CollectionContext::open_draft(tx, collection)?;
            let draft = draft(context.schema.list(), document)?;
            let (record, charge) = context.insert(tx, &mut Events::default(), draft)?;
            context.schema.store_notes(tx);
            Ok::<_, Error>((record.into(), charge))
        })?;
        self.note(collection, None, Some(&inserted), Manner::Whole)?;
        self.check_size()?;
        Ok(charge)
    }

    /// Notes a write to an item; a conflict if another open transaction has written it.
    fn note(
        &mut self,
        collection: &Arc<Collection>,
        before: Option<&LivingDocument>,
        after: Option<&LivingDocument>,
        manner: Manner,
    ) -> Result<()> {
        let Some(found) = before.or(after) else { return Ok(()) };
        let id = found.document.get("_id").unwrap_or(ValueRef::Null);
        let partition = collection.partition.id;
        let by_id = Claim::Id(collection.id_key(id));
        // The number of a new document has no meaning outside of the draft.
        let by_number = before.map(|found| Claim::Item(partition, found.number));
        let mut claims = [Some(by_id), by_number].into_iter().flatten();
        if !claims.all(|claim| self.claimant.claim(claim)) {
            let what =
                format!("a document of '{}' that another open transaction writes", collection.namespace());
            return Err(Error::Conflict { what });
        }
        let number = found.number;
        let touched = self.touched.entry(collection.partition.id);
        let touched = touched.or_insert_with(|| CollectionWrites {
            collection: Arc::clone(collection),
            items: BTreeMap::new(),
        });
        let base = before.map(|found| found.sequence);
        let pending = touched.items.entry(number).or_insert(Pending { base, next: None, manner });
        pending.next = after.map(|found| found.document.clone());
        if manner == Manner::Whole {
            pending.manner = manner;
        }
        if pending.base.is_none() && pending.next.is_none() {
            touched.items.remove(&number);
        }
        Ok(())
    }

    /// Treats a collection that was created after the transaction began as an empty one.
    fn adopt(&mut self, collection: &Arc<Collection>) -> Result<()> {
        let (keyspace, key) = Key::Policy(collection.partition.id).encode();
        if self.draft.get(keyspace, &key)?.is_some() {
            return Ok(());
        }
        let policy = collection.partition.policy.read().encode();
        let list = collection.indexes();
        self.draft.run(|tx| {
            tx.put(keyspace, key, policy);
            list.as_new(tx, collection.partition.id);
            Ok(())
        })
    }

    /// Returns its result. A document that had expired when it was written, and whose id or key another one has taken since, is not
    /// in the draft any more. A transaction without writes cannot conflict.
    fn outcome(mut self) -> Result<Outcome> {
        if !self.has_written() {
            self.reliance = Reliance::default();
        }
        for (partition, touched) in &mut self.touched {
            for (number, pending) in &mut touched.items {
                let (keyspace, key) = Key::Item(*partition, *number).encode();
                if pending.next.is_some() && self.draft.get(keyspace, &key)?.is_none() {
                    pending.next = None;
                }
            }
        }
        Ok(Outcome { touched: self.touched, reliance: self.reliance, claimant: self.claimant })
    }

    /// Returns how many bytes it holds, roughly: each document is in the draft and among what the commit writes.
    pub fn bytes(&self) -> usize {
        self.draft.bytes().saturating_mul(2)
    }

    fn check_size(&self) -> Result<()> {
        let (actual, limit) = (self.draft.bytes(), WORKSPACE_BYTES_MAX);
        if actual > limit {
            return Err(Error::TooLarge { what: "the transaction", actual, limit });
        }
        Ok(())
    }
}

/// Writes the items; the contexts are not finished yet.
fn replay(
    tx: &mut Transaction<'_>,
    touched: BTreeMap<PartitionId, CollectionWrites>,
) -> Result<Vec<CollectionContext>> {
    let mut events = Events::default();
    let mut contexts = Vec::with_capacity(touched.len());
    for CollectionWrites { collection, items } in touched.into_values() {
        let mut context = match CollectionContext::open(tx, &collection) {
            Err(Error::OwnerNotFound { .. }) => return Err(conflict(&collection)),
            context => context?,
        };
        let stored = items.iter().filter(|(_, pending)| pending.base.is_some());
        context.rewritten = stored.map(|(number, _)| *number).collect::<BTreeSet<_>>();
        let outcome = replay_items(tx, &context, &mut events, items);
        outcome.map_err(|error| match error {
            // It was free in the draft: another write has taken it since.
            Error::DuplicateKey { .. } => conflict(&collection),
            other => other,
        })?;
        contexts.push(context);
    }
    Ok(contexts)
}

fn replay_items(
    tx: &mut Transaction<'_>,
    context: &CollectionContext,
    events: &mut Events,
    items: BTreeMap<ItemNumber, Pending>,
) -> Result<()> {
    // Deletes come first: they free keys for new documents.
    let (mut changed, mut new) = (Vec::new(), Vec::new());
    for (number, Pending { base, next, manner }) in items {
        let Some(base) = base else {
            new.extend(next);
            continue;
        };
        let old = unchanged(tx, context, number, base)?;
        match next {
            None => {
                context.delete(tx, events, &old)?;
            }
            Some(next) if next == old.body => {}
            Some(next) => changed.push((old, next, manner)),
        }
    }
    for (old, next, manner) in changed {
        context.replace(tx, events, &old, draft(context.schema.list(), next)?, manner)?;
    }
    for document in new {
        context.insert(tx, events, draft(context.schema.list(), document)?)?;
    }
    Ok(())
}

/// Returns the item that a workspace has changed, if it is still at the version of the snapshot.
fn unchanged(
    tx: &Transaction<'_>,
    context: &CollectionContext,
    number: ItemNumber,
    base: Sequence,
) -> Result<BsonRecord> {
    match context.gate.by_number(tx, number)? {
        LookupResult::Living(record) if record.header.sequence == base => Ok(record),
        LookupResult::Living(_)
        | LookupResult::Expired(_)
        | LookupResult::Damaged(_)
        | LookupResult::Absent => Err(conflict(context.schema.collection())),
    }
}

fn conflict(collection: &Collection) -> Error {
    Error::Conflict { what: format!("a document of '{}'", collection.namespace()) }
}
