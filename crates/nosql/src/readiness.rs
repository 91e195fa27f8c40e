//! `GET /ready`: whether requests will succeed, and what an operator has to do where something waits for one.
//!
//! A full disk leaves the server ready: taking it away from its clients would keep those away who can make room. A suspect
//! clock does too, since reads and nearly all writes go on; the answer names the command that accepts the new time (T34). A
//! server that is busy is ready as long as it admits every client that holds nothing yet; one that has refused such clients
//! for some seconds does no honest work, and says so.

use document::Value;
use engine::Engine;
use hyper::StatusCode;
use transport::Admission;

use crate::json::{member, object, text};
use crate::response::Reply;

/// The probe's answer: 200, or 503 after a failed commit and while work is refused that should not be.
pub(crate) fn probe(engine: &Engine, admission: &Admission) -> Reply {
    if engine.storage_stats().poisoned {
        return not_ready("a commit failed, and the outcome of its writes is unknown; restart the server");
    }
    if let Some((what, lasts)) = admission.starved() {
        let seconds = lasts.as_secs();
        return not_ready(&format!(
            "clients that hold nothing have been refused for {seconds} s: there is no room for a {what}"
        ));
    }
    let mut members = vec![member("ready", Value::Bool(true))];
    // A probe comes every few seconds, also to an idle store, and to ask for the time would renew the clock's lease on disk.
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
