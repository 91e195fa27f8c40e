//! `killSessions`: ends the caller's sessions of these ids, or all of them, and what runs in them.

use crate::commands::end_sessions::named;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (sessions, mut named) = (&call.service.sessions, named(call)?);
    if named.is_empty() {
        named = sessions.list_of(&call.connection.user_digest());
    }
    call.service.clean_up_all(&sessions.end_named(&named));
    Ok(Reply::ok())
}
