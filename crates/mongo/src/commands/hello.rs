//! `hello`, also spelled `isMaster` and `ismaster`: what this server is and supports. The first command of every client.

use bson::{Document, ObjectId, RawDocument, Value, ValueRef};
use mql::Code;

use crate::auth::Mechanism;
use crate::commands::sasl_start;
use crate::protocol::error::{Error, Result};
use crate::protocol::fields::Fields;
use crate::protocol::limits::{
    APPLICATION_NAME_BYTES, DOCUMENT_BYTES, MESSAGE_BYTES, METADATA_BYTES, SESSION_MINUTES, WRITE_BATCH,
};
use crate::protocol::reply::{Reply, list};
use crate::protocol::settings::Profile;
use crate::service::call::Call;
use crate::wire::Compressor;

/// The wire protocol of version 8.0.
const WIRE_VERSION_MAX: i32 = 25;

pub(super) async fn run(call: &mut Call) -> Result<Reply> {
    let fields = call.fields();
    remember_client(call, fields)?;
    let mut answer = Document::new();
    if fields.is_set("helloOk")? {
        answer.push("helloOk", true);
    }
    answer.push(if call.spelled() == call.command.name { "isWritablePrimary" } else { "ismaster" }, true);
    describe_role(call, &mut answer);
    answer.push("maxBsonObjectSize", DOCUMENT_BYTES as i32);
    answer.push("maxMessageSizeBytes", MESSAGE_BYTES as i32);
    answer.push("maxWriteBatchSize", WRITE_BATCH as i32);
    answer.push("localTime", Value::DateTime(call.now.millis() as i64));
    answer.push("logicalSessionTimeoutMinutes", SESSION_MINUTES as i32);
    answer.push("connectionId", call.connection.id);
    answer.push("minWireVersion", 0);
    answer.push("maxWireVersion", WIRE_VERSION_MAX);
    answer.push("readOnly", false);
    let common = compression(fields)?;
    if !common.is_empty() {
        answer.push("compression", list(common));
    }
    if let Some(mechanisms) = supported_mechanisms(call, fields)? {
        answer.push("saslSupportedMechs", mechanisms);
    }
    if let Some(first) = fields.document("speculativeAuthenticate")?
        && let Some(step) = sasl_start::speculate(call, first)
    {
        answer.push("speculativeAuthenticate", step);
    }
    Ok(answer.into())
}

/// How the user that the client names may authenticate. An unknown user may do so like one that was made without a choice,
/// so that an unauthenticated client does not learn which users there are.
fn supported_mechanisms(call: &Call, fields: Fields<'_>) -> Result<Option<Value>> {
    let Some((database, user)) = fields.text("saslSupportedMechs")?.and_then(|name| name.split_once('.'))
    else {
        return Ok(None);
    };
    let mechanisms = call.service.users().mechanisms(user, database)?;
    let mechanisms = mechanisms.unwrap_or_else(|| Mechanism::ALL.to_vec());
    Ok(Some(list(mechanisms.into_iter().map(Mechanism::name))))
}

/// Remembers the client's description of itself in its first hello.
fn remember_client(call: &Call, fields: Fields<'_>) -> Result<()> {
    let Some(metadata) = fields.document("client")? else { return Ok(()) };
    let described = RawDocument::from_view(metadata);
    if described.as_bytes().len() > METADATA_BYTES {
        let text =
            format!("The client metadata document must be less than or equal to {METADATA_BYTES} bytes");
        return Err(Error::new(Code::CLIENT_METADATA_DOCUMENT_TOO_LARGE, text));
    }
    let application = metadata.get("application").and_then(ValueRef::as_document);
    let name = application.and_then(|application| application.get("name")).and_then(ValueRef::as_str);
    if name.is_some_and(|name| name.len() > APPLICATION_NAME_BYTES) {
        let text = format!(
            "The 'name' field in 'application' in the client metadata document must be less than or equal to \
             {APPLICATION_NAME_BYTES} bytes"
        );
        return Err(Error::new(Code::CLIENT_METADATA_APP_NAME_TOO_LARGE, text));
    }
    let mut client = call.connection.client.lock();
    if client.metadata.is_none() {
        client.application = name.map(str::to_owned);
        client.metadata = Some(described);
    }
    Ok(())
}

fn describe_role(call: &Call, answer: &mut Document) {
    match &call.service.settings.profile {
        Profile::ReplicaSet { name } => {
            let me = advertised(call);
            let written = Document::new().with("ts", call.timestamp).with("t", 1_i64);
            let date = Value::DateTime(i64::from(call.timestamp.seconds) * 1000);
            let last_write = Document::new()
                .with("opTime", written.clone())
                .with("lastWriteDate", date.clone())
                .with("majorityOpTime", written)
                .with("majorityWriteDate", date);
            answer.push("secondary", false);
            answer.push("setName", name.as_str());
            answer.push("setVersion", 1);
            answer.push("hosts", list([me.as_str()]));
            answer.push("primary", me.as_str());
            answer.push("me", me);
            answer.push("electionId", ELECTION);
            answer.push("lastWrite", last_write);
        }
        Profile::Sharded => answer.push("msg", "isdbgrid"),
        Profile::Standalone => {}
    }
}

/// The id of the only election: the one member never changes its role.
const ELECTION: ObjectId = ObjectId([0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1]);

/// Returns the name under which this client can reach the server: the configured one, the one it dialled, or the address it
/// reached.
pub(super) fn advertised(call: &Call) -> String {
    let local = call.connection.local;
    match (&call.service.settings.advertise, &call.connection.server_name) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) => format!("{name}:{}", local.port()),
        (None, None) => local.to_string(),
    }
}

/// Returns the compressors that both sides know, in the client's order.
fn compression(fields: Fields<'_>) -> Result<Vec<&str>> {
    let offered = fields.array("compression")?;
    let names = offered.iter().flat_map(|offered| offered.iter()).filter_map(ValueRef::as_str);
    Ok(names.filter(|name| Compressor::from_name(name).is_some()).collect())
}
