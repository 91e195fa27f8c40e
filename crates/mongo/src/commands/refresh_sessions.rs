//! `refreshSessions`: the client still needs these sessions.

use crate::commands::end_sessions::named;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    for id in named(call)? {
        call.service.session(id)?;
    }
    Ok(Reply::ok())
}
