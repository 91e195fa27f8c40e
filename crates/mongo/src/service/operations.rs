//! The running commands, so that they can be shown, limited in time and stopped.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::{Document, RawDocument};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::diagnostics::operation_kind::OperationKind;
use crate::protocol::cancellation::{CancelReason, Cancellation};
use crate::protocol::fields::whole;
use crate::protocol::redacted::{TEXT_BYTES_MAX, beginning, redacted};
use crate::protocol::reply::list;
use crate::service::Service;
use crate::service::connection::Connection;
use crate::session::SessionId;
use crate::session::transactions::StopCommands;

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) number: u32,
    pub(crate) kind: OperationKind,
    pub(crate) database: String,
    pub(crate) body: RawDocument,
    pub(crate) session: Option<SessionId>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) since: Instant,
    pub(crate) cancellation: Cancellation,
}

impl Operation {
    /// Whether the command is a part of that transaction, or ends it.
    fn is_in_transaction(&self, session: &SessionId, number: i64) -> bool {
        self.session.as_ref() == Some(session)
            && self.body.get("autocommit").is_some()
            && self.body.get("txnNumber").and_then(whole) == Some(number)
    }
}

/// All commands that run.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    running: Mutex<(u32, BTreeMap<u32, Arc<Operation>>)>,
}

impl Operations {
    /// Enters a command; it leaves when the guard is dropped. Numbers are positive and come again only after two thousand
    /// million others.
    pub(crate) fn enter(self: &Arc<Self>, make: impl FnOnce(u32) -> Operation) -> Running {
        let mut running = self.running.lock();
        running.0 = running.0 % (i32::MAX as u32) + 1;
        let number = running.0;
        let operation = Arc::new(make(number));
        running.1.insert(number, Arc::clone(&operation));
        Running { operations: Arc::clone(self), number }
    }

    /// Returns the command of that number, if it runs.
    pub(crate) fn get(&self, number: i64) -> Option<Arc<Operation>> {
        self.running.lock().1.get(&u32::try_from(number).ok()?).cloned()
    }

    /// All that run, in the order they came.
    pub(crate) fn list(&self) -> Vec<Arc<Operation>> {
        self.running.lock().1.values().cloned().collect()
    }

    /// Returns what stops the commands of a transaction.
    pub(crate) fn stop_in_transaction(self: &Arc<Self>) -> StopCommands {
        let operations = Arc::clone(self);
        Box::new(move |session, number, why, except| {
            let is_meant = |operation: &Operation| {
                operation.is_in_transaction(session, number)
                    && except.is_none_or(|except| !operation.cancellation.is(except))
            };
            operations.stop(is_meant, why);
        })
    }

    /// Stops the commands that `which` selects.
    pub(crate) fn stop(&self, which: impl Fn(&Operation) -> bool, why: CancelReason) {
        for operation in self.list().iter().filter(|operation| which(operation)) {
            operation.cancellation.cancel(why);
        }
    }
}

/// A command's entry.
#[derive(Debug)]
pub(crate) struct Running {
    operations: Arc<Operations>,
    pub(crate) number: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.operations.running.lock().1.remove(&self.number);
    }
}

/// Returns what runs, one document each; only one user's if asked.
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
    let argument = operation.body.view().iter().next().and_then(|(_, value)| value.as_str());
    document.push("active", true);
    document.push("opid", operation.number as i32);
    document.push("secs_running", micros / 1_000_000);
    document.push("microsecs_running", micros);
    document.push("op", operation.kind.in_current_op());
    document.push("ns", namespace(&operation.database, argument));
    document.push("command", redacted(operation.body.view()));
    document.push("killPending", operation.cancellation.reason().is_some());
    document
}

/// Returns the namespace that a command with this argument is about.
fn namespace(database: &str, argument: Option<&str>) -> String {
    format!("{database}.{}", argument.map_or("$cmd", |name| beginning(name, TEXT_BYTES_MAX)))
}
