//! The admin API under `/_bolide/`: status, clock, purge, and what the owners of containers wish. Never open: it wants the
//! account key as a bearer token.

#![allow(
    clippy::unused_async,
    reason = "the table wants one shape of handler, also for those that never wait"
)]

mod evidence;
mod hold;
mod purge;
mod ttl;
mod wishes;

use document::Value;
use engine::{Engine, Leap, Tally};
use hyper::{Method, StatusCode};

use crate::call::Call;
use crate::error::Error;
use crate::json::{member, object, parse_object, text};
use crate::request::Head;
use crate::response::Reply;
use crate::service::Run;

/// The first segment of every admin path.
pub(crate) const PREFIX: &str = "_bolide";

/// The handler for an admin request.
pub(crate) fn find(head: &Head) -> Result<Run, Error> {
    let names: Vec<&str> = head.path.segments().iter().skip(1).map(String::as_str).collect();
    let get = matches!(head.method, Method::GET | Method::HEAD);
    let post = head.method == Method::POST;
    Ok(match names.as_slice() {
        ["status"] if get => |call| Box::pin(status(call)),
        ["clock"] if get => |call| Box::pin(clock(call)),
        ["clock"] if post => |call| Box::pin(move_clock(call)),
        ["purge"] if get => |call| Box::pin(purge::show(call)),
        ["purge"] if post => |call| Box::pin(purge::steer(call)),
        ["ttl", _, _] if get => |call| Box::pin(ttl::show(call)),
        ["ttl", _, _, "log"] if get => |call| Box::pin(evidence::lines_of_container(call)),
        ["log"] if get => |call| Box::pin(evidence::list(call)),
        ["log", _] if get => |call| Box::pin(evidence::lines(call)),
        ["ttl", _, _] if head.method == Method::PATCH => |call| Box::pin(ttl::change(call)),
        ["hold", _, _] if get => |call| Box::pin(hold::list(call)),
        ["hold", _, _] if head.method == Method::PUT => |call| Box::pin(hold::place(call)),
        ["hold", _, _] if head.method == Method::DELETE => |call| Box::pin(hold::lift(call)),
        ["status" | "clock" | "purge" | "log"]
        | ["log", _]
        | ["ttl" | "hold", _, _]
        | ["ttl", _, _, "log"] => {
            return Err(Error::WrongVerb("this admin operation does not exist".to_owned()));
        }
        _ => {
            return Err(Error::NoRoute(format!(
                "/{PREFIX}/{}",
                names.join("/").chars().take(200).collect::<String>()
            )));
        }
    })
}

async fn status(call: &Call) -> Result<Reply, Error> {
    let engine = call.engine();
    let databases = engine.databases();
    let containers: usize = databases.iter().map(|database| engine.containers(database).len()).sum();
    let store = engine.storage_stats();
    let purge = call.blocking(purge::sum_value).await?;
    Ok(reply(&object([
        member("version", text(env!("CARGO_PKG_VERSION"))),
        member("clock", clock_value(engine)?),
        member("purge", purge),
        member(
            "store",
            object([
                member("diskBytes", number(store.disk_bytes)),
                member("journalBytes", number(store.journal_bytes)),
                member("commits", number(store.commits)),
                member("jobs", number(store.jobs)),
                member("writable", Value::Bool(!store.poisoned)),
            ]),
        ),
        member("databases", number(databases.len() as u64)),
        member("containers", number(containers as u64)),
    ])))
}

async fn clock(call: &Call) -> Result<Reply, Error> {
    Ok(reply(&clock_value(call.engine())?))
}

async fn move_clock(call: &Call) -> Result<Reply, Error> {
    let body = parse_object(&call.body)?;
    match wish(&body) {
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

/// The one member of a body. An operator who sends two means both, and only one would be done.
fn wish(body: &Value) -> Option<(&str, &Value)> {
    let mut members = body.as_object()?.iter();
    members.next().filter(|_| members.next().is_none())
}

fn clock_value(engine: &Engine) -> Result<Value, Error> {
    let status = engine.clock_status()?;
    let suspect = match status.suspect {
        None => Value::Null,
        Some(suspicion) => object([
            member(
                "leap",
                text(match suspicion.leap {
                    Leap::Running => "running",
                    Leap::Start => "start",
                }),
            ),
            member("wall", number(suspicion.wall.seconds())),
            member("aheadSeconds", number(suspicion.ahead_ms / 1000)),
        ]),
    };
    Ok(object([
        member("now", number(status.now.seconds())),
        member("testClock", Value::Bool(status.test_clock)),
        member("advancedSeconds", number(status.advanced_ms / 1000)),
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
