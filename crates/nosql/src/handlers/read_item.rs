//! `GET /docs/{id}`: a point read, done on the spot, unless it is the first of a second that restarts a countdown (T33).

use crate::call::Call;
use crate::error::Error;
use crate::items;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.required_partition_key()?;
    call.check_session(&container)?;
    let name = call.item_name(&container);
    let outcome = call.engine().read(&container, &key, &name, &call.head.precondition())?;
    let outcome = items::touch(call, outcome).await;
    Ok(items::outcome_reply(call, &container, &outcome))
}
