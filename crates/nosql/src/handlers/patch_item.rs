//! `PATCH /docs/{id}`: changes parts of an item, optionally on a condition.

use engine::{Operation, Patch};

use crate::handlers::call::Call;
use crate::handlers::items;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.item_key(&container)?;
    let surface = container.definition.surface();
    let patch = Patch::from_value_on(&json::parse(&call.body)?, surface).map_err(engine::Error::from)?;
    let operation =
        Operation::Patch { name: call.item_name(&container), patch, precondition: call.head.precondition() };
    items::write(call, &container, Some(key), operation).await
}
