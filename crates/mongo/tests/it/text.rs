//! Text indexes through the protocol: what they refuse, and searches in pipelines over other collections.

use bson::Value;
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json};

async fn ids(client: &mut Client<TcpStream>, command: &str) -> Vec<i32> {
    let reply = client.done("db", json(command)).await;
    let batch = inner(&reply, "cursor.firstBatch").as_array().unwrap();
    let id = |document: &Value| match document.as_document().unwrap().get("_id") {
        Some(Value::Int32(id)) => *id,
        other => panic!("{other:?}"),
    };
    batch.iter().map(id).collect()
}

async fn search(client: &mut Client<TcpStream>, text: &str) -> Vec<i32> {
    let find =
        format!(r#"{{"find": "c", "filter": {{"$text": {{"$search": "{text}"}}}}, "sort": {{"_id": 1}}}}"#);
    ids(client, &find).await
}

fn index(key: &str, options: &str) -> String {
    format!(r#"{{"createIndexes": "c", "indexes": [{{"key": {key}, "name": "t"{options}}}]}}"#)
}

/// A refused document is not stored, in part or whole; a stored one prevents the index.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_index_takes_no_arrays_beside_its_words() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(&index(r#"{"a.b": 1, "t": "text"}"#, ""))).await;
    let insert = |document: &str| json(&format!(r#"{{"insert": "c", "documents": [{document}]}}"#));
    client.done("db", insert(r#"{"_id": 1, "a": {"b": 1}, "t": "word"}"#)).await;
    for (command, id) in [
        (insert(r#"{"_id": 2, "a": {"b": [1, 2]}, "t": "word"}"#), 2),
        (insert(r#"{"_id": 3, "a": [{"b": 1}]}"#), 3),
        (
            json(
                r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$push": {"a.c": 1}, "$set": {"a.b": []}}}]}"#,
            ),
            1,
        ),
    ] {
        let reply = client.on("db", command).await;
        let errors = inner(&reply, "writeErrors").as_array().unwrap();
        let error = errors[0].as_document().unwrap();
        assert_eq!(error.get("code"), Some(&Value::Int32(201)), "{id}: {reply:?}");
        let message = error.get("errmsg").and_then(Value::as_str).unwrap();
        assert!(message.contains("Field 'a.b' of text index contains an array"), "{message}");
    }
    assert_eq!(ids(&mut client, r#"{"find": "c"}"#).await, [1]);
    let find = r#"{"find": "c", "filter": {"a.b": 1, "$text": {"$search": "words"}}}"#;
    assert_eq!(ids(&mut client, find).await, [1]);

    client.done("db", json(r#"{"dropIndexes": "c", "index": "t"}"#)).await;
    client.done("db", insert(r#"{"_id": 2, "a": {"b": [1, 2]}, "t": "word"}"#)).await;
    let refused = client.fails("db", json(&index(r#"{"a.b": 1, "t": "text"}"#, ""))).await;
    assert_eq!(refused.0, 201, "{}", refused.1);
    client.done("db", json(r#"{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}"#)).await;
    client.done("db", json(&index(r#"{"a.b": 1, "t": "text"}"#, ""))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_found_by_the_rules_of_their_language_and_version() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let documents = r#"{"insert": "c", "documents": [{"_id": 1, "t": "O próximo vôo à noite"},
        {"_id": 2, "t": "os médicos", "language": "pt"}, {"_id": 3, "t": "generously", "language": "en"}]}"#;
    client.done("db", json(documents)).await;
    for (version, cases) in [
        (
            3,
            [("proximo", vec![1]), ("à", vec![]), ("medico", vec![2]), ("médico", vec![2]), ("voos", vec![])],
        ),
        (2, [("proximo", vec![]), ("à", vec![]), ("medico", vec![]), ("médico", vec![2]), ("vôo", vec![1])]),
    ] {
        let options = format!(r#", "default_language": "portuguese", "textIndexVersion": {version}"#);
        client.done("db", json(&index(r#"{"t": "text"}"#, &options))).await;
        for (text, expected) in cases {
            assert_eq!(search(&mut client, text).await, expected, "{text} in version {version}");
        }
        let find = r#"{"find": "c", "filter": {"$text": {"$search": "generous", "$language": "en"}}}"#;
        assert_eq!(ids(&mut client, find).await, [3], "version {version}");
        client.done("db", json(r#"{"dropIndexes": "c", "index": "t"}"#)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lookup_searches_by_the_text_index_of_the_other_collection() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(&index(r#"{"t": "text"}"#, ""))).await;
    for (name, text) in [("c", "foo"), ("other", "foo bar")] {
        let insert = format!(r#"{{"insert": "{name}", "documents": [{{"_id": 1, "t": "{text}"}}]}}"#);
        client.done("db", json(&insert)).await;
    }
    let score = r#"{"$project": {"s": {"$meta": "textScore"}}}"#;
    let aggregate = |first: &str, lookup: &str| {
        json(&format!(
            r#"{{"aggregate": "c", "pipeline": [{first}{{"$lookup": {{"from": "other", "pipeline": [{lookup}], "as": "d"}}}}], "cursor": {{}}}}"#
        ))
    };
    let words = r#"{"$match": {"$text": {"$search": "foo"}}}"#;
    let searched = aggregate("", &format!("{words}, {score}"));
    assert_eq!(client.fails("db", searched.clone()).await.0, 27, "the other one has no text index");
    let create = r#"{"createIndexes": "other", "indexes": [{"key": {"t": "text"}, "name": "t"}]}"#;
    client.done("db", json(create)).await;
    let reply = client.done("db", searched).await;
    let found = inner(&reply, "cursor.firstBatch").as_array().unwrap()[0].as_document().unwrap().clone();
    let expected = json(r#"{"_id": 1, "t": "foo", "d": [{"_id": 1, "s": 0.75}]}"#);
    assert_eq!(found, expected);
    // A search outside gives no score to the documents within.
    assert_eq!(client.fails("db", aggregate(&format!("{words}, "), score)).await.0, 40218);
    let late = aggregate("", &format!(r#"{{"$limit": 5}}, {words}"#));
    assert_eq!(client.fails("db", late).await.0, 17313);
}
