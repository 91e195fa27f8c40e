//! `dropDatabase`.

use bson::Document;
use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    call.fields().only(&["dropDatabase"])?;
    // The users are in it.
    if call.database == "admin" {
        return Err(Error::new(Code::ILLEGAL_OPERATION, "Dropping the 'admin' database is prohibited."));
    }
    match call.engine.drop_collection_database(&call.database) {
        Ok(()) => Ok(Document::new().with("dropped", call.database.as_str()).into()),
        Err(engine::Error::NotFound { .. }) => Ok(Reply::ok()),
        Err(error) => Err(error.into()),
    }
}
