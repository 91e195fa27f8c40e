//! `getMore`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mql::Code;
use tokio::time::{Instant, sleep_until};
use transport::Work;

use crate::access::{Answers, Batch};
use crate::call::Call;
use crate::change_stream::{ChangeBatch, Stream};
use crate::cursor_reply::{self, changes, more};
use crate::cursors::{Cursor, Rest};
use crate::dispatch::limited;
use crate::error::{Error, Result};
use crate::operations::Timer;
use crate::reply::Reply;

/// How long it is waited for changes if the client does not say, and at most.
const WAIT_MS: u64 = 1000;
const WAIT_MS_MAX: u64 = 60 * 60 * 1000;
/// How long until it is looked whether there was a commit.
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
    let told = |batch: Batch| (batch.finished, batch.documents.len(), more(id, &namespace, &batch));
    let outcome = match rest {
        Rest::Changes(stream) => news(call, id, stream, size).await.map(|batch| {
            (batch.finished, batch.documents.len(), changes(id, &namespace, "nextBatch", &batch))
        }),
        Rest::List(list) => {
            let documents = cursor_reply::take(list, size);
            Ok(told(Batch { documents, finished: list.is_empty() }))
        }
        Rest::Answers(answers) => {
            // What has begun is not sent away: no driver asks for a batch again.
            let tenant = call.connection.tenant();
            let _permit = call.service.settings.admission.enter_in_the_end(tenant, Work::Query).await;
            call.blocking(|| next_in_time(call, answers, time_left, size)).map(told)
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

/// The next changes; if there are none it waits for some, for as long as the client says.
async fn news(call: &Call, id: i64, stream: &mut Stream, size: Option<usize>) -> Result<ChangeBatch> {
    let wait = call.fields().integer("maxTimeMS")?.and_then(|millis| u64::try_from(millis).ok());
    let deadline = Instant::now() + Duration::from_millis(wait.unwrap_or(WAIT_MS).min(WAIT_MS_MAX));
    loop {
        let batch = call.blocking(|| stream.batch(&call.room, &call.context(), size))?;
        if batch.finished || !batch.documents.is_empty() {
            return Ok(batch);
        }
        // A pause comes before every look: news of others' collections are news as well, and must not keep it running.
        loop {
            if call.brake.pulled.load(Ordering::Acquire) {
                return Err(Error::new(Code::INTERRUPTED, "operation was interrupted"));
            }
            let is_over = Instant::now() >= deadline || call.service.is_stopping();
            if is_over || call.service.cursors.is_doomed(id) {
                return Ok(batch);
            }
            let rests = Instant::now();
            sleep_until((rests + LOOK_PAUSE).min(deadline)).await;
            call.room.meter().waits(rests.elapsed());
            if stream.has_news(&call.engine)? {
                break;
            }
        }
    }
}

/// The next documents, within what is left of the time limit of the command that opened the cursor.
fn next_in_time(
    call: &Call,
    answers: &mut Answers,
    time_left: &mut Option<Duration>,
    size: Option<usize>,
) -> Result<Batch> {
    let started = Instant::now();
    let limit = time_left.map(|left| limited(call, left)).transpose()?.flatten();
    let _timer = limit.map(|left| Timer::start(left, call.brake.clone()));
    let batch = answers.batch(&call.room, &mut call.context(), size);
    *time_left = time_left.map(|left| left.saturating_sub(started.elapsed()));
    batch
}

/// Only the owner goes on with a cursor, and by the name of its collection.
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
    let awaits = matches!(cursor.rest, Rest::Changes(_));
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
