//! Fail points, as the published test suites use them.

use bson::{Binary, Document, Value};
use tokio::time::{Duration, Instant};

use crate::client::{Server, code, inner, labels, texts};

fn fail(mode: impl Into<Value>, data: Document) -> Document {
    let data = data.with("failCommands", texts(&["ping", "createUser"]));
    Document::new().with("configureFailPoint", "failCommand").with("mode", mode).with("data", data)
}

fn once() -> Document {
    Document::new().with("times", 1)
}

fn ping() -> Document {
    Document::new().with("ping", 1)
}

/// A write that may be sent again.
fn write(name: &str) -> Document {
    Document::new()
        .with("createUser", name)
        .with("pwd", "x")
        .with("roles", texts(&[]))
        .with("lsid", Document::new().with("id", Binary { subtype: 4, bytes: vec![1; 16] }))
        .with("txnNumber", 1_i64)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_fails_as_told_and_as_often() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.ok(fail(Document::new().with("times", 2), Document::new().with("errorCode", 91))).await;
    for _ in 0..2 {
        let reply = client.admin(ping()).await;
        assert_eq!((code(&reply), labels(&reply).len()), (91, 0), "not a write");
    }
    client.ping().await;
    client.ok(Document::new().with("hello", 1)).await;
    client.ok(fail("alwaysOn", Document::new().with("errorCode", 10107))).await;
    let reply = client.admin(write("a")).await;
    assert_eq!((code(&reply), labels(&reply)), (10107, vec!["RetryableWriteError"]));
    let data = Document::new().with("errorCode", 91).with("errorLabels", texts(&[]));
    client.ok(fail("alwaysOn", data)).await;
    assert!(labels(&client.admin(write("a")).await).is_empty(), "labels that were given are final");
    let count = client.ok(fail("off", Document::new())).await;
    assert_eq!(count.get("count"), Some(&Value::Int64(1)));
    client.ok(write("a")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_breaks_as_told() {
    let server = Server::start().await;
    let (mut operator, mut client) = (server.connect().await, server.connect().await);
    operator.ok(fail(once(), Document::new().with("closeConnection", true))).await;
    client.send(&crate::client::ping_message(1)).await;
    assert!(client.is_closed().await);
    operator.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_waits_as_told() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let data = Document::new().with("blockConnection", true).with("blockTimeMS", 50);
    client.ok(fail(once(), data)).await;
    let started = Instant::now();
    client.ping().await;
    assert!(started.elapsed() >= Duration::from_millis(50));
    // The time that a command was held counts.
    let data = Document::new().with("blockConnection", true).with("blockTimeMS", 50);
    client.ok(fail(once(), data)).await;
    assert_eq!(client.refused(write("late").with("maxTimeMS", 10)).await.0, 50);
    client.ok(write("late")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_change_stream_that_failed_for_now_says_that_the_stream_may_go_on() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let fails = |code: i32| {
        Document::new()
            .with("configureFailPoint", "failGetMoreAfterCursorCheckout")
            .with("mode", once())
            .with("data", Document::new().with("errorCode", code))
    };
    let more = || Document::new().with("getMore", 7_i64).with("collection", "c");
    for (code, expected) in
        [(91, vec!["ResumableChangeStreamError"]), (234, vec!["ResumableChangeStreamError"]), (2, vec![])]
    {
        client.ok(fails(code)).await;
        let reply = client.admin(more()).await;
        assert_eq!((crate::client::code(&reply), labels(&reply)), (code, expected));
    }
    assert_eq!(client.refused(more()).await.0, 43, "no such cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_happens_and_its_concern_fails_as_told() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let concern = Document::new().with("code", 91).with("errmsg", "told so");
    client.ok(fail(once(), Document::new().with("writeConcernError", concern))).await;
    let reply = client.ok(write("b")).await;
    assert_eq!(inner(&reply, "writeConcernError.code"), &Value::Int32(91));
    assert_eq!(labels(&reply), ["RetryableWriteError"]);
    assert_eq!(client.refused(write("b")).await.0, 51003, "the user was made");
    let unmet = write("c").with("writeConcern", Document::new().with("w", 2));
    assert_eq!(inner(&client.ok(unmet).await, "writeConcernError.code"), &Value::Int32(100));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_named_application_is_meant() {
    let server = Server::start().await;
    let (mut named, mut other) = (server.connect().await, server.connect().await);
    let client = Document::new().with("application", Document::new().with("name", "victim"));
    named.ok(Document::new().with("hello", 1).with("client", client)).await;
    other.ok(fail("alwaysOn", Document::new().with("errorCode", 2).with("appName", "victim"))).await;
    assert_eq!(named.refused(ping()).await.0, 2);
    other.ping().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_limits_are_over_at_once_as_told() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let always =
        |mode: &str| Document::new().with("configureFailPoint", "maxTimeAlwaysTimeOut").with("mode", mode);
    client.ok(always("alwaysOn")).await;
    assert_eq!(client.refused(ping().with("maxTimeMS", 1000)).await.0, 50);
    client.ping().await;
    client.ok(always("off")).await;
    client.ok(ping().with("maxTimeMS", 1000)).await;
    let unknown = Document::new().with("configureFailPoint", "nosuch").with("mode", "off");
    assert_eq!(client.refused(unknown).await.0, 94);
}
