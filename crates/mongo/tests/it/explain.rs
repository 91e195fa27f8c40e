//! `explain`: the plan of a command, and how much it examines.

use std::time::Duration;

use bson::{Document, Value};

use crate::client::{Client, Server, inner, json};

async fn filled(server: &Server) -> Client<tokio::net::TcpStream> {
    let mut client = server.connect().await;
    let documents = (0..20).map(|n| Document::new().with("_id", n).with("a", n % 5).with("b", n).into());
    let insert = Document::new().with("insert", "c").with("documents", Value::Array(documents.collect()));
    client.done("db", insert).await;
    client.done("db", json(r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#)).await;
    client
}

async fn explained(client: &mut Client<tokio::net::TcpStream>, command: &str) -> Document {
    client
        .done("db", Document::new().with("explain", json(command)).with("verbosity", "executionStats"))
        .await
}

fn numbers(reply: &Document, names: [&str; 3]) -> Vec<Value> {
    names.iter().map(|name| inner(reply, &format!("executionStats.{name}")).clone()).collect()
}

const FIGURES: [&str; 3] = ["nReturned", "totalKeysExamined", "totalDocsExamined"];

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_the_way_and_what_it_costs() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let cases = [
        (r#"{"find": "c", "filter": {"a": 2}}"#, vec!["FETCH", "IXSCAN"], [4, 4, 4]),
        (r#"{"find": "c", "filter": {"b": 2}}"#, vec!["COLLSCAN"], [1, 0, 20]),
        (r#"{"find": "c", "filter": {"_id": 2}}"#, vec!["EXPRESS_IXSCAN"], [1, 0, 1]),
        (r#"{"find": "c", "sort": {"b": 1}, "limit": 3}"#, vec!["SORT", "COLLSCAN"], [3, 0, 20]),
        (r#"{"find": "c", "sort": {"a": 1}, "limit": 3}"#, vec!["LIMIT", "FETCH", "IXSCAN"], [3, 3, 3]),
        (
            r#"{"find": "c", "filter": {"b": {"$gt": 3}}, "skip": 2, "projection": {"a": 1}}"#,
            vec!["PROJECTION_SIMPLE", "SKIP", "COLLSCAN"],
            [14, 0, 20],
        ),
        (r#"{"find": "none"}"#, vec!["EOF"], [0, 0, 0]),
        (r#"{"count": "c", "query": {"a": 1}}"#, vec!["COUNT", "COUNT_SCAN"], [1, 4, 0]),
        (r#"{"distinct": "c", "key": "b", "query": {"a": 1}}"#, vec!["FETCH", "IXSCAN"], [4, 4, 4]),
        (
            r#"{"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"x": 1}}, "multi": true}]}"#,
            vec!["UPDATE", "FETCH", "IXSCAN"],
            [0, 4, 4],
        ),
        (
            r#"{"delete": "c", "deletes": [{"q": {"a": 1}, "limit": 0}]}"#,
            vec!["DELETE", "FETCH", "IXSCAN"],
            [0, 4, 4],
        ),
        (
            r#"{"findAndModify": "c", "query": {"_id": 4}, "remove": true}"#,
            vec!["DELETE", "EXPRESS_IXSCAN"],
            [0, 0, 1],
        ),
        (
            r#"{"aggregate": "c", "pipeline": [{"$match": {"a": 3}}], "cursor": {}}"#,
            vec!["FETCH", "IXSCAN"],
            [4, 4, 4],
        ),
    ];
    for (command, stages, figures) in cases {
        let reply = explained(&mut client, command).await;
        let mut stage = inner(&reply, "queryPlanner.winningPlan").as_document();
        let mut found = Vec::new();
        while let Some(this) = stage {
            found.push(crate::client::text(this, "stage"));
            stage = this.get("inputStage").and_then(Value::as_document);
        }
        assert_eq!(found, stages, "{command}");
        assert_eq!(numbers(&reply, FIGURES), figures.map(Value::Int32), "{command}");
        assert_eq!(inner(&reply, "command.$db"), &Value::from("db"));
    }
    let all = client.done("db", json(r#"{"find": "c"}"#)).await;
    assert_eq!(
        inner(&all, "cursor.firstBatch").as_array().map(<[Value]>::len),
        Some(20),
        "nothing was written"
    );
}

/// T14: entries of expired items are not counted, before the purge has run.
#[tokio::test(flavor = "multi_thread")]
async fn a_count_by_entries_alone_counts_the_living() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let rule =
        r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "t", "expireAfterSeconds": 5}]}"#;
    client.done("db", json(rule)).await;
    let count = r#"{"count": "c", "query": {"a": 1}}"#;
    for (seconds, living) in [(4, 4), (1, 0)] {
        server.clock.advance(Duration::from_secs(seconds));
        let reply = explained(&mut client, count).await;
        assert_eq!(inner(&reply, "queryPlanner.winningPlan.inputStage.stage"), &Value::from("COUNT_SCAN"));
        assert_eq!(client.done("db", json(count)).await.get("n"), Some(&Value::Int32(living)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_or_is_answered_by_one_index_for_each_branch() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    client.done("db", json(r#"{"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b_1"}]}"#)).await;
    let query = r#"{"find": "c", "filter": {"$or": [{"a": 2}, {"b": {"$gte": 17}}]}}"#;
    let reply = explained(&mut client, query).await;
    let or = inner(&reply, "executionStats.executionStages.inputStage").as_document().unwrap();
    assert_eq!(or.get("stage"), Some(&"OR".into()));
    let scans = or.get("inputStages").and_then(Value::as_array).unwrap();
    let scan = |at: usize, name: &str| scans[at].as_document().unwrap().get(name).cloned().unwrap();
    assert_eq!((scan(0, "indexName"), scan(0, "keysExamined")), ("a_1".into(), 4.into()));
    assert_eq!((scan(1, "indexName"), scan(1, "keysExamined")), ("b_1".into(), 3.into()));
    // 17 is met by both and counts once.
    assert_eq!(numbers(&reply, FIGURES), [6, 7, 6].map(Value::Int32));
    // One branch without an index: everything must be examined.
    let query = r#"{"find": "c", "filter": {"$or": [{"a": 2}, {"x": 1}]}}"#;
    let reply = explained(&mut client, query).await;
    assert_eq!(inner(&reply, "queryPlanner.winningPlan.stage"), &Value::from("COLLSCAN"));
    // An index that serves all branches at once is shorter.
    let query = r#"{"find": "c", "filter": {"b": 3, "$or": [{"a": 3}, {"b": {"$lt": 19}}]}}"#;
    let reply = explained(&mut client, query).await;
    assert_eq!(inner(&reply, "queryPlanner.winningPlan.inputStage.indexName"), &Value::from("b_1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_of_the_index_and_of_the_query() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let reply =
        explained(&mut client, r#"{"find": "c", "filter": {"a": 2, "b": {"$gt": 1, "$lt": 9}}}"#).await;
    let scan = inner(&reply, "queryPlanner.winningPlan.inputStage").as_document().unwrap();
    assert_eq!(scan.get("indexName"), Some(&"a_1".into()));
    assert_eq!(scan.get("keyPattern"), Some(&Document::new().with("a", 1).into()));
    assert_eq!(scan.get("isMultiKey"), Some(&false.into()));
    assert_eq!(scan.get("direction"), Some(&"forward".into()));
    assert!(scan.get("indexBounds").and_then(Value::as_document).is_some_and(|bounds| bounds.contains("a")));
    assert_eq!(inner(&reply, "queryPlanner.namespace"), &Value::from("db.c"));
    let parsed = json(r#"{"$and": [{"a": {"$eq": 2}}, {"b": {"$gt": 1}}, {"b": {"$lt": 9}}]}"#);
    assert_eq!(inner(&reply, "queryPlanner.parsedQuery"), &Value::Document(parsed));
    assert_eq!(inner(&reply, "serverInfo.host"), &Value::from("machine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_is_explained_by_its_stages() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let command = r#"{"aggregate": "c", "pipeline": [{"$match": {"a": 3}}, {"$group": {"_id": "$b"}}], "explain": true}"#;
    let reply = client.done("db", json(command)).await;
    let stages = reply.get("stages").and_then(Value::as_array).unwrap();
    let cursor = stages[0].as_document().unwrap();
    assert_eq!(inner(cursor, "$cursor.queryPlanner.winningPlan.stage"), &Value::from("FETCH"));
    assert!(stages[1].as_document().unwrap().contains("$group"));
    let silent = client.done("db", json(r#"{"explain": {"find": "c"}, "verbosity": "queryPlanner"}"#)).await;
    assert!(!silent.contains("executionStats"));
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_refuses_what_it_cannot_explain() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (command, code) in [
        (r#"{"explain": {"find": "c"}, "verbosity": "loud"}"#, 2),
        (r#"{"explain": {"nothing": "c"}}"#, 59),
        (r#"{"explain": {"ping": 1}}"#, 115),
        (r#"{"explain": {"find": "c", "filter": {"$x": 1}}}"#, 2),
        (r#"{"explain": {"delete": "c", "deletes": []}}"#, 16),
    ] {
        assert_eq!(client.fails("db", json(command)).await.0, code, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t14_explain_counts_the_living_only() {
    let server = Server::start().await;
    let mut client = filled(&server).await;
    let insert =
        r#"{"insert": "c", "documents": [{"_id": "x", "a": 2, "ttl": 10}, {"_id": "y", "a": 2, "ttl": 30}]}"#;
    client.done("db", json(r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "t", "expireAfterSeconds": 1000}]}"#)).await;
    client.done("db", json(insert)).await;
    let command = r#"{"find": "c", "filter": {"a": 2}}"#;
    assert_eq!(numbers(&explained(&mut client, command).await, FIGURES), [6, 6, 6].map(Value::Int32));
    server.clock.advance(Duration::from_secs(15));
    assert_eq!(numbers(&explained(&mut client, command).await, FIGURES), [5, 5, 5].map(Value::Int32));
}
