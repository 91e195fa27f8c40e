//! `currentOp`: the running commands. Fields of the command besides its own are a filter.
//!
//! Operators always get an answer. A user without a role, who sees its own commands, waits for a permit, as for a query: it may
//! have thousands of commands that wait, and compare them with a large filter.

use bson::Document;
use mql::filter::Filter;
use transport::Work;

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
    let own = call.fields().is_set("$ownOps")?.then(|| call.connection.user_digest());
    let _permit = match own {
        Some(_) => {
            let admission = &call.service.settings.admission;
            Some(admission.enter(call.connection.tenant(), Work::Query).await?)
        }
        None => None,
    };
    let running = call.blocking(|| running(call, &filter, own))?;
    Ok(Document::new().with("inprog", list(running)).into())
}

/// Returns the running commands that match a filter, those of one user if asked.
fn running(call: &Call, filter: &Filter, user: Option<[u8; 32]>) -> Result<Vec<Document>> {
    let context = call.context();
    let mut running = Vec::new();
    for operation in operations(&call.service, user) {
        if filter.matches(operation.view(), &context)? {
            running.push(operation);
        }
    }
    Ok(running)
}
