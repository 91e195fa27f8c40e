//! Transactions: which effects stay, and which do not.

use std::sync::Arc;
use std::time::Duration;

use bson::{Binary, Document, Value};
use engine::collection::Receipt;
use tokio::net::TcpStream;
use transport::{Admission, Bounds, Work};

use crate::client::{Client, Server, code, inner, json, labels, settings, text};

/// One client's transaction.
struct Transaction {
    client: Client<TcpStream>,
    session: u8,
    begun: bool,
}

impl Transaction {
    async fn new(server: &Server, session: u8) -> Transaction {
        Transaction { client: server.connect().await, session, begun: false }
    }

    fn lsid(&self) -> Document {
        Document::new().with("id", Binary { subtype: 4, bytes: vec![self.session; 16] })
    }

    /// Runs a command in the transaction.
    async fn run(&mut self, database: &str, command: Document) -> Document {
        let mut command =
            command.with("lsid", self.lsid()).with("txnNumber", 1_i64).with("autocommit", false);
        if !self.begun {
            self.begun = true;
            command.push("startTransaction", true);
        }
        self.client.on(database, command).await
    }

    async fn done(&mut self, command: &str) -> Document {
        let reply = self.run("db", json(command)).await;
        assert_eq!(reply.get("ok"), Some(&Value::Double(1.0)), "{reply:?}");
        reply
    }

    /// Commits or aborts.
    async fn end(&mut self, how: &str) -> Document {
        self.run("admin", Document::new().with(how, 1)).await
    }
}

