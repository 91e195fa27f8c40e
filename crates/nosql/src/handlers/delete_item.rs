//! `DELETE /docs/{id}`.

use engine::Operation;

use crate::handlers::call::Call;
use crate::handlers::items;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.item_key(&container)?;
    let operation =
        Operation::Delete { name: call.item_name(&container), precondition: call.head.precondition() };
    items::write(call, &container, Some(key), operation).await
}
