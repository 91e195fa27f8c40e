//! `$meta`: what a find and a pipeline show beside the fields of a document.

use bson::{Document, Value};
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json};

async fn filled(server: &Server) -> Client<TcpStream> {
    let mut client = server.connect().await;
    let documents = r#"{"insert": "c", "documents": [{"_id": 1, "a": 10, "b": "x"}, {"_id": 2, "a": 30, "b": "y"},
        {"_id": 3, "a": 20, "b": "z"}, {"_id": 4, "a": [5, 40]}]}"#;
    client.done("db", json(documents)).await;
    client
}

async fn batch(client: &mut Client<TcpStream>, command: &str) -> Vec<Value> {
    let reply = client.done("db", json(command)).await;
    inner(&reply, "cursor.firstBatch").as_array().unwrap().to_vec()
}

fn list(text: &str) -> Vec<Value> {
    json(&format!(r#"{{"l": {text}}}"#)).get("l").and_then(Value::as_array).unwrap().to_vec()
}

async fn index(client: &mut Client<TcpStream>, key: &str, name: &str) {
    let create = format!(r#"{{"createIndexes": "c", "indexes": [{{"key": {key}, "name": "{name}"}}]}}"#);
    client.done("db", json(&create)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sort_key_is_told_whether_an_index_or_a_sort_gives_the_order() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    for indexed in [false, true] {
        if indexed {
            index(&mut client, r#"{"a": 1}"#, "a_1").await;
        }
        let key = r#"{"_id": 1, "k": {"$meta": "sortKey"}}"#;
        let expected = list(r#"[{"_id": 4, "k": [5]}, {"_id": 1, "k": [10]}, {"_id": 3, "k": [20]}]"#);
        let find = format!(r#"{{"find": "c", "sort": {{"a": 1}}, "limit": 3, "projection": {key}}}"#);
        assert_eq!(batch(&mut client, &find).await, expected, "indexed: {indexed}");
        let pipeline = format!(r#"[{{"$sort": {{"a": 1}}}}, {{"$limit": 3}}, {{"$project": {key}}}]"#);
        let aggregate = format!(r#"{{"aggregate": "c", "pipeline": {pipeline}, "cursor": {{}}}}"#);
        assert_eq!(batch(&mut client, &aggregate).await, expected, "indexed: {indexed}");
        let facet = format!(r#"[{{"$facet": {{"f": {pipeline}}}}}]"#);
        let aggregate = format!(r#"{{"aggregate": "c", "pipeline": {facet}, "cursor": {{}}}}"#);
        let facets = batch(&mut client, &aggregate).await;
        assert_eq!(inner(facets[0].as_document().unwrap(), "f"), &Value::Array(expected), "{indexed}");
    }
    // All parts of the sort key, in their order; a missing one is null.
    let find = r#"{"find": "c", "sort": {"b": -1, "a": 1}, "projection": {"_id": 0, "k": {"$meta": "sortKey"}, "a": 1}}"#;
    let keys = r#"[{"a": 20, "k": ["z", 20]}, {"a": 30, "k": ["y", 30]}, {"a": 10, "k": ["x", 10]},
        {"a": [5, 40], "k": [null, 5]}]"#;
    assert_eq!(batch(&mut client, find).await, list(keys));
    // Behind the first batch too.
    let find = r#"{"find": "c", "sort": {"b": 1}, "projection": {"_id": 1, "k": {"$meta": "sortKey"}}, "batchSize": 1}"#;
    let first = client.done("db", json(find)).await;
    let more = Document::new().with("getMore", inner(&first, "cursor.id").clone()).with("collection", "c");
    let rest = client.done("db", more).await;
    let expected = list(r#"[{"_id": 1, "k": ["x"]}, {"_id": 2, "k": ["y"]}, {"_id": 3, "k": ["z"]}]"#);
    assert_eq!(inner(&rest, "cursor.nextBatch"), &Value::Array(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_key_is_told_where_an_index_led_to_the_document() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    index(&mut client, r#"{"a": 1, "b": -1}"#, "ab").await;
    let key = r#"{"_id": 1, "k": {"$meta": "indexKey"}}"#;
    for (asked, expected) in [
        (
            r#""filter": {"a": {"$gt": 15}, "b": {"$gt": "a"}}, "sort": {"a": 1}"#,
            r#"[{"_id": 3, "k": {"a": 20, "b": "z"}}, {"_id": 2, "k": {"a": 30, "b": "y"}}]"#,
        ),
        // The key that was met, of several.
        (r#""filter": {"a": 40}"#, r#"[{"_id": 4, "k": {"a": 40, "b": null}}]"#),
        (r#""filter": {"_id": 1}"#, r#"[{"_id": 1, "k": {"_id": 1}}]"#),
        (r#""filter": {"b": "x"}"#, r#"[{"_id": 1}]"#),
        (r#""filter": {"a": 10}, "hint": {"$natural": 1}"#, r#"[{"_id": 1}]"#),
    ] {
        let find = format!(r#"{{"find": "c", {asked}, "projection": {key}}}"#);
        assert_eq!(batch(&mut client, &find).await, list(expected), "{asked}");
    }
    // Keys that are not made of values are not shown: they differ from MongoDB's.
    index(&mut client, r#"{"h": "hashed"}"#, "h").await;
    index(&mut client, r#"{"w.$**": 1}"#, "w").await;
    index(&mut client, r#"{"t": "text"}"#, "t").await;
    index(&mut client, r#"{"g": "2dsphere"}"#, "g").await;
    let insert =
        r#"{"insert": "c", "documents": [{"_id": 9, "h": 1, "w": {"x": 1}, "t": "word", "g": [1, 1]}]}"#;
    client.done("db", json(insert)).await;
    for filter in [
        r#"{"h": 1}"#,
        r#"{"w.x": 1}"#,
        r#"{"$text": {"$search": "word"}}"#,
        r#"{"g": {"$geoIntersects": {"$geometry": {"type": "Point", "coordinates": [1, 1]}}}}"#,
    ] {
        let find = format!(r#"{{"find": "c", "filter": {filter}, "projection": {key}}}"#);
        assert_eq!(batch(&mut client, &find).await, list(r#"[{"_id": 9}]"#), "{filter}");
    }
    let aggregate = format!(
        r#"{{"aggregate": "c", "pipeline": [{{"$match": {{"a": 30}}}}, {{"$addFields": {{"c": 1}}}}, {{"$project": {key}}}], "cursor": {{}}}}"#
    );
    assert_eq!(batch(&mut client, &aggregate).await, list(r#"[{"_id": 2, "k": {"a": 30, "b": "y"}}]"#));
}

/// A wrong projection of findAndModify changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_told_is_refused_before_anything_is_written() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let (sort_key, score) = (r#"{"k": {"$meta": "sortKey"}}"#, r#"{"k": {"$meta": "textScore"}}"#);
    let change = r#""findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 11}}"#;
    let remove = r#""findAndModify": "c", "query": {"_id": 1}, "remove": true"#;
    for (command, code) in [
        (format!(r#"{{"find": "c", "projection": {sort_key}}}"#), 2),
        (format!(r#"{{"find": "c", "projection": {score}}}"#), 40218),
        (format!(r#"{{"find": "c", "sort": {score}}}"#), 40218),
        (format!(r#"{{"aggregate": "c", "pipeline": [{{"$project": {score}}}], "cursor": {{}}}}"#), 40218),
        (format!(r#"{{"aggregate": "c", "pipeline": [{{"$sort": {score}}}], "cursor": {{}}}}"#), 40218),
        (r#"{"find": "c", "projection": {"k": {"$meta": "recordId"}}}"#.to_owned(), 115),
        (format!(r#"{{{change}, "fields": {sort_key}}}"#), 2),
        (format!(r#"{{{change}, "fields": {score}}}"#), 40218),
        (format!(r#"{{{change}, "fields": {{"k": {{"$unknown": 1}}}}}}"#), 31325),
        (format!(r#"{{{remove}, "fields": {score}}}"#), 40218),
        (format!(r#"{{{remove}, "fields": {{"a": 1, "b": 0}}}}"#), 31254),
    ] {
        let (refusal, text) = client.fails("db", json(&command)).await;
        assert_eq!(refusal, code, "{command}: {text}");
    }
    let find = r#"{"find": "c", "filter": {"a": 10}, "projection": {"_id": 1}}"#;
    assert_eq!(batch(&mut client, find).await, list(r#"[{"_id": 1}]"#));
}
