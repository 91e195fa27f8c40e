//! `GET /dbs`, and queries over databases.

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::{feed, resources};

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let databases = call.engine().databases();
    let resources = databases.iter().map(|database| resources::database(database)).collect();
    feed::reply(call, "", "Databases", resources)
}
