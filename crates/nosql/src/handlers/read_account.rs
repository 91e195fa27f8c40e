//! `GET /`: the account document.
//!
//! Clients use the endpoints in it verbatim for everything that follows, so they are the address that the
//! client itself used, unless the operator names another: mapped ports and host names work. The id must not be `localhost`, which makes the
//! JavaScript SDK read this document again before every operation.

use document::Value;
use hyper::StatusCode;

use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::consistency::{AccountSettings, Consistency};
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, text};

const REGION: &str = "South Central US";
const QUERY_ENGINE: &str = "{\"allowNewKeywords\":true,\"maxJoinsPerSqlQuery\":5,\"maxQueryRequestTimeoutFraction\":0.9,\
    \"maxSqlQueryInputLength\":262144,\"maxUdfRefPerSqlQuery\":10,\"queryMaxInMemorySortDocumentCount\":-500,\
    \"spatialMaxGeometryPointCount\":256,\"sqlAllowAggregateFunctions\":true,\"sqlAllowGroupByClause\":true,\
    \"sqlAllowLike\":true,\"sqlAllowNonFiniteNumbers\":false,\"sqlAllowScalarSubQuery\":true,\"sqlAllowSubQuery\":true,\
    \"sqlAllowTop\":true,\"enableSpatialIndexing\":true,\"maxInExpressionItemsCount\":16000,\
    \"maxLogicalAndPerSqlQuery\":2000,\"maxLogicalOrPerSqlQuery\":2000,\"maxSpatialQueryCells\":2147483647}";

pub(crate) async fn handle(call: &Call) -> Result<Reply, Error> {
    let AccountSettings { public_address, default_consistency, .. } = call.account();
    let endpoint = match public_address {
        Some(address) => format!("{}://{address}/", call.head.scheme()),
        None => call.head.origin().ok_or_else(|| {
            Error::BadRequest(
                "The request has no valid Host header, so the account cannot name its address.".to_owned(),
            )
        })?,
    };
    let consistency = default_consistency.unwrap_or(Consistency::Session);
    Ok(Reply::json(StatusCode::OK, account(&endpoint, consistency).to_json()))
}

fn account(endpoint: &str, consistency: Consistency) -> Value {
    let location = object([member("name", text(REGION)), member("databaseAccountEndpoint", text(endpoint))]);
    let locations = Value::Array(vec![location]);
    object([
        member("_self", text("")),
        member("id", text("bolide")),
        member("_rid", text("bolide.sql.cosmos.azure.com")),
        member("media", text("//media/")),
        member("addresses", text("//addresses/")),
        member("_dbs", text("//dbs/")),
        member("writableLocations", locations.clone()),
        member("readableLocations", locations),
        member("enableMultipleWriteLocations", Value::Bool(false)),
        member("continuousBackupEnabled", Value::Bool(false)),
        member("enableNRegionSynchronousCommit", Value::Bool(false)),
        member("enablePerPartitionFailoverBehavior", Value::Bool(false)),
        member("userReplicationPolicy", replication(&[("asyncReplication", Value::Bool(false))])),
        member(
            "userConsistencyPolicy",
            object([member("defaultConsistencyLevel", text(consistency.name()))]),
        ),
        member("systemReplicationPolicy", replication(&[])),
        member(
            "readPolicy",
            object([
                member("primaryReadCoefficient", Value::Int(1)),
                member("secondaryReadCoefficient", Value::Int(1)),
            ]),
        ),
        member("queryEngineConfiguration", text(QUERY_ENGINE)),
    ])
}

fn replication(first: &[(&str, Value)]) -> Value {
    let sizes = [("minReplicaSetSize", Value::Int(1)), ("maxReplicasetSize", Value::Int(2))];
    object(first.iter().cloned().chain(sizes).map(|(name, value)| member(name, value)))
}
