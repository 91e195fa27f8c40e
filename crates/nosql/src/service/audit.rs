//! Selects the requests for the audit log, and their details.
//!
//! Operations on documents are not included: the feed of all versions records those. Changes of databases, containers
//! and their rules, users and permissions are, and so is every admin request that changes or copies something, and
//! every refusal.

use std::sync::Arc;

use document::{Object, Value, parse_json};
use telemetry::{AuditEvent, AuditOutcome, Registry};

use crate::auth::{Pass, Refusal};
use crate::handlers::route::Route;
use crate::message::request::Head;

/// The name of this front end.
const API: &str = "nosql";

/// Members of definitions that are logged: they are names and rules.
const LOGGED_MEMBERS: [&str; 4] = ["id", "defaultTtl", "permissionMode", "resource"];

/// Admin requests whose bodies contain only settings.
const SETTINGS: [&str; 4] = ["ttl", "clock", "purge", "keys"];

/// An audited request in progress.
pub(crate) struct Audited {
    registry: Arc<Registry>,
    event: AuditEvent,
    /// The first segments of the path.
    area: [String; 2],
}

impl Audited {
    /// Creates the event of an admitted request; `None` if there is no log, or the request is not audited.
    pub(crate) fn begin(
        registry: &Arc<Registry>,
        route: &Route,
        pass: &Pass,
        head: &Head,
    ) -> Option<Audited> {
        registry.audit()?;
        if !route.is_audited() {
            return None;
        }
        let event = event(route.name(), Some(pass.who()), head);
        let area = [head.path.at(0).to_owned(), head.path.at(1).to_owned()];
        Some(Audited { registry: Arc::clone(registry), event, area })
    }

    /// Records the result: the status sent, `None` if the client disconnected before.
    pub(crate) fn end(mut self, body: &[u8], status: Option<u16>) {
        self.event.details = details(&self.area, body);
        self.event.outcome = AuditOutcome::of_status(status);
        self.event.status = status.map(i64::from);
        if let Some(log) = self.registry.audit() {
            log.record(self.event);
        }
    }
}

/// Records a refused request.
pub(crate) fn refused(registry: &Registry, operation: &str, head: &Head, refusal: &Refusal) {
    let Some(log) = registry.audit() else { return };
    log.record(AuditEvent {
        outcome: AuditOutcome::Denied,
        status: Some(refusal.error.wire().status.into()),
        ..event(operation, refusal.who.clone(), head)
    });
}

fn event(action: &str, who: Option<String>, head: &Head) -> AuditEvent {
    AuditEvent {
        api: API,
        who,
        from: head.channel.map(|channel| channel.peer),
        action: action.to_owned(),
        target: Some(format!("/{}", head.path.segments().join("/"))),
        details: None,
        outcome: AuditOutcome::Success,
        status: None,
    }
}

/// Returns the details of a body: settings, and the members of definitions in [`LOGGED_MEMBERS`].
fn details(area: &[String; 2], body: &[u8]) -> Option<String> {
    let Ok(Value::Object(members)) = parse_json(body) else { return None };
    let [first, second] = area;
    let told: Object = match first.as_str() {
        crate::admin::PREFIX if SETTINGS.contains(&second.as_str()) => members,
        crate::admin::PREFIX => return None,
        _ => {
            let mut told = Object::new();
            for name in LOGGED_MEMBERS {
                if let Some(value) = members.get(name) {
                    told.insert(name, value.clone());
                }
            }
            told
        }
    };
    Some(Value::Object(told).to_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_bodies_only_settings_and_names_are_told() {
        let of = |first: &str, second: &str, body: &str| {
            details(&[first.to_owned(), second.to_owned()], body.as_bytes())
        };
        let container = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":60,"secret":"x"}"#;
        assert_eq!(of("dbs", "db", container).unwrap(), r#"{"id":"c","defaultTtl":60}"#);
        let settings = r#"{"maxPurgeDelay":60,"archive":null}"#;
        assert_eq!(of("_bolide", "ttl", settings).unwrap(), settings);
        for (second, body) in [
            ("import", r#"{"id":"1"}"#),
            ("command", r#"{"createUser":"u","pwd":"x"}"#),
            ("ttl", "[1]"),
            ("ttl", ""),
        ] {
            assert_eq!(of("_bolide", second, body), None, "{second}");
        }
    }
}
