//! Which commands the audit log has, and what it has of them: sign-ins, refusals, and changes of users, collections, indexes
//! and parameters. Commands on documents are not in it, and no field that could hold a password is read.

use bson::{Document, DocumentRef, ValueRef, to_extended_json};
use mql::Code;
use telemetry::{AuditEvent, AuditOutcome, OperationId};

use crate::auth::{Identity, Principal};
use crate::protocol::error::Error;
use crate::service::Service;
use crate::service::call::Call;
use crate::service::command::{Audit, AuditDetails};
use crate::service::connection::Connection;

/// The name of this front end.
const API: &str = "mongodb";

/// Records a command that has run.
pub(crate) fn ran(call: &Call, failed: Option<Code>, reply: Option<DocumentRef<'_>>) {
    let Some(log) = call.service.metrics.registry.audit() else { return };
    let is_denied = failed.is_some_and(is_denial);
    let is_recorded = match call.command.audit {
        Audit::Audited => true,
        Audit::SignIn => {
            failed.is_none()
                && matches!(reply.and_then(|reply| reply.get("done")), Some(ValueRef::Bool(true)))
        }
        Audit::Unaudited => false,
    };
    if !(is_recorded || is_denied) {
        return;
    }
    let mut event = event(&call.connection, call.command.name);
    event.target = Some(target(call));
    event.details = details(call);
    event.outcome = match failed {
        None => AuditOutcome::Success,
        Some(code) if is_denial(code) => AuditOutcome::Denied,
        Some(_) => AuditOutcome::Failure,
    };
    event.status = failed.map(|code| code.0.into());
    log.record(event);
}

/// Records a command that was refused before it ran.
pub(crate) fn refused(service: &Service, connection: &Connection, operation: OperationId, error: &Error) {
    let Some(log) = service.metrics.registry.audit().filter(|_| is_denial(error.code)) else { return };
    let mut event = event(connection, service.metrics.front_end.name(operation));
    event.outcome = AuditOutcome::Denied;
    event.status = Some(error.code.0.into());
    log.record(event);
}

fn event(connection: &Connection, action: &str) -> AuditEvent {
    AuditEvent {
        api: API,
        who: connection.client.lock().identity.as_ref().map(who),
        // Commands of the explorer and of the admin API have no connection of their own; their own events have the address.
        from: Some(connection.peer).filter(|peer| peer.port() != 0),
        action: action.to_owned(),
        target: None,
        details: None,
        outcome: AuditOutcome::Success,
        status: None,
    }
}

fn who(Identity { user, database, principal, .. }: &Identity) -> String {
    match principal {
        Principal::User(_) => format!("{user}@{database}"),
        Principal::Account(holder) => holder.label(),
    }
}

fn is_denial(code: Code) -> bool {
    [Code::UNAUTHORIZED, Code::AUTHENTICATION_FAILED, Code::MECHANISM_UNAVAILABLE].contains(&code)
}

/// Returns what a command is about: a user, a collection, or a database.
fn target(call: &Call) -> String {
    if call.command.audit == Audit::SignIn {
        let claimed = call.connection.client.lock().claimed.clone();
        return claimed
            .map_or_else(|| call.database.clone(), |(user, database)| format!("{user}@{database}"));
    }
    match call.argument().as_str() {
        Some(name) => format!("{}.{name}", call.database),
        None => call.database.clone(),
    }
}

/// Roles, parameters, and when indexes let documents expire.
fn details(call: &Call) -> Option<String> {
    let body = call.body.view();
    let mut details = Document::new();
    match call.command.traits.audit_details {
        AuditDetails::Roles => {
            details.push("roles", body.get("roles")?.to_value());
        }
        AuditDetails::Parameters => {
            let is_own = |name: &str| name != "lsid" && !name.starts_with('$');
            for (name, value) in body.iter().skip(1).filter(|(name, _)| is_own(name)) {
                details.push(name, value.to_value());
            }
        }
        AuditDetails::NewIndexes => {
            for index in body.get("indexes")?.as_array()?.iter().filter_map(ValueRef::as_document) {
                if let (Some(name), Some(seconds)) =
                    (index.get("name")?.as_str(), index.get("expireAfterSeconds"))
                {
                    details.push(name, seconds.to_value());
                }
            }
        }
        AuditDetails::ChangedIndex => {
            let index = body.get("index")?.as_document()?;
            let name = index.get("name").and_then(ValueRef::as_str).unwrap_or("index");
            details.push(name, index.get("expireAfterSeconds")?.to_value());
        }
        AuditDetails::Nothing => return None,
    }
    Some(to_extended_json(ValueRef::Document(bson::RawDocument::from_document(&details).view()), true))
}
