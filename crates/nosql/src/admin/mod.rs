//! The admin API under `/_bolide/`: status, keys, clock, purge, and lifecycle settings. It always requires a read-write
//! key of the account as a bearer token.

#![allow(
    clippy::unused_async,
    reason = "the table wants one shape of handler, also for those that never wait"
)]

mod backup;
mod catalog;
mod command;
mod evidence;
mod export;
mod hold;
mod import;
mod keys;
mod lifecycle_settings;
mod purge;
mod reset;
mod ttl;

use document::Value;
use engine::{Engine, Tally, TestClock};
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::route::Route;
use crate::message::connections::OpenConnections;
use crate::message::reply::Reply;
use crate::message::request::{Head, Verb};
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, parse_object, text};
use crate::protocol::limits::{BODY_BYTES, PAGE_BODY_BYTES};

/// The first segment of every admin path.
pub(crate) use crate::protocol::path::ADMIN_PREFIX as PREFIX;

macro_rules! routes {
    ($($verb:ident [$($segment:literal),*] => $($handler:ident)::+ $name:literal;)*) => {
        /// The table of the admin API; `service::routes` searches it.
        pub(crate) static ROUTES: &[Route] = &[$(
            Route::new(Verb::$verb, &[PREFIX, $($segment),*], $name, |call| Box::pin($($handler)::+(call))),
        )*];
    };
}

routes! {
    Get    ["status"] => status "AdminReadStatus";
    Get    ["backup"] => backup::stream "AdminReadBackup";
    Get    ["keys"] => keys::list "AdminListKeys";
    Post   ["keys"] => keys::change "AdminRegenerateKey";
    Get    ["clock"] => clock "AdminReadClock";
    Post   ["clock"] => move_clock "AdminMoveClock";
    Get    ["purge"] => purge::show "AdminReadPurge";
    Post   ["purge"] => purge::steer "AdminSteerPurge";
    Post   ["reset"] => reset::run "AdminReset";
    Get    ["ttl", "*", "*"] => ttl::show "AdminReadTtl";
    Patch  ["ttl", "*", "*"] => ttl::change "AdminChangeTtl";
    Get    ["ttl", "*", "*", "log"] => evidence::lines_of_container "AdminReadContainerLog";
    Get    ["log"] => evidence::list "AdminListLogs";
    Get    ["log", "*"] => evidence::lines "AdminReadLog";
    Get    ["hold", "*", "*"] => hold::list "AdminListHolds";
    Put    ["hold", "*", "*"] => hold::place "AdminPlaceHold";
    Delete ["hold", "*", "*"] => hold::lift "AdminLiftHold";
    Get    ["containers"] => catalog::list "AdminListContainers";
    Get    ["container", "*", "*"] => catalog::describe "AdminReadContainer";
    Put    ["container", "*", "*"] => catalog::make "AdminMakeContainer";
    Get    ["export", "*", "*"] => export::page "AdminExport";
    Post   ["import", "*", "*"] => import::page "AdminImport";
    Post   ["command"] => command::run "AdminCommand";
}

async fn status(call: &Call) -> Result<Reply, Error> {
    let engine = call.engine();
    let databases = engine.databases();
    let containers: usize = databases.iter().map(|database| engine.containers(database).len()).sum();
    let purge = call.blocking(purge::sum_value).await?;
    Ok(reply(&object([
        member("version", text(env!("CARGO_PKG_VERSION"))),
        member("clock", clock_value(engine)?),
        member("purge", purge),
        member("store", store_value(&engine.storage_stats())),
        member("connections", connections_value(call.open_connections())),
        member("databases", number(databases.len() as u64)),
        member("containers", number(containers as u64)),
    ])))
}

fn connections_value(open: OpenConnections) -> Value {
    let OpenConnections { http, direct, mongodb } = open;
    object(
        [("http", http), ("direct", direct), ("mongodb", mongodb)]
            .map(|(name, count)| member(name, number(count))),
    )
}

