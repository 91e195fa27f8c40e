//! `GET` and `DELETE /conflicts/{id}`: there is none.

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    call.owner_container()?;
    Err(engine::Error::NotFound { what: format!("conflict '{}'", call.head.path.at(5)) }.into())
}
