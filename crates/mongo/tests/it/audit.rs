//! The audit log: the line that each command leaves, and the secrets that no line contains.

use std::sync::Arc;

use account::{AuthenticatedKey, Entry, Key, KeySource, Keyring, Kind, NoKeyStore};
use bson::{Document, RawDocument};
use mongo::Authentication;
use telemetry::{AuditEvent, MemoryAuditSink, Registry};

use crate::client::{PASSWORD, Server, json, settings};
use crate::scram::{Hash, authenticate};

/// A password of a user, and a value in a document.
const SECRET: &str = "not-for-the-log";

fn key(kind: Kind, text: &str) -> AuthenticatedKey {
    AuthenticatedKey { kind, key: Key::parse(text).unwrap() }
}

/// The keys of the account.
fn keys() -> [AuthenticatedKey; 2] {
    [key(Kind::Primary, PASSWORD), key(Kind::Secondary, "c2Vjb25kYXJ5")]
}

/// A server where clients must authenticate, and its log.
async fn server() -> (Server, Arc<MemoryAuditSink>) {
    let log = Arc::<MemoryAuditSink>::default();
    let mut settings = settings();
    settings.authentication = Authentication::Required;
    settings.registry = Arc::new(Registry::default().with_audit(Arc::clone(&log) as _));
    let entries =
        keys().map(|AuthenticatedKey { kind, key }| Entry { kind, key, source: KeySource::Generated });
    settings.account.keys = Keyring::new(entries, NoKeyStore);
    (Server::with(settings).await, log)
}

/// `action who target details outcome status`, a dash for what is absent.
fn shown(event: &AuditEvent) -> String {
    let AuditEvent { who, action, target, details, outcome, status, .. } = event;
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
    let who = text(who).replace(&keys()[0].label(), "PRIMARY").replace(&keys()[1].label(), "SECONDARY");
    format!("{action} {who} {} {} {} {status}", text(target), text(details), outcome.name())
}

/// Returns the lines since the last call.
fn news(log: &MemoryAuditSink, seen: &mut usize) -> Vec<String> {
    let lines: Vec<String> = log.events().iter().skip(*seen).map(shown).collect();
    *seen += lines.len();
    lines
}

