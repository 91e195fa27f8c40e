//! `createSearchIndexes`, `updateSearchIndex`, `dropSearchIndex`: known, and not offered.

use crate::call::Call;
use crate::error::{Error, Result};
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let what = format!("{}, which needs the search service of MongoDB Atlas,", call.command.name);
    Err(Error::not_supported(what))
}
