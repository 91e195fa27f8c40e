//! Updates: of one document, of all that match, or an insert if none does.

use std::sync::Arc;

use bson::{Document, RawDocument, Value};
use engine::collection::{Collection, Decision, LivingDocument, Modified, Receipt, Target, Verdict};
use mql::Context;
use mql::update::{self, Update};

use super::{ATTEMPTS_MAX, ContextSeed, Selection, recorded, too_many_attempts};
use crate::access::Validator;
use crate::access::executor::Executor;
use crate::protocol::error::{Error, Result};

/// One statement of an `update`, or a `findAndModify` with an update.
#[derive(Debug)]
pub(crate) struct UpdateStatement {
    pub(crate) selection: Selection,
    pub(crate) update: Update,
    pub(crate) upsert: bool,
    pub(crate) validator: Validator,
    /// The context of the request, for every evaluation of the statement.
    pub(crate) context_seed: ContextSeed,
}

/// What a statement did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Updated {
    pub(crate) matched: u64,
    pub(crate) modified: u64,
    /// The `_id` of the document that an upsert made.
    pub(crate) upserted: Option<Value>,
    /// The document before and behind it, for `findAndModify`.
    pub(crate) before: Option<RawDocument>,
    pub(crate) after: Option<RawDocument>,
}

impl Updated {
    /// Returns the result of a write. Its function decides: a document that was found and did not match is no match.
    fn of(modified: Modified) -> Updated {
        let Some(answer) = &modified.answer else { return Updated::default() };
        let updated = Updated::from_record(answer);
        if modified.repeated || (updated.matched == 0 && updated.upserted.is_none()) {
            return updated;
        }
        let image = |found: Option<LivingDocument>| found.map(|found| found.document);
        Updated { before: image(modified.before), after: image(modified.after), ..updated }
    }

    /// Returns the answer to a repetition of the statement.
    fn record(
        matched: bool,
        modified: bool,
        upserted: Option<Value>,
        images: (Option<&RawDocument>, Option<&RawDocument>),
    ) -> RawDocument {
        let mut record =
            Document::new().with("matched", i32::from(matched)).with("modified", i32::from(modified));
        if let Some(id) = upserted {
            record.push("upserted", id);
        }
        if let Some(before) = images.0 {
            record.push("before", before.to_document());
        }
        if let Some(after) = images.1 {
            record.push("after", after.to_document());
        }
        RawDocument::from_document(&record)
    }

    fn from_record(answer: &RawDocument) -> Updated {
        let image = |name| answer.get(name).and_then(bson::ValueRef::as_document).map(RawDocument::from_view);
        Updated {
            matched: recorded(answer, "matched") as u64,
            modified: recorded(answer, "modified") as u64,
            upserted: answer.get("upserted").map(bson::ValueRef::to_value),
            before: image("before"),
            after: image("after"),
        }
    }
}

fn id_of(found: &LivingDocument) -> Option<Value> {
    found.document.get("_id").map(bson::ValueRef::to_value)
}

/// Whether the images of a document are recorded: only `findAndModify` shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Images {
    Recorded,
    NotRecorded,
}

impl UpdateStatement {
    /// Updates the first document that matches, or inserts one.
    pub(crate) async fn one(
        self: &Arc<Self>,
        executor: &Executor,
        collection: &Arc<Collection>,
        receipt: Option<Receipt>,
        images: Images,
    ) -> Result<Updated> {
        for _ in 0..ATTEMPTS_MAX {
            let target = match self.selection.target(executor, collection, &self.context_seed)? {
                Some(target) => target,
                None if self.upsert => {
                    match self.insert(executor, collection, receipt.clone(), images).await {
                        // Another client has inserted what would have matched: the next attempt finds it.
                        Err(error)
                            if error.code == mql::Code::DUPLICATE_KEY
                                && self.may_match_now(executor, collection)? =>
                        {
                            continue;
                        }
                        inserted => return inserted,
                    }
                }
                None => return self.nothing(executor, collection, receipt).await,
            };
            let (statement, tried) = (Arc::clone(self), target.clone());
            let decide = move |found: Option<&LivingDocument>, now: storage::Time| {
                statement.decide(found, now, &tried, images)
            };
            let modified = executor.modify(collection, target, decide, receipt.clone()).await;
            let modified = modified.map_err(|error| self.explained(error, executor))?;
            let lost = !modified.repeated && modified.answer.is_none();
            if !lost {
                return Ok(Updated::of(modified));
            }
        }
        Err(too_many_attempts())
    }

    /// Updates every document that matches, each by itself; inserts one if none does.
    pub(crate) async fn all(
        self: &Arc<Self>,
        executor: &Executor,
        collection: &Arc<Collection>,
    ) -> Result<Updated> {
        let mut updated = Updated::default();
        for target in self.selection.all(executor, collection, &self.context_seed)? {
            let (statement, tried) = (Arc::clone(self), target.clone());
            let decide = move |found: Option<&LivingDocument>, now: storage::Time| {
                statement.decide(found, now, &tried, Images::NotRecorded)
            };
            let modified = executor.modify(collection, target, decide, None).await;
            let modified = modified.map_err(|error| self.explained(error, executor))?;
            if modified.answer.is_some() {
                let one = Updated::of(modified);
                updated.matched += one.matched;
                updated.modified += one.modified;
            }
        }
        if updated.matched == 0 && self.upsert {
            return self.insert(executor, collection, None, Images::NotRecorded).await;
        }
        Ok(updated)
    }

