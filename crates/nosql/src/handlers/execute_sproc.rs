//! `POST /sprocs/{id}`: JavaScript is not supported. The error distinguishes a procedure that does not exist.

use crate::handlers::call::Call;
use crate::handlers::subresources::Subresources;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let subresources = Subresources::of(call)?;
    let (owner, name) = (subresources.owner, subresources.name(call));
    call.blocking(move |engine| Ok(engine.resource(owner, &name)?)).await?;
    Err(Error::NotSupported("running stored procedures needs server-side JavaScript, which is".to_owned()))
}
