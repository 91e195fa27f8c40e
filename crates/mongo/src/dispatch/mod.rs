//! What all commands share: finding them, authorization, sessions, time limits, figures, and what every answer carries.

pub(crate) mod admission;
pub(crate) mod api;
pub(crate) mod audit;
mod authorization;
pub(crate) mod connection;
pub(crate) mod internal;
mod labels;
pub(crate) mod listener;
pub(crate) mod record;
mod times;

use std::sync::Arc;
use std::time::Duration;

use bson::{Document, RawDocument, ValueRef};
use engine::Charge;
use mql::Code;
use telemetry::OperationId;
use tokio::time::{Instant, sleep};
use transport::CatchPanic;

use crate::access::executor::Executor;
use crate::commands;
use crate::diagnostics::fail_points::{Candidate, Failure, RetryableFailure};
use crate::dispatch::labels::{concern_labels, explain_stop, labelled, resumable};
use crate::dispatch::record::CompletedCommand;
use crate::dispatch::times::{hear_time, times};
use crate::protocol::cancellation::{Cancellation, Timer};
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::limits::MESSAGE_BYTES;
use crate::protocol::offload::offload_future;
use crate::protocol::operation_time;
use crate::protocol::reply::{Reply, list};
use crate::protocol::write_concern;
use crate::rights::Rights;
use crate::service::Service;
use crate::service::call::{Call, check_database};
use crate::service::command::{
    Access, Availability, Effect, LastRequestStatistics, OpQuery, RunsOn, SnapshotRead, TimeLimit,
};
use crate::service::connection::{Connection, LastRequest};
use crate::service::operations::Operation;
use crate::session::{InTransaction, Session, SessionId, TxnNumber};
use crate::wire::{Form, Request};

/// The largest answer: the rest of its message takes less than the difference.
const REPLY_BYTES_MAX: usize = MESSAGE_BYTES - 1024;

/// The outcome of a request.
pub(crate) struct Answer {
    /// None if the client gets no answer, not even an error.
    pub(crate) reply: Option<RawDocument>,
    /// Whether the connection ends here.
    pub(crate) close: bool,
}

/// Runs one request to its answer.
pub(crate) async fn answer(
    service: Arc<Service>,
    connection: Arc<Connection>,
    request: Request,
    cancellation: Cancellation,
) -> Answer {
    let started = Instant::now();
    let mut operation = OperationId::UNKNOWN;
    let mut call = match prepare(&service, &connection, request, cancellation, &mut operation) {
        Ok(call) => call,
        Err(error) => {
            audit::refused(&service, &connection, operation, &error);
            return refusal(&service, operation, &error, started);
        }
    };
    match admit(&mut call).and_then(|()| enter_transaction(&mut call)) {
        Ok(()) => carry_out(call, operation, started).await,
        Err(error) => {
            audit::ran(&call, Some(error.code), None);
            refusal(&service, operation, &error, started)
        }
    }
}

/// Returns the answer to a command that may not run.
fn refusal(service: &Service, operation: OperationId, error: &Error, started: Instant) -> Answer {
    service.metrics.refused(operation, error, started.elapsed());
    Answer { reply: Some(error.finish(&times(service, None))), close: false }
}

/// Runs a command that may run.
async fn carry_out(mut call: Call, operation: OperationId, started: Instant) -> Answer {
    let caught = CatchPanic::new(Box::pin(run(&mut call))).await;
    let outcome = caught.unwrap_or_else(|_| {
        call.abort_transaction();
        Outcome::Fails(Error::panicked())
    });
    let (ended, mut failed) = (Instant::now(), None);
    let times = times(&call.service, Some(&call));
    let reply = match outcome {
        Outcome::Hangs => None,
        Outcome::Succeeds { reply, beside } => {
            Some(sendable(reply.finish(1.0, [&beside, &times])).unwrap_or_else(|error| {
                failed = Some(error.code);
                error.finish(&times)
            }))
        }
        Outcome::Fails(error) => {
            let error = labelled(explain_stop(error, &call.cancellation), &call);
            failed = Some(error.code);
            Some(error.finish(&times))
        }
    };
    let charge = call.executor.meter().settle(reply.as_ref().map_or(0, |reply| reply.as_bytes().len()));
    let duration = ended - started;
    remember(&call, duration, charge);
    CompletedCommand { call: &call, operation, ended, duration, charge, failed, reply: reply.as_ref() }
        .record();
    leave_transaction(call);
    Answer { close: reply.is_none(), reply }
}

