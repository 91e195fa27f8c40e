//! `logRotate`: the log goes to standard error, and whoever reads it turns its pages.

use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;

pub(super) async fn run(_call: &mut Call) -> Result<Reply> {
    Ok(Reply::ok())
}
