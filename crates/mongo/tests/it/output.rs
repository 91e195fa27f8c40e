//! What pipelines write: `$out` and `$merge`.

use bson::{Document, Value};
use engine::Api;

use crate::client::{Server, inner, json};

fn out(stage: &str) -> Document {
    json(&format!(r#"{{"aggregate": "c", "pipeline": [{stage}], "cursor": {{}}}}"#))
}

fn names(reply: &Document) -> Vec<String> {
    let all = inner(reply, "cursor.firstBatch").as_array().unwrap();
    all.iter().map(|it| crate::client::text(it.as_document().unwrap(), "name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_has_a_name_that_commands_can_say() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
    for stage in [
        r#"{"$out": "x$y"}"#,
        r#"{"$out": ".x"}"#,
        r#"{"$out": {"db": "a b", "coll": "x"}}"#,
        r#"{"$out": "system.x"}"#,
        r#"{"$merge": {"into": "x$y"}}"#,
        r#"{"$merge": {"into": {"db": "a$b", "coll": "x"}}}"#,
        r#"{"$merge": "system.x"}"#,
    ] {
        assert_eq!(client.fails("db", out(stage)).await.0, 73, "{stage}");
    }
    let list = client.done("db", json(r#"{"listCollections": 1}"#)).await;
    assert_eq!(names(&list), ["c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counterpart_that_must_not_be_there_is_told_as_a_taken_key() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "k": 5}]}"#)).await;
    client.done("db", json(r#"{"insert": "to", "documents": [{"_id": 1, "k": 5}]}"#)).await;
    let index = r#"{"createIndexes": "to", "indexes": [{"key": {"k": 1}, "name": "k_1", "unique": true}]}"#;
    client.done("db", json(index)).await;
    let merge =
        |on: &str| out(&format!(r#"{{"$merge": {{"into": "to", "on": "{on}", "whenMatched": "fail"}}}}"#));
    for (on, value) in [("_id", 1), ("k", 5)] {
        let reply = client.on("db", merge(on)).await;
        assert_eq!(reply.get("code"), Some(&Value::Int32(11000)), "{reply:?}");
        assert_eq!(inner(&reply, &format!("keyPattern.{on}")), &Value::Int32(1));
        assert_eq!(inner(&reply, &format!("keyValue.{on}")), &Value::Int32(value));
        assert!(
            crate::client::text(&reply, "errmsg").starts_with("E11000 duplicate key error collection: db.to")
        );
    }
    for stage in [r#"{"$out": "o"}"#, r#"{"$merge": "o"}"#] {
        let concern = json(r#"{"level": "linearizable"}"#);
        assert_eq!(client.fails("db", out(stage).with("readConcern", concern)).await.0, 72);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_out_was_making_when_a_process_ended_is_removed_by_the_next() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for name in ["tmp.agg_out.0123456789abcdef", "tmp.agg_out.mine", "c"] {
        client.done("db", Document::new().with("create", name)).await;
    }
    let again = server.again().await;
    let mut client = again.connect().await;
    let list = client.done("db", json(r#"{"listCollections": 1}"#)).await;
    assert_eq!(names(&list), ["c", "tmp.agg_out.mine"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_collection_keeps_its_throughput() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
    client
        .done(
            "db",
            json(r#"{"customAction": "CreateCollection", "collection": "o", "offerThroughput": 700}"#),
        )
        .await;
    client.done("db", out(r#"{"$out": "o"}"#)).await;
    let told = client.done("db", json(r#"{"customAction": "GetCollection", "collection": "o"}"#)).await;
    assert_eq!(told.get("provisionedThroughput"), Some(&Value::Int32(700)), "{told:?}");
    let count = client.done("db", json(r#"{"count": "o"}"#)).await;
    assert_eq!(count.get("n"), Some(&Value::Int32(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn t24_t30_a_replaced_collection_keeps_what_its_owner_wished() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
    client.done("db", json(r#"{"create": "o"}"#)).await;
    let target = || server.engine.holder(Api::MongoDb, "db", "o").unwrap();
    let wished = server.engine.change_lifecycle(&target(), |wishes| {
        wishes.max_purge_delay = Some(60);
        wishes.max_instant_expiry = Some(1_000);
    });
    client.done("db", out(r#"{"$out": "o"}"#)).await;
    assert_eq!(target().lifecycle(), wished.unwrap());
    let count = client.done("db", json(r#"{"count": "o"}"#)).await;
    assert_eq!(count.get("n"), Some(&Value::Int32(1)));
}
