//! `authenticate`: authentication by client certificates, which is not offered.

use mql::Code;

use crate::protocol::error::{Error, Result};
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let name = call.fields().text("mechanism")?.unwrap_or("MONGODB-CR");
    let text = format!("Received authentication for mechanism {name} which is not enabled");
    Err(Error::new(Code::MECHANISM_UNAVAILABLE, text))
}
