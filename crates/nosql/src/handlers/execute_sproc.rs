//! `POST /sprocs/{id}`: nothing here runs JavaScript. A procedure that does not exist is still told apart.

use crate::belongings::Shelf;
use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let shelf = Shelf::of(call)?;
    let (owner, name) = (shelf.owner, shelf.name(call));
    call.blocking(move |engine| Ok(engine.resource(owner, &name)?)).await?;
    Err(Error::NotSupported("running stored procedures needs server-side JavaScript, which is".to_owned()))
}
