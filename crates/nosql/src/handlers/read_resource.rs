//! `GET /users/{id}`, `/permissions/{id}`, `/sprocs/{id}`, `/triggers/{id}`, `/udfs/{id}`.

use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::subresources::Subresources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let subresources = Subresources::of(call)?;
    let (owner, name) = (subresources.owner, subresources.name(call));
    let resource = call.blocking(move |engine| Ok(engine.resource(owner, &name)?)).await?;
    let reply = Reply::json(StatusCode::OK, subresources.json(call, &resource).to_json())
        .charged(Charge::CATALOG_READ)
        .etag(resource.etag());
    Ok(subresources.place(call, reply).await)
}
