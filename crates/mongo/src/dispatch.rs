//! What all commands share: finding them, who may run them, sessions, time limits, figures, and what every answer carries.

use std::sync::Arc;
use std::time::Duration;

use bson::{Binary, Document, RawDocument, Timestamp, Value, ValueRef};
use engine::Charge;
use mql::Code;
use storage::Time;
use telemetry::OperationId;
use tokio::time::{Instant, sleep};

use crate::api;
use crate::aside::steps_aside;
use crate::audit;
use crate::call::{Call, check_database};
use crate::commands::{self, Access, Effect, InTransaction, Place};
use crate::connection::{Connection, LastRequest};
use crate::error::{Error, RETRYABLE_WRITE, Result, TRANSIENT_TRANSACTION};
use crate::fail_points::{Candidate, Failure, Name, RetryableFailure};
use crate::fields::Fields;
use crate::limits::MESSAGE_BYTES;
use crate::operation_time;
use crate::operations::{Brake, Operation, Stop, Timer};
use crate::record::Ran;
use crate::reply::{Reply, list};
use crate::rights::{self, Rights};
use crate::room::Room;
use crate::service::Service;
use crate::session::{Numbered, SessionId};
use crate::statistics::Kind;
use crate::turn;
use crate::usage::Use;
use crate::wire::{Form, Request};
use crate::write_concern;

/// The largest answer: what is around it in a message takes less than this.
const REPLY_BYTES_MAX: usize = MESSAGE_BYTES - 1024;

/// What becomes of a request.
pub(crate) struct Answer {
    /// None if nothing is to be said, not even an error.
    pub(crate) reply: Option<RawDocument>,
    /// Whether the connection ends here.
    pub(crate) close: bool,
}

/// Runs one request to its answer.
pub(crate) async fn answer(
    service: Arc<Service>,
    connection: Arc<Connection>,
    request: Request,
    brake: Brake,
) -> Answer {
    let started = Instant::now();
    let mut operation = OperationId::UNKNOWN;
    let mut call = match prepare(&service, &connection, request, brake, &mut operation) {
        Ok(call) => call,
        Err(error) => {
            service.traffic.refused(operation, &error, started.elapsed());
            audit::refused(&service, &connection, operation, &error);
            return Answer { reply: Some(error.finish(&times(&service, None))), close: false };
        }
    };
    let outcome = run(&mut call).await;
    let (ended, mut failed) = (Instant::now(), None);
    let times = times(&service, Some(&call));
    let reply = match outcome {
        Outcome::Hangs => None,
        Outcome::Succeeds { reply, beside } => {
            Some(sendable(reply.finish(1.0, [&beside, &times])).unwrap_or_else(|error| {
                failed = Some(error.code);
                error.finish(&times)
            }))
        }
        Outcome::Fails(error) => {
            let error = labelled(explain_stop(error, &call.brake), &call);
            failed = Some(error.code);
            Some(error.finish(&times))
        }
    };
    let charge = call.room.meter().settle(reply.as_ref().map_or(0, |reply| reply.as_bytes().len()));
    let duration = ended - started;
    remember(&call, duration, charge);
    Ran { call: &call, operation, ended, duration, charge, failed, reply: reply.as_ref() }.record();
    leave_transaction(call);
    Answer { close: reply.is_none(), reply }
}

/// The answer, unless it is larger than any message: a driver would break the connection.
fn sendable(reply: RawDocument) -> Result<RawDocument> {
    let bytes = reply.as_bytes().len();
    if bytes <= REPLY_BYTES_MAX {
        return Ok(reply);
    }
    let text = format!("the answer has {bytes} bytes, and a message at most {MESSAGE_BYTES}");
    Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, text))
}

/// What becomes of a command.
enum Outcome {
    /// It did what it should; some fields stand beside its answer.
    Succeeds { reply: Reply, beside: Document },
    /// It did not.
    Fails(Error),
    /// A fail point wants the connection to break.
    Hangs,
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Outcome {
        Outcome::Fails(error)
    }
}

/// Figures of a command that has run.
fn remember(call: &Call, duration: Duration, charge: Charge) {
    if call.command.name != "getLastRequestStatistics" {
        let last = LastRequest { command: call.command.name, charge, duration };
        call.connection.client.lock().last_request = Some(last);
    }
    if let Some(namespace) = namespace(call) {
        call.service.usage.record(&namespace, Use::of_command(call.command.name), duration);
    }
}

