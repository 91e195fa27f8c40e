//! `getCmdLineOpts`: how the server was started, in the terms of MongoDB's own options. Test suites read from it which
//! features are on.

use bson::Document;

use crate::protocol::error::Result;
use crate::protocol::reply::{Reply, list};
use crate::protocol::settings::Profile;
use crate::service::call::Call;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let (service, local) = (&call.service, call.connection.local);
    let settings = &service.settings;
    let net = Document::new().with("bindIp", local.ip().to_string()).with("port", i32::from(local.port()));
    let mut parsed = Document::new().with("net", net);
    if let Profile::ReplicaSet { name } = &settings.profile {
        parsed.push("replication", Document::new().with("replSet", name.as_str()));
    }
    if service.requires_authentication() {
        parsed.push("security", Document::new().with("authorization", "enabled"));
    }
    if settings.test_commands {
        parsed.push("setParameter", Document::new().with("enableTestCommands", "1"));
    }
    Ok(Document::new()
        .with("argv", list(settings.arguments.iter().map(String::as_str)))
        .with("parsed", parsed)
        .into())
}
