//! The service's own commands: throughput, shard keys, sets of indexes.

use bson::{Document, Value};
use engine::{Api, DefaultTtl};
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json};

#[tokio::test(flavor = "multi_thread")]
async fn throughput_is_kept_and_told() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"customAction": "CreateDatabase", "offerThroughput": 400}"#)).await;
    let got = client.done("db", json(r#"{"customAction": "GetDatabase"}"#)).await;
    assert_eq!(
        (got.get("database"), got.get("provisionedThroughput")),
        (Some(&"db".into()), Some(&400.into()))
    );
    client
        .done(
            "db",
            json(r#"{"customAction": "UpdateDatabase", "autoScaleSettings": {"maxThroughput": 4000}}"#),
        )
        .await;
    let got = client.done("db", json(r#"{"customAction": "GetDatabase"}"#)).await;
    assert_eq!(inner(&got, "autoScaleSettings.maxThroughput"), &Value::Int32(4000));
    assert!(!got.contains("provisionedThroughput"));
    for (wrong, code) in [
        (r#"{"customAction": "CreateDatabase"}"#, 48),
        (r#"{"customAction": "UpdateDatabase", "offerThroughput": 5}"#, 2),
        (r#"{"customAction": "GetCollection", "collection": "none"}"#, 26),
        (r#"{"customAction": "GetChangeStreamTokens", "collection": "c"}"#, 115),
        (r#"{"customAction": "Dance"}"#, 2),
        (r#"{"customAction": "CreateCollection", "collection": "c", "offerThroughput": 20000}"#, 2),
        (
            r#"{"customAction": "CreateCollection", "collection": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#,
            2,
        ),
    ] {
        let reply = client.on("db", json(wrong)).await;
        assert_eq!(crate::client::code(&reply), code, "{wrong}");
        assert_eq!(reply.get("errMsg"), reply.get("errmsg"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_key_must_be_there_and_stay() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let create = r#"{"customAction": "CreateCollection", "collection": "c", "offerThroughput": 20000, "shardKey": "a.b",
        "indexes": [{"key": {"_id": 1}, "name": "_id_"}, {"key": {"x": 1}, "name": "x_1"}]}"#;
    client.done("db", json(create)).await;
    let got = client.done("db", json(r#"{"customAction": "GetCollection", "collection": "c"}"#)).await;
    assert_eq!(got.get("shardKeyDefinition"), Some(&Document::new().with("a.b", "hashed").into()));
    assert_eq!(got.get("provisionedThroughput"), Some(&Value::Int32(20000)));
    let insert = r#"{"insert": "c", "ordered": false, "documents": [{"_id": 1}, {"_id": 2, "a": {"b": 1}}]}"#;
    let reply = client.done("db", json(insert)).await;
    assert_eq!((reply.get("n"), code_of(&reply)), (Some(&Value::Int32(1)), 61));
    let update = r#"{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"a.b": 2}}}]}"#;
    assert_eq!(code_of(&client.done("db", json(update)).await), 66);
    let update = r#"{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"x": 2}}}]}"#;
    assert_eq!(client.done("db", json(update)).await.get("nModified"), Some(&Value::Int32(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_of_indexes_replaces_another() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "y": 1}]}"#)).await;
    client.done("db", json(r#"{"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}"#)).await;
    let update = r#"{"customAction": "UpdateCollection", "collection": "c", "offerThroughput": 500,
        "indexes": [{"key": {"_id": 1}, "name": "_id_"}, {"key": {"y": 1}, "name": "y_1", "unique": true}]}"#;
    client.done("db", json(update)).await;
    assert_eq!(indexes(&mut client).await, ["_id_", "y_1"]);
    let got = client.done("db", json(r#"{"customAction": "GetCollection", "collection": "c"}"#)).await;
    assert_eq!(got.get("provisionedThroughput"), Some(&Value::Int32(500)));
}

async fn indexes(client: &mut Client<TcpStream>) -> Vec<String> {
    let listed = client.done("db", json(r#"{"listIndexes": "c"}"#)).await;
    let all = inner(&listed, "cursor.firstBatch").as_array().unwrap().iter();
    all.map(|index| crate::client::text(index.as_document().unwrap(), "name").to_owned()).collect()
}

/// The whole set, with the index on `_id`; a throughput comes along, which must not change either if the set is refused.
fn update(indexes: &str) -> Document {
    json(&format!(
        r#"{{"customAction": "UpdateCollection", "collection": "c", "offerThroughput": 500,
            "indexes": [{{"key": {{"_id": 1}}, "name": "_id_"}}, {indexes}]}}"#
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn t26_t30_a_set_of_indexes_that_is_refused_leaves_everything_as_it_was() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client
        .done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "y": 1}, {"_id": 2, "y": 1}]}"#))
        .await;
    let rule = r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "t", "expireAfterSeconds": 100},
        {"key": {"x": 1}, "name": "x_1"}]}"#;
    client.done("db", json(rule)).await;
    let owner = || server.engine.owner(Api::MongoDb, "db", "c").unwrap();
    server.engine.change_lifecycle(&owner(), |settings| settings.max_instant_expiry = Some(0)).unwrap();
    let dated = r#"{"key": {"d": 1}, "name": "d_1", "expireAfterSeconds": 5}"#;
    for (set, code) in [
        (r#"{"key": {"a": 1}, "name": "n"}, {"key": {"b": 1}, "name": "n"}"#, 86),
        // The second build fails, when the old set is already gone.
        (
            r#"{"key": {"x": 1}, "name": "x_1", "sparse": true}, {"key": {"y": 1}, "name": "y_1", "unique": true}"#,
            11000,
        ),
        (dated, 20),
    ] {
        assert_eq!(client.fails("db", update(set)).await.0, code, "{set}");
        let mut names = indexes(&mut client).await;
        names.sort();
        assert_eq!(names, ["_id_", "t", "x_1"], "{set}");
        assert_eq!(owner().default_ttl(), DefaultTtl::Seconds(100), "{set}");
        let got = client.done("db", json(r#"{"customAction": "GetCollection", "collection": "c"}"#)).await;
        assert_eq!(got.get("provisionedThroughput"), None, "{set}");
    }
    client.done("db", update(dated).with("bolideConfirmExpiry", true)).await;
    assert_eq!(indexes(&mut client).await, ["_id_", "d_1"]);
    assert_eq!(owner().default_ttl(), DefaultTtl::Off);
}

fn code_of(reply: &Document) -> i32 {
    let errors = reply.get("writeErrors").and_then(Value::as_array).unwrap_or_else(|| panic!("{reply:?}"));
    crate::client::code(errors[0].as_document().unwrap())
}
