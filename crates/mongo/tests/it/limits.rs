//! The limits that an operator may set: cursors, transactions and the time of queries.

use std::time::Duration;

use bson::{Binary, Document, Value};
use mongo::Limits;
use tokio::net::TcpStream;

use crate::client::{Client, Server, code, inner, json, labels, settings};

const FIND: &str = r#"{"find": "c", "batchSize": 1}"#;

async fn server(limits: Limits) -> (Server, Client<TcpStream>) {
    let mut settings = settings();
    settings.limits = limits;
    let server = Server::with(settings).await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"x": 1}, {"x": 2}, {"x": 3}]}"#)).await;
    (server, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_as_many_cursors_as_the_operator_says() {
    let (_server, mut client) = server(Limits { cursors: 2, ..Limits::default() }).await;
    let first = client.done("db", json(FIND)).await;
    client.done("db", json(FIND)).await;
    let (code, words) = client.fails("db", json(FIND)).await;
    assert_eq!((code, words.as_str()), (96, "2 cursors are open already"));
    let id = inner(&first, "cursor.id").clone();
    client.done("db", Document::new().with("killCursors", "c").with("cursors", vec![id])).await;
    client.done("db", json(FIND)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_as_many_transactions_as_the_operator_says() {
    let (_server, mut client) = server(Limits { transactions: 1, ..Limits::default() }).await;
    let part = |command: &str, session: u8| {
        let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![session; 16] });
        json(command).with("lsid", lsid).with("txnNumber", 1_i64).with("autocommit", false)
    };
    client.done("db", part(FIND, 1).with("startTransaction", true)).await;
    let refused = client.on("db", part(FIND, 2).with("startTransaction", true)).await;
    assert_eq!((code(&refused), labels(&refused)), (96, vec!["TransientTransactionError"]));
    client.done("admin", part(r#"{"commitTransaction": 1}"#, 1)).await;
    client.done("db", part(FIND, 2).with("startTransaction", true)).await;
    client.done("admin", part(r#"{"abortTransaction": 1}"#, 2)).await;
    client.done("db", part(FIND, 3).with("startTransaction", true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_have_the_time_that_the_operator_gives() {
    let long = Limits { query_time: Some(Duration::from_mins(10)), ..Limits::default() };
    for (limits, code) in [(long, Some(50)), (Limits::default(), None)] {
        let (_server, mut client) = server(limits).await;
        // Every command with a time limit exceeds it at once.
        client.ok(json(r#"{"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "alwaysOn"}"#)).await;
        for query in [
            FIND,
            r#"{"count": "c"}"#,
            r#"{"distinct": "c", "key": "x"}"#,
            r#"{"aggregate": "c", "pipeline": [], "cursor": {}}"#,
            r#"{"explain": {"find": "c"}}"#,
        ] {
            let reply = client.on("db", json(query)).await;
            assert_eq!(reply.get("code"), code.map(Value::Int32).as_ref(), "{query}");
        }
        client.done("db", json(r#"{"insert": "c", "documents": [{"x": 4}]}"#)).await;
        client.ping().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_keeps_as_much_as_the_operator_says() {
    let (_server, mut client) = server(Limits { stage_bytes: 4096, ..Limits::default() }).await;
    let large = (0..10).map(|_| Value::from(Document::new().with("text", "x".repeat(1000))));
    client
        .done("db", Document::new().with("insert", "large").with("documents", large.collect::<Vec<_>>()))
        .await;
    for (collection, code) in [("c", None), ("large", Some(292))] {
        for stage in [r#"{"$sort": {"text": 1}}"#, r#"{"$group": {"_id": null, "all": {"$push": "$text"}}}"#]
        {
            let command =
                format!(r#"{{"aggregate": "{collection}", "pipeline": [{stage}], "cursor": {{}}}}"#);
            let reply = client.on("db", json(&command)).await;
            assert_eq!(reply.get("code"), code.map(Value::Int32).as_ref(), "{command}: {reply:?}");
        }
        let sorted = json(&format!(r#"{{"find": "{collection}", "sort": {{"text": 1}}}}"#));
        assert_eq!(client.on("db", sorted).await.get("code"), code.map(Value::Int32).as_ref());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_times_are_the_parameters_at_the_start() {
    let limits = Limits {
        cursor_idle_timeout: Duration::from_secs(5),
        transaction_lifetime: Duration::from_secs(7),
        ..Limits::default()
    };
    let (_server, mut client) = server(limits).await;
    let asked =
        json(r#"{"getParameter": 1, "cursorTimeoutMillis": 1, "transactionLifetimeLimitSeconds": 1}"#);
    let told = client.ok(asked).await;
    assert_eq!(told.get("cursorTimeoutMillis"), Some(&Value::Int64(5000)));
    assert_eq!(told.get("transactionLifetimeLimitSeconds"), Some(&Value::Int32(7)));
}
