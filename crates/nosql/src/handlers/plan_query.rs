//! `POST /docs` that requests a query's plan.
//!
//! A client that supports the necessary features gets the same plan as from the service. Where the request reaches one
//! physical partition (the container has one, or a partition key is named) other clients get a plan that leaves them
//! nothing to do but to send the same text: the server answers every query completely. Over several partitions such a
//! client gets an error that names the missing features: a request that names a range is not answered for another
//! (decision 0025).

use hyper::StatusCode;
use query::HybridRows;

use crate::handlers::call::Call;
use crate::handlers::query_request;
use crate::message::options::TextOption;
use crate::message::reply::Reply;
use crate::protocol::error::Error;

/// The feature of clients that rank rows themselves, without an `ORDER BY` by the server.
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

/// Returns the features of the client; `None` if it sends none, and then it gets the plan of the service.
fn supported_features(call: &Call) -> Option<Vec<String>> {
    let list = call.head.text(TextOption::SupportedFeatures);
    list.map(|list| list.split(',').map(|name| name.trim().to_owned()).collect())
}
