//! `getDefaultRWConcern`: the concerns of commands that name none.

use bson::{Document, Value};

use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let answer = Document::new()
        .with("defaultReadConcern", Document::new().with("level", "local"))
        .with("defaultWriteConcern", Document::new().with("w", "majority").with("wtimeout", 0))
        .with("defaultWriteConcernSource", "implicit")
        .with("defaultReadConcernSource", "implicit")
        .with("localUpdateWallClockTime", Value::DateTime(call.now.millis() as i64));
    Ok(answer.into())
}
