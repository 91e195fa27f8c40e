//! What pipelines write: `$out` and `$merge`.
//!
//! `$out` fills a staged collection that clients cannot name, with the options and indexes of the one it is to replace, and gives
//! it that name at the end, in one commit. `$merge` combines each document with its counterpart inside the store's transaction.

use std::sync::Arc;

use bson::{Document, RawDocument, Value, ValueRef};
use engine::collection::{Collection, CollectionDefinition, Decision, LivingDocument, Target, Verdict};
use engine::find::{self, PlanRequest};
use engine::{Engine, Lifecycle, Owner};
use mql::filter::{Filter, Settings};
use mql::index::{ID_INDEX_NAME, IndexSpec};
use mql::pipeline::{Merge, Namespace, Outcome, new_id};
use mql::update::prepare_insert;
use mql::{Code, Context};

use super::validator::Validator;
use crate::access::catalog;
use crate::access::executor::Executor;
use crate::protocol::error::{Error, Result};
use crate::protocol::random;

/// How many attempts `$merge` makes for a document before it gives up with a conflict.
const ATTEMPTS_MAX: usize = 1_000;

/// The prefix of the names of staged collections; a number in hexadecimal digits follows.
const STAGED_PREFIX: &str = "tmp.agg_out.";

/// Removes the staged collections that an earlier process left. It runs before anything else does.
pub(crate) fn remove_leftovers(engine: &Engine) {
    for database in engine.collection_databases() {
        for collection in engine.collections(&database.name).iter().filter(|it| is_staged(&it.name)) {
            if let Err(error) = engine.drop_collection(collection) {
                tracing::warn!("cannot remove {}, which $out left: {error}", collection.namespace());
            }
        }
    }
}

/// Copies the lifecycle settings of a collection to its replacement, except for a hold, which forbids a replacement, and the
/// feed, which follows the watches of the name. Archive and deletion record follow with the name: a staged collection has none.
fn copy_lifecycle(engine: &Engine, replaced: &Arc<Collection>, by: &Arc<Collection>) -> engine::Result<()> {
    let settings = Owner::Collection(Arc::clone(replaced)).lifecycle();
    engine.change_lifecycle(&Owner::Collection(Arc::clone(by)), |own| {
        let history_minutes = own.history_minutes;
        *own = Lifecycle { hold: None, history_minutes, archive: None, deletion_record: false, ..settings };
    })?;
    Ok(())
}

