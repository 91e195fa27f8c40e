//! `getLog`: the last lines of this front end's log.

use bson::{Document, Value};
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::{Reply, list};
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (written, lines) = match call.argument().as_str() {
        Some("*") => return Ok(Document::new().with("names", list(["global", "startupWarnings"])).into()),
        Some("global") => call.service.recent_log.lines(),
        // The server refuses to start where other servers would warn.
        Some("startupWarnings") => (0, Vec::new()),
        Some(other) => {
            return Err(Error::new(Code::OPERATION_FAILED, format!("No log named '{other}'")));
        }
        None => return Err(Error::new(Code::TYPE_MISMATCH, "Argument to getLog must be of type String")),
    };
    let lines: Vec<Value> = lines.into_iter().map(Value::String).collect();
    Ok(Document::new().with("totalLinesWritten", written).with("log", lines).into())
}
