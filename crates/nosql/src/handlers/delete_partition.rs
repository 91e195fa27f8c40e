//! `POST /operations/partitionkeydelete`: every item of one logical partition.

use std::sync::Arc;

use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::message::reply::{Reply, ReplyOrigin};
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.required_partition_key()?;
    let handle = Arc::clone(&container);
    let emptied = call.blocking(move |engine| Ok(engine.delete_partition(&handle, &key)?)).await?;
    let place = ReplyOrigin { container: &container, range: emptied.range, item: None };
    Ok(Reply::empty(StatusCode::OK).charged(emptied.charge).placed(&place))
}
