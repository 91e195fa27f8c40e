//! `POST /docs`: a new item.

use engine::Operation;

use crate::call::Call;
use crate::error::Error;
use crate::items;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.partition_key()?;
    let body = items::body(call)?;
    items::write(call, &container, key, Operation::Create { body }).await
}
