//! `GET /docs/{id}`: a point read, done on the spot.

use crate::call::{Call, range_of};
use crate::error::Error;
use crate::items;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.required_partition_key()?;
    call.check_session(&container)?;
    let name = call.item_name(&container);
    let outcome = call.engine().read(&container, &key, &name, &call.head.precondition())?;
    Ok(items::outcome_reply(call, &container, Some(range_of(&container, &key)), &outcome))
}
