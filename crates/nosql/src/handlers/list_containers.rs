//! `GET /dbs/{db}/colls`, and queries over containers.

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::{feed, resources};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let database = call.owner_database()?;
    let containers = call.engine().containers(&database);
    let resources = containers.iter().map(|container| resources::container(container)).collect();
    feed::reply(call, &database.rid.to_string(), "DocumentCollections", resources)
}
