//! `createIndexes`.

use std::sync::Arc;

use bson::{Collation, Document, RawDocument};
use engine::collection::{Collection, Reading};
use mql::Code;
use mql::index::{IndexSpec, Relation, UnknownOptions, compare_specs};
use storage::Direction;

use crate::access::catalog;
use crate::protocol::error::{CONFIRM_EXPIRY, Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

/// The number of documents that one step of a build adds to an index while the command waits.
const BUILD_CHUNK: usize = 1_000;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&[
        "createIndexes",
        "indexes",
        "commitQuorum",
        "ignoreUnknownIndexOptions",
        CONFIRM_EXPIRY,
    ])?;
    let name = call.collection()?;
    let lenient = fields.is_set("ignoreUnknownIndexOptions")?;
    let asked = call.documents("indexes")?;
    let asked = fields.required("indexes", asked)?;
    if asked.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    let created = call.engine.collection(&call.database, name).is_none();
    let collection_of_defaults = call.engine.collection(&call.database, name);
    let specs = asked.iter().map(|spec| parse(spec, lenient, collection_of_defaults.as_deref()));
    let specs = specs.collect::<Result<Vec<_>>>()?;
    let collection = catalog::for_write(&call.executor, &call.database, name)?;
    check_transaction(call, &collection, &specs)?;
    let before = collection.indexes().iter().count();
    let count = specs.len();
    let numbers = call
        .engine
        .create_indexes_with(&collection, specs, fields.consent()?)
        .map_err(|error| refusal(error, &collection.namespace()))?;
    build(call, &collection, &numbers)?;
    let after = collection.indexes().iter().count();
    let mut reply = Document::new()
        .with("numIndexesBefore", before as i32)
        .with("numIndexesAfter", after as i32)
        .with("createdCollectionAutomatically", created);
    if after == before {
        reply.push("note", "all indexes already exist");
    } else if after - before < count {
        reply.push("note", "index already exists");
    }
    Ok(reply.into())
}

/// Refuses new indexes in a transaction, except in a collection that it has made itself and left empty. Indexes that exist
/// already need no making.
fn check_transaction(call: &Call, collection: &Arc<Collection>, specs: &[IndexSpec]) -> Result<()> {
    let list = collection.indexes();
    // The engine reports a conflict when it makes the index.
    let is_there =
        |spec: &IndexSpec| list.iter().any(|index| compare_specs(&index.spec, spec) != Relation::Different);
    if !call.executor.is_transaction() || specs.iter().all(is_there) {
        return Ok(());
    }
    let is_empty = || {
        let first =
            |reading: &Reading<'_>| Ok(reading.natural(collection, None, Direction::Forward, 1, 1)?);
        call.executor.read(&[collection], first).map(|found| found.is_empty())
    };
    if call.executor.has_made(collection) && is_empty()? {
        return Ok(());
    }
    let text = format!(
        "Cannot create new indexes on existing collection {} in a multi-document transaction.",
        collection.namespace()
    );
    Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text))
}

/// Maps an error of making indexes: where the engine reports something too large, it is their number.
fn refusal(error: engine::Error, namespace: &str) -> Error {
    match error {
        engine::Error::TooLarge { limit, .. } => {
            let text = format!("add index fails, too many indexes for {namespace}: there may be {limit}");
            Error::new(Code::CANNOT_CREATE_INDEX, text)
        }
        error => Error::in_namespace(error, namespace),
    }
}

/// Reads an index, which takes over the collation of its collection unless it names one.
fn parse(spec: &RawDocument, lenient: bool, collection: Option<&Collection>) -> Result<IndexSpec> {
    let unknown = if lenient { UnknownOptions::Ignored } else { UnknownOptions::Refused };
    let simple = Collation::simple();
    let collation = collection.map_or(&simple, |collection| &collection.definition.collation);
    Ok(IndexSpec::parse_in(spec.view(), unknown, collation)?)
}

/// Returns the indexes of a complete set: the one on `_id` must be among them, and needs no making.
pub(super) fn with_id(specs: &[RawDocument], collection: Option<&Collection>) -> Result<Vec<IndexSpec>> {
    let specs = specs.iter().map(|spec| parse(spec, false, collection)).collect::<Result<Vec<_>>>()?;
    if !specs.is_empty() && !specs.iter().any(IndexSpec::is_id) {
        return Err(Error::bad_value("the list of indexes must contain the index on '_id'"));
    }
    Ok(specs.into_iter().filter(|spec| !spec.is_id()).collect())
}

/// Builds indexes until they are ready. The work is done in steps, between which others write; a command that is stopped
/// leaves the rest to the background.
pub(super) fn build(call: &Call, collection: &Arc<Collection>, numbers: &[u32]) -> Result<()> {
    let context = call.context();
    call.blocking(|| {
        loop {
            let progress = call
                .engine
                .build_indexes_step(collection, numbers, BUILD_CHUNK)
                .map_err(|error| Error::in_namespace(error, &collection.namespace()))?;
            if progress.done {
                return Ok(());
            }
            context.spend(BUILD_CHUNK as u64)?;
        }
    })
}
