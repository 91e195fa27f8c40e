//! The JSON of databases, containers and partition key ranges: the user's definition and the system's properties.

use document::{RangeRid, Value};
use engine::{Container, Database, Partition, Usage};

use crate::protocol::json::{member, object, text};

/// Returns a database, as in `GET /dbs/x`.
pub(crate) fn database(database: &Database) -> Value {
    object([
        member("id", text(&database.name)),
        member("_rid", text(database.rid.to_string())),
        member("_self", text(database.self_link())),
        member("_etag", text(database.etag().to_string())),
        member("_colls", text("colls/")),
        member("_users", text("users/")),
        member("_ts", Value::Int(database.ts() as i64)),
    ])
}

/// Returns a container, as in `GET /dbs/x/colls/y`.
pub(crate) fn container(container: &Container) -> Value {
    let mut value = container.definition.to_value();
    if let Some(members) = value.as_object_mut() {
        members.insert("_rid", container.rid.to_string());
        members.insert("_ts", container.ts() as i64);
        members.insert("_self", container.self_link());
        members.insert("_etag", container.etag().to_string());
        for feed in ["docs", "sprocs", "triggers", "udfs", "conflicts"] {
            members.insert(format!("_{feed}"), format!("{feed}/"));
        }
    }
    value
}

/// Returns the `statistics` of a container, one entry for each range.
pub(crate) fn statistics(partition: usize, usage: &Usage) -> Value {
    object([
        member("id", text(partition.to_string())),
        member("sizeInKB", Value::Int(kilobytes(usage.living.bytes) as i64)),
        member("documentCount", Value::Int(usage.living.items as i64)),
        member("sampledDistinctPartitionKeyCount", Value::Int(0)),
        member("partitionKeys", Value::Array(Vec::new())),
    ])
}

/// Returns an entry of `/pkranges`.
pub(crate) fn range(container: &Container, partition: &Partition, etag: &str) -> Value {
    let rid = RangeRid { container: container.rid, number: partition.index as u64 };
    object([
        member("_rid", text(rid.to_string())),
        member("id", text(partition.index.to_string())),
        member("_etag", text(etag)),
        member("minInclusive", text(partition.range.min.to_string())),
        member("maxExclusive", text(partition.range.max.to_string())),
        member("ridPrefix", Value::Int(partition.index as i64)),
        member("_self", text(format!("{}pkranges/{rid}/", container.self_link()))),
        member("throughputFraction", Value::Double(1.0 / container.partitions.len() as f64)),
        member("status", text("online")),
        member("parents", Value::Array(Vec::new())),
        member("ownedArchivalPKRangeIds", Value::Array(Vec::new())),
        member("_ts", Value::Int(container.ts() as i64)),
        member("_lsn", Value::Int(1)),
    ])
}

/// Returns a size in kilobytes, the unit on the wire, rounded up.
pub(crate) fn kilobytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}
