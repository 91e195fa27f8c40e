//! `GET /dbs`, and queries over databases.

use crate::handlers::call::Call;
use crate::handlers::feed;
use crate::handlers::resources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let databases = call.engine().databases();
    let resources = databases.iter().map(|database| resources::database(database)).collect();
    feed::reply(call, "", "Databases", resources)
}
