//! Overload: clients get an error after which drivers try again, and operators' commands still run.

use std::sync::Arc;
use std::time::Duration;

use bson::{Binary, Document, Value};
use transport::{Admission, Api, Bounds, Tenant, Work};

use crate::client::{Server, code, labels, settings, text};

/// Steps of five milliseconds in which a request must begin to wait: a minute.
const MOMENTS: usize = 12_000;

fn find() -> Document {
    Document::new().with("find", "c")
}

fn insert(id: i32) -> Document {
    let document = Document::new().with("_id", id);
    Document::new().with("insert", "c").with("documents", vec![Value::from(document)])
}

async fn server(bounds: Bounds) -> (Server, Arc<Admission>) {
    let load = Arc::new(Admission::new(bounds));
    let mut settings = settings();
    settings.admission = Arc::clone(&load);
    (Server::with(settings).await, load)
}

/// The tenant of all clients that need not authenticate.
fn tenant() -> Tenant {
    Tenant::new(Api::Mongo, [0_u8; 32])
}

fn bounds() -> Bounds {
    Bounds { brief: 1, statements: 1, queries: 1, max_wait: Duration::from_millis(50), ..Bounds::default() }
}

/// Waits until one request waits for a permit, and as long as another one that comes then may wait.
async fn waits_longer_than_others(load: &Admission, work: Work) {
    for _ in 0..MOMENTS {
        if load.stats(work).waiting == 1 {
            let late = load.enter(Tenant::new(Api::Mongo, "late"), work).await;
            return assert!(late.is_err(), "{work:?}: the one that waits is behind it");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("no request waits: {work:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_gets_no_turn_may_be_tried_again() {
    let (server, load) = server(bounds()).await;
    let mut client = server.connect().await;
    client.done("test", insert(1)).await;
    let taken = load.enter(tenant(), Work::Query).await.unwrap();
    let refused = client.on("test", find()).await;
    assert_eq!((code(&refused), text(&refused, "codeName")), (262, "ExceededTimeLimit"));
    assert_eq!(labels(&refused), ["SystemOverloadedError", "RetryableError"]);
    assert!(text(&refused, "errmsg").contains("RetryAfterMs="), "{refused:?}");
    assert!(matches!(refused.get("baseBackoffMS"), Some(Value::Int64(100..500))), "{refused:?}");
    client.ping().await;
    client.ok(Document::new().with("hello", 1)).await;
    client.ok(Document::new().with("currentOp", 1)).await;
    client.done("test", insert(2)).await;
    drop(taken);
    client.done("test", find()).await;

    let taken = (
        load.enter(tenant(), Work::Brief).await.unwrap(),
        load.enter(tenant(), Work::Statement).await.unwrap(),
    );
    assert_eq!(client.fails("test", insert(3)).await.0, 262);
    let delete = Document::new().with("q", Document::new()).with("limit", 1);
    let delete = Document::new().with("delete", "c").with("deletes", vec![Value::from(delete)]);
    assert_eq!(client.fails("test", delete).await.0, 262);
    drop(taken);
    client.done("test", insert(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_goes_on_when_its_turn_comes() {
    let (server, load) = server(bounds()).await;
    let mut client = server.connect().await;
    for id in 0..3 {
        client.done("test", insert(id)).await;
    }
    let opened = client.done("test", find().with("batchSize", 1)).await;
    let Some(Value::Document(cursor)) = opened.get("cursor") else { panic!("{opened:?}") };
    let Some(Value::Int64(id)) = cursor.get("id") else { panic!("{cursor:?}") };
    let more = Document::new().with("getMore", *id).with("collection", "c");
    let taken = load.enter(tenant(), Work::Query).await.unwrap();
    let asked = tokio::spawn(async move { client.done("test", more).await });
    waits_longer_than_others(&load, Work::Query).await;
    assert!(!asked.is_finished());
    drop(taken);
    asked.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_not_fit_is_refused() {
    let (server, load) = server(Bounds { held_bytes: 1 << 20, ..bounds() }).await;
    let mut client = server.connect().await;
    client.done("test", insert(1)).await;
    let held = load.hold(tenant(), 1 << 19).unwrap();
    assert_eq!(client.fails("test", find()).await.0, 262);
    assert_eq!(client.fails("test", insert(2)).await.0, 262);
    client.ping().await;
    drop(held);
    client.done("test", find()).await;
    assert_eq!(load.held_bytes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_greedy_user_does_not_hold_up_the_queries_of_another() {
    let (server, load) = server(Bounds { queries: 8, ..bounds() }).await;
    let mut client = server.connect().await;
    client.done("test", insert(1)).await;
    let greedy = Tenant::new(Api::Mongo, "greedy");
    let mut permits = Vec::new();
    while let Ok(permit) = load.enter(greedy, Work::Query).await {
        permits.push(permit);
    }
    assert_eq!(permits.len(), 6, "it has its share and no more");
    for _ in 0..8 {
        client.done("test", find()).await;
    }
}

/// Statements of an open transaction take permits like all others, and wait for them instead of being refused: otherwise as
/// many queries could run at once as a user may have transactions.
#[tokio::test(flavor = "multi_thread")]
async fn statements_of_a_transaction_wait_for_their_turn_and_are_not_refused() {
    let (server, load) = server(bounds()).await;
    server.connect().await.done("test", insert(1)).await;
    let other = Tenant::new(Api::Mongo, "other");
    let update = Document::new()
        .with("q", Document::new())
        .with("u", Document::new().with("$unset", Document::new().with("x", 1)));
    let statements = [
        (Work::Query, find()),
        (Work::Query, Document::new().with("distinct", "c").with("key", "_id")),
        (
            Work::Query,
            Document::new()
                .with("aggregate", "c")
                .with("pipeline", Value::Array(Vec::new()))
                .with("cursor", Document::new()),
        ),
        (Work::Statement, Document::new().with("update", "c").with("updates", vec![Value::from(update)])),
        (Work::Brief, insert(2)),
    ];
    let mut transaction = server.connect().await;
    let part = |command: Document, number: i64| {
        let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![1; 16] });
        command.with("lsid", lsid).with("txnNumber", number).with("autocommit", false)
    };
    for (number, (work, statement)) in (1..).zip(statements) {
        transaction.done("test", part(find(), number).with("startTransaction", true)).await;
        let taken = load.enter(other, work).await.unwrap();
        let asked = part(statement, number);
        let waiting = tokio::spawn(async move {
            transaction.done("test", asked).await;
            transaction
        });
        waits_longer_than_others(&load, work).await;
        assert_eq!((load.stats(work).waiting, waiting.is_finished()), (1, false), "{work:?}");
        drop(taken);
        transaction = waiting.await.unwrap();
        transaction.ok(part(Document::new().with("abortTransaction", 1), number)).await;
    }
    // One that is stopped leaves the queue.
    transaction.done("test", part(find(), 9).with("startTransaction", true)).await;
    let taken = load.enter(other, Work::Query).await.unwrap();
    let limited = part(find().with("maxTimeMS", 20), 9);
    assert_eq!(transaction.fails("test", limited).await.0, 50);
    assert_eq!(load.stats(Work::Query).waiting, 0);
    drop(taken);
}