/// The collection that a command is about, if it is about one.
fn namespace(call: &Call) -> Option<String> {
    if call.command.place == Place::Admin {
        return None;
    }
    let collection = match call.command.name {
        "getMore" => call.body.get("collection")?,
        _ => call.argument(),
    };
    Some(format!("{}.{}", call.database, collection.as_str()?))
}

/// Everything that must hold before a command runs.
fn prepare(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    request: Request,
    brake: Brake,
    operation: &mut OperationId,
) -> Result<Call> {
    let name = request.body.view().iter().next().map_or("", |(name, _)| name);
    let command = commands::find(name)
        .ok_or_else(|| Error::new(Code::COMMAND_NOT_FOUND, format!("no such command: '{name}'")))?;
    *operation = commands::operation(command);
    if request.style.form == Form::Query && command.name != "hello" {
        let text = format!("Unsupported OP_QUERY command: {name}. The client driver may require an upgrade.");
        return Err(Error::new(Code::UNSUPPORTED_OP_QUERY_COMMAND, text));
    }
    let fields = Fields::new(command.name, request.body.view());
    let database = database(fields)?;
    api::check(fields, command)?;
    let rights = match command.access {
        Access::Everybody => Rights::Nothing,
        _ => Rights::of(service, connection)?,
    };
    let now = service.engine.now()?;
    let user = connection.user_digest();
    let may_have_session = !service.requires_authentication() || connection.is_authenticated();
    let session = match fields.document("lsid")?.filter(|_| may_have_session) {
        Some(lsid) => Some(service.session(SessionId::parse(lsid, user)?)?),
        None => None,
    };
    let numbered = Numbered::parse(fields, command, &service.settings.profile)?;
    hear_time(service, fields, now)?;
    let began = operation_time::behind(now, service.engine.last_sequence());
    service.clock.observe(began, now);
    let timestamp = match command.effect {
        Effect::Writes => service.clock.tick(now),
        Effect::Reads => service.clock.current(now),
    };
    let mut call = Call {
        engine: Arc::clone(&service.engine),
        service: Arc::clone(service),
        connection: Arc::clone(connection),
        command,
        database,
        body: request.body,
        sequences: request.sequences,
        session,
        numbered,
        now,
        timestamp,
        began,
        room: Room::new(&service.common, None).with_brake(brake.clone()),
        rights,
        needs: Arc::default(),
        brake,
        deadline: None,
    };
    admit(&mut call)?;
    enter_transaction(&mut call)?;
    Ok(call)
}

/// Who may run what, where.
fn admit(call: &mut Call) -> Result<()> {
    if call.command.place == Place::Admin && call.database != "admin" {
        let text = format!("{} may only be run against the admin database.", call.command.name);
        return Err(Error::new(Code::UNAUTHORIZED, text));
    }
    call.needs = rights::check(call)?;
    Ok(())
}

/// A command that is part of a transaction reads and writes there.
fn enter_transaction(call: &mut Call) -> Result<()> {
    if let (Some(Numbered::Transaction { number, starts }), Some(session)) = (call.numbered, &call.session)
        && matches!(call.command.transaction, InTransaction::Allowed | InTransaction::AllowedLater)
    {
        let service = &call.service;
        let lifetime = service.transaction_lifetime();
        call.room = service.transactions.room(&service.common, &session.id, number, starts, lifetime)?;
        if starts {
            service.sweep_alarm.set(Instant::now() + lifetime);
        }
    }
    Ok(())
}

