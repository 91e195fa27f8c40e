//! Commands by which tools look at a server.

use std::time::Duration;

use bson::{Document, Value};

use crate::client::{Server, inner, json, settings, text, texts, whole};

fn command(name: &str) -> Document {
    Document::new().with(name, 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn server_status_counts_what_happens() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let before = client.ok(command("serverStatus")).await;
    for _ in 0..3 {
        client.ping().await;
    }
    let _second = server.connect().await.ping().await;
    let after = client.ok(command("serverStatus")).await;
    let grown = |path: &str| whole(inner(&after, path)) - whole(inner(&before, path));
    assert_eq!(grown("network.numRequests"), 5);
    assert_eq!(grown("opcounters.command"), 5);
    assert!(grown("network.bytesIn") > 100 && grown("network.bytesOut") > 100);
    assert_eq!(grown("connections.totalCreated"), 1);
    assert_eq!(whole(inner(&after, "connections.active")), 1);
    assert_eq!(whole(inner(&after, "mem.resident")), 5);
    assert_eq!(text(&after, "host"), format!("machine:{}", server.address.port()));
    assert_eq!(inner(&after, "repl.setName").as_str(), Some("globaldb"));
    let fewer = client.ok(command("serverStatus").with("metrics", 0).with("repl", false)).await;
    assert!(!fewer.contains("metrics") && !fewer.contains("repl") && fewer.contains("mem"));
}

/// With the purge paused, nothing is removed and `serverStatus` counts what waits; after the purge, it counts what was
/// removed.
#[tokio::test(flavor = "multi_thread")]
async fn t23_server_status_tells_what_waits_for_the_purge_and_what_went() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let rule =
        r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "t", "expireAfterSeconds": 10}]}"#;
    client.done("db", json(rule)).await;
    let documents =
        r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2, "a": "long"}, {"_id": 3, "ttl": 12}]}"#;
    client.done("db", json(documents)).await;
    let bytes = whole(client.done("db", json(r#"{"collStats": "c"}"#)).await.get("size").unwrap());
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 4, "ttl": -1}]}"#)).await;
    let mut expect = async |when: &str, figures: [(&str, i64); 7]| {
        let status = client.ok(command("serverStatus")).await;
        for (figure, expected) in figures {
            let told = inner(&status, &format!("metrics.ttl.{figure}"));
            assert_eq!(told, &Value::Int64(expected), "{figure} {when}");
        }
    };
    let nothing = (0, 0, 0);
    let figures = |waits: (i64, i64, i64), went: (i64, i64, i64)| {
        [
            ("backlogDocuments", waits.0),
            ("backlogBytes", waits.1),
            ("oldestAgeMillis", waits.2),
            ("deletedDocuments", went.0),
            ("deletedBytes", went.1),
            ("passes", went.2),
            ("subPasses", went.2),
        ]
    };
    expect("while all live", figures(nothing, nothing)).await;
    server.engine.pause_purge(true);
    server.clock.advance(Duration::from_millis(17_250));
    server.engine.purge_step(100).unwrap();
    expect("while it is paused", figures((3, bytes, 7250), nothing)).await;
    server.engine.pause_purge(false);
    server.engine.purge_step(100).unwrap();
    expect("afterwards", figures(nothing, (3, bytes, 1))).await;
    server.engine.purge_step(100).unwrap();
    expect("after a step with nothing to do", figures(nothing, (3, bytes, 1))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_shown_and_set() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let shown = client.ok(command("getParameter").with("featureCompatibilityVersion", 1)).await;
    assert_eq!(inner(&shown, "featureCompatibilityVersion.version").as_str(), Some("8.0"));
    let all = client.ok(Document::new().with("getParameter", "*")).await;
    assert_eq!(all.get("enableTestCommands"), Some(&Value::Bool(true)));
    assert_eq!(all.get("authenticationMechanisms"), Some(&texts(&["SCRAM-SHA-1", "SCRAM-SHA-256"])));
    assert_eq!(all.get("ttlMonitorSleepSecs"), Some(&Value::Int32(60)));
    let (code, words) = client.refused(Document::new().with("getParameter", "foo")).await;
    assert_eq!((code, words.as_str()), (72, "no option found to get"));

    let set = client.ok(command("setParameter").with("ttlMonitorSleepSecs", 1.0)).await;
    assert_eq!(set.get("was"), Some(&Value::Int32(60)));
    let shown = client.ok(command("getParameter").with("ttlMonitorSleepSecs", 1)).await;
    assert_eq!(shown.get("ttlMonitorSleepSecs"), Some(&Value::Int32(1)));
    for (name, value, code) in [
        ("ttlMonitorSleepSecs", Value::Int32(0), 2),
        ("ttlMonitorSleepSecs", Value::from("soon"), 2),
        ("ttlMonitorEnabled", Value::from("no"), 2),
        ("nosuch", Value::Int32(1), 72),
        ("enableTestCommands", Value::Int32(1), 20),
    ] {
        assert_eq!(client.refused(command("setParameter").with(name, value)).await.0, code, "{name}");
    }
    assert_eq!(client.refused(command("setParameter")).await.0, 72);
}

