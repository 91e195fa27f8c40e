//! `drop`.

use bson::Document;

use crate::call::Call;
use crate::catalog;
use crate::error::Result;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    fields.only(&["drop"])?;
    catalog::refuse_system(&call.database, call.collection()?)?;
    let Some(collection) = call.engine.collection(&call.database, call.collection()?) else {
        return Ok(Reply::ok());
    };
    match call.engine.drop_collection(&collection) {
        Ok(()) => {
            let indexes = collection.indexes().iter().count();
            Ok(Document::new().with("nIndexesWas", indexes as i32).with("ns", collection.namespace()).into())
        }
        // Somebody else was faster.
        Err(engine::Error::NotFound { .. }) => Ok(Reply::ok()),
        Err(error) => Err(error.into()),
    }
}
