//! `logout`: forgets who has authenticated on this connection.

use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    call.connection.client.lock().identity = None;
    Ok(Reply::ok())
}
