//! `POST /users`, `/permissions`, `/sprocs`, `/triggers`, `/udfs`: a new definition, or with
//! `x-ms-documentdb-is-upsert` perhaps a new version of one.

use document::Value;
use engine::Charge;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::handlers::subresources::Subresources;
use crate::message::reply::Reply;
use crate::message::request::Verb;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let subresources = Subresources::of(call)?;
    let definition = subresources.definition(call)?;
    let owner = subresources.owner;
    let may_exist = call.head.verb()? == Some(Verb::Upsert);
    let precondition = call.head.precondition();
    let work = move |engine: &engine::Engine| {
        let name = definition.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if may_exist && engine.resource(owner, &name).is_ok() {
            let replaced = engine.replace_resource(owner, &name, definition, &precondition)?;
            return Ok((StatusCode::OK, replaced));
        }
        Ok((StatusCode::CREATED, engine.create_resource(owner, definition)?))
    };
    let (status, resource) = call.blocking(work).await?;
    let reply = Reply::json(status, subresources.json(call, &resource).to_json())
        .charged(Charge::CATALOG_WRITE)
        .etag(resource.etag());
    Ok(subresources.place(call, reply).await)
}
