//! The audit log through the real process: both APIs, the explorer and the admin API report to it, and no secret is in it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::{Document, RawDocument, Value};

use crate::mongo_client::{MongoClient, is_ok};
use crate::process::{Server, command};

const PASSWORD: &str = "the-password-of-anna";
const TEXT: &str = "what-a-document-says";
const TYPED: &str = "a-key-that-a-user-typed";

/// A server with a key of its own.
fn start(data: &Path, key: &str, log: &str) -> Server {
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--key", key, "--data", data.to_str().unwrap()];
    Server::start_command(command().args(arguments).args(["--audit-log", log]))
}

fn audited(log: &Path) -> Vec<String> {
    std::fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect()
}

/// Sends requests to the NoSQL API, the admin API and the explorer. Returns the secondary key, which it generates.
fn ask_nosql(server: &Server, key: &str) -> String {
    let ask = |method, path, body: &str, status| {
        let answer = server.request_with(key, method, path, &[], body);
        assert_eq!(answer.0, status, "{method} {path}: {}", answer.1);
    };
    ask("POST", "/dbs", r#"{"id":"db"}"#, 201);
    ask("POST", "/dbs/db/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":60}"#, 201);
    ask("PUT", "/dbs/db/colls/c", r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":90}"#, 200);
    ask("POST", "/dbs/db/users", r#"{"id":"u"}"#, 201);
    ask("DELETE", "/dbs/none", "", 404);
    let item = format!(r#"{{"id":"1","pk":"a","text":"{TEXT}"}}"#);
    let pk = [("x-ms-documentdb-partitionkey", "[\"a\"]")];
    assert_eq!(server.request_with(key, "POST", "/dbs/db/colls/c/docs", &pk, &item).0, 201);
    assert_eq!(server.request("GET", "/dbs/db", &[], "").0, 401, "signed with another key");
    let admin = |method, path, body: &str| {
        let (status, text) = server.admin_with(key, method, path, body);
        assert_eq!(status, 200, "{method} {path}: {text}");
        text
    };
    admin("PATCH", "/_bolide/ttl/db/c", r#"{"maxPurgeDelay":60}"#);
    let held = r#"{"id":"1","partitionKey":["a"],"reason":"a dispute"}"#;
    admin("PUT", "/_bolide/hold/db/c", held);
    admin("DELETE", "/_bolide/hold/db/c", r#"{"id":"1","partitionKey":["a"]}"#);
    admin("POST", "/_bolide/purge", r#"{"paused":true}"#);
    let made = admin("POST", "/_bolide/keys", r#"{"regenerate":"secondary"}"#);
    let made = document::parse_json(made.as_bytes()).unwrap();
    let secondary = made.get("key").and_then(|key| key.as_str()).unwrap().to_owned();
    let drop = RawDocument::from_document(&Document::new().with("drop", "none").with("$db", "shop"));
    let drop = String::from_utf8(drop.as_bytes().to_vec()).unwrap();
    assert_eq!(server.admin_with(&secondary, "POST", "/_bolide/command", &drop).0, 200);
    admin("GET", "/_bolide/status", "");
    assert_eq!(server.admin_with("d3Jvbmc=", "GET", "/_bolide/status", "").0, 401);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let typed = format!("key={TYPED}");
    assert_eq!(server.exchange("POST", "/_explorer/sign-in", &form, &typed).0, 401);
    let right = format!("key={}", key.replace('+', "%2B").replace('=', "%3D"));
    assert_eq!(server.exchange("POST", "/_explorer/sign-in", &form, &right).0, 303);
    assert_eq!(server.exchange("POST", "/_explorer/keys", &form, "regenerate=primary").0, 401);
    secondary
}

/// Sends commands to the MongoDB API.
fn ask_mongo(server: &Server, key: &str) {
    let mut account = MongoClient::connect(server);
    assert!(account.authenticate("bolide", key));
    let user = Document::new().with("createUser", "anna").with("pwd", PASSWORD);
    assert!(is_ok(&account.run("admin", user.with("roles", vec![Value::from("read")]))));
    let index = Document::new()
        .with("key", Document::new().with("at", 1))
        .with("name", "at_1")
        .with("expireAfterSeconds", 60);
    let indexes = Document::new().with("createIndexes", "carts").with("indexes", vec![Value::from(index)]);
    assert!(is_ok(&account.run("shop", indexes)));
    let documents = vec![Value::from(Document::new().with("_id", TEXT))];
    assert!(is_ok(
        &account.run("shop", Document::new().with("insert", "carts").with("documents", documents))
    ));
    assert!(!MongoClient::connect(server).authenticate("anna", "wrong"));
    let mut anna = MongoClient::connect(server);
    assert!(anna.authenticate("anna", PASSWORD));
    assert!(!is_ok(&anna.run("shop", Document::new().with("drop", "carts"))));
}

#[test]
fn audited_actions_have_user_address_and_result_and_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let (data, log) = (directory.path().join("data"), directory.path().join("audit.log"));
    let key = STANDARD.encode([7; 64]);
    let server = start(&data, &key, log.to_str().unwrap());
    let secondary = ask_nosql(&server, &key);
    ask_mongo(&server, &key);
    let (_, metrics) = server.open("/metrics");
    assert!(metrics.contains("\nbolide_audit_lost_total 0\n"), "{metrics}");
    assert_eq!(server.terminate(), Some(0));

    let lines = audited(&log);
    let is_told = |parts: &[&str]| lines.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    let by_key = r#""who":"primary key "#;
    for parts in [
        &["nosql", r#""action":"CreateDatabase""#, by_key, r#""target":"/dbs""#, r#""id":"db""#, "success"][..],
        &[r#""action":"CreateContainer""#, r#""defaultTtl":60"#],
        &[r#""action":"ReplaceContainer""#, r#""target":"/dbs/db/colls/c""#, r#""defaultTtl":90"#],
        &[r#""action":"CreateUser""#, r#""target":"/dbs/db/users""#],
        &[r#""action":"DeleteDatabase""#, r#""outcome":"failure","status":404"#],
        &[r#""action":"ReadDatabase""#, r#""outcome":"denied","status":401"#, r#""from":"127.0.0.1:"#],
        &[r#""action":"AdminChangeTtl""#, by_key, r#""details":{"maxPurgeDelay":60}"#],
        &[r#""action":"AdminPlaceHold""#, "/_bolide/hold/db/c"],
        &[r#""action":"AdminLiftHold""#, "success"],
        &[r#""action":"AdminSteerPurge""#, r#""paused":true"#],
        &[r#""action":"AdminRegenerateKey""#, r#""regenerate":"secondary""#],
        &["nosql", r#""action":"AdminReadStatus""#, "/_bolide/status", r#""outcome":"denied""#],
        &["explorer", r#""action":"sign-in","from""#, r#""outcome":"denied","status":401"#],
        &["explorer", r#""action":"sign-in""#, by_key, "success"],
        &["explorer", r#""action":"keys primary","from""#, r#""outcome":"denied","status":401"#],
        &["mongodb", r#""action":"drop","who":"secondary key "#, r#""target":"shop.none""#, "success"],
        &[r#""action":"AdminCommand","who":"secondary key "#, "success"],
        &["mongodb", r#""action":"saslContinue""#, by_key, "success"],
        &[r#""action":"createUser""#, r#""target":"admin.anna""#, r#""roles":["read"]"#],
        &[r#""action":"createIndexes""#, r#""target":"shop.carts""#, r#""at_1":60"#],
        &[r#""action":"saslContinue""#, r#""target":"anna@admin""#, r#""outcome":"denied","status":18"#],
        &[r#""who":"anna@admin""#, r#""action":"drop""#, r#""outcome":"denied","status":13"#],
    ] {
        assert!(is_told(parts), "{parts:?} is missing in:\n{}", lines.join("\n"));
    }
    assert!(
        !is_told(&["AdminReadStatus", "success"]) && !is_told(&["CreateItem"]) && !is_told(&["\"insert\""])
    );
    for secret in [key.as_str(), secondary.as_str(), PASSWORD, TEXT, TYPED, "d3Jvbmc", "wrong\""] {
        assert!(!lines.iter().any(|line| line.contains(secret)), "{secret}");
    }
    for line in &lines {
        assert!(document::parse_json(line.as_bytes()).is_ok(), "{line}");
    }
}

#[test]
fn what_the_server_does_by_itself_is_in_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let (file, log) = (directory.path().join("key"), directory.path().join("audit.log"));
    let [old, new] = [[7; 64], [8; 64]].map(|bytes| STANDARD.encode(bytes));
    std::fs::write(&file, old).unwrap();
    let arguments =
        ["serve", "--memory", "--listen", "127.0.0.1:0", "--key-file", file.to_str().unwrap(), "--audit-log"];
    let server = Server::start_command(command().args(arguments).arg(&log));
    for (text, outcome) in [("no key", "failure"), (new.as_str(), "success")] {
        std::fs::write(&file, text).unwrap();
        server.signal("HUP");
        let is_told = || {
            server.open("/alive");
            audited(&log).last().is_some_and(|line| line.contains("reload-key") && line.contains(outcome))
        };
        assert!((0..10_000).any(|_| is_told()), "{outcome}: {:#?}", audited(&log));
    }
    assert_eq!(server.terminate(), Some(0));
    let lines = audited(&log);
    assert_eq!(lines.len(), 4, "{lines:#?}");
    for (line, action) in lines.iter().zip(["start", "reload-key", "reload-key", "stop"]) {
        let told = format!(r#""api":"server","action":"{action}","who":"server""#);
        assert!(line.contains(&told), "{lines:#?}");
    }
    assert!(lines[2].contains(r#""target":"primary key "#), "{lines:#?}");
}

#[test]
fn requests_go_on_while_the_audit_log_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let key = STANDARD.encode([7; 64]);
    let server = start(&directory.path().join("data"), &key, "/dev/full");
    assert_eq!(server.request_with(&key, "POST", "/dbs", &[], r#"{"id":"db"}"#).0, 201);
    // The line of the start is the other one.
    let is_counted = || server.open("/metrics").1.contains("\nbolide_audit_lost_total 2\n");
    assert!((0..10_000).any(|_| is_counted()), "{}", server.open("/metrics").1);
    assert_eq!(server.terminate(), Some(0));
    let refused = command()
        .args(["serve", "--memory", "--listen", "127.0.0.1:0", "--audit-log", "/"])
        .output()
        .unwrap();
    assert_ne!(refused.status.code(), Some(0));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("cannot open the audit log '/'"),
        "{refused:?}"
    );
}
