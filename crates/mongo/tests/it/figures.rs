//! Sizes, checks, and what the server counts.

use std::time::Duration;

use bson::{Document, Value};
use telemetry::Page;

use crate::client::{Server, inner, json, settings};

fn first(reply: &Document) -> &Document {
    inner(reply, "cursor.firstBatch")
        .as_array()
        .and_then(|batch| batch.first())
        .and_then(Value::as_document)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_are_told_of_collections_and_databases() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}"#))
        .await;
    client.done("db", json(r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#)).await;
    let stats = client.done("db", json(r#"{"collStats": "c"}"#)).await;
    assert_eq!(stats.get("ns"), Some(&"db.c".into()));
    assert_eq!((stats.get("count"), stats.get("nindexes")), (Some(&2.into()), Some(&2.into())));
    assert_eq!(inner(&stats, "indexSizes").as_document().map(Document::len), Some(2));
    let Some(Value::Int32(total)) = stats.get("totalIndexSize") else { panic!("{stats:?}") };
    assert!(*total > 0);
    let none = client.done("db", json(r#"{"collStats": "none"}"#)).await;
    assert_eq!(none.get("count"), Some(&0.into()));
    let stats = client.done("db", json(r#"{"dbStats": 1, "scale": 1}"#)).await;
    assert_eq!(stats.get("objects"), Some(&2_i64.into()));
    assert_eq!((stats.get("collections"), stats.get("indexes")), (Some(&1_i64.into()), Some(&2_i64.into())));
    let staged = json(
        r#"{"aggregate": "c", "pipeline": [{"$collStats": {"storageStats": {"scale": 1}, "count": {}}}], "cursor": {}}"#,
    );
    let staged = client.done("db", staged).await;
    assert_eq!(inner(first(&staged), "storageStats.nindexes"), &Value::Int32(2));
    let staged = json(
        r#"{"aggregate": "c", "pipeline": [{"$indexStats": {}}, {"$sort": {"name": -1}}], "cursor": {}}"#,
    );
    let staged = client.done("db", staged).await;
    assert_eq!(inner(first(&staged), "name"), &Value::from("a_1"));
    let running =
        client.ok(json(r#"{"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}}"#)).await;
    assert_eq!(inner(first(&running), "type"), &Value::from("op"));
}

#[tokio::test(flavor = "multi_thread")]
async fn t18_sizes_are_of_the_living() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "t", "expireAfterSeconds": 10}]}"#)).await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2, "ttl": 100}]}"#)).await;
    server.clock.advance(Duration::from_secs(20));
    let stats = client.done("db", json(r#"{"collStats": "c"}"#)).await;
    assert_eq!(stats.get("count"), Some(&1.into()));
    let stats = client.done("db", json(r#"{"dbStats": 1}"#)).await;
    assert_eq!(stats.get("objects"), Some(&1_i64.into()));
    let check = client.done("db", json(r#"{"validate": "c"}"#)).await;
    assert_eq!(check.get("nrecords"), Some(&1_i64.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_validated() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "a": [1, 2]}]}"#)).await;
    client.done("db", json(r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#)).await;
    let check = client.done("db", json(r#"{"validate": "c", "full": true}"#)).await;
    assert_eq!(check.get("valid"), Some(&true.into()));
    assert_eq!(inner(&check, "keysPerIndex.a_1"), &Value::Int64(2));
    assert_eq!(check.get("errors"), Some(&Value::Array(Vec::new())));
    assert_eq!(client.fails("db", json(r#"{"validate": "none"}"#)).await.0, 26);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_and_cursors_are_counted() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let insert = r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#;
    client.done("db", json(insert)).await;
    client.done("db", json(r#"{"find": "c", "batchSize": 2}"#)).await;
    client
        .done(
            "db",
            json(r#"{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": true}]}"#),
        )
        .await;
    client.done("db", json(r#"{"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}"#)).await;
    let status = client.ok(json(r#"{"serverStatus": 1}"#)).await;
    for (path, expected) in [
        ("metrics.document.inserted", 3_i64),
        ("metrics.document.updated", 3),
        ("metrics.document.deleted", 1),
        ("metrics.document.returned", 2),
        ("metrics.cursor.totalOpened", 1),
        ("metrics.cursor.open.total", 1),
        ("transactions.currentOpen", 0),
    ] {
        assert_eq!(inner(&status, path), &Value::Int64(expected), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_uptime_is_a_whole_number_of_seconds() {
    let server = Server::start().await;
    let status = server.connect().await.ok(json(r#"{"serverStatus": 1}"#)).await;
    let Value::Double(uptime) = inner(&status, "uptime") else { panic!("no double in {status:?}") };
    assert!(uptime.fract().abs() < f64::EPSILON, "mongostat refuses {uptime}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_of_indexes_are_counted() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}"#))
        .await;
    let index = r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#;
    client.done("db", json(index)).await;
    for command in [
        r#"{"find": "c", "filter": {"a": 1}}"#,
        r#"{"count": "c", "query": {"a": 1}}"#,
        r#"{"update": "c", "updates": [{"q": {"a": 2}, "u": {"$set": {"b": 1}}}]}"#,
        r#"{"aggregate": "c", "pipeline": [{"$match": {"a": 2}}], "cursor": {}}"#,
        r#"{"find": "c", "filter": {"_id": 1}}"#,
        r#"{"delete": "c", "deletes": [{"q": {"_id": 7}, "limit": 1}]}"#,
        r#"{"find": "c"}"#,
    ] {
        client.done("db", json(command)).await;
    }
    let uses = async |client: &mut crate::client::Client<tokio::net::TcpStream>| {
        let stages =
            r#"{"aggregate": "c", "pipeline": [{"$indexStats": {}}, {"$sort": {"name": 1}}], "cursor": {}}"#;
        let told = client.done("db", json(stages)).await;
        let all = inner(&told, "cursor.firstBatch").as_array().unwrap().to_vec();
        all.iter().map(|it| inner(it.as_document().unwrap(), "accesses.ops").clone()).collect::<Vec<_>>()
    };
    assert_eq!(uses(&mut client).await, [2_i64, 4].map(Value::Int64));
    client.done("db", json(r#"{"dropIndexes": "c", "index": "a_1"}"#)).await;
    client.done("db", json(index)).await;
    assert_eq!(uses(&mut client).await, [2_i64, 0].map(Value::Int64), "a new index of the same name");
}

/// Commands are counted by name and by outcome; commands that the server does not know share one name.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_commands_by_name_and_outcome() {
    let settings = settings();
    let registry = std::sync::Arc::clone(&settings.registry);
    let server = Server::with(settings).await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#)).await;
    client.on("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
    client.done("db", json(r#"{"find": "c", "batchSize": 1}"#)).await;
    client.on("db", json(r#"{"find": "c", "filter": {"$nonsense": 1}}"#)).await;
    client.on("db", json(r#"{"a\"} 7": 1}"#)).await;
    client.on("db", json(r#"{"another": 1}"#)).await;
    let mut page = Page::default();
    registry.write(&mut page);
    let page = page.finish();
    telemetry::parse(&page).unwrap();
    for line in [
        r#"bolide_requests_total{api="mongodb",operation="insert",outcome="ok"} 1"#,
        r#"bolide_requests_total{api="mongodb",operation="insert",outcome="conflict"} 1"#,
        r#"bolide_requests_total{api="mongodb",operation="find",outcome="ok"} 1"#,
        r#"bolide_requests_total{api="mongodb",operation="find",outcome="invalid"} 1"#,
        r#"bolide_requests_total{api="mongodb",operation="unknown",outcome="invalid"} 2"#,
        r#"bolide_request_duration_seconds_count{api="mongodb",operation="find"} 2"#,
        r#"bolide_connections_open{api="mongodb"} 1"#,
        "bolide_mongo_cursors_open 1",
    ] {
        assert!(page.lines().any(|found| found == line), "no {line} in {page}");
    }
    assert!(!page.contains("another") && !page.contains("} 7"), "{page}");
}
