//! The answer of a command that opens or continues a cursor.

use std::collections::VecDeque;
use std::sync::Arc;

use bson::{Document, RawDocument, Writer};
use tokio::time::Instant;

use crate::access::{Batch, PipelineCursor};
use crate::change_stream::{ChangeBatch, Stream};
use crate::protocol::batch_builder::BatchBuilder;
use crate::protocol::error::Result;
use crate::protocol::limits::PARSED_FACTOR;
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::session::Session;
use crate::session::cursors::{Cursor, Remaining};

/// How many documents the first batch has if the client does not say.
pub(crate) const FIRST_BATCH: usize = 101;

/// The bytes that an item of an array takes beside its document, and a reply beside its documents; mostly.
const ITEM_BYTES: usize = 8;
const AROUND_BYTES: usize = 320;

/// How a cursor is opened.
pub(crate) struct Opening<'a> {
    pub(crate) namespace: &'a str,
    /// How many documents the first batch has at most.
    pub(crate) batch_size: Option<usize>,
    /// No cursor stays open, even if there are more.
    pub(crate) single_batch: bool,
    /// The cursor stays open however long it is not used.
    pub(crate) keep: bool,
}

/// Answers with the first batch of a computed answer.
pub(crate) fn open(call: &Call, mut pipeline_cursor: PipelineCursor, opening: &Opening<'_>) -> Result<Reply> {
    let executor = call.executor.clone();
    let size = opening.batch_size.unwrap_or(FIRST_BATCH);
    let only_scans = pipeline_cursor.only_scans() && !executor.is_transaction();
    let mut first_batch = || pipeline_cursor.batch(&executor, &mut call.context(), Some(size));
    let batch = if only_scans { first_batch() } else { call.blocking(first_batch) }?;
    let finished = batch.finished || opening.single_batch;
    let id = if finished { 0 } else { keep(call, opening, Remaining::Pipeline(Box::new(pipeline_cursor)))? };
    call.service.statistics.documents_returned.add(batch.documents.len() as u64);
    Ok(reply(id, opening.namespace, "firstBatch", &batch.documents, &Document::new()))
}

/// Answers with the first batch of a change stream.
pub(crate) fn follow(call: &Call, mut stream: Stream, opening: &Opening<'_>) -> Result<Reply> {
    let size = opening.batch_size.unwrap_or(FIRST_BATCH);
    let batch = call.blocking(|| stream.batch(&call.executor, &call.context(), Some(size)))?;
    let id = if batch.finished { 0 } else { keep(call, opening, Remaining::Changes(Box::new(stream)))? };
    call.service.statistics.documents_returned.add(batch.documents.len() as u64);
    Ok(changes(id, opening.namespace, "firstBatch", &batch))
}

/// Answers with a batch of a change stream.
pub(crate) fn changes(id: i64, namespace: &str, batch_name: &str, batch: &ChangeBatch) -> Reply {
    let id = if batch.finished { 0 } else { id };
    cursor(id, namespace, batch_name, &batch.documents, Some(&batch.token)).finish().into()
}

/// Answers with all documents that the client asked for.
pub(crate) fn whole(call: &Call, namespace: &str, documents: &[RawDocument]) -> Reply {
    call.service.statistics.documents_returned.add(documents.len() as u64);
    reply(0, namespace, "firstBatch", documents, &Document::new())
}

/// Answers with the first batch of documents that are all known.
pub(crate) fn list(call: &Call, documents: Vec<RawDocument>, opening: &Opening<'_>) -> Result<Reply> {
    list_beside(call, documents, opening, &Document::new())
}

/// Returns the same with further fields beside the cursor.
pub(crate) fn list_beside(
    call: &Call,
    documents: Vec<RawDocument>,
    opening: &Opening<'_>,
    beside: &Document,
) -> Result<Reply> {
    let mut rest = VecDeque::from(documents);
    let batch = take(&mut rest, opening.batch_size);
    let id =
        if rest.is_empty() || opening.single_batch { 0 } else { keep(call, opening, Remaining::List(rest))? };
    Ok(reply(id, opening.namespace, "firstBatch", &batch, beside))
}

/// Takes as many of the known documents as fit into a reply.
pub(crate) fn take(rest: &mut VecDeque<RawDocument>, count: Option<usize>) -> Vec<RawDocument> {
    let mut batch_builder = BatchBuilder::new(count);
    while !batch_builder.is_complete() {
        let Some(document) = rest.pop_front() else { break };
        if let Err(document) = batch_builder.add(document) {
            rest.push_front(document);
            break;
        }
    }
    batch_builder.documents
}

/// Answers with a further batch.
pub(crate) fn more(id: i64, namespace: &str, batch: &Batch) -> Reply {
    reply(if batch.finished { 0 } else { id }, namespace, "nextBatch", &batch.documents, &Document::new())
}

fn keep(call: &Call, opening: &Opening<'_>, rest: Remaining) -> Result<i64> {
    let cursor = Cursor {
        namespace: opening.namespace.to_owned(),
        owner: call.owner(),
        _session: call.session.as_ref().map(Session::hold),
        rest,
        keep: opening.keep,
        transaction: call.transaction().map(|(_, number)| number),
        time_left: call.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
        needs: Arc::clone(&call.needs),
        command_bytes: call.bytes().saturating_mul(PARSED_FACTOR),
    };
    let (idle, user) = (call.service.cursor_idle(), cursor.owner.user);
    let id = call.service.cursors.keep(cursor, idle)?;
    // If the transaction has ended since the command began, it has closed its cursors without this one.
    if let Some((session, number)) = call.transaction()
        && !call.service.transactions.is_open(session, number)
    {
        call.service.cursors.kill(id, None);
    }
    call.service.make_room(&user);
    call.service.sweep_timer.set(Instant::now() + idle);
    call.service.statistics.cursors_opened.add(1);
    Ok(id)
}

fn reply(id: i64, namespace: &str, batch_name: &str, batch: &[RawDocument], beside: &Document) -> Reply {
    let mut writer = cursor(id, namespace, batch_name, batch, None);
    for (name, value) in beside.iter() {
        writer.field(name, value.view());
    }
    writer.finish().into()
}

/// Returns a reply with its cursor written.
fn cursor(
    id: i64,
    namespace: &str,
    batch_name: &str,
    batch: &[RawDocument],
    token: Option<&Document>,
) -> Writer {
    let documents: usize = batch.iter().map(|document| document.as_bytes().len() + ITEM_BYTES).sum();
    let mut writer = Writer::with_capacity(documents + AROUND_BYTES);
    writer.open_document("cursor");
    writer.open_array(batch_name);
    for document in batch {
        writer.raw_item(document);
    }
    writer.close();
    if let Some(token) = token {
        writer.field("postBatchResumeToken", bson::ValueRef::Document(token.view()));
    }
    writer.field("id", id);
    writer.field("ns", namespace);
    writer.close();
    writer
}
