//! What one user may hold between two requests, while others are there too: cursors, transactions, and the memory in both.

use bson::{Binary, Document, Value};
use mongo::Limits;
use telemetry::Page;
use tokio::net::TcpStream;

use crate::client::{Client, PASSWORD, Server, code, inner, json, labels, settings, text};
use crate::scram::{Hash, authenticate};

const FIND: &str = r#"{"find": "c", "batchSize": 1}"#;
/// Keeps everything that is in `large` in memory.
const SORT: &str = r#"{"aggregate": "large", "pipeline": [{"$sort": {"k": 1}}], "cursor": {"batchSize": 1}}"#;
/// Bytes in `large`.
const LARGE: usize = 20 * 50_000;

/// A server with some documents and two users who may read and write them.
async fn server(limits: Limits) -> Server {
    let mut settings = settings();
    settings.limits = limits;
    let server = Server::with(settings).await;
    let mut owner = server.connect().await;
    for name in ["greedy", "honest"] {
        let create = Document::new().with("createUser", name).with("pwd", "secret");
        let role = json(r#"{"role": "readWrite", "db": "db"}"#);
        owner.ok(create.with("roles", vec![Value::from(role)])).await;
    }
    owner.done("db", json(r#"{"insert": "c", "documents": [{"x": 1}, {"x": 2}, {"x": 3}]}"#)).await;
    let large =
        |number: i32| Value::from(Document::new().with("k", number).with("pad", "x".repeat(LARGE / 20)));
    let documents: Vec<Value> = (0..20).map(large).collect();
    owner.done("db", Document::new().with("insert", "large").with("documents", documents)).await;
    server
}

async fn log_in(server: &Server, user: &str) -> Client<TcpStream> {
    let mut client = server.connect().await;
    authenticate(&mut client, Hash::Sha256, "admin", user, "secret").await.unwrap();
    client
}

/// A command that is part of the first transaction of a session.
fn part(command: Document, session: u8) -> Document {
    let lsid = Document::new().with("id", Binary { subtype: 4, bytes: vec![session; 16] });
    command.with("lsid", lsid).with("txnNumber", 1_i64).with("autocommit", false)
}

fn starts(command: Document, session: u8) -> Document {
    part(command, session).with("startTransaction", true)
}

/// A figure of the page of metrics.
fn figure(server: &Server, name: &str) -> usize {
    let mut page = Page::default();
    server.registry.write(&mut page);
    let page = page.finish();
    let line = page.lines().find(|line| line.starts_with(&format!("{name} "))).expect(name);
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_leaves_cursors_to_others() {
    let server = server(Limits { cursors: 8, ..Limits::default() }).await;
    let (mut greedy, mut honest) = (log_in(&server, "greedy").await, log_in(&server, "honest").await);
    for _ in 0..6 {
        greedy.done("db", json(FIND)).await;
    }
    let (code, words) = greedy.fails("db", json(FIND)).await;
    assert!(
        code == 96 && words.contains("this user has 6 cursors") && words.contains("mongo-max-cursors"),
        "{words}"
    );
    // On another connection it is the same user.
    assert_eq!(log_in(&server, "greedy").await.fails("db", json(FIND)).await.0, 96);
    let found = honest.done("db", json(FIND)).await;
    let id = inner(&found, "cursor.id").clone();
    honest.done("db", Document::new().with("getMore", id).with("collection", "c")).await;
    // In a transaction, which the refusal ends, the error carries the label by which drivers run the transaction again.
    let refused = greedy.on("db", starts(json(FIND), 1)).await;
    assert_eq!(labels(&refused), ["TransientTransactionError"], "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_user_leaves_transactions_to_others() {
    let server = server(Limits { transactions: 8, ..Limits::default() }).await;
    let (mut greedy, mut honest) = (log_in(&server, "greedy").await, log_in(&server, "honest").await);
    let count = || json(r#"{"find": "c"}"#);
    for session in 0..6 {
        greedy.done("db", starts(count(), session)).await;
    }
    let refused = greedy.on("db", starts(count(), 9)).await;
    assert_eq!((code(&refused), labels(&refused)), (96, vec!["TransientTransactionError"]));
    assert!(text(&refused, "errmsg").contains("mongo-max-transactions"), "{refused:?}");
    honest.done("db", starts(count(), 1)).await;
    honest.ok(part(json(r#"{"commitTransaction": 1}"#), 1)).await;
    greedy.ok(part(json(r#"{"abortTransaction": 1}"#), 0)).await;
    greedy.done("db", starts(count(), 9)).await;
}

/// Sessions begin by themselves with any command. A user that names new ones all the time loses its own, the oldest first,
/// and is refused only if all of them are busy; others notice nothing.
#[tokio::test(flavor = "multi_thread")]
async fn one_user_leaves_sessions_to_others() {
    let server = server(Limits { sessions: 8, ..Limits::default() }).await;
    let mut owner = server.connect().await;
    owner.ok(json(r#"{"createUser": "bare", "pwd": "secret", "roles": []}"#)).await;
    let (mut greedy, mut honest) = (log_in(&server, "bare").await, log_in(&server, "honest").await);
    let lsid = |session: u8| Document::new().with("id", Binary { subtype: 4, bytes: vec![session; 16] });
    let ping = |session| json(r#"{"ping": 1}"#).with("lsid", lsid(session));
    let sessions = || figure(&server, "bolide_mongo_sessions_open");
    honest.done("db", starts(json(FIND), 1)).await;
    for session in 0..100 {
        greedy.ok(ping(session)).await;
    }
    let all: Vec<Value> = (0..100).map(|session| lsid(session).into()).collect();
    greedy.ok(Document::new().with("refreshSessions", all)).await;
    assert_eq!(sessions(), 1 + 6, "three quarters of what the other user leaves");
    // A command that the user may not run begins no session.
    assert_eq!(greedy.fails("db", json(FIND).with("lsid", lsid(200))).await.0, 13);
    let listed = json(r#"{"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}}"#);
    let listed = format!("{:?}", greedy.ok(listed).await);
    assert!(listed.contains("[99, 99") && !listed.contains("[200, 200"), "{listed}");
    // The other user goes on in its session, and begins another one.
    honest.done("db", part(json(r#"{"find": "c"}"#), 1)).await;
    honest.ok(ping(2)).await;
    assert_eq!(sessions(), 8);
    honest.ok(ping(3)).await;
    assert_eq!(sessions(), 8, "it has its share: the session that holds nothing was replaced");
    honest.done("db", json(FIND).with("lsid", lsid(3))).await;
    let refused = honest.on("admin", ping(4)).await;
    assert_eq!((code(&refused), text(&refused, "codeName")), (261, "TooManyLogicalSessions"));
    honest.ok(part(json(r#"{"commitTransaction": 1}"#), 1)).await;
    honest.ok(json(r#"{"ping": 1}"#)).await;
}

/// The account may authenticate on any database, and still has one share.
#[tokio::test(flavor = "multi_thread")]
async fn the_account_is_one_user_on_all_databases() {
    let server = server(Limits { cursors: 4, ..Limits::default() }).await;
    for (database, opened) in [("admin", 3), ("db", 0), ("other", 0)] {
        let mut client = server.connect().await;
        authenticate(&mut client, Hash::Sha256, database, "bolide", PASSWORD).await.unwrap();
        for _ in 0..opened {
            client.done("db", json(FIND)).await;
        }
        assert_eq!(client.fails("db", json(FIND)).await.0, 96, "{database}");
    }
}

/// The bytes in idle cursors are bounded; beyond its share a user loses its own cursors and no other user's.
#[tokio::test(flavor = "multi_thread")]
async fn idle_cursors_of_one_user_hold_its_share_of_memory() {
    let most = 6 * LARGE;
    let server = server(Limits { idle_bytes: most, ..Limits::default() }).await;
    let (mut greedy, mut honest) = (log_in(&server, "greedy").await, log_in(&server, "honest").await);
    let id = |reply: &Document| inner(reply, "cursor.id").clone();
    let more = |id: &Value| {
        Document::new().with("getMore", id.clone()).with("collection", "large").with("batchSize", 1)
    };
    let own = id(&honest.done("db", json(SORT)).await);
    let small = id(&greedy.done("db", json(FIND)).await);
    let mut opened = Vec::new();
    for _ in 0..40 {
        opened.push(id(&greedy.done("db", json(SORT)).await));
        let bytes = figure(&server, "bolide_mongo_idle_bytes");
        assert!(bytes <= most, "{bytes} bytes rest in cursors");
    }
    assert!(figure(&server, "bolide_mongo_idle_bytes") > LARGE, "what is held counts");
    let ended = figure(&server, "bolide_mongo_idle_ended_total");
    assert!((36..40).contains(&ended), "{ended} were ended");
    let refused = greedy.on("db", more(&opened[0])).await;
    assert_eq!(code(&refused), 43);
    assert!(text(&refused, "errmsg").contains("mongo-idle-memory"), "{refused:?}");
    greedy.done("db", more(&opened[39])).await;
    let small = Document::new().with("getMore", small).with("collection", "c");
    greedy.done("db", small).await;
    honest.done("db", more(&own)).await;
    // A closed or exhausted cursor holds nothing.
    greedy
        .done("db", Document::new().with("killCursors", "large").with("cursors", Value::Array(opened)))
        .await;
    honest.done("db", Document::new().with("getMore", own).with("collection", "large")).await;
    assert_eq!(figure(&server, "bolide_mongo_idle_bytes"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_transactions_of_one_user_hold_its_share_of_memory() {
    let most = 12 * LARGE;
    let server = server(Limits { idle_bytes: most, ..Limits::default() }).await;
    let (mut greedy, mut honest) = (log_in(&server, "greedy").await, log_in(&server, "honest").await);
    let insert = || {
        let document = Document::new().with("pad", "x".repeat(LARGE));
        Document::new().with("insert", "written").with("documents", vec![Value::from(document)])
    };
    honest.done("db", starts(insert(), 1)).await;
    for session in 0..20 {
        greedy.done("db", starts(insert(), session)).await;
        let bytes = figure(&server, "bolide_mongo_idle_bytes");
        assert!(bytes <= most, "{bytes} bytes rest in transactions");
    }
    assert!(figure(&server, "bolide_mongo_idle_bytes") > 4 * LARGE, "what is held counts");
    let mut aborted = 0;
    for session in 0..20 {
        let reply = greedy.on("admin", part(json(r#"{"commitTransaction": 1}"#), session)).await;
        if reply.contains("code") {
            aborted += 1;
            assert_eq!((code(&reply), labels(&reply)), (251, vec!["TransientTransactionError"]), "{reply:?}");
            assert!(text(&reply, "errmsg").contains("mongo-idle-memory"), "{reply:?}");
            let next = greedy.on("db", part(insert(), session)).await;
            assert_eq!((code(&next), labels(&next)), (251, vec!["TransientTransactionError"]), "{next:?}");
        }
    }
    assert!((10..20).contains(&aborted), "{aborted} of 20 were aborted");
    honest.done("db", part(insert(), 1)).await;
    honest.ok(part(json(r#"{"commitTransaction": 1}"#), 1)).await;
    assert_eq!(figure(&server, "bolide_mongo_idle_bytes"), 0);
}

/// A transaction is one thing: it ends as a whole, with the label by which drivers run it again, never one of its cursors.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_does_not_lose_a_cursor() {
    let server = server(Limits { idle_bytes: 2 * LARGE, ..Limits::default() }).await;
    let mut greedy = log_in(&server, "greedy").await;
    let more = |reply: &Document| {
        let id = inner(reply, "cursor.id").clone();
        Document::new().with("getMore", id).with("collection", "large").with("batchSize", 1)
    };
    let first = greedy.done("db", starts(json(SORT), 1)).await;
    greedy.done("db", part(more(&first), 1)).await;
    assert_eq!(figure(&server, "bolide_mongo_idle_ended_total"), 0);
    greedy.done("db", part(json(SORT), 1)).await;
    assert_eq!(figure(&server, "bolide_mongo_idle_ended_total"), 1, "the two are more than its share");
    assert_eq!(figure(&server, "bolide_mongo_idle_bytes"), 0);
    let refused = greedy.on("db", part(more(&first), 1)).await;
    assert_eq!((code(&refused), labels(&refused)), (251, vec!["TransientTransactionError"]), "{refused:?}");
    assert!(text(&refused, "errmsg").contains("mongo-idle-memory"), "{refused:?}");
}

/// A user without any role cannot make the server hold computed documents.
#[tokio::test(flavor = "multi_thread")]
async fn documents_from_nowhere_need_a_role() {
    let server = server(Limits::default()).await;
    let mut owner = server.connect().await;
    owner.ok(json(r#"{"createUser": "bare", "pwd": "secret", "roles": []}"#)).await;
    let (mut bare, mut honest) = (log_in(&server, "bare").await, log_in(&server, "honest").await);
    let documents = r#"{"$documents": [{"x": 1}, {"x": 2}]}"#;
    for pipeline in [
        format!("[{documents}]"),
        format!(r#"[{{"$currentOp": {{}}}}, {{"$lookup": {{"pipeline": [{documents}], "as": "d"}}}}]"#),
        format!(r#"[{{"$currentOp": {{}}}}, {{"$unionWith": {{"pipeline": [{documents}]}}}}]"#),
        format!(
            r#"[{{"$currentOp": {{}}}}, {{"$facet": {{"f": [{{"$unionWith": {{"pipeline": [{documents}]}}}}]}}}}]"#
        ),
    ] {
        let command = json(&format!(r#"{{"aggregate": 1, "pipeline": {pipeline}, "cursor": {{}}}}"#));
        assert_eq!(bare.refused(command.clone()).await.0, 13, "{pipeline}");
        honest.ok(command).await;
    }
}
