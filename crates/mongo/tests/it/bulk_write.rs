//! `bulkWrite`, write errors and transactions that fail.

use bson::{Binary, Document, Value};

use crate::client::{Server, inner, json};

fn counts(reply: &Document) -> Vec<i32> {
    ["nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted"]
        .iter()
        .map(|name| match reply.get(name) {
            Some(Value::Int32(count)) => *count,
            other => panic!("{name} is {other:?} in {reply:?}"),
        })
        .collect()
}

fn in_session(command: Document, number: i64) -> Document {
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![7; 16] });
    command.with("lsid", lsid).with("txnNumber", number)
}

const MIXED: &str = r#"{"bulkWrite": 1, "nsInfo": [{"ns": "db.a"}, {"ns": "other.b"}], "ops": [
    {"insert": 0, "document": {"_id": 1, "n": 1}},
    {"insert": 0, "document": {"_id": 2, "n": 1}},
    {"insert": 1, "document": {"_id": 1, "n": 1}},
    {"update": 0, "filter": {"n": 1}, "updateMods": {"$inc": {"n": 1}}, "multi": true},
    {"update": 1, "filter": {"_id": 9}, "updateMods": {"$set": {"x": 1}}, "upsert": true},
    {"update": 0, "filter": {"_id": 1}, "updateMods": {"$set": {"n": {"$literal": 1}}}},
    {"delete": 0, "filter": {"_id": 2}}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_write_works_on_several_collections() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let reply = client.ok(json(MIXED)).await;
    assert_eq!(counts(&reply), [0, 3, 3, 3, 1, 1]);
    let told = inner(&reply, "cursor.firstBatch").as_array().unwrap();
    assert_eq!(told.len(), 7);
    let upserted = told[4].as_document().unwrap();
    assert_eq!(inner(upserted, "upserted._id"), &Value::Int32(9));
    assert_eq!(inner(upserted, "idx"), &Value::Int32(4));
    assert_eq!(inner(&reply, "cursor.ns"), &Value::from("admin.$cmd.bulkWrite"));
    let left = client.done("db", json(r#"{"count": "a"}"#)).await;
    assert_eq!(left.get("n"), Some(&Value::Int32(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_write_tells_what_failed() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let command = |ordered: bool| {
        json(
            r#"{"bulkWrite": 1, "nsInfo": [{"ns": "db.a"}], "errorsOnly": true, "ops": [
            {"insert": 0, "document": {"_id": 1}}, {"insert": 0, "document": {"_id": 1}},
            {"insert": 0, "document": {"_id": 2}}, {"delete": 0, "filter": {"$x": 1}}]}"#,
        )
        .with("ordered", ordered)
    };
    let reply = client.ok(command(true)).await;
    assert_eq!(counts(&reply), [1, 1, 0, 0, 0, 0]);
    let told = inner(&reply, "cursor.firstBatch").as_array().unwrap();
    let failure = told[0].as_document().unwrap();
    assert_eq!(
        (told.len(), failure.get("code"), failure.get("idx")),
        (1, Some(&11000.into()), Some(&1.into()))
    );
    assert!(failure.contains("keyPattern") && failure.contains("keyValue"));
    assert_eq!(counts(&client.ok(command(false)).await), [3, 1, 0, 0, 0, 0]);
    for (wrong, code) in [
        (r#"{"bulkWrite": 1, "nsInfo": [{"ns": "db.a"}], "ops": []}"#, 16),
        (r#"{"bulkWrite": 1, "nsInfo": [{"ns": "db.a"}], "ops": [{"insert": 1, "document": {}}]}"#, 2),
        (r#"{"bulkWrite": 1, "nsInfo": [{"ns": "db"}], "ops": [{"insert": 0, "document": {}}]}"#, 73),
        (r#"{"bulkWrite": 1, "nsInfo": [{"ns": "db.a"}], "ops": [{"merge": 0}]}"#, 9),
    ] {
        assert_eq!(client.refused(json(wrong)).await.0, code, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_write_that_is_sent_again_happens_once() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let command = json(
        r#"{"bulkWrite": 1, "nsInfo": [{"ns": "db.a"}], "ops": [
        {"insert": 0, "document": {"_id": 1, "n": 0}},
        {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"n": 1}}}]}"#,
    );
    for _ in 0..2 {
        let reply = client.ok(in_session(command.clone(), 1)).await;
        assert_eq!(counts(&reply), [0, 1, 1, 1, 0, 0]);
    }
    let found = client.done("db", json(r#"{"find": "a"}"#)).await;
    let found = inner(&found, "cursor.firstBatch").as_array().unwrap();
    assert_eq!(found[0].as_document().unwrap().get("n"), Some(&Value::Int32(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_statement_is_told_and_ends_its_transaction() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "a", "documents": [{"_id": 1}]}"#)).await;
    let insert = json(r#"{"insert": "a", "documents": [{"_id": 2}, {"_id": 1}]}"#);
    let begin = in_session(insert, 1).with("startTransaction", true).with("autocommit", false);
    let reply = client.done("db", begin).await;
    let errors = reply.get("writeErrors").and_then(Value::as_array).unwrap();
    assert_eq!(errors[0].as_document().unwrap().get("code"), Some(&Value::Int32(11000)));
    let commit = in_session(Document::new().with("commitTransaction", 1), 1).with("autocommit", false);
    assert_eq!(client.refused(commit).await.0, 251);
    let left = client.done("db", json(r#"{"count": "a"}"#)).await;
    assert_eq!(left.get("n"), Some(&Value::Int32(1)));
}
