//! `POST /operations/partitionkeydelete`: every item of one logical partition.

use std::sync::Arc;

use hyper::StatusCode;

use crate::call::{Call, range_of};
use crate::error::Error;
use crate::response::{Place, Reply};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let key = call.head.required_partition_key()?;
    let range = range_of(&container, &key);
    let handle = Arc::clone(&container);
    let emptied = call.blocking(move |engine| Ok(engine.delete_partition(&handle, &key)?)).await?;
    let place = Place { container: &container, range, sequence: call.engine().last_sequence() };
    Ok(Reply::empty(StatusCode::OK).charged(emptied.charge).placed(&place))
}
