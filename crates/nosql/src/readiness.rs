//! `GET /ready`: whether requests will succeed, and what an operator has to do where something waits for one.
//!
//! A full disk leaves the server ready: taking it away from its clients would keep those away who can make room. A suspect
//! clock does too, since reads and nearly all writes go on; the answer names the command that accepts the new time (T34).

use document::Value;
use engine::Engine;
use hyper::StatusCode;

use crate::json::{member, object, text};
use crate::response::Reply;

/// The probe's answer: 200, or 503 after a failed commit.
pub(crate) fn probe(engine: &Engine) -> Reply {
    if engine.storage_stats().poisoned {
        return not_ready("a commit failed, and the outcome of its writes is unknown; restart the server");
    }
    match engine.clock_status() {
        Err(error) => not_ready(&error.to_string()),
        Ok(clock) => {
            let mut members = vec![member("ready", Value::Bool(true))];
            if let Some(reason) = clock.suspicion() {
                members.push(member("clock", text(format!("suspect: {reason}"))));
                members.push(member("acceptWith", text("bolide clock accept")));
            }
            Reply::json(StatusCode::OK, object(members).to_json())
        }
    }
}

fn not_ready(reason: &str) -> Reply {
    let body = object([member("ready", Value::Bool(false)), member("reason", text(reason))]);
    Reply::json(StatusCode::SERVICE_UNAVAILABLE, body.to_json())
}
