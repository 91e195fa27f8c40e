//! Shared by the item handlers: running a write, and turning outcomes and pages into answers.
//!
//! The hot path builds no JSON trees: the request body is decoded directly to the stored form, and an item directly to
//! the response's bytes.

use std::sync::Arc;

use document::{Document, PartitionKey};
use engine::{Container, Countdown, Effect, Operation, Outcome, QueryPage, SystemMembers};
use hyper::StatusCode;

use crate::handlers::call::{Call, range_of};
use crate::handlers::feed;
use crate::handlers::query_metrics;
use crate::handlers::quota::Quota;
use crate::handlers::subresources::refuse_triggers;
use crate::message::fields::Field;
use crate::message::options::Flag;
use crate::message::reply::{Reply, ReplyOrigin};
use crate::message::work::Work;
use crate::protocol::error::Error;

/// Decodes the item in a request's body, JSON text or Cosmos binary.
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
    call.session()?;
    refuse_triggers(call)?;
    call.write_is_in(range_of_write(container, key.as_ref(), &operation));
    let (countdown, form) = (countdown(call, container).await?, AnswerForm::of(call)?);
    let outcome = call.engine().write_with(container, key, operation, countdown).await?;
    Ok(outcome_reply(call, container, &outcome, form).await)
}

/// Returns the effect of the request's writes on countdowns, once the container is prepared for it.
pub(crate) async fn countdown(call: &Call, container: &Arc<Container>) -> Result<Countdown, Error> {
    let countdown = call.head.countdown()?;
    if !container.is_prepared_for(countdown) {
        let container = Arc::clone(container);
        call.blocking(move |engine| Ok(engine.prepare_ttl_modes(&container, countdown)?)).await?;
    }
    Ok(countdown)
}

/// The form of the answer to one operation. It is read before the operation runs, which can no longer be refused
/// afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerForm {
    quota: Quota,
    members: SystemMembers,
}

impl AnswerForm {
    pub(crate) fn of(call: &Call) -> Result<AnswerForm, Error> {
        let without_links = call.head.flag(Flag::ExcludeSystemProperties)?;
        let members = if without_links { SystemMembers::WithoutLinks } else { SystemMembers::All };
        Ok(AnswerForm { quota: Quota::of(call)?, members })
    }
}

/// Returns the answer to one operation.
pub(crate) async fn outcome_reply(
    call: &Call,
    container: &Arc<Container>,
    outcome: &Outcome,
    form: AnswerForm,
) -> Reply {
    let status = status(outcome.effect);
    let written = matches!(outcome.effect, Effect::Created | Effect::Replaced);
    let silent = outcome.effect == Effect::NotModified || (written && call.head.wants_minimal());
    let mut reply = match &outcome.item {
        Some(item) if !silent => {
            let mut body = Vec::new();
            item.write_json_with(&mut body, form.members);
            Reply::json(status, body)
        }
        _ => Reply::empty(status),
    };
    if let Some(item) = &outcome.item {
        reply = reply.etag(item.etag);
    }
    if let Some(seconds) = outcome.seconds_left {
        reply = reply.with(Field::TtlRemaining, seconds);
    }
    // For a deleted item it is the LSN of the deletion.
    let item = outcome.item.as_ref().map_or(outcome.range.lsn, |item| item.lsn);
    let place = ReplyOrigin { container, range: outcome.range, item: Some(item) };
    let reply = reply.charged(outcome.charge).renewing(outcome.renewal.clone()).placed(&place);
    form.quota.add(call, container, reply).await
}

/// Returns the status code of an operation's effect.
pub(crate) fn status(effect: Effect) -> StatusCode {
    match effect {
        Effect::Created => StatusCode::CREATED,
        Effect::Replaced | Effect::Read => StatusCode::OK,
        Effect::Deleted => StatusCode::NO_CONTENT,
        Effect::NotModified => StatusCode::NOT_MODIFIED,
    }
}

/// Returns the answer to a query or listing.
pub(crate) fn page_reply(call: &Call, container: &Container, page: QueryPage) -> Result<Reply, Error> {
    let body = feed::enclose(&container.rid.to_string(), "Documents", &page.rows);
    let mut reply = Reply::json(StatusCode::OK, body)
        .charged(page.charge)
        .renewing(page.renewals.iter().cloned())
        .item_count(page.rows.len())
        .placed(&ReplyOrigin { container, range: page.range, item: None });
    if let Some(token) = &page.continuation {
        reply = reply.with(Field::Continuation, token);
    }
    let reply = query_metrics::report(call, reply, &page)?;
    Ok(reply.worked(Work { metrics: page.metrics, index: page.index }))
}

/// Returns the range that a write goes to: by the key sent with it, otherwise by that of the item in its body; the first
/// one that could be meant if the key is not whole, which refuses the write.
pub(crate) fn range_of_write(
    container: &Container,
    key: Option<&PartitionKey>,
    operation: &Operation,
) -> usize {
    range_of_item(container, key, operation).unwrap_or_else(|| key.map_or(0, |key| range_of(container, key)))
}

/// Returns the range of an operation's item; `None` if its key is not whole.
pub(crate) fn range_of_item(
    container: &Container,
    key: Option<&PartitionKey>,
    operation: &Operation,
) -> Option<usize> {
    if container.partitions.len() == 1 {
        return Some(0);
    }
    let definition = &container.definition.partition_key;
    let key = match (key, operation) {
        (Some(key), _) => key.clone().complete(definition).ok()?,
        (
            None,
            Operation::Create { body } | Operation::Upsert { body, .. } | Operation::Replace { body, .. },
        ) => PartitionKey::extract(definition, body.root()).ok()?,
        (None, Operation::Patch { .. } | Operation::Delete { .. } | Operation::Read { .. }) => return None,
    };
    Some(range_of(container, &key))
}
