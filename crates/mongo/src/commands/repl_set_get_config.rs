//! `replSetGetConfig`: the configuration of a set whose only member this server is.

use bson::Document;

use crate::commands::hello::advertised;
use crate::commands::repl_set_get_status::not_replicated;
use crate::protocol::error::Result;
use crate::protocol::reply::{Reply, list};
use crate::protocol::settings::Profile;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let Profile::ReplicaSet { name } = &call.service.settings.profile else {
        return Err(not_replicated());
    };
    let member = Document::new()
        .with("_id", 0)
        .with("host", advertised(call))
        .with("arbiterOnly", false)
        .with("hidden", false)
        .with("priority", 1.0)
        .with("votes", 1);
    let settings = Document::new().with("replicaSetId", call.service.process);
    let config = Document::new()
        .with("_id", name.as_str())
        .with("version", 1)
        .with("term", 1_i64)
        .with("members", list([member]))
        .with("protocolVersion", 1_i64)
        .with("settings", settings);
    Ok(Document::new().with("config", config).into())
}
