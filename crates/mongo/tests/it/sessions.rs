//! Sessions and numbered statements, as far as all commands share them.

use bson::{Binary, Document, Value};
use mongo::Profile;

use crate::client::{Server, settings};

fn lsid(byte: u8) -> Document {
    Document::new().with("id", Binary { subtype: 4, bytes: vec![byte; 16] })
}

fn ping() -> Document {
    Document::new().with("ping", 1)
}

async fn active(client: &mut crate::client::Client<tokio::net::TcpStream>) -> Value {
    let status = client.ok(Document::new().with("serverStatus", 1)).await;
    crate::client::inner(&status, "logicalSessionRecordCache.activeSessionsCount").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_begins_with_its_first_use_and_ends_when_told() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    assert_eq!(active(&mut client).await, Value::Int32(0));
    client.ok(ping().with("lsid", lsid(1))).await;
    client.ok(ping().with("lsid", lsid(1))).await;
    client.ok(ping().with("lsid", lsid(2))).await;
    let started = client.ok(Document::new().with("startSession", 1)).await;
    assert_eq!(started.get("timeoutMinutes"), Some(&Value::Int32(30)));
    assert_eq!(active(&mut client).await, Value::Int32(3));
    client.ok(Document::new().with("endSessions", Value::Array(vec![lsid(1).into()]))).await;
    assert_eq!(active(&mut client).await, Value::Int32(2));
    client.ok(Document::new().with("refreshSessions", Value::Array(vec![lsid(5).into()]))).await;
    assert_eq!(active(&mut client).await, Value::Int32(3));
    client.ok(Document::new().with("killSessions", Value::Array(vec![lsid(5).into()]))).await;
    let pattern = Document::new().with("lsid", lsid(2));
    client.ok(Document::new().with("killAllSessionsByPattern", Value::Array(vec![pattern.into()]))).await;
    assert_eq!(active(&mut client).await, Value::Int32(1));
    client.ok(Document::new().with("killAllSessions", Value::Array(Vec::new()))).await;
    assert_eq!(active(&mut client).await, Value::Int32(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_sessions_and_numbers_are_refused() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let cases = [
        (ping().with("lsid", Document::new()), 40414),
        (ping().with("lsid", Document::new().with("id", 1)), 14),
        (ping().with("lsid", Document::new().with("id", Binary { subtype: 4, bytes: vec![1; 15] })), 2),
        (ping().with("lsid", 1), 14),
        (ping().with("txnNumber", 1_i64), 72),
        (ping().with("lsid", lsid(1)).with("txnNumber", -1_i64), 72),
        (ping().with("lsid", lsid(1)).with("autocommit", false), 72),
        (ping().with("lsid", lsid(1)).with("txnNumber", 1_i64).with("autocommit", true), 72),
        (ping().with("lsid", lsid(1)).with("txnNumber", 1_i64).with("startTransaction", true), 72),
        (ping().with("lsid", lsid(1)).with("txnNumber", 1_i64).with("autocommit", false), 263),
        (Document::new().with("endSessions", 1), 2),
        (Document::new().with("killAllSessions", Value::Array(vec![1.into()])), 2),
    ];
    for (command, code) in cases {
        let shown = format!("{command:?}");
        assert_eq!(client.refused(command).await.0, code, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_for_itself_has_no_numbered_statements() {
    let mut settings = settings();
    settings.profile = Profile::Standalone;
    let server = Server::with(settings).await;
    let mut client = server.connect().await;
    let (code, words) = client.refused(ping().with("lsid", lsid(1)).with("txnNumber", 1_i64)).await;
    assert_eq!(code, 20);
    assert_eq!(words, "Transaction numbers are only allowed on a replica set member or mongos");
    client.ok(ping().with("lsid", lsid(1))).await;
}