fn store_value(store: &engine::Stats) -> Value {
    let room = store.free_space.map(|room| {
        [("freeBytes", room.free_bytes), ("reservedBytes", room.reserved_bytes)]
            .map(|(name, bytes)| member(name, number(bytes)))
    });
    let figures = [
        member("diskBytes", number(store.disk_bytes)),
        member("journalBytes", number(store.journal_bytes)),
        member("commits", number(store.commits)),
        member("jobs", number(store.jobs)),
        member("writable", Value::Bool(store.is_writable())),
        member("stopped", Value::Bool(store.poisoned)),
        member("mergingFails", Value::Bool(store.compaction_fails)),
    ];
    object(figures.into_iter().chain(room.into_iter().flatten()))
}

async fn clock(call: &Call) -> Result<Reply, Error> {
    Ok(reply(&clock_value(call.engine())?))
}

async fn move_clock(call: &Call) -> Result<Reply, Error> {
    let body = parse_object(&call.body)?;
    match single_member(&body) {
        Some(("advanceSeconds", seconds)) => {
            let seconds = seconds.as_i64().and_then(|seconds| u64::try_from(seconds).ok());
            let seconds = seconds.ok_or_else(|| {
                Error::BadRequest(
                    "'advanceSeconds' must be an integer of at least 0: the clock never goes back."
                        .to_owned(),
                )
            })?;
            call.blocking(move |engine| Ok(engine.advance_clock(seconds)?)).await?;
        }
        Some(("accept", Value::Bool(true))) => {
            call.blocking(|engine| Ok(engine.accept_clock()?)).await?;
        }
        Some(("reject", Value::Bool(true))) => {
            call.blocking(|engine| Ok(engine.reject_clock()?)).await?;
        }
        _ => {
            return Err(Error::BadRequest(
                "The body must be {\"advanceSeconds\": n}, {\"accept\": true} or {\"reject\": true}, and nothing \
                 else."
                    .to_owned(),
            ));
        }
    }
    Ok(reply(&clock_value(call.engine())?))
}

/// Returns the names of the lifecycle settings.
pub(crate) fn lifecycle_setting_names() -> impl Iterator<Item = &'static str> {
    lifecycle_settings::names()
}

/// Returns the largest body of an admin request: pages of items are larger than what clients send.
pub(crate) fn body_bytes(head: &Head) -> usize {
    if matches!(head.path.at(1), "import" | "command") { PAGE_BODY_BYTES } else { BODY_BYTES }
}

/// Reads a boolean parameter; false by default.
fn flag(call: &Call, name: &str) -> Result<bool, Error> {
    match call.head.parameter(name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Error::BadRequest(format!("'{name}' must be true or false."))),
    }
}

/// Returns the one member of a body. A body with two members is refused, because only one would take effect.
fn single_member(body: &Value) -> Option<(&str, &Value)> {
    let mut members = body.as_object()?.iter();
    members.next().filter(|_| members.next().is_none())
}

fn clock_value(engine: &Engine) -> Result<Value, Error> {
    let status = engine.clock_status()?;
    let suspect = match status.suspect {
        None => Value::Null,
        Some(suspicion) => object([
            member("leap", text(suspicion.leap.name())),
            member("wall", number(suspicion.wall.seconds())),
            member("aheadSeconds", number(suspicion.ahead_ms / 1000)),
            member("reason", text(status.suspicion().unwrap_or_default())),
        ]),
    };
    Ok(object([
        member("now", number(status.now.seconds())),
        member("testClock", Value::Bool(status.test_clock.is_on())),
        member("stopped", Value::Bool(status.test_clock == TestClock::Stopped)),
        member("advancedSeconds", number(status.advanced_ms / 1000)),
        member("offsetSeconds", Value::Double(status.ahead_ms as f64 / 1000.0)),
        member("offset", text(status.offset().to_string())),
        member("trusted", number(status.trusted.seconds())),
        member("suspect", suspect),
    ]))
}

fn tally(tally: Tally) -> Value {
    object([member("items", number(tally.items)), member("bytes", number(tally.bytes))])
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn reply(value: &Value) -> Reply {
    Reply::json(StatusCode::OK, value.to_json())
}
