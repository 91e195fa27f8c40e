//! Which commands the audit log has, and what it has of them: sign-ins, refusals, and changes of users, collections, indexes
//! and parameters. Commands on documents are not in it, and no field that could hold a password is read.

use bson::{Document, DocumentRef, ValueRef, to_extended_json};
use mql::Code;
use telemetry::{AuditEvent, AuditOutcome, OperationId};

use crate::auth::{Identity, Principal};
use crate::protocol::error::Error;
use crate::protocol::fields::is_generic;
use crate::service::Service;
use crate::service::call::Call;
use crate::service::command::{Audit, AuditDetails, CollectionName};
use crate::service::connection::Connection;

/// The name of this front end.
const API: &str = "mongodb";

/// Records a command that has run, or that its client may not run.
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

/// Records a refused request that is no complete command.
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
    let name = match call.command.traits.collection {
        CollectionName::Argument => call.argument().as_str(),
        CollectionName::Field(name) => call.body.get(name).and_then(ValueRef::as_str),
        CollectionName::Namespace => return call.argument().as_str().unwrap_or(&call.database).to_owned(),
    };
    name.map_or_else(|| call.database.clone(), |name| format!("{}.{name}", call.database))
}

/// Returns the settings in a command, as JSON.
fn details(call: &Call) -> Option<String> {
    let details = match call.command.traits.audit_details {
        AuditDetails::Nothing => return None,
        AuditDetails::Fields(names) => fields(call, names),
        AuditDetails::FieldsAndIndexes(names) => with_indexes(fields(call, names), expiry_by_index(call)),
        AuditDetails::User => with_password(fields(call, &["roles"]), call),
        AuditDetails::Parameters => parameters(call),
        AuditDetails::NewIndexes => expiry_by_index(call),
        AuditDetails::ChangedIndex => changed_index(call).unwrap_or_default(),
    };
    let shown =
        || to_extended_json(ValueRef::Document(bson::RawDocument::from_document(&details).view()), true);
    (!details.is_empty()).then(shown)
}

fn fields(call: &Call, names: &[&str]) -> Document {
    let given = call.body.view().iter().filter(|(name, _)| names.contains(name));
    given.map(|(name, value)| (name, value.to_value())).collect()
}

fn with_indexes(details: Document, expiry: Document) -> Document {
    if expiry.is_empty() { details } else { details.with("indexes", expiry) }
}

/// Adds whether a password is set. The password itself is not read.
fn with_password(details: Document, call: &Call) -> Document {
    if call.body.get("pwd").is_some() { details.with("passwordChanged", true) } else { details }
}

/// Returns the parameters that the server has; others might be secrets.
fn parameters(call: &Call) -> Document {
    let is_ours = |name: &str| !is_generic(name) && call.service.parameter(name).is_some();
    let given = call.body.view().iter().skip(1).filter(|(name, _)| is_ours(name));
    given.map(|(name, value)| (name, value.to_value())).collect()
}

/// Returns when the new indexes let documents expire, by their names.
fn expiry_by_index(call: &Call) -> Document {
    let expiring = call.each_document("indexes").filter_map(|index| {
        let name = index.get("name").and_then(ValueRef::as_str)?.to_owned();
        Some((name, index.get("expireAfterSeconds")?.to_value()))
    });
    expiring.collect()
}

/// Returns when the changed index lets documents expire.
fn changed_index(call: &Call) -> Option<Document> {
    let index = call.body.get("index")?.as_document()?;
    let name = index.get("name").and_then(ValueRef::as_str).unwrap_or("index");
    Some(Document::new().with(name, index.get("expireAfterSeconds")?.to_value()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use account::{Key, Keyring};
    use bson::RawDocument;
    use engine::Engine;
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};
    use telemetry::{MemoryAuditSink, Registry};
    use tokio::time::Instant;

    use super::*;
    use crate::dispatch::{carry_out, prepare};
    use crate::protocol::cancellation::Cancellation;
    use crate::protocol::reply::Reply;
    use crate::protocol::settings::{Account, Authentication, Host, Profile, Settings};
    use crate::service::command::{Access, ApiVersion, Command, Effect, RunsOn, Traits};
    use crate::session::InTransaction;
    use crate::wire::{Form, Request, Style};

    /// A command whose handler panics.
    static BROKEN: Command = Command {
        name: "broken",
        aliases: &[],
        access: Access::Public,
        runs_on: RunsOn::Anywhere,
        effect: Effect::Reads,
        transaction: InTransaction::Refused,
        audit: Audit::Audited,
        api: ApiVersion::None,
        help: "panics",
        traits: Traits::USUAL,
        run: |_| {
            Box::pin(async {
                assert!(std::hint::black_box(false), "as the test wants");
                Ok(Reply::ok())
            })
        },
    };

    fn service(registry: Registry) -> Arc<Service> {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        let host = Host {
            name: "machine".to_owned(),
            system: ("Linux".to_owned(), "6".to_owned()),
            cores: 1,
            memory_bytes: 1 << 30,
            process: 1,
            used_bytes: || (0, 0),
        };
        let account =
            Account { user: "bolide".to_owned(), keys: Keyring::of(Key::parse("c2VjcmV0").unwrap()) };
        let settings = Settings {
            profile: Profile::Standalone,
            advertise: None,
            authentication: Authentication::Optional,
            account,
            test_commands: false,
            tls: None,
            host,
            arguments: Vec::new(),
            limits: crate::Limits::default(),
            scratch: None,
            admission: Arc::default(),
            registry: Arc::new(registry),
        };
        Service::new(Arc::new(Engine::open(store).unwrap()), settings)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_command_that_panics_is_answered_and_has_a_line() {
        let log = Arc::<MemoryAuditSink>::default();
        let service = service(Registry::default().with_audit(Arc::clone(&log) as _));
        let body = RawDocument::from_document(&Document::new().with("ping", "what").with("$db", "shop"));
        let style = Style { form: Form::Message, compressor: None };
        let request = Request { id: 0, body, sequences: Vec::new(), style };
        let (connection, mut operation) = (service.inner_connection(None), OperationId::UNKNOWN);
        let call = prepare(&service, &connection, request, Cancellation::default(), &mut operation);
        let mut call = call.unwrap();
        call.command = &BROKEN;
        let answer = carry_out(call, operation, Instant::now()).await;
        let reply = answer.reply.unwrap().to_document();
        assert_eq!(reply.get("code"), Some(&Code::INTERNAL_ERROR.0.into()));
        assert!(!answer.close, "the connection continues");
        let events = log.events();
        let [event] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((event.action.as_str(), event.target.as_deref()), ("broken", Some("shop.what")));
        assert_eq!(
            (event.outcome, event.status),
            (AuditOutcome::Failure, Some(Code::INTERNAL_ERROR.0.into()))
        );
    }
}
