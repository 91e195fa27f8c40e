//! `replSetGetStatus`: the state of a set whose only member this server is.

use bson::{Document, Value};
use mql::Code;

use crate::commands::hello::advertised;
use crate::protocol::error::{Error, Result};
use crate::protocol::reply::{Reply, list};
use crate::protocol::settings::Profile;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let Profile::ReplicaSet { name } = &call.service.settings.profile else {
        return Err(not_replicated());
    };
    let optime = Document::new().with("ts", call.timestamp).with("t", 1_i64);
    let date = Value::DateTime(i64::from(call.timestamp.seconds) * 1000);
    let member = Document::new()
        .with("_id", 0)
        .with("name", advertised(call))
        .with("health", 1.0)
        .with("state", 1)
        .with("stateStr", "PRIMARY")
        .with("uptime", call.service.started.elapsed().as_secs() as i32)
        .with("optime", optime.clone())
        .with("optimeDate", date.clone())
        .with("configVersion", 1)
        .with("configTerm", 1)
        .with("self", true);
    let optimes = Document::new()
        .with("lastCommittedOpTime", optime.clone())
        .with("lastCommittedWallTime", date)
        .with("appliedOpTime", optime.clone())
        .with("durableOpTime", optime);
    let status = Document::new()
        .with("set", name.as_str())
        .with("date", Value::DateTime(call.now.millis() as i64))
        .with("myState", 1)
        .with("term", 1_i64)
        .with("majorityVoteCount", 1)
        .with("writeMajorityCount", 1)
        .with("votingMembersCount", 1)
        .with("writableVotingMembersCount", 1)
        .with("optimes", optimes)
        .with("members", list([member]));
    Ok(status.into())
}

pub(super) fn not_replicated() -> Error {
    Error::new(Code::NO_REPLICATION_ENABLED, "not running with --replSet")
}
