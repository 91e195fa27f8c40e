//! `drop`.

use bson::Document;

use crate::access::catalog;
use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

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
        // Another client was faster.
        Err(engine::Error::NotFound { .. }) => Ok(Reply::ok()),
        Err(error) => Err(error.into()),
    }
}
