//! `dropDatabase`.

use bson::Document;

use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    call.fields().only(&["dropDatabase"])?;
    match call.engine.drop_collection_database(&call.database) {
        Ok(()) => Ok(Document::new().with("dropped", call.database.as_str()).into()),
        Err(engine::Error::NotFound { .. }) => Ok(Reply::ok()),
        Err(error) => Err(error.into()),
    }
}
