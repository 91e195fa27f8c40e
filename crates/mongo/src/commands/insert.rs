//! `insert`.

use bson::{Document, RawDocument};
use mql::update::prepare_insert;

use crate::call::Call;
use crate::catalog;
use crate::error::{Error, Result};
use crate::reply::Reply;
use crate::statements::{Validator, check_batch, new_id};
use crate::write_errors::{WriteErrors, is_fatal};

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    let name = call.collection()?.to_owned();
    let ordered = fields.boolean("ordered")?.unwrap_or(true);
    let bypass = fields.is_set("bypassDocumentValidation")?;
    let documents = call.documents("documents")?;
    let documents = fields.required("documents", documents)?;
    check_batch(documents.len())?;
    let room = call.room.clone();
    let collection = catalog::for_write(&call.engine, &call.database, &name)?;
    let validator = Validator::of(collection.definition.options.view(), bypass)?;
    let (drafts, positions, errors) = prepare(call, &documents, &validator, ordered)?;
    let receipts = call.receipts(positions.iter().map(|position| *position as i32).collect());
    let outcomes = room.insert(&collection, drafts, ordered, receipts).await?;
    let mut inserted = 0;
    let mut failures = WriteErrors::default();
    for (outcome, position) in outcomes.into_iter().zip(positions) {
        match outcome {
            Ok(()) => inserted += 1,
            Err(error) if is_fatal(&error, room.is_transaction()) => return Err(error),
            Err(error) => failures.push(position, &error),
        }
    }
    let mut reply = Document::new().with("n", inserted);
    // What stopped an ordered insert in the store comes before what was refused beforehand, and is the only failure then.
    let failures = if ordered && !failures.is_empty() { failures } else { failures.merged(errors) };
    failures.add_to(&mut reply);
    Ok(reply.into())
}

/// The documents that may be stored, with their positions, and what is wrong with the others. A document that cannot be
/// stored is refused before the store hears of it; an ordered insert ends there.
fn prepare(
    call: &Call,
    documents: &[RawDocument],
    validator: &Validator,
    ordered: bool,
) -> Result<(Vec<RawDocument>, Vec<usize>, WriteErrors)> {
    let context = call.context();
    let (mut drafts, mut positions, mut errors) = (Vec::new(), Vec::new(), WriteErrors::default());
    for (position, document) in documents.iter().enumerate() {
        let prepared = prepare_insert(document, &mut || new_id(&call.service, call.now), call.timestamp)
            .and_then(|draft| validator.check_insert(&draft, &context).map(|()| draft));
        match prepared {
            Ok(draft) => {
                drafts.push(draft);
                positions.push(position);
            }
            Err(error) if call.room.is_transaction() => return Err(error.into()),
            Err(error) => {
                errors.push(position, &Error::from(error));
                if ordered {
                    break;
                }
            }
        }
    }
    Ok((drafts, positions, errors))
}
