//! What the item handlers share: running a write, and turning outcomes and pages into answers.
//!
//! The hot path stays free of JSON trees: the request body becomes the stored form at once, and an item becomes
//! the response's bytes at once.

use std::sync::Arc;

use document::{Document, PartitionKey};
use engine::{Container, Effect, Operation, Outcome, QueryPage, QueryRequest, Scope};
use hyper::StatusCode;
use query::Query;

use crate::belongings::refuse_triggers;
use crate::call::{Call, range_of};
use crate::error::Error;
use crate::request::PageRequest;
use crate::response::{Place, Reply};
use crate::{feed, headers};

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
    let range = key.as_ref().map(|key| range_of(container, key));
    let outcome = call.engine().write(container, key, operation).await?;
    Ok(outcome_reply(call, container, range, &outcome))
}

/// The answer to one operation.
pub(crate) fn outcome_reply(
    call: &Call,
    container: &Container,
    range: Option<usize>,
    outcome: &Outcome,
) -> Reply {
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
    let range = range.unwrap_or_else(|| range_of_outcome(container, outcome));
    reply.charged(outcome.charge).placed(&Place { container, range, sequence: outcome.sequence })
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

/// What the engine is asked for a page.
pub(crate) fn query_request(query: Option<&Query>, scope: Scope, page: PageRequest) -> QueryRequest<'_> {
    let PageRequest { max_items, continuation } = page;
    QueryRequest { scope, continuation, ..QueryRequest::new(query, max_items) }
}

/// The answer to a query or listing.
pub(crate) fn page_reply(
    call: &Call,
    container: &Container,
    range: usize,
    page: &QueryPage,
) -> Result<Reply, Error> {
    let bytes: usize = page.rows.iter().map(|row| row.len() + 1).sum();
    let mut body = Vec::with_capacity(bytes + 100);
    feed::open(&mut body, &container.rid.to_string(), "Documents");
    for (index, row) in page.rows.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(row);
    }
    feed::close(&mut body, page.rows.len());
    let mut reply = Reply::json(StatusCode::OK, body)
        .charged(page.charge)
        .with(headers::ITEM_COUNT, page.rows.len())
        .placed(&Place { container, range, sequence: page.sequence });
    if let Some(token) = &page.continuation {
        reply = reply.with(headers::CONTINUATION, token);
    }
    if call.head.flag(&headers::WANT_QUERY_METRICS)? {
        reply = reply.with(headers::QUERY_METRICS, metrics(page));
    }
    index_metrics(call, reply)
}

/// The figures that clients parse; times are left at zero because an answer must not depend on the machine.
fn metrics(page: &QueryPage) -> String {
    let metrics = &page.metrics;
    let ratio = if metrics.loaded_items == 0 {
        1.0
    } else {
        metrics.output_items as f64 / metrics.loaded_items as f64
    };
    format!(
        "totalExecutionTimeInMs=0.00;queryCompileTimeInMs=0.00;queryLogicalPlanBuildTimeInMs=0.00;\
         queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=0.00;\
         indexLookupTimeInMs=0.00;documentLoadTimeInMs=0.00;systemFunctionExecuteTimeInMs=0.00;\
         userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={};retrievedDocumentSize={};\
         outputDocumentCount={};outputDocumentSize={};writeOutputTimeInMs=0.00;indexUtilizationRatio={ratio:.2}",
        metrics.loaded_items, metrics.loaded_bytes, metrics.output_items, metrics.output_bytes
    )
}

/// No path index exists yet, so the two forms of the index report are empty.
fn index_metrics(call: &Call, reply: Reply) -> Result<Reply, Error> {
    use base64::Engine as _;
    const V1: &str = "{\"UtilizedSingleIndexes\":[],\"PotentialSingleIndexes\":[],\
                      \"UtilizedCompositeIndexes\":[],\"PotentialCompositeIndexes\":[]}";
    const V2: &str = "%7B%22UtilizedIndexes%22%3A%7B%22SingleIndexes%22%3A%5B%5D%2C%22CompositeIndexes%22%3A%5B%5D\
                      %7D%2C%22PotentialIndexes%22%3A%7B%22SingleIndexes%22%3A%5B%5D%2C%22CompositeIndexes%22%3A\
                      %5B%5D%7D%7D";
    if call.head.flag(&headers::INDEX_METRICS_V2)? {
        return Ok(reply.with(headers::INDEX_UTILIZATION, V2));
    }
    if call.head.flag(&headers::INDEX_METRICS)? {
        let text = base64::engine::general_purpose::STANDARD.encode(V1);
        return Ok(reply.with(headers::INDEX_UTILIZATION, text));
    }
    Ok(reply)
}

fn range_of_outcome(container: &Container, outcome: &Outcome) -> usize {
    let definition = &container.definition.partition_key;
    match &outcome.item {
        Some(item) if container.partitions.len() > 1 => {
            PartitionKey::extract(definition, item.body.root()).map_or(0, |key| range_of(container, &key))
        }
        _ => 0,
    }
}