/// A transaction that a command has worked in counts for what it has come to, and is idle from now on.
fn leave_transaction(call: Call) {
    if !call.room.is_transaction() {
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

/// Takes over the times that the client has seen.
fn hear_time(service: &Service, fields: Fields<'_>, now: Time) -> Result<()> {
    if let Some(ValueRef::Document(gossip)) = fields.document.get("$clusterTime")
        && let Some(ValueRef::Timestamp(seen)) = gossip.get("clusterTime")
    {
        service.clock.observe(seen, now);
    }
    if let Some(concern) = fields.document("readConcern")?
        && let Some(ValueRef::Timestamp(after)) = concern.get("afterClusterTime")
        && !service.clock.observe(after, now)
    {
        let text = "readConcern afterClusterTime value must not be greater than the current clusterTime";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    Ok(())
}

/// Runs the command, unless a fail point has other plans.
async fn run(call: &mut Call) -> Outcome {
    let failure = fail_point(call);
    if let Some(failure) = &failure {
        if let Some(pause) = failure.block {
            sleep(pause).await;
        }
        if failure.close_connection {
            return Outcome::Hangs;
        }
        if let Some(error) = failure.error() {
            return Outcome::Fails(if failure.labels.is_some() { error.with_final_labels() } else { error });
        }
    }
    let retryable = retryable_failure(call);
    match &retryable {
        Some(RetryableFailure::Fails(error)) => return Outcome::Fails(error.clone()),
        Some(RetryableFailure::HangsBefore) => return Outcome::Hangs,
        Some(RetryableFailure::HangsAfter) | None => {}
    }
    let outcome = run_within_limits(call).await;
    if matches!(retryable, Some(RetryableFailure::HangsAfter)) {
        return Outcome::Hangs;
    }
    match outcome {
        Ok((reply, unmet)) => {
            let wanted = failure.as_ref().and_then(Failure::concern_error);
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
        Err(error) => error.into(),
    }
}

fn fail_point(call: &Call) -> Option<Failure> {
    if !call.service.settings.test_commands {
        return None;
    }
    let application = call.connection.client.lock().application.clone();
    call.service.fail_points.failure(&Candidate {
        command: call.spelled(),
        application: application.as_deref(),
        namespace: namespace(call),
    })
}

/// What a fail point does to a retryable write.
fn retryable_failure(call: &Call) -> Option<RetryableFailure> {
    let is_retryable = matches!(call.numbered, Some(Numbered::Retryable { .. }));
    let strikes = call.service.settings.test_commands && is_retryable;
    if strikes { call.service.fail_points.retryable_failure() } else { None }
}

/// Runs the command within its time, entered among those that run. Also what is to be said of its write concern.
async fn run_within_limits(call: &mut Call) -> Result<(Reply, Option<Document>)> {
    let fields = call.fields();
    write_concern::check_read(fields, call.transaction().is_some())?;
    let unmet = match call.command.effect {
        Effect::Writes => write_concern::unmet(fields, &call.service.settings.profile)?,
        Effect::Reads => None,
    };
    let limit = time_limit(call)?;
    call.deadline = limit.map(|limit| Instant::now() + limit);
    count(call);
    let _running = call.service.operations.enter(|number| Operation {
        number,
        name: call.command.name,
        database: call.database.clone(),
        body: call.body.clone(),
        session: call.session.as_ref().map(|session| session.id.clone()),
        connection: Arc::clone(&call.connection),
        since: Instant::now(),
        brake: call.brake.clone(),
    });
    let _timer = limit.map(|limit| Timer::start(limit, call.brake.clone()));
    let service = Arc::clone(&call.service);
    let outcome = match turn::wait(call, &service).await {
        Ok(_permit) => steps_aside(call.bytes(), (call.command.run)(call)).await,
        Err(busy) => Err(busy),
    };
    // A transaction fails with its first statement that does.
    if outcome.is_err() {
        call.abort_transaction();
    }
    Ok((outcome?, unmet))
}

/// What the operator's limit on the time of a query is for.
const QUERIES: [&str; 5] = ["aggregate", "count", "distinct", "explain", "find"];

/// `maxTimeMS`, of which zero and absent are no limit, or the operator's limit on queries, whichever is shorter.
fn time_limit(call: &Call) -> Result<Option<Duration>> {
    let wanted = max_time(call.fields())?;
    // In getMore it would say how long to wait for news, which is that command's own business.
    let wanted = wanted.filter(|_| call.command.name != "getMore");
    let most = call.service.settings.limits.query_time;
    let most = most.filter(|_| QUERIES.contains(&call.command.name));
    match wanted.into_iter().chain(most).min() {
        Some(limit) => limited(call, limit),
        None => Ok(None),
    }
}

/// The time limit, unless a fail point has other plans.
pub(crate) fn limited(call: &Call, limit: Duration) -> Result<Option<Duration>> {
    if call.service.settings.test_commands {
        if call.service.fail_points.strikes(Name::MaxTimeAlwaysTimeOut) {
            return Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
        }
        if call.service.fail_points.strikes(Name::MaxTimeNeverTimeOut) {
            return Ok(None);
        }
    }
    Ok(Some(limit))
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
    let statistics = &call.service.statistics;
    let (kind, count) = match call.command.name {
        "insert" => (Kind::Insert, call.documents_count("documents")),
        "update" => (Kind::Update, call.documents_count("updates")),
        "delete" => (Kind::Delete, call.documents_count("deletes")),
        "find" => (Kind::Query, 1),
        "getMore" => (Kind::GetMore, 1),
        _ => (Kind::Command, 1),
    };
    statistics.count(kind, count as u64);
}

/// Whether a write that failed so may be sent again: the server was not there, rather than unwilling.
fn is_retryable(code: Code) -> bool {
    matches!(
        code,
        Code::HOST_UNREACHABLE
            | Code::HOST_NOT_FOUND
            | Code::NETWORK_TIMEOUT
            | Code::SHUTDOWN_IN_PROGRESS
            | Code::READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET
            | Code::PRIMARY_STEPPED_DOWN
            | Code::EXCEEDED_TIME_LIMIT
            | Code::SOCKET_EXCEPTION
            | Code::NOT_WRITABLE_PRIMARY
            | Code::INTERRUPTED_AT_SHUTDOWN
            | Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE
            | Code::NOT_PRIMARY_NO_SECONDARY_OK
            | Code::NOT_PRIMARY_OR_SECONDARY
    )
}

/// Whether the client may send the command again by its number.
fn is_repeatable(call: &Call) -> bool {
    matches!(call.numbered, Some(Numbered::Retryable { .. }))
        || call.command.transaction == InTransaction::Ends
}

/// Adds the labels by which drivers decide whether to try again.
fn labelled(error: Error, call: &Call) -> Error {
    if error.labels_are_final {
        return error;
    }
    let in_transaction = matches!(call.numbered, Some(Numbered::Transaction { .. }));
    let transient =
        is_retryable(error.code) || matches!(error.code, Code::WRITE_CONFLICT | Code::NO_SUCH_TRANSACTION);
    if is_repeatable(call) && is_retryable(error.code) {
        error.with_label(RETRYABLE_WRITE)
    } else if in_transaction && transient {
        error.with_label(TRANSIENT_TRANSACTION)
    } else {
        error
    }
}

fn concern_labels(error: &Document, call: &Call) -> Option<Vec<String>> {
    let Some(Value::Int32(code)) = error.get("code") else { return None };
    (is_repeatable(call) && is_retryable(Code(*code))).then(|| vec![RETRYABLE_WRITE.to_owned()])
}

/// An error of a command that was stopped says why it was.
fn explain_stop(error: Error, brake: &Brake) -> Error {
    match (error.code, brake.why()) {
        (Code::MAX_TIME_MS_EXPIRED, Some(Stop::Killed)) => {
            Error::new(Code::INTERRUPTED, "operation was interrupted")
        }
        (Code::MAX_TIME_MS_EXPIRED, Some(Stop::TransactionExpired)) => {
            let text = "operation was interrupted because the transaction exceeded the configured \
                        'transactionLifetimeLimitSeconds'";
            Error::new(Code::TRANSACTION_EXCEEDED_LIFETIME, text).with_label(TRANSIENT_TRANSACTION)
        }
        _ => error,
    }
}

/// `operationTime` and `$clusterTime`, where the profile has them. The first is that of the last write, which its event in a
/// change stream has too. A read has the time behind the last commit when it began, what changes no document that behind the
/// last commit now. Times that clients have seen move only the second.
fn times(service: &Service, call: Option<&Call>) -> Document {
    if !service.settings.profile.has_cluster_time() {
        return Document::new();
    }
    let Ok(now) = service.engine.now() else { return Document::new() };
    let written = call.and_then(|call| call.room.meter().position()).map(operation_time::cluster_time);
    let began = || call.filter(|call| call.command.effect == Effect::Reads).map(|call| call.began);
    let operation =
        written.or_else(began).unwrap_or_else(|| operation_time::behind(now, service.engine.last_sequence()));
    service.clock.observe(operation, now);
    let current = service.clock.current(now);
    Document::new().with("operationTime", operation).with("$clusterTime", cluster_time(current))
}

/// A cluster time with the signature of a server that signs nothing.
fn cluster_time(time: Timestamp) -> Document {
    let signature =
        Document::new().with("hash", Binary { subtype: 0, bytes: vec![0; 20] }).with("keyId", 0_i64);
    Document::new().with("clusterTime", time).with("signature", signature)
}
