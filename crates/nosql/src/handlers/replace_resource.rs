//! `PUT /users/{id}`, `/permissions/{id}`, `/sprocs/{id}`, `/triggers/{id}`, `/udfs/{id}`: another definition, perhaps
//! another id.

use engine::Charge;
use hyper::StatusCode;

use crate::belongings::Shelf;
use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let shelf = Shelf::of(call)?;
    let (owner, name, definition) = (shelf.owner, shelf.name(call), shelf.definition(call)?);
    let precondition = call.head.precondition();
    let work = move |engine: &engine::Engine| {
        Ok(engine.replace_resource(owner, &name, definition, &precondition)?)
    };
    let resource = call.blocking(work).await?;
    Ok(Reply::json(StatusCode::OK, shelf.json(call, &resource).to_json())
        .charged(Charge::CATALOG_WRITE)
        .etag(resource.etag()))
}
