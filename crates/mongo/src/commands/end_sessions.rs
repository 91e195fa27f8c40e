//! `endSessions`: the client no longer needs these sessions.

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;
use crate::session::SessionId;

/// The most sessions that one command may name.
const SESSIONS_MAX: usize = 10_000;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let named = named(call)?;
    call.service.clean_up_all(&call.service.sessions.end_named(&named));
    Ok(Reply::ok())
}

/// Returns the sessions that a command names as its argument, all of them the caller's own.
pub(super) fn named(call: &Call) -> Result<Vec<SessionId>> {
    let user = call.connection.user_digest();
    let name = call.command.name;
    let Some(items) = call.argument().as_array() else {
        return Err(Error::bad_value(format!("{name} takes an array of sessions")));
    };
    let mut named = Vec::new();
    for item in items.iter() {
        let lsid = item.as_document();
        let lsid = lsid.ok_or_else(|| Error::bad_value(format!("{name} takes an array of documents")))?;
        named.push(SessionId::parse(lsid, user)?);
        if named.len() > SESSIONS_MAX {
            return Err(Error::bad_value(format!("{name} takes {SESSIONS_MAX} sessions at most")));
        }
    }
    Ok(named)
}
