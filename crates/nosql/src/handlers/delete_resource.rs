//! `DELETE /users/{id}`, `/permissions/{id}`, `/sprocs/{id}`, `/triggers/{id}`, `/udfs/{id}`.

use engine::Charge;
use hyper::StatusCode;

use crate::belongings::Shelf;
use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let shelf = Shelf::of(call)?;
    let (owner, name, precondition) = (shelf.owner, shelf.name(call), call.head.precondition());
    call.blocking(move |engine| Ok(engine.delete_resource(owner, &name, &precondition)?)).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT).charged(Charge::CATALOG_WRITE))
}
