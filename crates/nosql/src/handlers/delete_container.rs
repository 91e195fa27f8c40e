//! `DELETE /dbs/{db}/colls/{coll}`.

use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let (container, precondition) = (call.container()?, call.head.precondition());
    let database = container.database.clone();
    call.blocking(move |engine| Ok(engine.delete_container(&container, &precondition)?)).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT).charged(Charge::CATALOG_WRITE).owned_by_database(&database))
}