async fn names(client: &mut Client<TcpStream>) -> Vec<String> {
    let list = client.done("db", json(r#"{"listCollections": 1}"#)).await;
    let all = inner(&list, "cursor.firstBatch").as_array().unwrap();
    all.iter().map(|it| text(it.as_document().unwrap(), "name").to_owned()).collect()
}

const INSERT: &str = r#"{"insert": "c", "documents": [{"x": 1}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_made_in_a_transaction_goes_unless_it_commits() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for (session, command) in [
        INSERT,
        r#"{"create": "c"}"#,
        r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#,
        r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "upsert": true}]}"#,
        r#"{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"a": 1}}, "upsert": true}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let mut transaction = Transaction::new(&server, session as u8).await;
        transaction.done(command).await;
        assert_eq!(transaction.end("abortTransaction").await.get("ok"), Some(&Value::Double(1.0)));
        assert!(names(&mut client).await.is_empty(), "{command}");
    }
    // The end of its session is the end of a transaction.
    let mut transaction = Transaction::new(&server, 20).await;
    transaction.done(INSERT).await;
    let ended = Value::Array(vec![transaction.lsid().into()]);
    client.ok(Document::new().with("endSessions", ended)).await;
    assert!(names(&mut client).await.is_empty());
    let mut transaction = Transaction::new(&server, 21).await;
    transaction.done(INSERT).await;
    assert_eq!(transaction.end("commitTransaction").await.get("ok"), Some(&Value::Double(1.0)));
    assert_eq!(names(&mut client).await, ["c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_others_use_stays_when_the_transaction_that_made_it_aborts() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (mut one, mut other) = (Transaction::new(&server, 1).await, Transaction::new(&server, 2).await);
    one.done(INSERT).await;
    other.done(INSERT).await;
    one.end("abortTransaction").await;
    assert_eq!(other.end("commitTransaction").await.get("ok"), Some(&Value::Double(1.0)));
    let count = client.done("db", json(r#"{"count": "c"}"#)).await;
    assert_eq!(count.get("n"), Some(&Value::Int32(1)));

    client.done("db", json(r#"{"drop": "c"}"#)).await;
    let (mut one, mut other) = (Transaction::new(&server, 3).await, Transaction::new(&server, 4).await);
    one.done(INSERT).await;
    other.done(INSERT).await;
    other.end("abortTransaction").await;
    assert_eq!(names(&mut client).await, ["c"], "one still holds it");
    one.end("abortTransaction").await;
    assert!(names(&mut client).await.is_empty());

    for command in [INSERT, r#"{"create": "c"}"#] {
        let mut one = Transaction::new(&server, 5 + u8::from(command == INSERT)).await;
        one.done(INSERT).await;
        client.done("db", json(command)).await;
        one.end("abortTransaction").await;
        assert_eq!(names(&mut client).await, ["c"], "{command}");
        client.done("db", json(r#"{"drop": "c"}"#)).await;
    }

    let mut one = Transaction::new(&server, 7).await;
    one.done(INSERT).await;
    client.done("db", json(r#"{"drop": "c"}"#)).await;
    client.done("db", json(INSERT)).await;
    let reply = one.end("commitTransaction").await;
    assert_eq!((code(&reply), labels(&reply)), (112, vec!["TransientTransactionError"]));
    assert_eq!(names(&mut client).await, ["c"], "another one of the same name");
}

/// As `withTransaction` of drivers does it: a statement fails, the abort finds the transaction aborted, the next one begins.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_loop_leaves_no_cursor() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}"#)).await;
    let open = async |client: &mut Client<TcpStream>| {
        let status = client.ok(json(r#"{"serverStatus": 1}"#)).await;
        inner(&status, "metrics.cursor.open.total").clone()
    };
    let update = r#"{"update": "c", "updates": [{"q": {"_id": 3}, "u": {"$inc": {"n": 1}}}]}"#;
    for session in 0..4 {
        let mut transaction = Transaction::new(&server, session).await;
        transaction.done(r#"{"find": "c", "batchSize": 1}"#).await;
        assert_eq!(open(&mut client).await, Value::Int64(1));
        if session % 2 == 0 {
            // A statement that fails ends the transaction.
            let failed = transaction.run("db", json(r#"{"insert": "c", "documents": [{"_id": 1}]}"#)).await;
            assert!(failed.contains("writeErrors"), "{failed:?}");
        } else {
            // So does a conflict, which the commit finds.
            client.done("db", json(update)).await;
            transaction.done(update).await;
            assert_eq!(code(&transaction.end("commitTransaction").await), 112);
        }
        let aborted = transaction.end("abortTransaction").await;
        assert_eq!((code(&aborted), labels(&aborted)), (251, vec!["TransientTransactionError"]));
        assert_eq!(open(&mut client).await, Value::Int64(0));
    }
}

/// A command that commits may be stopped after the commit and before it notes that. If the client then learned that there
/// is no such transaction, it would do everything once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_made_is_told_as_made_whatever_is_remembered_of_it() {
    let server = Server::start().await;
    let mut transaction = Transaction::new(&server, 1).await;
    transaction.done(INSERT).await;
    transaction.end("abortTransaction").await;
    assert_eq!(code(&transaction.end("commitTransaction").await), 251);
    let receipt = Receipt { session: [[1; 16].as_slice(), &[0; 32]].concat(), number: 1, statement: -1 };
    server.engine.commit(server.engine.begin().unwrap(), Some(receipt)).await.unwrap();
    assert_eq!(transaction.end("commitTransaction").await.get("ok"), Some(&Value::Double(1.0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn t16_a_transaction_conflicts_if_a_document_that_it_has_read_expires_before_it_commits() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let rule =
        r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "t", "expireAfterSeconds": -1}]}"#;
    client.done("db", json(rule)).await;
    let rule_of_dates = r#"{"createIndexes": "dated", "indexes": [{"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 0}]}"#;
    client.done("db", json(rule_of_dates)).await;
    let reads = [
        r#"{"find": "c", "filter": {"_id": 1}}"#,
        r#"{"aggregate": "other", "pipeline": [{"$lookup": {"from": "c", "pipeline": [], "as": "o"}}], "cursor": {}}"#,
        r#"{"distinct": "c", "key": "x", "query": {"x": 5}}"#,
        r#"{"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"x": 5}}}"#,
        r#"{"find": "dated"}"#,
    ];
    client.done("db", json(r#"{"insert": "other", "documents": [{"_id": 0}]}"#)).await;
    for (at, read) in reads.into_iter().enumerate() {
        client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1, "x": 5, "ttl": 100}]}"#)).await;
        let now = i64::try_from(server.engine.now().unwrap().millis()).unwrap();
        let dated = Document::new().with("_id", 1).with("at", Value::DateTime(now + 100_000));
        let insert = Document::new().with("insert", "dated").with("documents", vec![Value::Document(dated)]);
        client.done("db", insert).await;
        let mut transactions = Vec::new();
        for (session, writes) in [(10, true), (50, false)] {
            let mut transaction = Transaction::new(&server, session + at as u8).await;
            transaction.done(read).await;
            if writes {
                transaction.done(r#"{"insert": "other", "documents": [{"x": 1}]}"#).await;
            }
            transactions.push(transaction);
        }
        server.clock.advance(std::time::Duration::from_secs(100));
        let reply = transactions[0].end("commitTransaction").await;
        assert_eq!((code(&reply), labels(&reply)), (112, vec!["TransientTransactionError"]), "{read}");
        let reply = transactions[1].end("commitTransaction").await;
        assert_eq!(reply.get("ok"), Some(&Value::Double(1.0)), "{read}: nothing was written");
    }
    // A document that does not match was not shown.
    client
        .done(
            "db",
            json(r#"{"insert": "c", "documents": [{"_id": 1, "x": 5, "ttl": 100}, {"_id": 2, "x": 6}]}"#),
        )
        .await;
    let mut transaction = Transaction::new(&server, 99).await;
    transaction.done(r#"{"find": "c", "filter": {"x": 6}}"#).await;
    transaction.done(r#"{"insert": "other", "documents": [{"x": 1}]}"#).await;
    server.clock.advance(std::time::Duration::from_secs(100));
    assert_eq!(transaction.end("commitTransaction").await.get("ok"), Some(&Value::Double(1.0)));
}

/// Runs a command on a connection of its own, and returns once the server runs it.
async fn at_work(server: &Server, command: &str) -> tokio::task::JoinHandle<Document> {
    let mut client = server.connect().await;
    let command = json(command).with("comment", "waits");
    let running = tokio::spawn(async move { client.on("db", command).await });
    let mut watch = server.connect().await;
    for _ in 0..100_000 {
        let operations = watch.ok(json(r#"{"currentOp": 1, "command.comment": "waits"}"#)).await;
        if !inner(&operations, "inprog").as_array().unwrap().is_empty() {
            return running;
        }
        assert!(!running.is_finished(), "it did not wait: {:?}", running.await);
        tokio::task::yield_now().await;
    }
    panic!("the command never began");
}

const STORED: &str = r#"{"insert": "c", "documents": [{"_id": 1, "n": 0}, {"_id": 2, "n": 0}]}"#;
const WRITE: &str = r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}]}"#;

async fn stored(client: &mut Client<TcpStream>) -> Value {
    let found = client.done("db", json(r#"{"find": "c", "filter": {"_id": 1}}"#)).await;
    inner(&found, "cursor.firstBatch").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_outside_waits_for_the_transaction_that_has_written_the_document() {
    let after = |text: &str| json(&format!(r#"{{"b": {text}}}"#)).get("b").cloned().unwrap();
    let mut session = 0;
    for (outside, n, committed, aborted) in [
        (
            r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}"#,
            1,
            r#"[{"_id": 1, "n": 11}]"#,
            r#"[{"_id": 1, "n": 1}]"#,
        ),
        // The statement chose it by a field that the transaction changes: it must check the filter again afterwards.
        (
            r#"{"update": "c", "updates": [{"q": {"_id": {"$lt": 2}, "n": 0}, "u": {"$inc": {"n": 1}}}]}"#,
            0,
            r#"[{"_id": 1, "n": 10}]"#,
            r#"[{"_id": 1, "n": 1}]"#,
        ),
        (r#"{"delete": "c", "deletes": [{"q": {"_id": {"$lt": 2}}, "limit": 0}]}"#, 1, "[]", "[]"),
        (
            r#"{"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1}}}"#,
            1,
            r#"[{"_id": 1, "n": 11}]"#,
            r#"[{"_id": 1, "n": 1}]"#,
        ),
    ] {
        for (end, expected) in [("commitTransaction", committed), ("abortTransaction", aborted)] {
            let server = Server::start().await;
            let mut client = server.connect().await;
            client.done("db", json(STORED)).await;
            session += 1;
            let mut transaction = Transaction::new(&server, session).await;
            transaction.done(WRITE).await;
            let waiting = at_work(&server, outside).await;
            let ended = transaction.end(end).await;
            assert_eq!(ended.get("ok"), Some(&Value::Double(1.0)), "{outside}: {ended:?}");
            let reply = waiting.await.unwrap();
            assert_eq!(reply.get("ok"), Some(&Value::Double(1.0)), "{outside}: {reply:?}");
            if let (Some(told), "commitTransaction") = (reply.get("n"), end) {
                assert_eq!(told, &Value::Int32(n), "{outside}");
            }
            assert_eq!(stored(&mut client).await, after(expected), "{outside} {end}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_outside_waits_for_the_transaction_that_has_inserted_its_id() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"create": "c"}"#)).await;
    for (session, end, code) in [(1, "abortTransaction", None), (2, "commitTransaction", Some(11000))] {
        let mut transaction = Transaction::new(&server, session).await;
        transaction.done(&format!(r#"{{"insert": "c", "documents": [{{"_id": {session}}}]}}"#)).await;
        let outside = format!(r#"{{"insert": "c", "documents": [{{"_id": {session}}}]}}"#);
        let waiting = at_work(&server, &outside).await;
        transaction.end(end).await;
        let reply = waiting.await.unwrap();
        let error = reply.get("writeErrors").and_then(Value::as_array).map(|errors| errors[0].clone());
        let told = error.and_then(|error| error.as_document().and_then(|error| error.get("code").cloned()));
        assert_eq!(told, code.map(Value::Int32), "{end}");
    }
}

/// A write stops waiting at its own time limit, at the end of the transaction's lifetime, and when its client has left.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_for_a_transaction_no_longer_than_either_may_last() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.done("db", json(STORED)).await;
    let mut transaction = Transaction::new(&server, 1).await;
    transaction.done(WRITE).await;
    let outside = r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]"#;
    let limited = client.fails("db", json(&format!(r#"{outside}, "maxTimeMS": 20}}"#))).await;
    assert_eq!(limited.0, 50);
    // Other documents do not matter.
    let other = r#"{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$inc": {"n": 1}}}]}"#;
    client.done("db", json(other)).await;
    let waiting = at_work(&server, &format!("{outside}}}")).await;
    server.service.sweep(tokio::time::Instant::now() + std::time::Duration::from_secs(61));
    assert_eq!(waiting.await.unwrap().get("n"), Some(&Value::Int32(1)));
    assert_eq!(code(&transaction.end("commitTransaction").await), 251);
    let found = stored(&mut client).await;
    let found = found.as_array().unwrap()[0].as_document().unwrap().clone();
    assert_eq!(found.get("n"), Some(&Value::Int32(1)), "{found:?}");
}

/// Writes that wait for a transaction leave their permits to its own statements, which wait for them like all others.
#[tokio::test(flavor = "multi_thread")]
async fn writes_that_wait_for_a_transaction_hold_no_permits() {
    let load = Arc::new(Admission::new(Bounds { statements: 1, brief: 1, ..Bounds::default() }));
    let server = Server::with(mongo::Settings { admission: Arc::clone(&load), ..settings() }).await;
    let mut client = server.connect().await;
    client.done("db", json(r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#)).await;
    let mut transaction = Transaction::new(&server, 1).await;
    transaction.done(r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}]}"#).await;
    transaction.done(r#"{"insert": "c", "documents": [{"_id": 3}]}"#).await;
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let update = r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}"#;
        waiting.push(at_work(&server, update).await);
    }
    waiting.push(at_work(&server, r#"{"insert": "c", "documents": [{"_id": 3}]}"#).await);
    let settled = async {
        while [Work::Statement, Work::Brief].iter().any(|work| load.stats(*work).working > 0) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), settled).await.expect("all permits are free");
    transaction.done(r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 2}}}]}"#).await;
    transaction.done(r#"{"insert": "c", "documents": [{"_id": 4}]}"#).await;
    client
        .done("db", json(r#"{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"x": 1}}}]}"#))
        .await;
    assert!(waiting.iter().all(|it| !it.is_finished()));
    transaction.end("abortTransaction").await;
    for waited in waiting {
        assert_eq!(waited.await.unwrap().get("ok"), Some(&Value::Double(1.0)));
    }
    let found = client.done("db", json(r#"{"find": "c", "filter": {"_id": 1}}"#)).await;
    let found = inner(&found, "cursor.firstBatch").as_array().unwrap()[0].as_document().unwrap().clone();
    assert_eq!(found.get("n"), Some(&Value::Int32(8)));
}
