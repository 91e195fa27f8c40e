//! `GET /users`, `/permissions`, `/sprocs`, `/triggers`, `/udfs`, and queries over them.

use crate::handlers::call::Call;
use crate::handlers::feed;
use crate::handlers::subresources::Subresources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let subresources = Subresources::of(call)?;
    let owner = subresources.owner;
    let resources = call.blocking(move |engine| Ok(engine.resources(owner)?)).await?;
    let values = resources.iter().map(|resource| subresources.json(call, resource)).collect();
    feed::reply(call, &subresources.parent, subresources.envelope, values)
}
