//! `refreshSessions`: the client still wants these.

use crate::call::Call;
use crate::commands::end_sessions::named;
use crate::error::Result;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    for id in named(call)? {
        call.service.session(id)?;
    }
    Ok(Reply::ok())
}
