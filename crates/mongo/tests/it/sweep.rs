//! Cursors, transactions and sessions of a vanished client end by themselves: no command arrives in these tests between the
//! last one and the sweep.

use std::sync::Arc;
use std::time::Duration;

use bson::{Binary, Document, Value};
use engine::Engine;
use storage::{ClockOptions, EmbeddedOptions, EmbeddedStore, Keyspace, ManualClock, Scrubbed, Store, Time};
use tokio::time::Instant;

use crate::client::{START, Server, code, inner, json, labels, settings};

/// A command as the first one of a transaction.
fn first(command: &str, session: u8) -> Document {
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![session; 16] });
    json(command)
        .with("lsid", lsid)
        .with("txnNumber", 1_i64)
        .with("autocommit", false)
        .with("startTransaction", true)
}

fn after(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

/// As long as a snapshot is held, removed bytes stay in the files: a promise of `maxPurgeDelay` cannot be kept.
#[tokio::test(flavor = "multi_thread")]
async fn t24_a_vanished_client_in_a_transaction_does_not_hold_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
    let options = EmbeddedOptions::new(directory.path(), ClockOptions::new(Arc::clone(&clock) as _));
    let store = Arc::new(EmbeddedStore::open(options).unwrap());
    let engine = Arc::new(Engine::open(Arc::clone(&store) as _).unwrap());
    let server = Server::over(engine, clock, settings()).await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#)).await;
    let mut vanishes = server.connect().await;
    let before = Instant::now();
    vanishes.done("db", first(r#"{"find": "c", "batchSize": 1}"#, 1)).await;
    drop(vanishes);
    client.done("db", json(r#"{"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}"#)).await;
    assert_eq!(store.scrub(&Keyspace::ALL), Ok(Scrubbed::Held));
    let minute = Duration::from_mins(1);
    let due = server.service.sweep(before + minute).expect("a transaction is open");
    assert!(due > before + minute && due <= Instant::now() + minute, "a minute after its first command");
    server.service.sweep(due);
    assert_eq!(store.scrub(&Keyspace::ALL), Ok(Scrubbed::Done));
    // Its cursor ended with it, and the client gets an error that says so.
    let status = client.ok(json(r#"{"serverStatus": 1}"#)).await;
    assert_eq!(inner(&status, "metrics.cursor.open.total"), &Value::Int64(0));
    let next = json(r#"{"find": "c"}"#)
        .with("lsid", Document::new().with("id", Binary { subtype: 4, bytes: vec![1; 16] }))
        .with("txnNumber", 1_i64)
        .with("autocommit", false);
    assert_eq!(code(&client.on("db", next).await), 251);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_made_in_a_transaction_that_is_never_ended_goes() {
    let server = Server::start().await;
    let mut vanishes = server.connect().await;
    vanishes.done("db", first(r#"{"insert": "c", "documents": [{"_id": 1}]}"#, 1)).await;
    drop(vanishes);
    assert!(server.engine.collection("db", "c").is_some());
    server.service.sweep(after(61));
    assert!(server.engine.collection("db", "c").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_cursors_and_sessions_end_without_another_command() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#)).await;
    assert_eq!(server.service.sweep(Instant::now()), None, "nothing can become due");
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![7; 16] });
    client.done("db", json(r#"{"find": "c", "batchSize": 1}"#).with("lsid", lsid)).await;
    let open = |status: &Document| {
        let sessions = inner(status, "logicalSessionRecordCache.activeSessionsCount").clone();
        (inner(status, "metrics.cursor.open.total").clone(), sessions)
    };
    let status = json(r#"{"serverStatus": 1}"#);
    assert_eq!(open(&client.ok(status.clone()).await), (Value::Int64(1), Value::Int32(1)));
    // The cursor after ten minutes, the session after thirty.
    let due = server.service.sweep(after(590)).expect("a cursor rests");
    let due = server.service.sweep(due).expect("a session is known");
    assert_eq!(open(&client.ok(status.clone()).await), (Value::Int64(0), Value::Int32(1)));
    assert!(due > after(1700));
    assert_eq!(server.service.sweep(due), None);
    assert_eq!(open(&client.ok(status).await), (Value::Int64(0), Value::Int32(0)));
}

/// The loop of the server waits for this.
#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_timeout_of_cursors_is_due_at_once() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#)).await;
    client.done("db", json(r#"{"find": "c", "batchSize": 1}"#)).await;
    client.ok(json(r#"{"setParameter": 1, "cursorTimeoutMillis": 1}"#)).await;
    tokio::time::timeout(Duration::from_mins(1), server.service.sweep_due()).await.unwrap();
}

/// Drivers repeat the whole transaction by the label; without it the application sees a failure that it cannot act on.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_runs_when_its_transaction_expires_is_told_to_try_again() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
    // Runs for minutes unless it is stopped.
    let numbers = r#"{"$range": [0, 1000000]}"#;
    let inner_sum = format!(r#"{{"$sum": {{"$map": {{"input": {numbers}, "in": "$$this"}}}}}}"#);
    let pipeline = format!(r#"[{{"$set": {{"x": {{"$map": {{"input": {numbers}, "in": {inner_sum}}}}}}}}}]"#);
    let aggregate = first(&format!(r#"{{"aggregate": "c", "pipeline": {pipeline}, "cursor": {{}}}}"#), 1);
    let mut working = server.connect().await;
    let answer = tokio::spawn(async move { working.on("db", aggregate).await });
    let is_running = |status: &Document| {
        let running = inner(status, "inprog").as_array().unwrap();
        running.iter().filter_map(Value::as_document).any(|operation| {
            operation
                .get("command")
                .and_then(Value::as_document)
                .is_some_and(|body| body.contains("aggregate"))
        })
    };
    let current = json(r#"{"currentOp": 1}"#);
    while !is_running(&client.ok(current.clone()).await) {
        tokio::task::yield_now().await;
    }
    server.service.sweep(after(61));
    let reply = answer.await.unwrap();
    assert_eq!(code(&reply), 290, "{reply:?}");
    assert_eq!(labels(&reply), ["TransientTransactionError"]);
}
