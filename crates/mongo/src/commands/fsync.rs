//! `fsync`: what was acknowledged is on disk already. Locking the server against writes is not supported.

use bson::Document;

use crate::call::Call;
use crate::error::{Error, Result};
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    if call.fields().is_set("lock")? {
        return Err(Error::not_supported("'fsync' with 'lock'"));
    }
    Ok(Document::new().with("numFiles", 1).into())
}
