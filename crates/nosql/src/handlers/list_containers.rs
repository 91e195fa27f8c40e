//! `GET /dbs/{db}/colls`, and queries over containers.

use crate::handlers::call::Call;
use crate::handlers::feed;
use crate::handlers::resources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let database = call.owner_database()?;
    let containers = call.engine().containers(&database);
    let resources = containers.iter().map(|container| resources::container(container)).collect();
    feed::reply(call, &database.rid.to_string(), "DocumentCollections", resources)
}
