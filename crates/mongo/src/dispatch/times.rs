//! The times that commands and their answers carry: `$clusterTime`, `operationTime`, `afterClusterTime`.

use bson::{Binary, Document, Timestamp, ValueRef};
use mql::Code;
use storage::Time;

use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::operation_time;
use crate::service::Service;
use crate::service::call::Call;
use crate::service::command::Effect;

/// `operationTime` and `$clusterTime`, where the profile has them. The first is the time of the last write, which its event
/// in a change stream has too. A read has the time behind the last commit when it began; a write that changes no document
/// has the time behind the last commit now. Times that clients have seen move only the second.
pub(super) fn times(service: &Service, call: Option<&Call>) -> Document {
    if !service.settings.profile.has_cluster_time() {
        return Document::new();
    }
    let Ok(now) = service.engine.now() else { return Document::new() };
    let written = call.and_then(|call| call.executor.meter().position()).map(operation_time::cluster_time);
    let began = || call.filter(|call| call.command.effect == Effect::Reads).map(|call| call.began);
    let operation =
        written.or_else(began).unwrap_or_else(|| operation_time::behind(now, service.engine.last_sequence()));
    service.clock.observe(operation, now);
    let current = service.clock.current(now);
    Document::new().with("operationTime", operation).with("$clusterTime", cluster_time(current))
}

/// Returns a cluster time with the signature of a server that signs nothing.
fn cluster_time(time: Timestamp) -> Document {
    let signature =
        Document::new().with("hash", Binary { subtype: 0, bytes: vec![0; 20] }).with("keyId", 0_i64);
    Document::new().with("clusterTime", time).with("signature", signature)
}

/// Takes over the times that the client has seen.
pub(super) fn hear_time(service: &Service, fields: Fields<'_>, now: Time) -> Result<()> {
    if let Some(ValueRef::Document(gossip)) = fields.document.get("$clusterTime")
        && let Some(ValueRef::Timestamp(seen)) = gossip.get("clusterTime")
    {
        service.clock.observe(seen, now);
    }
    if let Some(concern) = fields.document("readConcern")?
        && let Some(ValueRef::Timestamp(after)) = concern.get("afterClusterTime")
        && !service.clock.observe(after, now)
    {
        let text = "readConcern afterClusterTime value must not be greater than the current clusterTime";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    Ok(())
}
