//! `DELETE /docs/{id}`.

use engine::Operation;

use crate::call::Call;
use crate::error::Error;
use crate::items;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.required_partition_key()?;
    let operation =
        Operation::Delete { name: call.item_name(&container), precondition: call.head.precondition() };
    items::write(call, &container, Some(key), operation).await
}
