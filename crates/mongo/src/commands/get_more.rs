//! `getMore`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mql::Code;
use tokio::time::{Instant, sleep_until};
use transport::Work;

use crate::access::permit::unless_stopped;
use crate::access::{Batch, PipelineCursor};
use crate::change_stream::{ChangeBatch, Stream};
use crate::protocol::cancellation::Timer;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::session::cursors::{Cursor, Remaining};
use crate::statements::cursor_reply::{self, changes, more};

/// How long a command waits for changes: by default, and at most.
const WAIT_MS: u64 = 1000;
const WAIT_MS_MAX: u64 = 60 * 60 * 1000;
/// How often a waiting command looks for new commits.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["getMore", "collection", "batchSize", "maxTimeMS", "term", "lastKnownCommittedOpTime"])?;
    let id = fields.required("getMore", fields.integer("getMore")?)?;
    let collection = fields.required("collection", fields.text("collection")?)?;
    let namespace = format!("{}.{collection}", call.database);
    let size = fields.count("batchSize")?.filter(|size| *size > 0);
    let size = size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));

    let mut cursor = call.service.cursors.take(id, call.service.cursor_idle())?;
    if let Err(error) = check(call, &cursor, id, &namespace) {
        call.service.cursors.put_back(id, cursor);
        return Err(error);
    }
    let Cursor { rest, time_left, .. } = &mut *cursor;
    let replied = |batch: Batch| (batch.finished, batch.documents.len(), more(id, &namespace, &batch));
    let outcome = match rest {
        Remaining::Changes(stream) => news(call, id, stream, size).await.map(|batch| {
            (batch.finished, batch.documents.len(), changes(id, &namespace, "nextBatch", &batch))
        }),
        Remaining::List(list) => {
            let documents = cursor_reply::take(list, size);
            Ok(replied(Batch { documents, finished: list.is_empty() }))
        }
        Remaining::Pipeline(pipeline_cursor) => {
            // A cursor that has begun is never refused: no driver asks for a batch again.
            let tenant = call.connection.tenant();
            let permit = call.service.settings.admission.enter_unbounded(tenant, Work::Query);
            match unless_stopped(permit, &call.cancellation).await {
                Ok(_permit) => {
                    call.blocking(|| next_in_time(call, pipeline_cursor, time_left, size)).map(replied)
                }
                Err(stopped) => Err(stopped),
            }
        }
    };
    let (finished, count, reply) = outcome.inspect_err(|_| call.service.cursors.finish(id))?;
    call.service.statistics.documents_returned.add(count as u64);
    if finished {
        call.service.cursors.finish(id);
    } else {
        let user = cursor.owner.user;
        call.service.cursors.put_back(id, cursor);
        call.service.make_room(&user);
    }
    Ok(reply)
}

/// Returns the next changes; if there are none, waits for some as long as the client says.
async fn news(call: &Call, id: i64, stream: &mut Stream, size: Option<usize>) -> Result<ChangeBatch> {
    let wait = call.fields().integer("maxTimeMS")?.and_then(|millis| u64::try_from(millis).ok());
    let deadline = Instant::now() + Duration::from_millis(wait.unwrap_or(WAIT_MS).min(WAIT_MS_MAX));
    loop {
        let batch = call.blocking(|| stream.batch(&call.executor, &call.context(), size))?;
        if batch.finished || !batch.documents.is_empty() {
            return Ok(batch);
        }
        // A pause comes before every look: commits to other collections count as news too, and must not keep the loop
        // running.
        loop {
            if call.cancellation.flag.load(Ordering::Acquire) {
                return Err(Error::new(Code::INTERRUPTED, "operation was interrupted"));
            }
            let is_over = Instant::now() >= deadline || call.service.is_stopping();
            if is_over || call.service.cursors.is_killed(id) {
                return Ok(batch);
            }
            let rests = Instant::now();
            sleep_until((rests + LOOK_PAUSE).min(deadline)).await;
            call.executor.meter().note_wait(rests.elapsed());
            if stream.has_news(&call.engine)? {
                break;
            }
        }
    }
}

/// Returns the next documents, within what is left of the time limit of the command that opened the cursor.
fn next_in_time(
    call: &Call,
    pipeline_cursor: &mut PipelineCursor,
    time_left: &mut Option<Duration>,
    size: Option<usize>,
) -> Result<Batch> {
    let started = Instant::now();
    let limit = time_left.map(|left| call.limited(left)).transpose()?.flatten();
    let _timer = limit.map(|left| Timer::start(left, call.cancellation.clone()));
    let batch = pipeline_cursor.batch(&call.executor, &mut call.context(), size);
    *time_left = time_left.map(|left| left.saturating_sub(started.elapsed()));
    batch
}

/// Refuses a cursor of another owner, or another collection.
fn check(call: &Call, cursor: &Cursor, id: i64, namespace: &str) -> Result<()> {
    if cursor.namespace != namespace {
        let text = format!(
            "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
            cursor.namespace
        );
        return Err(Error::new(Code::UNAUTHORIZED, text));
    }
    let transaction = call.transaction().map(|(_, number)| number);
    if cursor.transaction != transaction {
        let (code, text) = match transaction {
            None => (
                50740,
                format!(
                    "Cannot run getMore on cursor {id}, which was created in a transaction, outside of it"
                ),
            ),
            Some(_) => (
                50741,
                format!(
                    "Cannot run getMore on cursor {id}, which was not created in this transaction, in it"
                ),
            ),
        };
        return Err(Error::location(code, text));
    }
    let awaits = matches!(cursor.rest, Remaining::Changes(_));
    if !awaits && call.fields().integer("maxTimeMS")?.is_some_and(|limit| limit != 0) {
        let text = "cannot set maxTimeMS on getMore command for a non-awaitData cursor";
        return Err(Error::bad_value(text));
    }
    if cursor.owner != call.owner() {
        let text = format!("Cursor {id} was created in another session or by another user");
        return Err(Error::new(Code::UNAUTHORIZED, text));
    }
    Ok(())
}
