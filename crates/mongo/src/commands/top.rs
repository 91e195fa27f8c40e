//! `top`: how much each collection is used.

use bson::Document;

use crate::protocol::error::Result;
use crate::protocol::reply::Reply;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let is_there = |namespace: &str| {
        namespace
            .split_once('.')
            .is_some_and(|(database, name)| call.engine.collection(database, name).is_some())
    };
    let mut totals = Document::new().with("note", "all times in microseconds");
    totals.fields_mut().extend(call.service.usage.totals(is_there));
    Ok(Document::new().with("totals", totals).into())
}
