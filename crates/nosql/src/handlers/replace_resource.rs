//! `PUT /users/{id}`, `/permissions/{id}`, `/sprocs/{id}`, `/triggers/{id}`, `/udfs/{id}`: another definition, perhaps
//! another id.

use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::subresources::Subresources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let subresources = Subresources::of(call)?;
    let (owner, name, definition) =
        (subresources.owner, subresources.name(call), subresources.definition(call)?);
    let precondition = call.head.precondition();
    let work = move |engine: &engine::Engine| {
        Ok(engine.replace_resource(owner, &name, definition, &precondition)?)
    };
    let resource = call.blocking(work).await?;
    let reply = Reply::json(StatusCode::OK, subresources.json(call, &resource).to_json())
        .charged(Charge::CATALOG_WRITE)
        .etag(resource.etag());
    Ok(subresources.place(call, reply).await)
}
