//! Collections whose strings are in the order of before format 9, which no client can name.

use bson::{Collation, Document, RawDocument, Value};
use engine::CollectionDefinition;

use crate::client::{Server, inner, json};

/// A collection or view as an earlier version stored it.
fn create_old(server: &Server, name: &str, options: &str) {
    let stored = json(r#"{"locale": "sv", "strength": 2, "version": "57.1"}"#);
    let options = json(options).with("collation", json(r#"{"locale": "sv", "strength": 2}"#));
    let definition = CollectionDefinition {
        uuid: [7; 16],
        options: RawDocument::from_document(&options),
        collation: Collation::parse_stored(stored.view()).unwrap(),
        shard_key: None,
    };
    server.engine.create_collection("db", name, definition, None).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_index_serves_the_queries_of_a_collection_that_was_collated_before_format_9() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    create_old(&server, "old", "{}");
    client
        .done("db", json(r#"{"insert": "old", "documents": [{"_id": 1, "a": "x"}, {"_id": 2, "a": "Y"}]}"#))
        .await;
    let create = r#"{"createIndexes": "old", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#;
    client.done("db", json(create)).await;
    let find = json(r#"{"find": "old", "filter": {"a": "X"}}"#);
    let explained = client.done("db", Document::new().with("explain", find.clone())).await;
    let plan = "queryPlanner.winningPlan.inputStage.indexName";
    assert_eq!(inner(&explained, plan), &Value::from("a_1"), "{explained:?}");
    let found = client.done("db", find).await;
    let found = inner(&found, "cursor.firstBatch").as_array().unwrap();
    assert_eq!(found.len(), 1, "case does not count");
    let again = client.done("db", json(create)).await;
    assert_eq!(inner(&again, "note"), &Value::from("all indexes already exist"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_was_collated_before_format_9_is_read_by_its_own_collation() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "a": "x"}]}"#)).await;
    create_old(&server, "view", r#"{"viewOn": "c", "pipeline": []}"#);
    let own = r#"{"find": "view", "filter": {"a": "X"}, "collation": {"locale": "sv", "strength": 2}}"#;
    let found = client.done("db", json(own)).await;
    assert_eq!(inner(&found, "cursor.firstBatch").as_array().unwrap().len(), 1);
    let other = r#"{"find": "view", "collation": {"locale": "sv", "strength": 3}}"#;
    assert_eq!(client.fails("db", json(other)).await.0, 167);
}