#[tokio::test(flavor = "multi_thread")]
async fn t23_the_monitor_switch_steers_the_purge() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (enabled, was) in [(false, true), (false, false), (true, false)] {
        let reply = client.ok(command("setParameter").with("ttlMonitorEnabled", enabled)).await;
        assert_eq!(reply.get("was"), Some(&Value::Bool(was)));
        assert_eq!(server.engine.purge_status().paused, !enabled);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_shown_and_stopped() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let client_data = Document::new().with("application", Document::new().with("name", "tests"));
    client.ok(command("hello").with("client", client_data)).await;
    let reply = client.ok(command("currentOp").with("$all", true)).await;
    let running = reply.get("inprog").and_then(Value::as_array).unwrap();
    let one = running[0].as_document().unwrap();
    assert_eq!((running.len(), text(one, "appName"), text(one, "ns")), (1, "tests", "admin.$cmd"));
    assert_eq!(inner(one, "command.currentOp"), &Value::Int32(1));
    let none = client.ok(command("currentOp").with("op", "getmore")).await;
    assert_eq!(none.get("inprog"), Some(&Value::Array(Vec::new())));
    client.ok(command("killOp").with("op", 12_345)).await;
    assert_eq!(client.refused(command("killOp")).await.0, 40414);
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_find_what_they_ask_for() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let port = client.stream.local_addr().unwrap();
    assert_eq!(text(&client.ok(command("whatsmyuri")).await, "you"), port.to_string());
    let host = client.ok(command("hostInfo")).await;
    assert_eq!(inner(&host, "system.numCores"), &Value::Int32(2));
    assert_eq!(inner(&host, "os.name").as_str(), Some("Linux"));
    let log = client.ok(Document::new().with("getLog", "global")).await;
    let lines = log.get("log").and_then(Value::as_array).unwrap();
    let line = bson::parse_extended_json(lines[0].as_str().unwrap()).unwrap();
    assert!(text(line.as_document().unwrap(), "msg").starts_with("started"));
    let warnings = client.ok(Document::new().with("getLog", "startupWarnings")).await;
    assert_eq!(warnings.get("totalLinesWritten"), Some(&Value::Int32(0)));
    assert_eq!(client.refused(Document::new().with("getLog", "other")).await.0, 96);
    let started = client.ok(command("getCmdLineOpts")).await;
    assert_eq!(started.get("argv"), Some(&texts(&["bolide"])));
    assert_eq!(inner(&started, "parsed.setParameter.enableTestCommands").as_str(), Some("1"));
    let commands = client.ok(command("listCommands")).await;
    assert_eq!(inner(&commands, "commands.setParameter.adminOnly"), &Value::Bool(true));
    assert_eq!(inner(&commands, "commands.ping.requiresAuth"), &Value::Bool(false));
    let members = client.ok(command("replSetGetStatus")).await;
    let Some(Value::Array(members)) = members.get("members") else { panic!("{members:?}") };
    assert_eq!(text(members[0].as_document().unwrap(), "stateStr"), "PRIMARY");
    client.ok(command("replSetGetConfig")).await;
    client.ok(command("top")).await;
    client.ok(command("logRotate")).await;
    client.ok(command("fsync")).await;
    client.ok(command("getDefaultRWConcern")).await;
    assert_eq!(client.refused(command("fsync").with("lock", true)).await.0, 115);
    assert_eq!(client.ok(Document::new().with("profile", -1)).await.get("was"), Some(&Value::Int32(0)));
    assert_eq!(client.refused(Document::new().with("profile", 2)).await.0, 115);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_previous_command_is_accounted_for() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    assert_eq!(client.refused(command("getLastRequestStatistics")).await.0, 96);
    client.ping().await;
    for _ in 0..2 {
        let reply = client.ok(command("getLastRequestStatistics")).await;
        assert_eq!(text(&reply, "CommandName"), "ping");
        assert_eq!(reply.get("RequestCharge"), Some(&Value::Double(1.0)));
    }
}

/// What commands cost: reads as a query, writes by size and index keys, both where both happen.
#[tokio::test(flavor = "multi_thread")]
async fn commands_are_charged_for_what_they_read_and_write() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let filter = |filter: Document| Document::new().with("q", filter).with("limit", 0);
    let list = |document: Document| Value::Array(vec![document.into()]);
    let index = Document::new().with("key", Document::new().with("a", 1)).with("name", "a_1");
    let update = Document::new()
        .with("q", Document::new().with("_id", 1))
        .with("u", Document::new().with("$set", Document::new().with("a", 2)));
    let by_id = Document::new().with("_id", 1);
    let table = [
        (Document::new().with("createIndexes", "c").with("indexes", list(index)), 1.0),
        (Document::new().with("insert", "c").with("documents", list(by_id.clone().with("a", 1))), 5.1),
        // A page, one document loaded, a kilobyte of it and of the answer.
        (Document::new().with("find", "c").with("filter", by_id.clone()), 2.29),
        (Document::new().with("find", "c").with("filter", Document::new().with("b", 1)), 2.29),
        (Document::new().with("count", "c"), 2.28),
        // A replace of which two keys differ.
        (Document::new().with("update", "c").with("updates", list(update.clone())), 10.2),
        // Nothing changes: not a write, but a read.
        (Document::new().with("update", "c").with("updates", list(update)), 1.0),
        (
            Document::new().with("delete", "c").with("deletes", list(filter(Document::new().with("a", 2)))),
            2.29 + 5.1,
        ),
    ];
    for (command_document, charge) in table {
        let shown = format!("{command_document:?}");
        client.ok(command_document).await;
        let told = client.ok(command("getLastRequestStatistics")).await;
        let Some(Value::Double(told)) = told.get("RequestCharge") else { panic!("no charge") };
        assert!((told - charge).abs() < 0.001, "{told} for {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_switch_there_are_no_test_commands() {
    let mut settings = settings();
    settings.test_commands = false;
    let server = Server::with(settings).await;
    let mut client = server.connect().await;
    let reply =
        client.refused(Document::new().with("configureFailPoint", "failCommand").with("mode", "off")).await;
    assert_eq!(reply, (59, "no such command: 'configureFailPoint'".to_owned()));
    let commands = client.ok(command("listCommands")).await;
    assert!(!commands.get("commands").and_then(Value::as_document).unwrap().contains("configureFailPoint"));
}
