//! `serverStatus`: figures of this process. A section that is set to 0 or false is left out.

use bson::{Document, Value};
use engine::PurgeFigures;

use crate::commands::hello::advertised;
use crate::protocol::error::Result;
use crate::protocol::fields::truth;
use crate::protocol::reply::{Reply, list};
use crate::protocol::settings::Profile;
use crate::protocol::version::version;
use crate::service::call::Call;

const MEBIBYTE: u64 = 1024 * 1024;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let millis = i64::try_from(call.service.started.elapsed().as_millis()).unwrap_or(i64::MAX);
    let seconds = millis / 1000;
    let host = &call.service.settings.host;
    let mut status = Document::new()
        .with("host", format!("{}:{}", host.name, call.connection.local.port()))
        .with("version", version())
        .with("process", if call.service.settings.profile == Profile::Sharded { "mongos" } else { "mongod" })
        .with("pid", i64::from(host.process))
        // A double as in MongoDB, without a fraction: tools read it into an integer and fail if that would truncate it.
        .with("uptime", seconds as f64)
        .with("uptimeMillis", millis)
        .with("uptimeEstimate", seconds)
        .with("localTime", Value::DateTime(call.now.millis() as i64));
    let waiting = call.blocking(|| call.engine.purge_figures_of_all())?;
    let waiting = waiting.into_iter().map(|(_, of)| of).fold(PurgeFigures::default(), PurgeFigures::plus);
    let sections = [
        ("connections", Some(connections(call))),
        ("logicalSessionRecordCache", Some(sessions(call))),
        ("mem", Some(memory(call))),
        ("metrics", Some(metrics(call, &waiting))),
        ("network", Some(network(call))),
        ("opcounters", Some(call.service.statistics.opcounters())),
        ("repl", replication(call)),
        ("storageEngine", Some(storage_engine())),
        ("transactions", Some(transactions(call))),
    ];
    for (name, section) in sections {
        let wanted = call.body.get(name).and_then(truth).unwrap_or(true);
        if let Some(section) = section.filter(|_| wanted) {
            status.push(name, section);
        }
    }
    Ok(status.into())
}

fn connections(call: &Call) -> Document {
    let front_end = &call.service.metrics.front_end;
    let current = front_end.connections_open() as i64;
    let most = i64::try_from(call.service.settings.limits.connections).unwrap_or(i64::MAX);
    let active = call.service.operations.list().len();
    Document::new()
        .with("current", current as i32)
        .with("available", (most - current) as i32)
        .with("totalCreated", front_end.connections_opened() as i64)
        .with("active", active as i32)
}

fn sessions(call: &Call) -> Document {
    Document::new().with("activeSessionsCount", call.service.sessions.count() as i32)
}

fn transactions(call: &Call) -> Document {
    Document::new().with("currentOpen", call.service.transactions.open_count() as i64)
}

fn memory(call: &Call) -> Document {
    let (resident, all) = (call.service.settings.host.used_bytes)();
    Document::new()
        .with("bits", 64)
        .with("resident", (resident / MEBIBYTE) as i32)
        .with("virtual", (all / MEBIBYTE) as i32)
        .with("supported", true)
}

fn network(call: &Call) -> Document {
    let front_end = &call.service.metrics.front_end;
    Document::new()
        .with("bytesIn", front_end.received_bytes() as i64)
        .with("bytesOut", front_end.sent_bytes() as i64)
        .with("numRequests", call.service.statistics.requests.get())
}

/// `ttl`: expired documents are invisible at once; these are the figures of their removal, and of those that wait for it.
fn metrics(call: &Call, waiting: &PurgeFigures) -> Document {
    let age = waiting.oldest_expiry.map_or(0, |oldest| call.now.millis_since(oldest));
    let statistics = &call.service.statistics;
    let purge = call.engine.purge_status();
    let passes = (call.service.parameters.passes(purge.paused) + purge.passes) as i64;
    let ttl = Document::new()
        .with("deletedDocuments", purge.purged_items as i64)
        .with("passes", passes)
        .with("subPasses", passes)
        .with("deletedBytes", purge.purged_bytes as i64)
        .with("backlogDocuments", waiting.backlog.items as i64)
        .with("backlogBytes", waiting.backlog.bytes as i64)
        .with("oldestAgeMillis", age as i64);
    let document = Document::new()
        .with("deleted", statistics.documents_deleted.get())
        .with("inserted", statistics.documents_inserted.get())
        .with("returned", statistics.documents_returned.get())
        .with("updated", statistics.documents_updated.get());
    let cursors = call.service.cursors.figures();
    let open = Document::new().with("total", cursors.open as i64).with("noTimeout", cursors.kept as i64);
    let cursor = Document::new()
        .with("timedOut", call.service.cursors.timed_out.get())
        .with("totalOpened", statistics.cursors_opened.get())
        .with("open", open);
    Document::new().with("cursor", cursor).with("document", document).with("ttl", ttl)
}

fn replication(call: &Call) -> Option<Document> {
    let Profile::ReplicaSet { name } = &call.service.settings.profile else { return None };
    let me = advertised(call);
    Some(
        Document::new()
            .with("setName", name.as_str())
            .with("setVersion", 1)
            .with("isWritablePrimary", true)
            .with("secondary", false)
            .with("hosts", list([me.as_str()]))
            .with("primary", me.as_str())
            .with("me", me)
            .with("rbid", 1),
    )
}

fn storage_engine() -> Document {
    Document::new()
        .with("name", "bolide")
        .with("supportsCommittedReads", true)
        .with("supportsSnapshotReadConcern", true)
        .with("persistent", true)
}
