//! `/_bolide/import/{db}/{coll}`: items of a container, one JSON object a line, written as any client writes them: the same
//! checks, rules, unique keys and holds, and the same charge. System properties (`_ts`, `_etag` …) are dropped.
//!
//! A refused line does not stop the others; the answer names each with its reason. Where the enforced throughput is
//! used up, the answer reports how many lines were processed, and when to retry the rest.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use document::{Document, Value};
use engine::{Container, Effect, Operation, Outcome, Owner, Precondition};

use super::{number, reply, ttl};
use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, text};
use crate::protocol::limits::{IMPORT_IN_FLIGHT, IMPORT_LINES};

/// What to do with an item whose id exists.
#[derive(Clone, Copy)]
enum Mode {
    Insert,
    Upsert,
}

/// The result of a page.
#[derive(Default)]
struct Report {
    created: u64,
    replaced: u64,
    /// Refused lines, by number, with the error that a client would have received.
    failed: Vec<(usize, Error)>,
    /// Lines processed, including empty ones.
    lines: usize,
    retry_after_ms: Option<u64>,
}

/// Imports a page.
pub(super) async fn page(call: &Call) -> Result<Reply, Error> {
    let Owner::Container(container) = ttl::owner(call)? else {
        return Err(Error::BadRequest(
            "Documents of a collection are written by commands of the MongoDB API: /_bolide/command."
                .to_owned(),
        ));
    };
    let mode = match call.head.parameter("mode") {
        None | Some("upsert") => Mode::Upsert,
        Some("insert") => Mode::Insert,
        Some(_) => return Err(Error::BadRequest("'mode' must be insert or upsert.".to_owned())),
    };
    let lines: Vec<&[u8]> = call.body.split(|byte| *byte == b'\n').take(IMPORT_LINES + 1).collect();
    if lines.len() > IMPORT_LINES {
        return Err(Error::BadRequest(format!("A page has at most {IMPORT_LINES} lines.")));
    }
    let mut report = Report::default();
    for chunk in lines.chunks(IMPORT_IN_FLIGHT) {
        write(call, &container, mode, chunk, &mut report).await?;
        if report.retry_after_ms.is_some() {
            break;
        }
    }
    Ok(reply(&show(report)))
}

/// Submits some lines and waits for all of them: writes that wait together share their commits. Stops at the first
/// throttled one.
async fn write(
    call: &Call,
    container: &Arc<Container>,
    mode: Mode,
    lines: &[&[u8]],
    report: &mut Report,
) -> Result<(), Error> {
    let mut waiting = Vec::with_capacity(lines.len());
    for line in lines {
        let trial = match read(line) {
            Ok(None) => LineWrite::Nothing,
            Err(error) => LineWrite::Ended(Err(error)),
            Ok(Some(body)) => LineWrite::begin(call.engine().write(container, None, operation(mode, body))),
        };
        if let LineWrite::Ended(Err(error)) = &trial
            && let Some(wait) = error.retry_after_ms()
        {
            report.retry_after_ms = Some(wait);
            break;
        }
        waiting.push(trial);
    }
    for trial in waiting {
        report.lines += 1;
        let outcome = match trial {
            LineWrite::Nothing => continue,
            LineWrite::Ended(outcome) => outcome,
            LineWrite::Runs(ticket) => ticket.await.map_err(Error::from),
        };
        match outcome {
            Ok(outcome) if outcome.effect == Effect::Created => report.created += 1,
            Ok(_) => report.replaced += 1,
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => report.failed.push((report.lines, error)),
        }
    }
    Ok(())
}

/// The write of one line.
enum LineWrite {
    /// The line is empty.
    Nothing,
    Ended(Result<Outcome, Error>),
    Runs(Pin<Box<Ticket>>),
}

type Ticket = dyn Future<Output = engine::Result<Outcome>> + Send;

impl LineWrite {
    /// Polls the write once: refusals are immediate.
    fn begin(ticket: impl Future<Output = engine::Result<Outcome>> + Send + 'static) -> LineWrite {
        let mut ticket: Pin<Box<Ticket>> = Box::pin(ticket);
        match ticket.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => LineWrite::Ended(outcome.map_err(Error::from)),
            Poll::Pending => LineWrite::Runs(ticket),
        }
    }
}

/// Returns whether later lines would fail, too.
fn is_fatal(error: &Error) -> bool {
    matches!(error, Error::Engine(engine::Error::OwnerNotFound { .. })) || error.wire().status >= 500
}

/// Parses the item of a line; `None` if the line is empty.
fn read(line: &[u8]) -> Result<Option<Document>, Error> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let body = Document::from_json(line)?;
    if body.root().as_object().is_none() {
        let kind = body.root().type_name();
        return Err(Error::BadRequest(format!("An item must be a JSON object, this is {kind}.")));
    }
    Ok(Some(body))
}

fn operation(mode: Mode, body: Document) -> Operation {
    match mode {
        Mode::Insert => Operation::Create { body },
        Mode::Upsert => Operation::Upsert { body, precondition: Precondition::None },
    }
}

fn show(report: Report) -> Value {
    let failed = report.failed.into_iter().map(|(at, error)| {
        let (column, words) = match &error {
            Error::Document(document::Error::Json { column, message, .. }) => {
                (number(*column as u64), format!("this is not JSON: {message}"))
            }
            other => (Value::Null, other.to_string()),
        };
        object([
            member("line", number(at as u64)),
            member("column", column),
            member("status", number(error.wire().status.into())),
            member("error", text(words)),
        ])
    });
    object([
        member("lines", number(report.lines as u64)),
        member("created", number(report.created)),
        member("replaced", number(report.replaced)),
        member("failed", Value::Array(failed.collect())),
        member("retryAfterMs", report.retry_after_ms.map_or(Value::Null, number)),
    ])
}
