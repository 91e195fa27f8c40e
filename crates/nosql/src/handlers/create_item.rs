//! `POST /docs`: a new item.

use engine::Operation;

use crate::handlers::call::Call;
use crate::handlers::items;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.partition_key()?;
    let body = items::body(call)?;
    items::write(call, &container, key, Operation::Create { body }).await
}
