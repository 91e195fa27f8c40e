//! `GET /ready`: whether requests will succeed, and the decision that an operator has to make, if there is one.
//!
//! A full disk leaves the server ready: taking it from its clients would also keep away those that can free space. So
//! does a suspect clock, since reads and nearly all writes continue; the answer names the command that accepts the new
//! time (T34). A busy server is ready as long as it admits every client that holds nothing yet; after refusing such
//! clients for some seconds it is overloaded for all of them, and not ready.

use document::Value;
use engine::Engine;
use hyper::StatusCode;
use transport::Admission;

use crate::message::reply::Reply;
use crate::protocol::json::{member, object, text};

/// Answers the probe: 200, or 503 after a failed commit and while all writes or all work is refused.
pub(crate) fn probe(engine: &Engine, admission: &Admission) -> Reply {
    let storage = engine.storage_stats();
    if storage.poisoned {
        return not_ready("a commit failed, and the outcome of its writes is unknown; restart the server");
    }
    if storage.compaction_stops_jobs {
        return not_ready(
            "merging the store's tables fails, and writes wait until it succeeds; the log has the cause",
        );
    }
    if let Some((what, lasts)) = admission.starved() {
        let seconds = lasts.as_secs();
        return not_ready(&format!(
            "clients that hold nothing have been refused for {seconds} s: there is no room for a {what}"
        ));
    }
    let mut members = vec![member("ready", Value::Bool(true))];
    // A probe runs every few seconds, also on an idle store, and reading the time would renew the clock's lease on
    // disk.
    if engine.was_clock_suspect() {
        match engine.clock_status().map(|clock| clock.suspicion()) {
            Err(_) => return not_ready("the time cannot be read; the log has the cause"),
            Ok(None) => {}
            Ok(Some(reason)) => {
                members.push(member("clock", text(format!("suspect: {reason}"))));
                members.push(member("acceptWith", text("bolide clock accept")));
            }
        }
    }
    Reply::json(StatusCode::OK, object(members).to_json())
}

fn not_ready(reason: &str) -> Reply {
    let body = object([member("ready", Value::Bool(false)), member("reason", text(reason))]);
    Reply::json(StatusCode::SERVICE_UNAVAILABLE, body.to_json())
}
