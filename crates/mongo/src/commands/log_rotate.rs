//! `logRotate`: does nothing, as the log goes to standard error, whose reader rotates it.

use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(_call: &mut Call) -> Result<Reply> {
    Ok(Reply::ok())
}