    /// Returns the verdict on the document that was found. A verdict without an answer says that it no longer is the one
    /// that was looked for.
    fn decide(
        &self,
        found: Option<&LivingDocument>,
        now: storage::Time,
        target: &Target,
        images: Images,
    ) -> engine::Result<Verdict> {
        let context = self.context_seed.context(now);
        let filter = &self.selection.filter;
        match found {
            Some(found) if filter.matches(found.document.view(), &context)? => {
                let changed = self.update.apply(&found.document, Some(filter), false, &context)?;
                // A replacement by an equal document is checked too; an update that changes nothing is not.
                let same = self.update.is_replacement().then_some(&found.document);
                if let Some(changed) = changed.as_ref().or(same) {
                    self.validator.check_update(&found.document, changed, &context)?;
                }
                let after = changed.as_ref().unwrap_or(&found.document);
                let shown = if images == Images::Recorded {
                    (Some(&found.document), Some(after))
                } else {
                    (None, None)
                };
                let answer = Updated::record(true, changed.is_some(), None, shown);
                let change = if self.update.is_replacement() { Decision::Replace } else { Decision::Update };
                let decision = changed.map_or(Decision::Keep, change);
                Ok(Verdict { decision, answer: Some(answer) })
            }
            None if self.upsert && matches!(target, Target::Id(_)) => self.insertion(&context, images),
            // An insert with this `_id` would meet the document that does not match.
            Some(found) if self.upsert && matches!(target, Target::Id(_)) => Err(duplicate_id(found)),
            // The filter names the `_id`, so no other document can match.
            _ if matches!(target, Target::Id(_)) => Ok(Verdict {
                decision: Decision::Keep,
                answer: Some(Updated::record(false, false, None, (None, None))),
            }),
            _ => Ok(Decision::Keep.into()),
        }
    }

    /// Adds the validator's details to a refusal by the store, at the time of the store's transaction.
    fn explained(&self, error: Error, executor: &Executor) -> Error {
        let Some(now) = self.validator.refused_at() else { return error };
        self.validator.explained(error, executor.details(), &self.context_seed.context(now))
    }

    /// Returns the document that an upsert inserts.
    fn insertion(&self, context: &Context, images: Images) -> engine::Result<Verdict> {
        let document = self.upsert_document(context)?;
        self.validator.check_insert(&document, context)?;
        let id = document.get("_id").map(bson::ValueRef::to_value);
        let shown = if images == Images::Recorded { (None, Some(&document)) } else { (None, None) };
        let answer = Updated::record(false, false, id, shown);
        Ok(Verdict { decision: Decision::Insert(document), answer: Some(answer) })
    }

    fn upsert_document(&self, context: &Context) -> mql::Result<RawDocument> {
        let id = self.context_seed.id;
        update::upsert_document(&self.selection.filter, &self.update, context, &mut || id)
    }

    /// Returns the `_id` of the document that an upsert inserts.
    fn upsert_id(&self, executor: &Executor) -> Result<Value> {
        let now = executor.read(&[], |reading| Ok(reading.now()))?;
        let document = self.upsert_document(&self.context_seed.context(now))?;
        Ok(document.get("_id").map_or(Value::Null, bson::ValueRef::to_value))
    }

    async fn insert(
        self: &Arc<Self>,
        executor: &Executor,
        collection: &Arc<Collection>,
        receipt: Option<Receipt>,
        images: Images,
    ) -> Result<Updated> {
        let id = self.upsert_id(executor)?;
        let statement = Arc::clone(self);
        let decide = move |found: Option<&LivingDocument>, now: storage::Time| {
            let context = statement.context_seed.context(now);
            match found {
                None => statement.insertion(&context, images),
                Some(found) => Err(duplicate_id(found)),
            }
        };
        let modified = executor.modify(collection, Target::Id(id), decide, receipt).await;
        Ok(Updated::of(modified.map_err(|error| self.explained(error, executor))?))
    }

    /// Nothing matches and nothing is inserted. With a receipt this still is a write, one that keeps the document it finds,
    /// so that a repetition is recognised: if the first run has changed its document so that nothing matches any more, the
    /// answer of that run is returned; if it found nothing either, that is recorded. Any `_id` will do.
    async fn nothing(
        &self,
        executor: &Executor,
        collection: &Arc<Collection>,
        receipt: Option<Receipt>,
    ) -> Result<Updated> {
        if receipt.is_none() {
            return Ok(Updated::default());
        }
        let decide = |_: Option<&LivingDocument>, _: storage::Time| {
            Ok(Verdict {
                decision: Decision::Keep,
                answer: Some(Updated::record(false, false, None, (None, None))),
            })
        };
        let target = Target::Id(Value::MinKey);
        Ok(Updated { matched: 0, ..Updated::of(executor.modify(collection, target, decide, receipt).await?) })
    }

    /// Whether a document matches by now, after an insert met a duplicate.
    fn may_match_now(&self, executor: &Executor, collection: &Arc<Collection>) -> Result<bool> {
        Ok(self.selection.first(executor, collection, &self.context_seed)?.is_some())
    }
}

fn duplicate_id(found: &LivingDocument) -> engine::Error {
    let id = id_of(found).unwrap_or(Value::Null);
    engine::Error::DuplicateKey {
        index: "_id_".into(),
        pattern: RawDocument::from_document(&Document::new().with("_id", 1)),
        value: RawDocument::from_document(&Document::new().with("_id", id)),
    }
}
