//! `PATCH /docs/{id}`: changes to parts of a living item, on condition if the client wants one.

use engine::{Operation, Patch};

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::{items, json};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.required_partition_key()?;
    let surface = container.definition.surface();
    let patch = Patch::from_value_on(&json::parse(&call.body)?, surface).map_err(engine::Error::from)?;
    let operation =
        Operation::Patch { name: call.item_name(&container), patch, precondition: call.head.precondition() };
    items::write(call, &container, Some(key), operation).await
}