/// Returns the answer, unless it is larger than any message: a driver would break the connection.
fn sendable(reply: RawDocument) -> Result<RawDocument> {
    let bytes = reply.as_bytes().len();
    if bytes <= REPLY_BYTES_MAX {
        return Ok(reply);
    }
    let text = format!("the answer has {bytes} bytes, and a message at most {MESSAGE_BYTES}");
    Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, text))
}

/// The outcome of a command.
enum Outcome {
    /// It succeeded; some fields stand beside its answer.
    Succeeds { reply: Reply, beside: Document },
    /// It failed.
    Fails(Error),
    /// A fail point breaks the connection.
    Hangs,
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Outcome {
        Outcome::Fails(error)
    }
}

/// Records the figures of a command that has run.
fn remember(call: &Call, duration: Duration, charge: Charge) {
    if call.command.traits.last_request == LastRequestStatistics::Recorded {
        let last = LastRequest { command: call.command.name, charge, duration };
        call.connection.client.lock().last_request = Some(last);
    }
    if let Some(namespace) = namespace(call) {
        call.service.usage.record(&namespace, call.command.traits.kind, duration);
    }
}

/// Returns the collection that a command is about, if it is about one.
fn namespace(call: &Call) -> Option<String> {
    let collection = call.named_collection()?;
    Some(format!("{}.{}", call.database, collection.as_str()?))
}

