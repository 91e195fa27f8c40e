//! `createSearchIndexes`, `updateSearchIndex`, `dropSearchIndex`: known, and not offered.

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let what = format!("{}, which needs the search service of MongoDB Atlas,", call.command.name);
    Err(Error::not_supported(what))
}
