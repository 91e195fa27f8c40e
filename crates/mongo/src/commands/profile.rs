//! `profile`: the profiler is off, and cannot be switched on.

use bson::Document;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::whole;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    match whole(call.argument()) {
        Some(-1 | 0) => Ok(Document::new().with("was", 0).with("slowms", 100).with("sampleRate", 1.0).into()),
        _ => Err(Error::not_supported("the profiler")),
    }
}