/// Checks that a request is a command and complete.
fn prepare(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    request: Request,
    cancellation: Cancellation,
    operation: &mut OperationId,
) -> Result<Call> {
    let name = request.body.view().iter().next().map_or("", |(name, _)| name);
    let command = commands::find(name)
        .ok_or_else(|| Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'")))?;
    *operation = commands::operation(command);
    if request.style.form == Form::Query && command.traits.op_query == OpQuery::Refused {
        let text = format!("Unsupported OP_QUERY command: {name}. The client driver may require an upgrade.");
        return Err(Error::new(Code::UNSUPPORTED_OP_QUERY_COMMAND, text));
    }
    let fields = Fields::new(command.name, request.body.view());
    let database = database(fields)?;
    api::check(fields, command)?;
    let rights = match command.access {
        Access::Public => Rights::Nothing,
        _ => service.rights(connection)?,
    };
    let now = service.engine.now()?;
    let txn_number = TxnNumber::parse(fields, command.transaction, &service.settings.profile)?;
    hear_time(service, fields, now)?;
    let began = operation_time::behind(now, service.engine.last_sequence());
    service.clock.observe(began, now);
    let timestamp = match command.effect {
        Effect::Writes => service.clock.tick(now),
        Effect::Reads => service.clock.current(now),
    };
    Ok(Call {
        engine: Arc::clone(&service.engine),
        service: Arc::clone(service),
        connection: Arc::clone(connection),
        command,
        database,
        body: request.body,
        sequences: request.sequences,
        session: None,
        txn_number,
        now,
        timestamp,
        began,
        executor: Executor::new(&service.shared, None).with_cancellation(cancellation.clone()),
        rights,
        needs: Arc::default(),
        cancellation,
        deadline: None,
    })
}

/// Refuses a command on a database, or to a client, that may not run it.
fn admit(call: &mut Call) -> Result<()> {
    if call.command.runs_on == RunsOn::Admin && call.database != "admin" {
        let text = format!("{} may only be run against the admin database.", call.command.name);
        return Err(Error::new(Code::UNAUTHORIZED, text));
    }
    call.needs = authorization::check(call)?;
    call.session = session(call)?;
    Ok(())
}

/// Returns the session that a command names, which is created for a client that may run the command.
fn session(call: &Call) -> Result<Option<Arc<Session>>> {
    let may_have_session = !call.service.requires_authentication() || call.connection.is_authenticated();
    let Some(lsid) = call.fields().document("lsid")?.filter(|_| may_have_session) else { return Ok(None) };
    let id = SessionId::parse(lsid, call.connection.user_digest())?;
    Ok(Some(call.service.session(id)?))
}

/// Lets a command that is part of a transaction read and write there.
fn enter_transaction(call: &mut Call) -> Result<()> {
    if let (Some(TxnNumber::Transaction { number, starts }), Some(session)) = (call.txn_number, &call.session)
        && matches!(call.command.transaction, InTransaction::Allowed | InTransaction::AllowedLater)
    {
        let service = &call.service;
        let (hold, lifetime) = (starts.then(|| session.hold()), service.transaction_lifetime());
        call.executor =
            service.transactions.executor(&service.shared, &session.id, number, hold, lifetime)?;
        if starts {
            service.sweep_timer.set(Instant::now() + lifetime);
        }
    }
    Ok(())
}

/// Measures the transaction that a command has worked in, which is idle from now on.
fn leave_transaction(call: Call) {
    if !call.executor.is_transaction() {
        return;
    }
    let service = Arc::clone(&call.service);
    let Some((session, number)) = call.transaction().map(|(session, number)| (session.clone(), number))
    else {
        return;
    };
    drop(call);
    service.transactions.measure(&session, number);
    service.make_room(&session.user);
}

fn database(fields: Fields<'_>) -> Result<String> {
    match fields.document.get("$db") {
        Some(ValueRef::String(name)) => Ok(check_database(name)?.to_owned()),
        Some(other) => Err(Error::new(
            Code::TYPE_MISMATCH,
            format!("BSON field '$db' is the wrong type '{}', expected type 'string'", other.kind().alias()),
        )),
        None => Err(Error::location(40571, "OP_MSG requests require a $db argument")),
    }
}

/// Runs the command, unless a fail point strikes.
async fn run(call: &mut Call) -> Outcome {
    let began = Instant::now();
    let failure = fail_point(call);
    if let Some(failure) = &failure {
        if let Some(pause) = failure.block {
            sleep(pause).await;
        }
        if failure.close_connection {
            return Outcome::Hangs;
        }
        if let Some(error) = failure.error() {
            let error = if failure.after_checkout { resumable(error, call) } else { error };
            return Outcome::Fails(if failure.labels.is_some() { error.with_final_labels() } else { error });
        }
    }
    let retryable = retryable_failure(call);
    match &retryable {
        Some(RetryableFailure::Fails(error)) => return Outcome::Fails(error.clone()),
        Some(RetryableFailure::HangsBefore) => return Outcome::Hangs,
        Some(RetryableFailure::HangsAfter) | None => {}
    }
    let outcome = run_within_limits(call, began).await;
    if matches!(retryable, Some(RetryableFailure::HangsAfter)) {
        return Outcome::Hangs;
    }
    match outcome {
        Ok((reply, unmet)) => {
            let wanted = failure.as_ref().and_then(|failure| failure.write_concern_error.clone());
            let mut beside = Document::new();
            if let Some(error) = wanted.or(unmet) {
                let labels =
                    failure.and_then(|failure| failure.labels).or_else(|| concern_labels(&error, call));
                beside.push("writeConcernError", error);
                if let Some(labels) = labels {
                    beside.push("errorLabels", list(labels));
                }
            }
            Outcome::Succeeds { reply, beside }
        }
        Err(error) => resumable(error, call).into(),
    }
}

fn fail_point(call: &Call) -> Option<Failure> {
    // Fail points can always be switched off: no command for tests is struck by one.
    let is_exempt = call.command.traits.availability == Availability::TestCommands;
    if is_exempt || !call.service.settings.test_commands {
        return None;
    }
    let application = call.connection.client.lock().application.clone();
    call.service.fail_points.failure(&Candidate {
        command: call.spelled(),
        kind: call.command.traits.kind,
        application: application.as_deref(),
        namespace: namespace(call),
    })
}

/// Returns what a fail point does to a retryable write.
fn retryable_failure(call: &Call) -> Option<RetryableFailure> {
    let is_retryable = matches!(call.txn_number, Some(TxnNumber::Retryable { .. }));
    let strikes = call.service.settings.test_commands && is_retryable;
    if strikes { call.service.fail_points.retryable_failure() } else { None }
}

/// Runs the command within its time limit, which counts from `began`, and lists it among the running commands. Also returns
/// the note on its write concern.
async fn run_within_limits(call: &mut Call, began: Instant) -> Result<(Reply, Option<Document>)> {
    let fields = call.fields();
    write_concern::check_read(fields, may_read_snapshot(call))?;
    let unmet = match call.command.effect {
        Effect::Writes => write_concern::unmet(fields, &call.service.settings.profile)?,
        Effect::Reads => None,
    };
    let limit = time_limit(call)?;
    call.deadline = limit.map(|limit| began + limit);
    if call.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
        call.abort_transaction();
        return Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
    }
    count(call);
    let _running = call.service.operations.enter(|number| Operation {
        number,
        kind: call.command.traits.kind,
        database: call.database.clone(),
        body: call.body.clone(),
        session: call.session.as_ref().map(|session| session.id.clone()),
        connection: Arc::clone(&call.connection),
        since: Instant::now(),
        cancellation: call.cancellation.clone(),
    });
    let _timer =
        limit.map(|limit| Timer::start(limit.saturating_sub(began.elapsed()), call.cancellation.clone()));
    let (turn, outcome) = match admission::turn(call).await {
        Ok(turn) => (turn, run_admitted(call).await),
        Err(stopped) => (None, Err(stopped)),
    };
    // A transaction ends with its first failed statement.
    if outcome.is_err() {
        call.abort_transaction();
    }
    drop(turn);
    Ok((outcome?, unmet))
}