/// Whether a collection of that name is staged.
pub(crate) fn is_staged(name: &str) -> bool {
    let number = name.strip_prefix(STAGED_PREFIX).unwrap_or_default();
    number.len() == 16 && number.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A collection that `$out` fills.
#[derive(Debug)]
pub(crate) struct Staged {
    collection: Arc<Collection>,
    validator: Validator,
}

impl Staged {
    fn begin(executor: &Executor, target: &Namespace, bypass: bool) -> Result<Staged> {
        let engine = executor.engine();
        let replaced = engine.collection(&target.database, &target.collection);
        if let Some(replaced) = &replaced {
            catalog::refuse_view(replaced)?;
        }
        catalog::refuse_system(&target.database, &target.collection)?;
        let name = format!("{STAGED_PREFIX}{:016x}", random::number());
        let fresh = catalog::definition(RawDocument::default())?;
        let Some(replaced) = replaced else {
            let collection = engine.create_collection(&target.database, &name, fresh, None)?;
            return Ok(Staged { collection, validator: Validator::default() });
        };
        let definition = CollectionDefinition { uuid: fresh.uuid, ..replaced.definition.clone() };
        let validator = Validator::of(&replaced, bypass)?;
        let throughput = replaced.throughput();
        let collection = engine.create_collection(&target.database, &name, definition, throughput)?;
        let staged = Staged { collection, validator };
        // Its unique keys and its rules of expiry hold for what replaces it.
        let indexes = replaced.indexes();
        let specs = indexes.iter().filter(|index| !index.spec.is_id()).map(|index| (*index.spec).clone());
        let made = engine.create_indexes(&staged.collection, specs.collect());
        match made.and_then(|_| copy_lifecycle(engine, &replaced, &staged.collection)) {
            Ok(()) => Ok(staged),
            Err(error) => {
                staged.abandon(executor);
                Err(error.into())
            }
        }
    }

    /// Discards the staged collection after a failure of the pipeline.
    pub(crate) fn abandon(self, executor: &Executor) {
        // What cannot be dropped now is dropped when the next process starts.
        let _ = executor.engine().drop_collection(&self.collection);
    }
}

/// Adds documents to a staged collection.
pub(super) fn stage(
    executor: &Executor,
    staged: &mut Option<Staged>,
    target: &Namespace,
    documents: &[RawDocument],
    bypass: bool,
    context: &Context,
) -> Result<()> {
    let Staged { collection, validator } = match staged {
        Some(staged) => staged,
        None => staged.insert(Staged::begin(executor, target, bypass)?),
    };
    let prepare = |document: &RawDocument| prepare_insert(document, &mut || new_id(context), None);
    let documents: Vec<RawDocument> = documents.iter().map(prepare).collect::<mql::Result<_>>()?;
    for document in &documents {
        let checked = validator.check_insert(document, context);
        checked.map_err(|error| validator.explained(error.into(), executor.details(), context))?;
    }
    let namespace = target.to_string();
    let inserted = executor.engine().insert(collection, documents, true, None).wait()?;
    executor.meter().wrote(inserted.iter().flatten().map(|inserted| inserted.charge).sum());
    for outcome in inserted {
        outcome.map_err(|error| Error::in_namespace(error, &namespace))?;
    }
    Ok(())
}

/// Replaces a collection with the staged one.
pub(super) fn replace(executor: &Executor, staged: &mut Option<Staged>, target: &Namespace) -> Result<()> {
    let ready = match staged.take() {
        Some(ready) => ready,
        None => Staged::begin(executor, target, false)?,
    };
    match executor.engine().replace_collection(&ready.collection, &target.database, &target.collection) {
        Ok(_) => Ok(()),
        Err(error) => {
            ready.abandon(executor);
            Err(error.into())
        }
    }
}

/// Merges a document with its counterpart and writes the result.
pub(super) fn merge(
    executor: &Executor,
    merge: &Arc<Merge>,
    document: &RawDocument,
    bypass: bool,
    context: &Context,
) -> Result<()> {
    let target = merge.target();
    let collection = catalog::for_write(executor, &target.database, &target.collection)?;
    let filter = Arc::new(Filter::parse(merge.counterpart(document.view())?.view(), &Settings::default())?);
    let validator = Arc::new(Validator::of(&collection, bypass)?);
    let by_id = merge.on().len() == 1 && merge.on()[0] == "_id";
    let id = document.get("_id").map_or_else(|| Value::ObjectId(new_id(context)), ValueRef::to_value);
    let merge_step = MergeStep {
        merge: Arc::clone(merge),
        filter: Arc::clone(&filter),
        validator,
        document: document.clone(),
        new_id: id.clone(),
        by_id,
        key: unique_key(&collection, merge.on()),
    };
    for _ in 0..ATTEMPTS_MAX {
        let aim = if by_id {
            Target::Id(id.clone())
        } else {
            match counterpart(executor, &collection, &filter, context)? {
                Some(found) => Target::Number(found.number),
                None => Target::Id(id.clone()),
            }
        };
        let is_met = matches!(aim, Target::Number(_));
        match modify(executor, &collection, aim, &merge_step, context) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Another client has inserted the counterpart meanwhile: the next attempt finds it.
            Err(error) if error.code == Code::DUPLICATE_KEY && !by_id && !is_met => {
                if counterpart(executor, &collection, &filter, context)?.is_none() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(Code::WRITE_CONFLICT, "the counterpart of a document of $merge kept changing"))
}

/// Returns the name and the pattern of a collection's unique index over exactly these fields.
pub(crate) fn unique_key(collection: &Collection, on: &[String]) -> Option<(String, Document)> {
    let is_key = |spec: &IndexSpec| {
        let pattern = spec.key_pattern();
        (spec.is_unique() || spec.is_id())
            && spec.partial_filter().is_none()
            && pattern.len() == on.len()
            && on.iter().all(|field| pattern.contains(field))
    };
    let list = collection.indexes();
    let index = list.iter().find(|index| is_key(&index.spec))?;
    Some((index.spec.name().to_owned(), index.spec.key_pattern().clone()))
}

fn counterpart(
    executor: &Executor,
    collection: &Arc<Collection>,
    filter: &Arc<Filter>,
    context: &Context,
) -> Result<Option<LivingDocument>> {
    executor.read(&[collection], |reading| {
        let collation = &bson::Collation::simple();
        let request = PlanRequest { filter, sort: None, limit: Some(1), collation, hint: None };
        let plan = find::plan(reading, collection, &request)?;
        Ok(executor.scan(plan, collection, filter, Some(1)).next(reading, context)?)
    })
}

/// A document of `$merge`, with everything that decides what becomes of it and of its counterpart.
#[derive(Clone)]
struct MergeStep {
    merge: Arc<Merge>,
    filter: Arc<Filter>,
    validator: Arc<Validator>,
    document: RawDocument,
    /// The `_id` under which the document is inserted if it meets no counterpart.
    new_id: Value,
    /// Whether counterparts are found by `_id` alone.
    by_id: bool,
    /// The name and the pattern of the unique index over the fields by which they meet.
    key: Option<(String, Document)>,
}

impl MergeStep {
    /// Returns the verdict on the counterpart, or on the insert if the target does not exist. A verdict without an answer
    /// says that the document found is no longer the counterpart.
    fn decide(
        &self,
        found: Option<&LivingDocument>,
        aim: &Target,
        context: &Context,
    ) -> engine::Result<Verdict> {
        let is_counterpart = match found {
            Some(found) => self.filter.matches(found.document.view(), context)?,
            None => true,
        };
        let taken = !is_counterpart && !self.by_id && matches!(aim, Target::Id(_));
        if !is_counterpart && !taken {
            return Ok(Verdict::from(Decision::Keep));
        }
        let found = found.filter(|_| is_counterpart);
        let view = found.map(|found| found.document.view());
        let outcome = self.merge.decide(view, &self.document, context);
        let decision = match outcome.map_err(|error| self.reported(error))? {
            Outcome::Keep => Decision::Keep,
            Outcome::Insert(_) if taken => return Err(self.id_taken()),
            Outcome::Insert(document) => {
                let document = match &self.new_id {
                    Value::ObjectId(id) => prepare_insert(&document, &mut || *id, None)?,
                    _ => document,
                };
                self.validator.check_insert(&document, context)?;
                Decision::Insert(document)
            }
            Outcome::Replace(document) => {
                match found {
                    Some(found) => self.validator.check_update(&found.document, &document, context)?,
                    None => self.validator.check_insert(&document, context)?,
                }
                Decision::Replace(document)
            }
        };
        Ok(Verdict { decision, answer: Some(RawDocument::default()) })
    }

    /// Returns the error for an `_id` that belongs to a document other than the counterpart.
    fn id_taken(&self) -> engine::Error {
        engine::Error::DuplicateKey {
            index: ID_INDEX_NAME.to_owned(),
            pattern: RawDocument::from_document(&Document::new().with("_id", 1)),
            value: RawDocument::from_document(&Document::new().with("_id", self.new_id.clone())),
        }
    }

    /// Turns the merge's refusal of a counterpart into the error for a taken key.
    fn reported(&self, error: mql::Error) -> engine::Error {
        match (error.code, &self.key) {
            (Code::DUPLICATE_KEY, Some((index, pattern))) => engine::Error::DuplicateKey {
                index: index.clone(),
                pattern: RawDocument::from_document(pattern),
                value: RawDocument::from_document(&self.key_value(pattern)),
            },
            _ => error.into(),
        }
    }

    /// Returns the values by which the document meets its counterpart.
    fn key_value(&self, pattern: &Document) -> Document {
        let conditions = self.merge.counterpart(self.document.view()).unwrap_or_default();
        let value = |field: &str| conditions.get(field)?.as_document()?.get("$eq").cloned();
        pattern.iter().map(|(field, _)| (field, value(field).unwrap_or(Value::Null))).collect()
    }
}

/// Makes one attempt; returns false if the document found is no longer the counterpart.
fn modify(
    executor: &Executor,
    collection: &Arc<Collection>,
    aim: Target,
    merge_step: &MergeStep,
    context: &Context,
) -> Result<bool> {
    let step = merge_step;
    let (merge_step, looked_at) = (merge_step.clone(), aim.clone());
    let (timestamp, seed) = (context.timestamp, context.random());
    let decide = move |found: Option<&LivingDocument>, now: storage::Time| {
        let millis = i64::try_from(now.millis()).unwrap_or(i64::MAX);
        merge_step.decide(found, &looked_at, &Context::new(millis, timestamp, seed, Arc::default()))
    };
    let modified = executor.engine().modify(collection, aim, decide, None).wait();
    let modified = modified.map_err(|error| {
        let error = Error::in_namespace(error, &collection.namespace());
        step.validator.explained(error, executor.details(), context)
    })?;
    executor.meter().wrote(modified.charge);
    executor.meter().committed(modified.position);
    Ok(modified.answer.is_some())
}
