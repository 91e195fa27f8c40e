//! `GET` and `DELETE /conflicts/{id}`: there is none.

use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    call.owner_container()?;
    Err(engine::Error::NotFound { what: format!("conflict '{}'", call.head.path.at(5)) }.into())
}
