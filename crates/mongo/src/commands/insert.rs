//! `insert`.

use bson::{Document, RawDocument, Timestamp};
use mql::Code;
use mql::update::prepare_insert;

use crate::access::{Validator, catalog};
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::protocol::write_errors::{WriteErrors, is_fatal, is_throttled};
use crate::service::call::Call;
use crate::statements::{WRITE_OPTIONS, check_batch, new_id};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only_these_and(&["insert", "documents"], WRITE_OPTIONS)?;
    let name = call.collection()?.to_owned();
    let ordered = fields.boolean("ordered")?.unwrap_or(true);
    let documents = call.documents("documents")?;
    let documents = fields.required("documents", documents)?;
    check_batch(documents.len())?;
    let batch = Batch { database: &call.database, name: &name, first: 0, ordered };
    let (inserted, failures) = insert(call, &batch, &documents).await?;
    let mut reply = Document::new().with("n", inserted as i32);
    if !failures.is_empty() {
        call.abort_transaction();
    }
    failures.add_to(&mut reply);
    Ok(reply.into())
}

/// Where documents go, and as which statements of their command.
pub(super) struct Batch<'a> {
    pub(super) database: &'a str,
    pub(super) name: &'a str,
    /// The position of the first one among the statements.
    pub(super) first: usize,
    pub(super) ordered: bool,
}

/// Inserts documents; returns how many, and the errors of the others.
pub(super) async fn insert(
    call: &Call,
    batch: &Batch<'_>,
    documents: &[RawDocument],
) -> Result<(usize, WriteErrors)> {
    catalog::refuse_system(batch.database, batch.name)?;
    match attempt(call, batch, documents).await {
        // The collection was dropped between the look and the write: a new one appears.
        Err(error) if error.code == Code::NAMESPACE_NOT_FOUND && !call.executor.is_transaction() => {
            attempt(call, batch, documents).await
        }
        outcome => outcome,
    }
}

async fn attempt(call: &Call, batch: &Batch<'_>, documents: &[RawDocument]) -> Result<(usize, WriteErrors)> {
    let bypass = call.fields().is_set("bypassDocumentValidation")?;
    let collection = catalog::for_write(&call.executor, batch.database, batch.name)?;
    let validator = Validator::of(&collection, bypass)?;
    // A restore keeps documents as they were stored elsewhere.
    let now = (!call.fields().is_set("bypassEmptyTsReplacement")?).then_some(call.timestamp);
    let (drafts, positions, errors) = prepare(call, batch, documents, &validator, now)?;
    let receipts = call.receipts(positions.iter().map(|position| *position as i32).collect());
    let outcomes = call.executor.insert(&collection, drafts, batch.ordered, receipts).await?;
    let mut inserted = 0;
    let mut failures = WriteErrors::default();
    for (outcome, position) in outcomes.into_iter().zip(positions) {
        match outcome {
            Ok(()) => inserted += 1,
            Err(error) if is_fatal(&error, call.executor.is_transaction()) => return Err(error),
            Err(error) if is_throttled(&error, inserted, &failures) => return Err(error),
            Err(error) => failures.push(position, error),
        }
    }
    call.service.statistics.documents_inserted.add(inserted as u64);
    // A failure of an ordered insert in the store comes before those found beforehand, and is then the only one.
    let failures = if batch.ordered && !failures.is_empty() { failures } else { failures.merged(errors) };
    Ok((inserted, failures))
}

/// Returns the documents that may be stored, with their positions, and the errors of the others. A document that cannot be
/// stored is refused before the store sees it; an ordered insert ends there. A command that is stopped stores nothing.
fn prepare(
    call: &Call,
    batch: &Batch<'_>,
    documents: &[RawDocument],
    validator: &Validator,
    now: Option<Timestamp>,
) -> Result<(Vec<RawDocument>, Vec<usize>, WriteErrors)> {
    let context = call.context();
    let (mut drafts, mut positions, mut errors) = (Vec::new(), Vec::new(), WriteErrors::default());
    for (position, document) in documents.iter().enumerate() {
        let position = batch.first + position;
        let prepared = prepare_insert(document, &mut || new_id(&call.service, call.now), now)
            .map_err(Error::from)
            .and_then(|draft| match validator.check_insert(&draft, &context) {
                Ok(()) => Ok(draft),
                Err(error) => Err(validator.explained(error.into(), call.executor.details(), &context)),
            });
        match prepared {
            Ok(draft) => {
                drafts.push(draft);
                positions.push(position);
            }
            Err(error) if is_fatal(&error, false) => return Err(error),
            Err(error) => {
                errors.push(position, error);
                if batch.ordered {
                    break;
                }
            }
        }
    }
    Ok((drafts, positions, errors))
}
