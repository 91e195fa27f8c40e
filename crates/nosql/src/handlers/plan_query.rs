//! `POST /docs` that asks for a query's plan.
//!
//! Every query is evaluated whole on the server, so the plan leaves the client nothing to do but to send the
//! same text. JavaScript clients ask for a plan with every query; it must be cheap. A query that could not be
//! run gets its error here already.

use hyper::StatusCode;

use crate::call::Call;
use crate::error::Error;
use crate::feed;
use crate::response::Reply;

const PLAN: &str = "{\"partitionedQueryExecutionInfoVersion\":2,\"queryInfo\":{\"distinctType\":\"None\",\
    \"top\":null,\"offset\":null,\"limit\":null,\"orderBy\":[],\"orderByExpressions\":[],\
    \"groupByExpressions\":[],\"groupByAliases\":[],\"aggregates\":[],\"groupByAliasToAggregateType\":{},\
    \"rewrittenQuery\":\"\",\"hasSelectValue\":false,\"hasNonStreamingOrderBy\":false,\"dCountInfo\":null},\
    \"queryRanges\":[{\"min\":\"\",\"max\":\"FF\",\"isMinInclusive\":true,\"isMaxInclusive\":false}],\
    \"hybridSearchQueryInfo\":null}";

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    call.owner_container()?;
    feed::query(call)?;
    Ok(Reply::json(StatusCode::OK, PLAN))
}
