//! What pipelines write: `$out` and `$merge`.

use bson::{Document, Value};
use engine::Api;
use engine::collection::CollectionDefinition;
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json};

/// A name as `$out` gives them to what it makes.
const STAGED: &str = "tmp.agg_out.0123456789abcdef";

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
        r#"{"$out": "tmp.agg_out.0123456789abcdef"}"#,
        r#"{"$merge": "tmp.agg_out.0123456789abcdef"}"#,
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
    for name in ["tmp.agg_out.mine", "c"] {
        client.done("db", Document::new().with("create", name)).await;
    }
    let unnamed = server.engine.collection("db", "c").unwrap().definition.clone();
    let definition = CollectionDefinition { uuid: [7; 16], ..unnamed };
    server.engine.create_collection("db", STAGED, definition, None).unwrap();
    let again = server.again().await;
    let mut client = again.connect().await;
    let list = client.done("db", json(r#"{"listCollections": 1}"#)).await;
    assert_eq!(names(&list), ["c", "tmp.agg_out.mine"]);
}

/// It would be dropped at the next start.
#[tokio::test(flavor = "multi_thread")]
async fn no_client_creates_a_collection_named_like_an_unfinished_one_of_out() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
    for command in [
        r#"{"create": "NAME"}"#,
        r#"{"insert": "NAME", "documents": [{"_id": 1}]}"#,
        r#"{"findAndModify": "NAME", "query": {"_id": 1}, "update": {"a": 1}, "upsert": true}"#,
        r#"{"createIndexes": "NAME", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#,
        r#"{"customAction": "CreateCollection", "collection": "NAME"}"#,
    ] {
        assert_eq!(client.fails("db", json(&command.replace("NAME", STAGED))).await.0, 73, "{command}");
    }
    let rename = Document::new().with("renameCollection", "db.c").with("to", format!("db.{STAGED}"));
    assert_eq!(client.refused(rename).await.0, 73);
    let list = client.done("db", json(r#"{"listCollections": 1}"#)).await;
    assert_eq!(names(&list), ["c"]);
}

async fn charge(client: &mut Client<TcpStream>) -> f64 {
    let told = client.ok(Document::new().with("getLastRequestStatistics", 1)).await;
    let Some(Value::Double(charge)) = told.get("RequestCharge") else { panic!("{told:?}") };
    *charge
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pipeline_writes_is_charged_as_if_a_client_had_written_it() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let insert = json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#);
    client.done("db", insert).await;
    let written = charge(&mut client).await;
    client.done("db", out(r#"{"$match": {}}"#)).await;
    let read = charge(&mut client).await;
    for stage in [r#"{"$out": "o"}"#, r#"{"$merge": "m"}"#] {
        client.done("db", out(stage)).await;
        let told = charge(&mut client).await;
        // The documents are not in the answer.
        assert!((told - read - written).abs() < 0.1, "{stage} costs {told}, not {read} and {written}");
    }
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
async fn t24_t30_a_replaced_collection_keeps_its_lifecycle_settings() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
    client.done("db", json(r#"{"create": "o"}"#)).await;
    let target = || server.engine.owner(Api::MongoDb, "db", "o").unwrap();
    let settings = server.engine.change_lifecycle(&target(), |settings| {
        settings.max_purge_delay = Some(60);
        settings.max_instant_expiry = Some(1_000);
        settings.deletion_record = true;
    });
    client.done("db", out(r#"{"$out": "o"}"#)).await;
    assert_eq!(target().lifecycle(), settings.unwrap());
    let logs = server.engine.deletion_logs().unwrap();
    assert_eq!(logs.len(), 2, "that of the one before, which was dropped, and its own");
    for log in logs {
        let page = server.engine.deletion_page(log.log, 0).unwrap();
        let text = String::from_utf8(page.lines).unwrap();
        assert!(!text.contains("tmp.agg_out"), "{text}");
    }
    let count = client.done("db", json(r#"{"count": "o"}"#)).await;
    assert_eq!(count.get("n"), Some(&Value::Int32(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_without_an_id_gets_one() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "k": 5}, {"_id": 2, "k": 6}]}"#))
        .await;
    let index = r#"{"createIndexes": "to", "indexes": [{"key": {"k": 1}, "name": "k_1", "unique": true}]}"#;
    client.done("db", json(index)).await;
    client.done("db", json(r#"{"insert": "to", "documents": [{"_id": "old", "k": 5}]}"#)).await;
    let unset = r#"{"$project": {"_id": 0, "k": 1}}"#;
    for last in [r#"{"$out": "o"}"#, r#"{"$merge": {"into": "to", "on": "k"}}"#] {
        client.done("db", out(&format!("{unset}, {last}"))).await;
    }
    let mut kinds = Vec::new();
    for collection in ["o", "to"] {
        let reply =
            client.done("db", json(&format!(r#"{{"find": "{collection}", "sort": {{"k": 1}}}}"#))).await;
        for row in inner(&reply, "cursor.firstBatch").as_array().unwrap() {
            let row = row.as_document().unwrap();
            assert_eq!(row.iter().next().unwrap().0, "_id", "{row:?}");
            kinds.push((row.get("_id").unwrap().kind().alias(), row.get("k").cloned().unwrap()));
        }
    }
    let (five, six) = (Value::Int32(5), Value::Int32(6));
    let expected =
        [("objectId", five.clone()), ("objectId", six.clone()), ("string", five), ("objectId", six)];
    assert_eq!(kinds, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_another_document_has_is_a_taken_key_and_no_conflict() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "k": 5}]}"#)).await;
    let index = r#"{"createIndexes": "to", "indexes": [{"key": {"k": 1}, "name": "k_1", "unique": true}]}"#;
    client.done("db", json(index)).await;
    client.done("db", json(r#"{"insert": "to", "documents": [{"_id": 1, "k": 9}]}"#)).await;
    let reply = client.on("db", out(r#"{"$merge": {"into": "to", "on": "k"}}"#)).await;
    assert_eq!(reply.get("code"), Some(&Value::Int32(11000)), "{reply:?}");
    assert_eq!(inner(&reply, "keyValue._id"), &Value::Int32(1));
    let discarded = r#"{"$merge": {"into": "to", "on": "k", "whenNotMatched": "discard"}}"#;
    client.done("db", out(discarded)).await;
}
