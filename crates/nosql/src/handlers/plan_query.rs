//! `POST /docs` that asks for a query's plan.
//!
//! A client gets the plan that the service would give if it can do its part of it. Where the request reaches one physical
//! partition (the container has one, or a partition key is named) there is another way for a client that cannot: the
//! server answers every query whole, and the plan leaves the client nothing to do but to send the same text. Over several
//! partitions such a client is told what it lacks: no request that names a range answers for another (decision 0025).

use hyper::StatusCode;
use query::{HybridRows, Plan};

use crate::call::Call;
use crate::error::Error;
use crate::response::Reply;
use crate::{headers, query_request};

/// The feature by which a client says that it ranks rows that come without an `ORDER BY` of the server's.
const SKIP_ORDER_BY: &str = "HybridSearchSkipOrderByRewrite";

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let container = call.owner_container()?;
    let question = query_request::read(call)?;
    let supported = supported_features(call);
    let can = |feature: &str| supported.as_ref().is_none_or(|known| known.iter().any(|name| name == feature));
    let rows = if can(SKIP_ORDER_BY) { HybridRows::Plain } else { HybridRows::Ordered };
    let definition = &container.definition;
    let plan = query::plan(
        &question.text,
        &question.parameters,
        &definition.partition_key,
        &definition.dialect(),
        rows,
    )?;
    let lacking: Vec<&str> = plan.features.iter().copied().filter(|feature| !can(feature)).collect();
    let scope = call.scope(&container)?;
    let plan = match (lacking.as_slice(), container.partitions_in(&scope).len()) {
        ([], _) => plan,
        (_, 0 | 1) => Plan::pass_through(plan.ranges),
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

/// What the client can do; none if it does not say, and then it gets what the service would plan.
fn supported_features(call: &Call) -> Option<Vec<String>> {
    let list = call.head.text(&headers::SUPPORTED_FEATURES);
    list.map(|list| list.split(',').map(|name| name.trim().to_owned()).collect())
}
