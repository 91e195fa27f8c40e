//! Commands that write: which options they take, and what they report of many failures.

use bson::{Document, Value};

use crate::client::{Server, inner, json};

#[tokio::test(flavor = "multi_thread")]
async fn unknown_options_are_refused() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let commands = [
        r#"{"insert": "c", "documents": [{"_id": 1}]"#,
        r#"{"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]"#,
        r#"{"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]"#,
        r#"{"findAndModify": "c", "query": {}, "remove": true"#,
    ];
    for command in commands {
        assert_eq!(client.fails("db", json(&format!(r#"{command}, "zz": 1}}"#))).await.0, 40415, "{command}");
    }
    // Fields that drivers send along.
    for command in commands {
        let mut command = json(&format!(
            r#"{command}, "maxTimeMS": 5000, "writeConcern": {{"w": "majority"}}, "comment": "x", "apiVersion": "1",
                "lsid": {{"id": {{"$uuid": "00112233-4455-6677-8899-aabbccddeeff"}}}}, "$clusterTime": {{}}, "$readPreference": {{"mode": "primary"}}}}"#
        ));
        if !command.contains("findAndModify") {
            command.push("ordered", true);
        }
        client.done("db", command.with("bypassDocumentValidation", true)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_that_names_no_index_is_refused_also_where_none_is_needed() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
    let refused = |reply: Document| {
        let errors = reply.get("writeErrors").and_then(Value::as_array).unwrap_or_default().to_vec();
        errors[0].as_document().unwrap().get("code").cloned()
    };
    for hint in [r#""nope""#, r#"{"x": 1}"#] {
        let delete =
            format!(r#"{{"delete": "c", "deletes": [{{"q": {{"_id": 1}}, "limit": 1, "hint": {hint}}}]}}"#);
        assert_eq!(refused(client.done("db", json(&delete)).await), Some(Value::Int32(2)));
        let update = format!(
            r#"{{"update": "c", "updates": [{{"q": {{"_id": 1}}, "u": {{"$set": {{"a": 1}}}}, "upsert": true, "hint": {hint}}}]}}"#
        );
        assert_eq!(refused(client.done("db", json(&update)).await), Some(Value::Int32(2)));
        let take =
            format!(r#"{{"findAndModify": "c", "query": {{"_id": 1}}, "remove": true, "hint": {hint}}}"#);
        assert_eq!(client.fails("db", json(&take)).await.0, 2);
    }
    let delete = r#"{"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1, "hint": "_id_"}]}"#;
    assert_eq!(client.done("db", json(delete)).await.get("n"), Some(&Value::Int32(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_failures_are_told_in_few_words() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let documents = vec![Value::Document(Document::new().with("_id", "x".repeat(700))); 3_000];
    let insert =
        Document::new().with("insert", "c").with("documents", documents.clone()).with("ordered", false);
    let reply = client.done("db", insert).await;
    let errors = reply.get("writeErrors").and_then(Value::as_array).unwrap();
    assert_eq!(errors.len(), 2_999, "each is told of");
    let error = |at: usize| errors[at].as_document().unwrap();
    assert!(error(0).contains("keyPattern") && error(0).contains("keyValue"));
    assert_eq!(error(2_998).get("index"), Some(&Value::Int32(2_999)));
    assert_eq!(error(2_998).get("code"), Some(&Value::Int32(11000)));
    assert_eq!(error(2_998).get("errmsg"), Some(&Value::from("")));
    assert!(!error(2_998).contains("keyPattern"));
    let bytes = bson::RawDocument::from_document(&reply).as_bytes().len();
    assert!(bytes < 2 << 20, "{bytes}");
    // The same through bulkWrite.
    let operations =
        documents.into_iter().map(|document| Document::new().with("insert", 0).with("document", document));
    let bulk = Document::new()
        .with("bulkWrite", 1)
        .with("ops", operations.map(Value::Document).collect::<Vec<_>>())
        .with("nsInfo", vec![Value::Document(Document::new().with("ns", "db.c"))])
        .with("ordered", false);
    let reply = client.ok(bulk).await;
    let told = inner(&reply, "cursor.firstBatch").as_array().unwrap();
    assert_eq!(told[2_999].as_document().unwrap().get("errmsg"), Some(&Value::from("")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_computed_document_that_is_too_large_is_an_error() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let text = "x".repeat(1 << 20);
    for _ in 0..17 {
        let document = Document::new().with("p", text.as_str());
        let insert = Document::new().with("insert", "c").with("documents", vec![Value::Document(document)]);
        client.done("db", insert).await;
    }
    let push = |more: &str| {
        json(&format!(
            r#"{{"aggregate": "c", "pipeline": [{{"$group": {{"_id": null, "a": {{"$push": "$p"}}}}}}{more}], "cursor": {{}}}}"#
        ))
    };
    assert_eq!(client.fails("db", push("")).await.0, 10334);
    // A document that is large only in between is accepted.
    let reply = client.done("db", push(r#", {"$project": {"_id": 0, "n": {"$size": "$a"}}}"#)).await;
    assert_eq!(inner(&reply, "cursor.firstBatch"), &Value::Array(vec![json(r#"{"n": 17}"#).into()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_one_document_take_the_best_of_a_search_and_tell_its_score() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let index = r#"{"createIndexes": "c", "indexes": [{"key": {"t": "text"}, "name": "t"}]}"#;
    client.done("db", json(index)).await;
    let insert = r#"{"insert": "c", "documents": [{"_id": 1, "t": "one"}, {"_id": 2, "t": "one two"}, {"_id": 3, "t": "three"}]}"#;
    client.done("db", json(insert)).await;
    let search = r#"{"$text": {"$search": "one two"}}"#;
    let score = r#"{"s": {"$meta": "textScore"}}"#;
    let update = format!(
        r#"{{"update": "c", "updates": [{{"q": {search}, "u": {{"$set": {{"u": 1}}}}, "sort": {score}}}]}}"#
    );
    client.done("db", json(&update)).await;
    let remove = format!(
        r#"{{"findAndModify": "c", "query": {search}, "remove": true, "sort": {score}, "fields": {score}}}"#
    );
    let reply = client.done("db", json(&remove)).await;
    assert_eq!(inner(&reply, "value._id"), &Value::Int32(2));
    assert_eq!(inner(&reply, "value.u"), &Value::Int32(1), "the update took the same");
    assert!(matches!(inner(&reply, "value.s"), Value::Double(score) if *score > 1.0), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_document_is_shown_by_the_position_that_its_filter_found() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "e": ["x", "A", "b"]}]}"#)).await;
    let remove = r#"{"findAndModify": "c", "query": {"e": "a"}, "remove": true, "fields": {"e.$": 1}, "collation": {"locale": "en", "strength": 2}}"#;
    let reply = client.done("db", json(remove)).await;
    assert_eq!(inner(&reply, "value.e"), &Value::Array(vec!["A".into()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_by_the_same_document_is_validated() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}]}"#)).await;
    client.done("db", json(r#"{"collMod": "c", "validator": {"a": {"$gt": 5}}}"#)).await;
    let replace = r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"_id": 1, "a": 1}}]}"#;
    let reply = client.done("db", json(replace)).await;
    let errors = inner(&reply, "writeErrors").as_array().unwrap();
    assert_eq!(errors[0].as_document().unwrap().get("code"), Some(&Value::Int32(121)));
    let set = r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}}]}"#;
    assert_eq!(client.done("db", json(set)).await.get("writeErrors"), None, "nothing changes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_may_be_missing() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let insert = r#"{"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2}, {"_id": 3, "a": null}]}"#;
    client.done("db", json(insert)).await;
    let find = r#"{"find": "c", "filter": {"$expr": {"$eq": ["$a", "$$v"]}}, "let": {"v": "$$REMOVE"}}"#;
    let reply = client.done("db", json(find)).await;
    assert_eq!(inner(&reply, "cursor.firstBatch"), &Value::Array(vec![json(r#"{"_id": 2}"#).into()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_within_an_id_have_no_dollar_in_front() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for id in [r#"{"$b": 1}"#, r#"{"a": {"$b": 1}}"#, r#"{"a": [{"$b": 1}]}"#] {
        let insert = format!(r#"{{"insert": "c", "documents": [{{"_id": {id}}}]}}"#);
        let reply = client.done("db", json(&insert)).await;
        let errors = inner(&reply, "writeErrors").as_array().unwrap();
        assert_eq!(errors[0].as_document().unwrap().get("code"), Some(&Value::Int32(52)), "{id}");
    }
}
