//! `whatsmyuri`: the client's own address as the server sees it.

use bson::Document;

use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    Ok(Document::new().with("you", call.connection.peer.to_string()).into())
}
