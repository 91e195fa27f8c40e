//! `logout`: forgets the identity of this connection.

use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    call.connection.client.lock().identity = None;
    Ok(Reply::ok())
}