/// Runs the command once it may begin.
async fn run_admitted(call: &mut Call) -> Result<Reply> {
    let permit = admission::wait(call).await?;
    call.executor.permit().keep(permit);
    let outcome = offload_future(call.bytes(), (call.command.run)(call)).await;
    call.executor.permit().keep(None);
    outcome
}

/// Whether the command may read at a snapshot.
fn may_read_snapshot(call: &Call) -> bool {
    call.transaction().is_some() || call.command.traits.snapshot_read == SnapshotRead::Allowed
}

/// `maxTimeMS`, of which zero and absent are no limit, or the operator's limit on queries, whichever is shorter.
fn time_limit(call: &Call) -> Result<Option<Duration>> {
    let client = max_time(call.fields())?;
    let limit = match call.command.traits.time_limit {
        TimeLimit::Client => client,
        TimeLimit::ClientAndOperator => {
            client.into_iter().chain(call.service.settings.limits.query_time).min()
        }
        TimeLimit::Handler => None,
    };
    match limit {
        Some(limit) => call.limited(limit),
        None => Ok(None),
    }
}

fn max_time(fields: Fields<'_>) -> Result<Option<Duration>> {
    match fields.integer("maxTimeMS")? {
        None | Some(0) => Ok(None),
        Some(millis) => match u32::try_from(millis).ok().filter(|millis| i32::try_from(*millis).is_ok()) {
            Some(millis) => Ok(Some(Duration::from_millis(millis.into()))),
            None => Err(Error::bad_value(format!("{millis} value for maxTimeMS is out of range"))),
        },
    }
}

fn count(call: &Call) {
    let kind = call.command.traits.kind;
    let count = kind.statements().map_or(1, |name| call.documents_count(name));
    call.service.statistics.count(kind, count as u64);
}
