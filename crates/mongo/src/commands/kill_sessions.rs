//! `killSessions`: ends the caller's sessions of these ids, or all of them, and what runs in them.

use crate::commands::end_sessions::named;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (named, own) = (named(call)?, call.connection.user_digest());
    call.service.end_sessions(|id| if named.is_empty() { id.user == own } else { named.contains(id) });
    Ok(Reply::ok())
}
