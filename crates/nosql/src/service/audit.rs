//! Selects the requests for the audit log, and their details.
//!
//! Operations on documents are not included: the feed of all versions records those. Changes of databases, containers
//! and their rules, users and permissions are, and so is every request that shows resource tokens or keys, every admin
//! request that changes or copies something, and every refusal. Of bodies, only members that are known to be settings or
//! names are read: a client may send anything.

use std::sync::Arc;

use account::Kind;
use document::{Object, Value};
use engine::Throughput;
use telemetry::{AuditEvent, AuditOutcome, Registry};

use crate::admin;
use crate::auth::{Pass, Refusal};
use crate::handlers::route::Route;
use crate::message::request::Head;
use crate::protocol::json::parse_object;

/// The name of this front end.
const API: &str = "nosql";

/// Members of definitions that are logged: they are names and rules.
const DEFINITION: [&str; 6] =
    ["id", "defaultTtl", "ttlPropertyPath", "changeFeedPolicy", "permissionMode", "resource"];

/// An audited request in progress.
pub(crate) struct Audited {
    registry: Arc<Registry>,
    event: AuditEvent,
    /// The first segments of the path.
    area: [String; 2],
    /// The throughput that the head names.
    throughput: Option<Throughput>,
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
        let throughput = head.throughput().unwrap_or_default();
        Some(Audited { registry: Arc::clone(registry), event, area, throughput })
    }

    /// Records the result: the status sent, `None` if the client disconnected before.
    pub(crate) fn end(mut self, body: &[u8], status: Option<u16>) {
        self.event.details = status.and_then(|_| details(&self.area, body, self.throughput));
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

/// Returns the settings and names in a request, as JSON.
fn details(area: &[String; 2], body: &[u8], throughput: Option<Throughput>) -> Option<String> {
    let body = parse_object(body).ok();
    let mut told =
        body.as_ref().and_then(Value::as_object).map(|body| settings(area, body)).unwrap_or_default();
    match throughput {
        Some(Throughput::Manual(figure)) => drop(told.insert("offerThroughput", i64::from(figure))),
        Some(Throughput::Autoscale { max, .. }) => drop(told.insert("maxThroughput", i64::from(max))),
        None => {}
    }
    (!told.is_empty()).then(|| Value::Object(told).to_json())
}

/// Returns the settings and names in a body.
fn settings(area: &[String; 2], body: &Object) -> Object {
    match area.each_ref().map(String::as_str) {
        [admin::PREFIX, "ttl"] => only(body, admin::lifecycle_setting_names()),
        [admin::PREFIX, "clock"] => only(body, ["advanceSeconds", "accept", "reject"]),
        [admin::PREFIX, "purge"] => only(body, ["paused", "now", "api", "database", "container"]),
        [admin::PREFIX, "keys"] => regenerated(body).into_iter().collect(),
        [admin::PREFIX, "container"] => {
            let mut told = inside(body, "definition", DEFINITION);
            let throughput = inside(body, "throughput", ["manual", "autoscale"]);
            if !throughput.is_empty() {
                told.insert("throughput", Value::Object(throughput));
            }
            told
        }
        [admin::PREFIX, _] => Object::new(),
        ["offers", _] => offer(body),
        _ => only(body, DEFINITION),
    }
}

/// Returns the throughput in an offer, and the resource that has it.
fn offer(body: &Object) -> Object {
    let content = body.get("content").and_then(Value::as_object);
    let autoscale = content.map(|content| inside(content, "offerAutopilotSettings", ["maxThroughput"]));
    let manual = inside(body, "content", ["offerThroughput"]);
    [only(body, ["resource"]), manual, autoscale.unwrap_or_default()].into_iter().flatten().collect()
}

/// Returns the kind of key that a body names.
fn regenerated(body: &Object) -> Option<(&'static str, &'static str)> {
    let kind = Kind::named(body.get("regenerate")?.as_str()?)?;
    Some(("regenerate", kind.name()))
}

/// Returns the members with these names.
fn only<'a>(body: &Object, names: impl IntoIterator<Item = &'a str>) -> Object {
    names.into_iter().filter_map(|name| Some((name, body.get(name)?.clone()))).collect()
}

/// Returns the members with these names of an object in the body.
fn inside<'a>(body: &Object, name: &str, names: impl IntoIterator<Item = &'a str>) -> Object {
    body.get(name).and_then(Value::as_object).map(|inner| only(inner, names)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_bodies_only_settings_and_names_are_told() {
        let of = |first: &str, second: &str, body: &str| {
            details(&[first.to_owned(), second.to_owned()], body.as_bytes(), None)
        };
        let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":60,"secret":"x"}"#;
        let made =
            format!(r#"{{"definition":{definition},"throughput":{{"manual":400,"secret":1}},"key":"x"}}"#);
        let offer = r#"{"id":"x","resource":"dbs/a/","content":{"offerThroughput":400,"offerAutopilotSettings":{"tier":0,"maxThroughput":4000}}}"#;
        for (first, second, body, expected) in [
            ("dbs", "db", definition, r#"{"id":"c","defaultTtl":60}"#),
            ("_bolide", "container", &made, r#"{"id":"c","defaultTtl":60,"throughput":{"manual":400}}"#),
            ("offers", "x", offer, r#"{"resource":"dbs/a/","offerThroughput":400,"maxThroughput":4000}"#),
            (
                "_bolide",
                "ttl",
                r#"{"maxPurgeDelay":60,"archive":null,"secret":"x"}"#,
                r#"{"archive":null,"maxPurgeDelay":60}"#,
            ),
            ("_bolide", "clock", r#"{"advanceSeconds":5,"secret":"x"}"#, r#"{"advanceSeconds":5}"#),
            (
                "_bolide",
                "purge",
                r#"{"now":true,"database":"a","container":"b"}"#,
                r#"{"now":true,"database":"a","container":"b"}"#,
            ),
            ("_bolide", "keys", r#"{"regenerate":"secondary"}"#, r#"{"regenerate":"secondary"}"#),
        ] {
            assert_eq!(of(first, second, body).as_deref(), Some(expected), "{second}");
        }
        for (first, second, body) in [
            ("_bolide", "import", r#"{"id":"1"}"#),
            ("_bolide", "command", r#"{"createUser":"u","pwd":"x"}"#),
            ("_bolide", "keys", r#"{"regenerate":"c2VjcmV0","primary":"c2VjcmV0"}"#),
            ("_bolide", "ttl", "[1]"),
            ("_bolide", "ttl", ""),
            ("dbs", "db", r#"{"query":"SELECT * FROM c"}"#),
        ] {
            assert_eq!(of(first, second, body), None, "{second}");
        }
        let of_head = details(&["dbs".to_owned(), String::new()], b"{}", Some(Throughput::autoscale(4000)));
        assert_eq!(of_head.as_deref(), Some(r#"{"maxThroughput":4000}"#));
    }
}
