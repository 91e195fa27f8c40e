//! Commands of one transaction that are sent at once run one after another, and those that wait hold no thread.

use std::time::Duration;

use bson::{Binary, Document, Value};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::client::{Client, Server, code, inner, json, labels};

/// Runs until it is stopped.
const ENDLESS: &str = r#"{"aggregate": "c", "cursor": {}, "pipeline": [{"$project": {"n": {"$sum": {"$map": {"input": {"$range": [0, 1000000]}, "in":
    {"$sum": {"$map": {"input": {"$range": [0, 1000000]}, "in": 1}}}}}}}}]}"#;
const INSERT: &str = r#"{"insert": "c", "documents": [{"x": 1}]}"#;

/// A part of the transaction of that number, of one session.
fn part(command: &str, number: i64) -> Document {
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![1; 16] });
    json(command).with("lsid", lsid).with("txnNumber", number).with("autocommit", false)
}

/// A server, and a client that watches it.
struct World {
    server: Server,
    watch: Client<TcpStream>,
}

impl World {
    async fn new() -> World {
        let server = Server::start().await;
        let mut watch = server.connect().await;
        watch.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
        World { server, watch }
    }

    /// Begins a transaction, in which a statement works until it is stopped.
    async fn begin(&mut self, number: i64) -> JoinHandle<Document> {
        self.watch.done("db", part(r#"{"find": "c"}"#, number).with("startTransaction", true)).await;
        self.send("db", part(ENDLESS, number)).await.0
    }

    /// Sends a command on a connection of its own; returns its number once the server runs it.
    async fn send(&mut self, database: &'static str, command: Document) -> (JoinHandle<Document>, i64) {
        let before = self.running().await;
        let mut client = self.server.connect().await;
        let sent = tokio::spawn(async move { client.on(database, command).await });
        for _ in 0..100_000 {
            if let Some(new) = self.running().await.into_iter().find(|it| !before.contains(it)) {
                return (sent, new);
            }
            assert!(!sent.is_finished(), "it did not wait: {:?}", sent.await);
            tokio::task::yield_now().await;
        }
        panic!("the command never began");
    }

    /// The numbers of the parts of transactions that run.
    async fn running(&mut self) -> Vec<i64> {
        let found = self.watch.ok(json(r#"{"currentOp": 1, "command.autocommit": false}"#)).await;
        let found = inner(&found, "inprog").as_array().unwrap();
        let number = |it: &Value| match it.as_document().unwrap().get("opid") {
            Some(Value::Int32(number)) => i64::from(*number),
            other => panic!("{other:?}"),
        };
        found.iter().map(number).collect()
    }
}

/// A statement, four that wait for their turn after it, and a commit: with one worker, one of them that waited on it would
/// keep the server from all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn commands_that_wait_for_their_turn_in_a_transaction_hold_up_no_others() {
    let mut world = World::new().await;
    let endless = world.begin(1).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(world.send("db", part(INSERT, 1)).await);
    }
    let (commit, number) = world.send("admin", part(r#"{"commitTransaction": 1}"#, 1)).await;
    let mut other = world.server.connect().await;
    other.ping().await;
    other.done("db", json(INSERT)).await;
    let limited = part(r#"{"commitTransaction": 1, "maxTimeMS": 20}"#, 1);
    assert_eq!(other.fails("admin", limited).await.0, 50);
    other.ok(Document::new().with("killOp", 1).with("op", number)).await;
    assert_eq!(code(&commit.await.unwrap()), 11601);
    assert!(!endless.is_finished() && waiting.iter().all(|(sent, _)| !sent.is_finished()));
    // A statement that is stopped while it waits ends its transaction as any that fails, and with it the others.
    let (killed, number) = waiting.pop().unwrap();
    other.ok(Document::new().with("killOp", 1).with("op", number)).await;
    assert_eq!(code(&killed.await.unwrap()), 11601);
    for ended in [endless].into_iter().chain(waiting.into_iter().map(|(sent, _)| sent)) {
        let reply = ended.await.unwrap();
        assert_eq!((code(&reply), labels(&reply)), (251, vec!["TransientTransactionError"]), "{reply:?}");
    }
    assert_eq!(other.fails("admin", part(r#"{"commitTransaction": 1}"#, 1)).await.0, 251);
}

/// However a transaction ends, what works in it and what waits for its turn ends with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_end_of_a_transaction_ends_what_works_in_it_and_what_waits() {
    let mut world = World::new().await;
    for (number, how, expected) in
        [(1, "abort", 251), (2, "lifetime", 290), (3, "session", 11601), (4, "next", 251)]
    {
        let endless = world.begin(number).await;
        let (insert, _) = world.send("db", part(INSERT, number)).await;
        let (commit, _) = world.send("admin", part(r#"{"commitTransaction": 1}"#, number)).await;
        match how {
            "abort" => drop(world.watch.done("admin", part(r#"{"abortTransaction": 1}"#, number)).await),
            "lifetime" => {
                world.server.service.sweep(tokio::time::Instant::now() + Duration::from_secs(61));
            }
            "session" => drop(world.watch.ok(json(r#"{"killSessions": []}"#)).await),
            _ => {
                let next = part(r#"{"find": "c"}"#, number + 1).with("startTransaction", true);
                world.watch.done("db", next).await;
            }
        }
        for ended in [endless, insert, commit] {
            assert_eq!(code(&ended.await.unwrap()), expected, "{how}");
        }
    }
    let found = world.watch.done("db", json(r#"{"find": "c"}"#)).await;
    assert_eq!(inner(&found, "cursor.firstBatch").as_array().unwrap().len(), 1, "nothing was written");
}
