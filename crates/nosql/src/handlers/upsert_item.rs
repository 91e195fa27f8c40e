//! `POST /docs` with `x-ms-documentdb-is-upsert`: a new item, or a new version of the living one of that id.

use engine::Operation;

use crate::call::Call;
use crate::error::Error;
use crate::items;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.partition_key()?;
    let operation = Operation::Upsert { body: items::body(call)?, precondition: call.head.precondition() };
    items::write(call, &container, key, operation).await
}
