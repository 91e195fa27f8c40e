//! `GET /users`, `/permissions`, `/sprocs`, `/triggers`, `/udfs`, and queries over them.

use crate::belongings::Shelf;
use crate::call::Call;
use crate::error::Error;
use crate::feed;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let shelf = Shelf::of(call)?;
    let owner = shelf.owner;
    let resources = call.blocking(move |engine| Ok(engine.resources(owner)?)).await?;
    let values = resources.iter().map(|resource| shelf.json(call, resource)).collect();
    feed::reply(call, &shelf.parent, shelf.envelope, values)
}
