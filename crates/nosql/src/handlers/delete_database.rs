//! `DELETE /dbs/{db}`.

use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let (database, precondition) = (call.database()?, call.head.precondition());
    call.blocking(move |engine| Ok(engine.delete_database(&database, &precondition)?)).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT).charged(Charge::CATALOG_WRITE))
}
