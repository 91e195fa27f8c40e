//! `fsync`: what was acknowledged is on disk already. Locking the server against writes is not supported.

use bson::Document;

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    if call.fields().is_set("lock")? {
        return Err(Error::not_supported("'fsync' with 'lock'"));
    }
    Ok(Document::new().with("numFiles", 1).into())
}
