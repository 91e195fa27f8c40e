//! `POST /docs` that requests a query's plan.
//!
//! A client that supports the necessary features gets the same plan as from the service. Where the request reaches one
//! physical partition (the container has one, or a partition key is named) other clients get a plan that leaves them
//! nothing to do but to send the same text: the server answers every query completely. Over several partitions such a
//! client gets an error that names the missing features: a request that names a range is not answered for another
//! (decision 0025).

use engine::Container;
use hyper::StatusCode;
use query::{HybridRows, Plan};

use crate::handlers::call::Call;
use crate::handlers::query_request;
use crate::message::options::TextOption;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

/// The feature of clients that rank rows themselves, without an `ORDER BY` by the server.
const SKIP_ORDER_BY: &str = "HybridSearchSkipOrderByRewrite";

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let plan = plan(call, &container)?;
    let lacking: Vec<&str> =
        plan.features.iter().copied().filter(|feature| !supports(call, feature)).collect();
    let scope = call.scope(&container)?;
    let plan = match (lacking.as_slice(), container.partitions_in(&scope).len()) {
        ([], _) => plan,
        (_, 0 | 1) => plan.pass_through(),
        (_, ranges) => {
            return Err(Error::BadRequest(format!(
                "Query contains the following features, which the calling client does not support: {}. The client \
                 has to join the rows of {ranges} partition key ranges; a query that names one partition key needs \
                 no join.",
                lacking.join(" ")
            )));
        }
    };
    Ok(Reply::json(StatusCode::OK, plan.to_value().to_json()))
}

/// Returns the plan of a request's query, for a client that supports whatever it takes.
pub(crate) fn plan(call: &Call, container: &Container) -> Result<Plan, Error> {
    let question = query_request::read(call)?;
    let definition = &container.definition;
    let rows = if supports(call, SKIP_ORDER_BY) { HybridRows::Plain } else { HybridRows::Ordered };
    Ok(query::plan(
        &question.text,
        &question.parameters,
        &definition.partition_key,
        &definition.dialect(),
        rows,
    )?)
}

/// Returns whether the client supports a feature. One that names none gets the plan of the service.
fn supports(call: &Call, feature: &str) -> bool {
    let list = call.head.text(TextOption::SupportedFeatures);
    list.is_none_or(|list| list.split(',').any(|name| name.trim() == feature))
}
