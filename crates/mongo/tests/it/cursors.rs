//! Answers in several batches: each batch shows the documents that have not expired at its own time (T16).

use bson::{Document, Value};

use crate::client::{Client, Server, inner, json};
use tokio::net::TcpStream;

fn cursor_id(reply: &Document) -> i64 {
    match inner(reply, "cursor.id") {
        Value::Int64(id) => *id,
        other => panic!("no cursor but {other:?}"),
    }
}

/// The `_id`s of a batch.
fn ids(reply: &Document, batch: &str) -> Vec<i32> {
    let documents = inner(reply, &format!("cursor.{batch}")).as_array().unwrap();
    let id = |document: &Value| match document.as_document().and_then(|it| it.get("_id")) {
        Some(Value::Int32(id)) => *id,
        other => panic!("no _id but {other:?}"),
    };
    documents.iter().map(id).collect()
}

async fn rest(client: &mut Client<TcpStream>, first: &Document) -> Vec<i32> {
    let more = Document::new().with("getMore", cursor_id(first)).with("collection", "c");
    ids(&client.done("db", more).await, "nextBatch")
}

#[tokio::test(flavor = "multi_thread")]
async fn t16_a_later_batch_leaves_out_what_was_sorted_before_and_has_expired_since() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for name in ["c", "other"] {
        let documents = r#"[{"_id": 1, "x": 1}, {"_id": 2, "x": 2}, {"_id": 3, "x": 3}, {"_id": 4, "x": 4}]"#;
        let documents = json(&format!(r#"{{"insert": "{name}", "documents": {documents}}}"#));
        client.done("db", documents).await;
    }
    // Every row also reads a document of another collection with the same number in it; that one has not expired.
    for stages in [
        r#"[{"$sort": {"x": 1}}]"#,
        r#"[{"$sort": {"x": 1}}, {"$lookup": {"from": "other", "localField": "x", "foreignField": "x", "as": "o"}}]"#,
        r#"[{"$match": {"x": {"$gt": 0}}}]"#,
    ] {
        let open = format!(r#"{{"aggregate": "c", "pipeline": {stages}, "cursor": {{"batchSize": 1}}}}"#);
        let first = client.done("db", json(&open)).await;
        assert_eq!(ids(&first, "firstBatch"), [1]);
        client.done("db", json(r#"{"delete": "c", "deletes": [{"q": {"_id": 3}, "limit": 1}]}"#)).await;
        assert_eq!(rest(&mut client, &first).await, [2, 4], "{stages}");
        client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 3, "x": 3}]}"#)).await;
        let order = client.done("db", json(r#"{"find": "c", "sort": {"x": 1}}"#)).await;
        assert_eq!(ids(&order, "firstBatch"), [1, 2, 3, 4]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_limit_of_a_command_holds_for_its_cursor() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#)).await;
    let over = r#"{"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "alwaysOn"}"#;
    for (open, expected) in [
        (r#"{"find": "c", "batchSize": 1, "maxTimeMS": 1000000}"#, 50),
        (r#"{"aggregate": "c", "pipeline": [], "cursor": {"batchSize": 1}, "maxTimeMS": 1000000}"#, 50),
        (r#"{"find": "c", "batchSize": 1}"#, 0),
    ] {
        let first = client.done("db", json(open)).await;
        client.ok(json(over)).await;
        let more = Document::new().with("getMore", cursor_id(&first)).with("collection", "c");
        let reply = client.on("db", more.clone()).await;
        let code = reply.get("code").cloned().unwrap_or(Value::Int32(0));
        assert_eq!(code, Value::Int32(expected), "{open}");
        client.ok(json(r#"{"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "off"}"#)).await;
        // The cursor has exceeded its idle time, or has given everything.
        assert_eq!(client.fails("db", more).await.0, 43, "{open}");
    }
    let first = client.done("db", json(r#"{"find": "c", "batchSize": 1}"#)).await;
    let more = Document::new().with("getMore", cursor_id(&first)).with("collection", "c");
    assert_eq!(client.fails("db", more.with("maxTimeMS", 500)).await.0, 2);
    assert_eq!(rest(&mut client, &first).await, [2], "a wrong request does no harm");
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_that_belong_to_no_collection_are_closed_by_the_names_they_have() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "a", "documents": [{"_id": 1}]}"#)).await;
    client.done("db", json(r#"{"insert": "b", "documents": [{"_id": 1}]}"#)).await;
    let bulk = r#"{"bulkWrite": 1, "nsInfo": [{"ns": "db.a"}], "cursor": {"batchSize": 1}, "bypassEmptyTsReplacement": true,
        "ops": [{"insert": 0, "document": {"_id": 2}}, {"insert": 0, "document": {"_id": 3}}]}"#;
    for (database, open) in [("db", r#"{"listCollections": 1, "cursor": {"batchSize": 1}}"#), ("admin", bulk)]
    {
        let first = client.done(database, json(open)).await;
        let id = cursor_id(&first);
        let namespace = inner(&first, "cursor.ns").as_str().unwrap();
        let name = namespace.split_once('.').unwrap().1;
        let kill = Document::new().with("killCursors", name).with("cursors", vec![Value::Int64(id)]);
        let killed = client.done(database, kill).await;
        assert_eq!(inner(&killed, "cursorsKilled").as_array().map(<[Value]>::len), Some(1), "{namespace}");
    }
}
