//! `POST /docs` of a batch: atomic (one commit or nothing) or bulk (independent operations).

use std::sync::Arc;

use document::{KeyPart, PartitionKey};
use engine::{Container, Operation, Outcome};
use hyper::StatusCode;

use crate::handlers::batch::{self, Entry, Form, Preference, Results};
use crate::handlers::call::{Call, check_whole, range_of};
use crate::handlers::items;
use crate::handlers::subresources::refuse_triggers;
use crate::message::options::Flag;
use crate::message::reply::{Reply, ReplyOrigin};
use crate::protocol::error::Error;
use crate::protocol::limits::{BULK_ANSWER_BYTES, BULK_IN_FLIGHT};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    refuse_triggers(call)?;
    let entries = batch::parse(&call.body, container.definition.surface())?;
    // Only reads depend on what the client has seen.
    if entries.iter().flatten().any(|entry| matches!(entry.operation, Operation::Read { .. })) {
        call.check_session(&container)?;
    }
    if call.head.flag(Flag::BatchAtomic)? {
        return atomic(call, &container, entries).await;
    }
    let range = named_range(call, &container)?;
    bulk(call, &container, range, entries).await
}

async fn atomic(
    call: &Call,
    container: &Arc<Container>,
    entries: Vec<Result<Entry, Error>>,
) -> Result<Reply, Error> {
    let key = call.head.required_partition_key()?;
    check_whole(container, &key)?;
    let countdown = items::countdown(call, container).await?;
    let range = range_of(container, &key);
    let (form, count) = (Form::of(&call.body), entries.len());
    let failed = |index, error| Ok(failed(form, container, range, count, index, error));
    let (mut operations, mut preferences) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for (index, entry) in entries.into_iter().enumerate() {
        match entry {
            Ok(entry) => {
                operations.push(entry.operation);
                preferences.push(entry.preference);
            }
            Err(error) => return failed(index, error),
        }
    }
    match call.engine().batch_with(container, &key, operations, countdown).await {
        Ok(outcomes) => {
            let mut results = Results::new(form, call.head.wants_minimal());
            for (outcome, preference) in outcomes.into_iter().zip(preferences) {
                results.push(&Ok(outcome), preference);
            }
            Ok(reply(container, range, results))
        }
        Err(engine::BatchError { index: Some(index), error }) => failed(index, error.into()),
        Err(engine::BatchError { index: None, error }) => Err(error.into()),
    }
}

/// Returns the answer to a failed batch: the failed operation has its own status, all others 424.
fn failed(
    form: Form,
    container: &Container,
    range: usize,
    count: usize,
    culprit: usize,
    error: Error,
) -> Reply {
    let mut results = Results::new(form, true);
    let culprit_result = Err(error);
    for index in 0..count {
        if index == culprit {
            results.push(&culprit_result, Preference::default());
        } else {
            results.push_dependent();
        }
    }
    reply(container, range, results)
}

/// Runs independent operations. Those that may continue after a failure are submitted together and share a commit,
/// except that the number of concurrent operations with large results is limited.
///
/// Where the request names a range, operations on items of other ranges fail with 410/1002 and do nothing: clients group
/// operations by range, and read their outdated list of ranges again on that answer.
async fn bulk(
    call: &Call,
    container: &Arc<Container>,
    named: Option<usize>,
    entries: Vec<Result<Entry, Error>>,
) -> Result<Reply, Error> {
    let shared_key = call.head.partition_key()?;
    let (go_on, countdown) = (call.head.flag(Flag::BatchContinue)?, items::countdown(call, container).await?);
    let minimal = call.head.wants_minimal();
    let mut results = Results::bounded(Form::of(&call.body), minimal, BULK_ANSWER_BYTES);
    let submit = |entry: Entry| {
        let key = entry.key.or_else(|| shared_key.clone());
        call.engine().write_with(container, key, entry.operation, countdown)
    };
    let (mut tickets, mut large, mut first) = (Vec::new(), 0, None);
    for entry in entries {
        if !go_on && !results.all_succeeded() {
            results.push_dependent();
            continue;
        }
        if let (None, Ok(entry)) = (first, &entry) {
            let key = entry.key.as_ref().or(shared_key.as_ref());
            first = Some(items::range_of_write(container, key, &entry.operation));
        }
        let entry = entry.and_then(|entry| {
            check_range(container, named, shared_key.as_ref(), &entry)?;
            match entry.operation {
                Operation::Read { .. } if results.is_full() => Err(Error::AnswerFull),
                _ => Ok(entry),
            }
        });
        let is_large =
            |entry: &Entry| matches!(entry.operation, Operation::Read { .. } | Operation::Patch { .. });
        large += usize::from(entry.as_ref().is_ok_and(is_large));
        let preference = entry.as_ref().map_or_else(|_| Preference::default(), |entry| entry.preference);
        tickets.push((entry.map(submit), preference));
        if !go_on || large == BULK_IN_FLIGHT {
            settle(&mut tickets, &mut results).await;
            large = 0;
        }
    }
    settle(&mut tickets, &mut results).await;
    Ok(reply(container, named.or(first).unwrap_or_default(), results))
}

/// Returns the range that the request names by its id.
fn named_range(call: &Call, container: &Container) -> Result<Option<usize>, Error> {
    let Some(id) = call.head.range_id() else { return Ok(None) };
    let partition = container.partitions.iter().find(|partition| partition.index.to_string() == id);
    partition.map(|partition| Some(partition.index)).ok_or_else(|| Error::RangeGone(id.to_owned()))
}

/// Refuses an operation whose item lies in another range than the one that the request names.
fn check_range(
    container: &Container,
    named: Option<usize>,
    shared_key: Option<&PartitionKey>,
    entry: &Entry,
) -> Result<(), Error> {
    let Some(named) = named else { return Ok(()) };
    let key = entry.key.as_ref().or(shared_key);
    match items::range_of_item(container, key, &entry.operation) {
        Some(own) if own != named && !key.is_some_and(is_hashed_otherwise) => {
            Err(Error::OtherRange { own, named })
        }
        _ => Ok(()),
    }
}

/// Returns whether clients may compute another range for a key than this server. For them an absent key comes first in
/// the order of keys, although its items are stored under the undefined key; and they hash the bits of a negative zero,
/// which arrives here as zero. An operation with such a key would be refused again and again.
fn is_hashed_otherwise(key: &PartitionKey) -> bool {
    key.is_empty() || key.parts().contains(&KeyPart::Number(0.0))
}

/// Waits for all of these operations and records their results.
async fn settle<T>(tickets: &mut Vec<(Result<T, Error>, Preference)>, results: &mut Results)
where
    T: Future<Output = engine::Result<Outcome>>,
{
    for (ticket, preference) in tickets.drain(..) {
        let result = match ticket {
            Ok(ticket) => ticket.await.map_err(Error::from),
            Err(error) => Err(error),
        };
        results.push(&result, preference);
    }
}

/// Returns the answer, naming a range that an operation was in, or that of the request.
fn reply(container: &Container, range: usize, results: Results) -> Reply {
    let (body, all_succeeded, charge, reached) = results.finish();
    let status = if all_succeeded { StatusCode::OK } else { StatusCode::MULTI_STATUS };
    let range = reached.unwrap_or_else(|| container.partitions[range].range_lsn());
    Reply::json(status, body).charged(charge).placed(&ReplyOrigin { container, range, item: None })
}
