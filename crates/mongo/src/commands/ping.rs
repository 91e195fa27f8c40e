//! `ping`.

use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;

#[expect(clippy::unused_async, reason = "all commands have one shape")]
pub(super) async fn run(_call: &mut Call) -> Result<Reply> {
    Ok(Reply::ok())
}