/// Commands of the account on a database, and the line that each leaves, if any.
const COMMANDS: &[(&str, &str, &str)] = &[
    (
        "admin",
        r#"{"createUser": "anna", "pwd": "not-for-the-log", "mechanisms": ["SCRAM-SHA-1"], "roles": [{"role": "read", "db": "shop"}]}"#,
        r#"createUser PRIMARY admin.anna {"roles":[{"role":"read","db":"shop"}]} success -"#,
    ),
    (
        "admin",
        r#"{"updateUser": "anna", "pwd": "not-for-the-log", "customData": {"x": "not-for-the-log"}}"#,
        r#"updateUser PRIMARY admin.anna {"passwordChanged":true} success -"#,
    ),
    (
        "admin",
        r#"{"updateUser": "anna", "pwd": "not-for-the-log", "roles": ["read"]}"#,
        r#"updateUser PRIMARY admin.anna {"roles":["read"],"passwordChanged":true} success -"#,
    ),
    (
        "admin",
        r#"{"grantRolesToUser": "anna", "roles": ["dbAdmin"]}"#,
        r#"grantRolesToUser PRIMARY admin.anna {"roles":["dbAdmin"]} success -"#,
    ),
    (
        "admin",
        r#"{"revokeRolesFromUser": "anna", "roles": ["dbAdmin"]}"#,
        r#"revokeRolesFromUser PRIMARY admin.anna {"roles":["dbAdmin"]} success -"#,
    ),
    ("admin", r#"{"dropUser": "missing"}"#, "dropUser PRIMARY admin.missing - failure 11"),
    (
        "admin",
        r#"{"setParameter": 1, "cursorTimeoutMillis": 1000, "comment": "x"}"#,
        r#"setParameter PRIMARY admin {"cursorTimeoutMillis":1000} success -"#,
    ),
    (
        "admin",
        r#"{"setParameter": 1, "ldapQueryPassword": "not-for-the-log"}"#,
        "setParameter PRIMARY admin - failure 72",
    ),
    ("admin", r#"{"killOp": 1, "op": 7}"#, r#"killOp PRIMARY admin {"op":7} success -"#),
    ("shop", r#"{"create": "carts"}"#, "create PRIMARY shop.carts - success -"),
    (
        "shop",
        r#"{"createIndexes": "carts", "indexes": [{"key": {"x": 1}, "name": "x_1"}, {"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 60}]}"#,
        r#"createIndexes PRIMARY shop.carts {"at_1":60} success -"#,
    ),
    (
        "shop",
        r#"{"createIndexes": "carts", "indexes": [{"key": {"y": 1}, "name": "y_1"}]}"#,
        "createIndexes PRIMARY shop.carts - success -",
    ),
    (
        "shop",
        r#"{"collMod": "carts", "index": {"name": "at_1", "expireAfterSeconds": 90}}"#,
        r#"collMod PRIMARY shop.carts {"at_1":90} success -"#,
    ),
    (
        "shop",
        r#"{"dropIndexes": "carts", "index": "at_1"}"#,
        r#"dropIndexes PRIMARY shop.carts {"index":"at_1"} success -"#,
    ),
    (
        "shop",
        r#"{"dropIndexes": "carts", "index": {"x": 1}}"#,
        r#"dropIndexes PRIMARY shop.carts {"index":{"x":1}} success -"#,
    ),
    (
        "admin",
        r#"{"renameCollection": "shop.carts", "to": "shop.orders", "dropTarget": true}"#,
        r#"renameCollection PRIMARY shop.carts {"to":"shop.orders","dropTarget":true} success -"#,
    ),
    (
        "sold",
        r#"{"customAction": "CreateDatabase", "offerThroughput": 400}"#,
        r#"customAction PRIMARY sold {"customAction":"CreateDatabase","offerThroughput":400} success -"#,
    ),
    (
        "sold",
        r#"{"customAction": "CreateCollection", "collection": "c", "shardKey": "a", "indexes": [{"key": {"_id": 1}, "name": "_id_"}, {"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 60}]}"#,
        r#"customAction PRIMARY sold.c {"customAction":"CreateCollection","shardKey":"a","indexes":{"at_1":60}} success -"#,
    ),
    (
        "sold",
        r#"{"customAction": "UpdateCollection", "collection": "c", "autoScaleSettings": {"maxThroughput": 4000}}"#,
        r#"customAction PRIMARY sold.c {"customAction":"UpdateCollection","autoScaleSettings":{"maxThroughput":4000}} success -"#,
    ),
    (
        "shop",
        r#"{"dropIndexes": "none", "index": "*"}"#,
        r#"dropIndexes PRIMARY shop.none {"index":"*"} failure 26"#,
    ),
    ("shop", r#"{"drop": "none"}"#, "drop PRIMARY shop.none - success -"),
    ("shop", r#"{"insert": "orders", "documents": [{"_id": "not-for-the-log"}]}"#, ""),
    ("shop", r#"{"find": "orders", "filter": {"_id": "not-for-the-log"}}"#, ""),
    ("shop", r#"{"listCollections": 1}"#, ""),
    ("sold", r#"{"dropDatabase": 1}"#, "dropDatabase PRIMARY sold - success -"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_leaves_the_line_it_should() {
    let (server, log) = server().await;
    let (mut owner, mut seen) = (server.connect().await, 0);
    authenticate(&mut owner, Hash::Sha1, "admin", "bolide", PASSWORD).await.unwrap();
    assert_eq!(news(&log, &mut seen), ["saslContinue PRIMARY bolide@admin - success -"]);
    for (database, command, line) in COMMANDS {
        let reply = owner.on(database, json(command)).await;
        let expected: Vec<&str> = Some(*line).filter(|line| !line.is_empty()).into_iter().collect();
        assert_eq!(news(&log, &mut seen), expected, "{command}: {reply:?}");
    }
    let events = log.events();
    assert!(events.iter().all(|event| event.api == "mongodb" && event.from.is_some()), "{events:?}");
    for secret in [SECRET, PASSWORD] {
        assert!(!format!("{events:?}").contains(secret), "{secret}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_the_user_and_the_target() {
    let (server, log) = server().await;
    let mut owner = server.connect().await;
    authenticate(&mut owner, Hash::Sha1, "admin", "bolide", PASSWORD).await.unwrap();
    let create = r#"{"createUser": "anna", "pwd": "not-for-the-log", "mechanisms": ["SCRAM-SHA-1"], "roles": [{"role": "read", "db": "shop"}]}"#;
    owner.ok(json(create)).await;
    let mut seen = log.events().len();

    let mut unauthenticated = server.connect().await;
    unauthenticated.fails("shop", json(r#"{"find": "carts", "filter": {"_id": "not-for-the-log"}}"#)).await;
    assert_eq!(news(&log, &mut seen), ["find - shop.carts - denied 13"]);
    assert!(authenticate(&mut unauthenticated, Hash::Sha1, "admin", "anna", "wrong").await.is_err());
    assert_eq!(news(&log, &mut seen), ["saslContinue - anna@admin - denied 18"]);

    let mut anna = server.connect().await;
    authenticate(&mut anna, Hash::Sha1, "admin", "anna", SECRET).await.unwrap();
    assert_eq!(news(&log, &mut seen), ["saslContinue anna@admin anna@admin - success -"]);
    for (database, command, line) in [
        (
            "shop",
            r#"{"insert": "carts", "documents": [{"_id": "not-for-the-log"}]}"#,
            "insert anna@admin shop.carts - denied 13",
        ),
        (
            "shop",
            r#"{"dropIndexes": "carts", "index": "at_1"}"#,
            r#"dropIndexes anna@admin shop.carts {"index":"at_1"} denied 13"#,
        ),
        (
            "admin",
            r#"{"updateUser": "bert", "pwd": "not-for-the-log"}"#,
            r#"updateUser anna@admin admin.bert {"passwordChanged":true} denied 13"#,
        ),
        ("shop", r#"{"fsync": 1}"#, "fsync anna@admin shop - denied 13"),
    ] {
        anna.fails(database, json(command)).await;
        assert_eq!(news(&log, &mut seen), [line], "{command}");
    }
    assert!(!format!("{:?}", log.events()).contains(SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_for_the_holder_of_a_key_is_logged_under_that_key() {
    let (server, log) = server().await;
    let drop = RawDocument::from_document(&Document::new().with("drop", "carts").with("$db", "shop"));
    for (holder, name) in keys().iter().zip(["PRIMARY", "SECONDARY"]) {
        let mut seen = log.events().len();
        server.service.perform_as_account(holder, drop.clone().into_bytes()).await.unwrap();
        assert_eq!(news(&log, &mut seen), [format!("drop {name} shop.carts - success -")]);
    }
    let unauthenticated = key(Kind::Primary, "b3RoZXI=");
    let mut seen = log.events().len();
    server.service.perform_as_account(&unauthenticated, drop.into_bytes()).await.unwrap();
    let lines = news(&log, &mut seen);
    assert!(lines[0].ends_with("shop.carts - denied 13"), "a key that was replaced meanwhile: {lines:?}");
}
