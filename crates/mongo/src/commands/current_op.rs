//! `currentOp`: the running commands. Fields of the command besides its own are a filter.

use bson::Document;
use mql::filter::Filter;

use crate::protocol::error::Result;
use crate::protocol::fields::is_generic;
use crate::protocol::reply::{Reply, list};
use crate::service::call::Call;
use crate::service::operations::operations;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let wanted: Document = call
        .body
        .view()
        .iter()
        .skip(1)
        .filter(|(name, _)| !is_generic(name))
        .map(|(name, value)| (name, value.to_value()))
        .collect();
    let filter = Filter::parse(wanted.view(), &mql::filter::Settings::default())?;
    let context = call.context();
    let own = call.fields().is_set("$ownOps")?.then(|| call.connection.user_digest());
    let mut running = Vec::new();
    for operation in operations(&call.service, own) {
        if filter.matches(operation.view(), &context)? {
            running.push(operation);
        }
    }
    Ok(Document::new().with("inprog", list(running)).into())
}
