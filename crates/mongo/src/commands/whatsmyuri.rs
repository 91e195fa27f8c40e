//! `whatsmyuri`: the client's own address as the server sees it.

use bson::Document;

use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    Ok(Document::new().with("you", call.connection.peer.to_string()).into())
}
