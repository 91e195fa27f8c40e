//! The one place that compares what a client may do with what a command needs: once for every command, before it does
//! anything.
//!
//! What the command needs is kept in the call: a cursor can be continued only as long as its owner has what opening it needed.

use std::sync::Arc;

use mql::Code;

use crate::commands::needs;
use crate::protocol::error::{Error, Result};
use crate::protocol::redacted::{beginning, redacted};
use crate::rights::{Privilege, Rights};
use crate::service::call::Call;
use crate::service::command::Access;

/// How many bytes of a command a refusal repeats at most.
const SHOWN_BYTES_MAX: usize = 1024;

/// Refuses a command that the client may not run. Returns what it needs, which is not computed for a client with all rights.
pub(crate) fn check(call: &Call) -> Result<Arc<[Privilege]>> {
    match (&call.rights, call.command.access) {
        (Rights::Everything, _) | (_, Access::Public) => return Ok(Arc::default()),
        (Rights::Nothing, _) => {
            let text = format!("Command {} requires authentication", call.command.name);
            return Err(Error::new(Code::UNAUTHORIZED, text));
        }
        (Rights::Roles(_), _) => {}
    }
    let needs = needs::of(call)?;
    match needs.iter().find(|need| !call.rights.allow(need)) {
        None => Ok(needs.into()),
        Some(need) => Err(refuse(call, need)),
    }
}

/// Returns the refusal, in the words that tools look for, and logs it.
fn refuse(call: &Call, missing: &Privilege) -> Error {
    let identity = call.connection.client.lock().identity.clone();
    let user = identity.as_ref().map_or("", |identity| &identity.user);
    let of = identity.as_ref().map_or("", |identity| &identity.database);
    let (peer, command, action) = (call.connection.peer, call.command.name, missing.action.name());
    tracing::info!(%peer, ?user, ?of, database = ?call.database, command, action, "refused: no role allows it");
    let mut shown = bson::shell_text(bson::ValueRef::Document(redacted(call.body.view()).view()));
    if shown.len() > SHOWN_BYTES_MAX {
        shown = format!("{}...", beginning(&shown, SHOWN_BYTES_MAX));
    }
    let text = format!("not authorized on {} to execute command {shown}", call.database);
    Error::new(Code::UNAUTHORIZED, text)
}
