//! Opening a stream: what is watched, and where it begins.

use bson::{RawDocument, ValueRef};
use engine::{Engine, Position, Watch};
use mql::Code;
use mql::pipeline::{ChangeStream, Pipeline};

use super::stream::Stream;
use super::token::Token;
use crate::access::catalog;
use crate::access::executor::Executor;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::operation_time::{cluster_time, time_of};

/// Whether a pipeline is a change stream.
pub(crate) fn is_change_stream(stages: &[RawDocument]) -> bool {
    stages
        .first()
        .and_then(|stage| stage.view().iter().next())
        .is_some_and(|(name, _)| name == "$changeStream")
}

/// Begins a stream over a collection, or over the database if there is none, for a command with these fields.
pub(crate) fn open(
    executor: &Executor,
    fields: Fields<'_>,
    database: &str,
    collection: Option<&str>,
    pipeline: &Pipeline,
) -> Result<Stream> {
    let Some((options, later_stages)) = pipeline.follow() else {
        return Err(Error::bad_value("a change stream begins with $changeStream"));
    };
    check(executor, fields)?;
    if options.show_expanded_events {
        return Err(Error::not_supported("the option 'showExpandedEvents' of $changeStream"));
    }
    let watch = watched(executor.engine(), database, collection, &options)?;
    let since = executor.engine().watch(&watch)?;
    let (token, may_have_ended) = start(executor.engine(), &options, since)?;
    Ok(Stream::new(watch, options, later_stages, token, may_have_ended))
}

fn check(executor: &Executor, fields: Fields<'_>) -> Result<()> {
    if executor.is_transaction() {
        let text = "Stage not supported inside of a multi-document transaction: $changeStream";
        return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
    }
    let concern = fields.document("readConcern")?;
    let level = concern.and_then(|concern| concern.get("level")).and_then(ValueRef::as_str);
    match level {
        None | Some("majority") => Ok(()),
        Some(level) => {
            let text = format!(
                "$changeStream cannot run with a readConcern other than 'majority'. Current readConcern: {level}"
            );
            Err(Error::new(Code::INVALID_OPTIONS, text))
        }
    }
}

fn watched(
    engine: &Engine,
    database: &str,
    collection: Option<&str>,
    options: &ChangeStream,
) -> Result<Watch> {
    if options.all_changes_for_cluster {
        if database == "admin" && collection.is_none() {
            return Ok(Watch::Deployment);
        }
        let text = "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with \
                    no collection name";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    if matches!(database, "admin" | "config" | "local") {
        let text = format!("$changeStream may not be opened on the internal {database} database");
        return Err(Error::new(Code::INVALID_NAMESPACE, text));
    }
    let Some(name) = collection else { return Ok(Watch::Database(database.to_owned())) };
    if name.starts_with("system.") {
        let text = format!("$changeStream may not be opened on the internal {database}.{name} collection");
        return Err(Error::new(Code::INVALID_NAMESPACE, text));
    }
    if let Some(found) = engine.collection(database, name) {
        catalog::refuse_view(&found)?;
    }
    Ok(Watch::Collection { database: database.to_owned(), name: name.to_owned() })
}

/// Returns where a stream begins, and whether the event there may have ended it.
fn start(engine: &Engine, options: &ChangeStream, since: Position) -> Result<(Token, bool)> {
    if let Some(token) = &options.resume_after {
        let token = Token::parse(token)?;
        if token.invalidates {
            let text = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate \
                        notification.";
            return Err(Error::new(Code::INVALID_RESUME_TOKEN, text));
        }
        return Ok((token, true));
    }
    if let Some(token) = &options.start_after {
        let token = Token::parse(token)?;
        return Ok((Token::at(token.position), !token.invalidates));
    }
    if let Some(at) = options.start_at {
        // The stream passes over earlier events of the same millisecond. Events before the watch are not known: if the time
        // lies there, the first read of events reports it.
        let start = Position::beginning_of(time_of(at));
        let is_known = at > cluster_time(since);
        return Ok((Token::at(if is_known { start.max(since) } else { start }), false));
    }
    Ok((Token::at(engine.barrier()?.position()), false))
}
