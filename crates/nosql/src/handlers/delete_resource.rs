//! `DELETE /users/{id}`, `/permissions/{id}`, `/sprocs/{id}`, `/triggers/{id}`, `/udfs/{id}`.

use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::subresources::Subresources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let subresources = Subresources::of(call)?;
    let (owner, name, precondition) = (subresources.owner, subresources.name(call), call.head.precondition());
    call.blocking(move |engine| Ok(engine.delete_resource(owner, &name, &precondition)?)).await?;
    let reply = Reply::empty(StatusCode::NO_CONTENT).charged(Charge::CATALOG_WRITE);
    Ok(subresources.place(call, reply).await)
}
