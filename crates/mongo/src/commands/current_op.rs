//! `currentOp`: the commands that run just now. Fields of the command besides its own are a filter.

use bson::{Document, Value};
use mql::filter::Filter;

use crate::call::Call;
use crate::error::Result;
use crate::fields::is_generic;
use crate::operations::Operation;
use crate::reply::{Reply, list};
use crate::rights::redacted;
use crate::service::Service;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let wanted: Document = call
        .body
        .view()
        .iter()
        .skip(1)
        .filter(|(name, _)| !is_generic(name))
        .map(|(name, value)| (name, value.to_value()))
        .collect();
    let filter = Filter::parse(wanted.view(), &mql::filter::Settings::default())?;
    let context = call.context();
    let own = call.fields().is_set("$ownOps")?.then(|| call.connection.user_digest());
    let mut running = Vec::new();
    for operation in operations(&call.service, own) {
        if filter.matches(operation.view(), &context)? {
            running.push(operation);
        }
    }
    Ok(Document::new().with("inprog", list(running)).into())
}

/// What runs, one document each; only one user's if asked.
pub(crate) fn operations(service: &Service, user: Option<[u8; 32]>) -> Vec<Document> {
    let running = service.operations.list();
    let wanted =
        running.iter().filter(|operation| user.is_none_or(|user| operation.connection.user_digest() == user));
    wanted.map(|operation| describe(service, operation)).collect()
}

fn describe(service: &Service, operation: &Operation) -> Document {
    let connection = &operation.connection;
    let elapsed = operation.since.elapsed();
    let micros = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
    let client = connection.client.lock();
    let mut document = Document::new()
        .with("type", "op")
        .with("host", format!("{}:{}", service.settings.host.name, connection.local.port()))
        .with("desc", format!("conn{}", connection.id))
        .with("connectionId", connection.id)
        .with("client", connection.peer.to_string());
    if let Some(application) = &client.application {
        document.push("appName", application.as_str());
    }
    if let Some(metadata) = &client.metadata {
        document.push("clientMetadata", metadata.to_document());
    }
    if let Some(identity) = &client.identity {
        let user =
            Document::new().with("user", identity.user.as_str()).with("db", identity.database.as_str());
        document.push("effectiveUsers", list([user]));
    }
    if let Some(session) = &operation.session {
        document.push("lsid", session.to_document());
    }
    let argument = operation.body.view().iter().next().map_or(Value::Null, |(_, value)| value.to_value());
    document.push("active", true);
    document.push("opid", operation.number as i32);
    document.push("secs_running", micros / 1_000_000);
    document.push("microsecs_running", micros);
    document.push("op", kind(operation.name));
    document.push("ns", namespace(&operation.database, &argument));
    document.push("command", redacted(operation.body.view()));
    document.push("killPending", operation.brake.why().is_some());
    document
}

fn kind(command: &str) -> &'static str {
    match command {
        "find" => "query",
        "getMore" => "getmore",
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        _ => "command",
    }
}

fn namespace(database: &str, argument: &Value) -> String {
    match argument {
        Value::String(name) => format!("{database}.{name}"),
        _ => format!("{database}.$cmd"),
    }
}
