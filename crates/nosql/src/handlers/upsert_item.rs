//! `POST /docs` with `x-ms-documentdb-is-upsert`: creates an item, or replaces the one with its id.

use engine::Operation;

use crate::handlers::call::Call;
use crate::handlers::items;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.partition_key()?;
    let operation = Operation::Upsert { body: items::body(call)?, precondition: call.head.precondition() };
    items::write(call, &container, key, operation).await
}
