//! `authenticate`: the way of client certificates, which is not offered.

use mql::Code;

use crate::call::Call;
use crate::error::{Error, Result};
use crate::reply::Reply;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let name = call.fields().text("mechanism")?.unwrap_or("MONGODB-CR");
    let text = format!("Received authentication for mechanism {name} which is not enabled");
    Err(Error::new(Code::MECHANISM_UNAVAILABLE, text))
}
