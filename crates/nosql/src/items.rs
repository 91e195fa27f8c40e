//! What the item handlers share: running a write, and turning outcomes and pages into answers.
//!
//! The hot path stays free of JSON trees: the request body becomes the stored form at once, and an item becomes
//! the response's bytes at once.

use std::sync::Arc;

use document::{Document, PartitionKey};
use engine::{Container, Countdown, Effect, Operation, Outcome, QueryPage};
use hyper::StatusCode;

use crate::belongings::refuse_triggers;
use crate::call::{Call, range_of};
use crate::error::Error;
use crate::record::Work;
use crate::response::{Place, Reply};
use crate::{feed, headers, query_metrics};

/// The item in a request's body, JSON text or Cosmos binary.
pub(crate) fn body(call: &Call) -> Result<Document, Error> {
    let body = Document::decode_body(&call.body)?;
    let root = body.root();
    if root.as_object().is_none() {
        return Err(Error::BadRequest(format!(
            "An item must be a JSON object, this is {}.",
            root.type_name()
        )));
    }
    Ok(body)
}

/// Runs one write to its durable end and answers with its outcome.
pub(crate) async fn write(
    call: &Call,
    container: &Arc<Container>,
    key: Option<PartitionKey>,
    operation: Operation,
) -> Result<Reply, Error> {
    call.head.session()?;
    refuse_triggers(call)?;
    call.write_is_in(range_of_write(container, key.as_ref(), &operation));
    let countdown = countdown(call, container).await?;
    let outcome = call.engine().write_with(container, key, operation, countdown).await?;
    Ok(outcome_reply(call, container, &outcome))
}

/// What the writes of a request do to countdowns, once the container is prepared for it.
pub(crate) async fn countdown(call: &Call, container: &Arc<Container>) -> Result<Countdown, Error> {
    let countdown = call.head.countdown()?;
    if !container.is_prepared_for(countdown) {
        let container = Arc::clone(container);
        call.blocking(move |engine| Ok(engine.prepare_countings(&container, countdown)?)).await?;
    }
    Ok(countdown)
}

/// The answer to one operation.
pub(crate) fn outcome_reply(call: &Call, container: &Container, outcome: &Outcome) -> Reply {
    let status = status(outcome.effect);
    let written = matches!(outcome.effect, Effect::Created | Effect::Replaced);
    let silent = outcome.effect == Effect::NotModified || (written && call.head.wants_minimal());
    let mut reply = match &outcome.item {
        Some(item) if !silent => Reply::json(status, item.to_json()),
        _ => Reply::empty(status),
    };
    if let Some(item) = &outcome.item {
        reply = reply.etag(item.etag);
    }
    if let Some(seconds) = outcome.seconds_left {
        reply = reply.with(headers::TTL_REMAINING, seconds);
    }
    // The last write of an item that is gone is the deletion.
    let item = outcome.item.as_ref().map_or(outcome.range.lsn, |item| item.lsn);
    let place = Place { container, range: outcome.range, item: Some(item) };
    reply.charged(outcome.charge).renewing(outcome.touch.clone()).placed(&place)
}

/// The status code that says what an operation did.
pub(crate) fn status(effect: Effect) -> StatusCode {
    match effect {
        Effect::Created => StatusCode::CREATED,
        Effect::Replaced | Effect::Read => StatusCode::OK,
        Effect::Deleted => StatusCode::NO_CONTENT,
        Effect::NotModified => StatusCode::NOT_MODIFIED,
    }
}

/// The answer to a query or listing.
pub(crate) fn page_reply(call: &Call, container: &Container, page: QueryPage) -> Result<Reply, Error> {
    let body = feed::enclose(&container.rid.to_string(), "Documents", &page.rows);
    let mut reply = Reply::json(StatusCode::OK, body)
        .charged(page.charge)
        .renewing(page.touches.iter().cloned())
        .with(headers::ITEM_COUNT, page.rows.len())
        .placed(&Place { container, range: page.range, item: None });
    if let Some(token) = &page.continuation {
        reply = reply.with(headers::CONTINUATION, token);
    }
    let reply = query_metrics::report(call, reply, &page)?;
    Ok(reply.worked(Work { metrics: page.metrics, index: page.index }))
}

/// The range that a write goes to: by the key that came with it, else by that of the item in its body.
pub(crate) fn range_of_write(
    container: &Container,
    key: Option<&PartitionKey>,
    operation: &Operation,
) -> usize {
    let body = match operation {
        Operation::Create { body } | Operation::Upsert { body, .. } | Operation::Replace { body, .. } => {
            Some(body)
        }
        Operation::Patch { .. } | Operation::Delete { .. } | Operation::Read { .. } => None,
    };
    let extracted = || PartitionKey::extract(&container.definition.partition_key, body?.root()).ok();
    match key {
        Some(key) => range_of(container, key),
        None => extracted().map_or(0, |key| range_of(container, &key)),
    }
}
