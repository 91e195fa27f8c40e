//! `GET /users/{id}`, `/permissions/{id}`, `/sprocs/{id}`, `/triggers/{id}`, `/udfs/{id}`.

use engine::Charge;
use hyper::StatusCode;

use crate::belongings::Shelf;
use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let shelf = Shelf::of(call)?;
    let (owner, name) = (shelf.owner, shelf.name(call));
    let resource = call.blocking(move |engine| Ok(engine.resource(owner, &name)?)).await?;
    Ok(Reply::json(StatusCode::OK, shelf.json(call, &resource).to_json())
        .charged(Charge::CATALOG_READ)
        .etag(resource.etag()))
}
