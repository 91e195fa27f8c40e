//! Status of archives (T32), and the deletion records themselves: `/_bolide/ttl/{db}/{coll}/log` for one container,
//! `/_bolide/log` for all, including deleted ones.

use document::Value;
use engine::{ArchiveStatus, DeletionLog, DeletionPage, Engine, Owner};

use super::{number, reply, tally, ttl};
use crate::handlers::call::Call;
use crate::message::fields::Field;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, text};

/// Returns the archive of a container; null if it has none.
pub(super) fn archive_value(status: Option<ArchiveStatus>) -> Value {
    let Some(status) = status else { return Value::Null };
    let failure = status.failure.map_or(Value::Null, |failure| {
        object([
            member("error", text(failure.error)),
            member("since", number(failure.since.seconds())),
            member("retryAt", number(failure.retry_at.seconds())),
            member("tries", number(failure.tries.into())),
        ])
    });
    object([
        member("directory", text(status.directory.as_str())),
        member("archived", tally(status.archived)),
        member("aside", tally(status.aside)),
        member("failure", failure),
    ])
}

/// Returns the deletion records of a container, one for each physical partition.
pub(super) fn records_value(engine: &Engine, owner: &Owner) -> Result<Value, Error> {
    Ok(Value::Array(engine.deletion_logs_of(owner)?.iter().map(log_value).collect()))
}

fn log_value(log: &DeletionLog) -> Value {
    object([
        member("log", number(log.log.into())),
        member("database", text(log.database.as_str())),
        member("container", text(log.container.as_str())),
        member("open", Value::Bool(log.is_open)),
        member("count", number(log.count)),
        member("head", text(log.head.as_str())),
    ])
}

/// Lists all deletion records.
pub(super) async fn list(call: &Call) -> Result<Reply, Error> {
    let logs = call.blocking(|engine| Ok(engine.deletion_logs()?)).await?;
    Ok(reply(&object([member("logs", Value::Array(logs.iter().map(log_value).collect()))])))
}

/// Returns lines of the record with this number.
pub(super) async fn lines(call: &Call) -> Result<Reply, Error> {
    let log = call.head.path.at(2).parse();
    let log: u32 =
        log.map_err(|_| Error::BadRequest("A deletion record is named by its number.".to_owned()))?;
    page(call, log).await
}

/// Returns lines of the record of a container; the parameter `partition` selects one of its physical partitions, by
/// default the first.
pub(super) async fn lines_of_container(call: &Call) -> Result<Reply, Error> {
    let owner = ttl::owner(call)?;
    let partition = parameter(call, "partition")?;
    let at = usize::try_from(partition).ok().filter(|at| *at < owner.partitions().len());
    let at = at.ok_or_else(|| Error::BadRequest(format!("There is no partition {partition}.")))?;
    page(call, owner.partitions()[at].id.0).await
}

/// Returns a page; the parameter `after` continues after an earlier one.
async fn page(call: &Call, log: u32) -> Result<Reply, Error> {
    let after = parameter(call, "after")?;
    let DeletionPage { log, lines, last } =
        call.blocking(move |engine| Ok(engine.deletion_page(log, after)?)).await?;
    Ok(Reply::lines(lines)
        .with(Field::Log, log.log)
        .with(Field::LogLast, last)
        .with(Field::LogCount, log.count)
        .with(Field::LogHead, log.head))
}

fn parameter(call: &Call, name: &str) -> Result<u64, Error> {
    let Some(text) = call.head.parameter(name) else { return Ok(0) };
    text.parse().map_err(|_| Error::BadRequest(format!("'{name}' must be a number.")))
}
