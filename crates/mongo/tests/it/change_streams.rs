//! Change streams: which events they show, in which order, and where a client may resume (T28).

use std::time::Duration;

use bson::{Document, Value};
use tokio::net::TcpStream;

use crate::client::{Client, Server, inner, json, kind_0, labels, op_msg, reply, settings};

struct Watcher {
    database: &'static str,
    collection: String,
    cursor: i64,
    token: Document,
}

fn token(reply: &Document) -> Document {
    inner(reply, "cursor.postBatchResumeToken").as_document().unwrap().clone()
}

fn aggregate(on: &str, options: Document, rest: &[&str]) -> Document {
    let mut stages = vec![Value::Document(Document::new().with("$changeStream", options))];
    stages.extend(rest.iter().map(|stage| Value::Document(json(stage))));
    let on = if on.is_empty() { Value::Int32(1) } else { on.into() };
    Document::new().with("aggregate", on).with("pipeline", stages).with("cursor", Document::new())
}

impl Watcher {
    async fn open(
        client: &mut Client<TcpStream>,
        database: &'static str,
        on: &str,
        options: Document,
    ) -> (Watcher, Vec<Document>) {
        let reply = client.done(database, aggregate(on, options, &[])).await;
        let Value::Int64(cursor) = *inner(&reply, "cursor.id") else { panic!("{reply:?}") };
        let collection = if on.is_empty() { "$cmd.aggregate".to_owned() } else { on.to_owned() };
        let token = token(&reply);
        (Watcher { database, collection, cursor, token }, events(&reply, "firstBatch"))
    }

    /// What is new, without waiting for more.
    async fn news(&mut self, client: &mut Client<TcpStream>) -> Vec<Document> {
        let more = Document::new().with("getMore", self.cursor).with("collection", self.collection.as_str());
        let reply = client.done(self.database, more.with("maxTimeMS", 1)).await;
        let Value::Int64(cursor) = *inner(&reply, "cursor.id") else { panic!("{reply:?}") };
        (self.cursor, self.token) = (cursor, token(&reply));
        events(&reply, "nextBatch")
    }

    async fn short(&mut self, client: &mut Client<TcpStream>) -> Vec<String> {
        self.news(client).await.iter().map(short).collect()
    }
}

fn events(reply: &Document, batch: &str) -> Vec<Document> {
    let events = inner(reply, &format!("cursor.{batch}")).as_array().unwrap();
    events.iter().map(|event| event.as_document().unwrap().clone()).collect()
}

/// `insert c 1`; of an expiry `delete c 1 expired`.
fn short(event: &Document) -> String {
    let text = |path: &[&str]| {
        let mut value = event.get(path[0])?;
        for name in &path[1..] {
            value = value.as_document()?.get(name)?;
        }
        Some(match value {
            Value::String(text) => text.clone(),
            Value::Int32(number) => number.to_string(),
            Value::Bool(_) => "expired".to_owned(),
            other => panic!("{other:?}"),
        })
    };
    let parts = [
        text(&["operationType"]),
        text(&["ns", "coll"]),
        text(&["documentKey", "_id"]),
        text(&["to", "coll"]),
        text(&["bolide", "expired"]),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

async fn run(client: &mut Client<TcpStream>, commands: &[&str]) {
    for command in commands {
        client.done("db", json(command)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t28_changes_are_told_in_order_with_what_they_did() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 0}]}"#]).await;
    let (mut watcher, first) = Watcher::open(&mut client, "db", "c", Document::new()).await;
    assert!(first.is_empty(), "a stream begins now");
    server.clock.advance(Duration::from_millis(5));
    run(
        &mut client,
        &[
            r#"{"insert": "c", "documents": [{"_id": 1, "a": 1, "b": [1, 2]}, {"_id": 2}]}"#,
            r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 2, "b": [1]}, "$unset": {"x": 1}}}]}"#,
            r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"a": 3}}]}"#,
            r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 3}}}]}"#,
            r#"{"delete": "c", "deletes": [{"q": {"_id": 0}, "limit": 1}]}"#,
            r#"{"insert": "other", "documents": [{"_id": 9}]}"#,
        ],
    )
    .await;
    let events = watcher.news(&mut client).await;
    let told: Vec<_> = events.iter().map(short).collect();
    assert_eq!(told, ["insert c 1", "insert c 2", "update c 1", "replace c 1", "delete c 0"]);
    let description = json(
        r#"{"updatedFields": {"a": 2}, "removedFields": [], "truncatedArrays": [{"field": "b", "newSize": 1}]}"#,
    );
    assert_eq!(events[2].get("updateDescription"), Some(&description.into()));
    assert_eq!(events[2].get("fullDocument"), None);
    assert_eq!(inner(&events[3], "fullDocument"), &json(r#"{"_id": 1, "a": 3}"#).into());
    assert!(events.is_sorted_by_key(|event| inner(event, "_id._data").as_str().unwrap().to_owned()));
    assert!(watcher.news(&mut client).await.is_empty());

    for (at, event) in events.iter().enumerate() {
        for option in ["resumeAfter", "startAfter"] {
            let options = Document::new().with(option, event.get("_id").unwrap().clone());
            let (_, rest) = Watcher::open(&mut client, "db", "c", options).await;
            assert_eq!(rest.iter().map(short).collect::<Vec<_>>(), told[at + 1..], "{option}");
        }
    }
    let options = Document::new().with("startAtOperationTime", events[0].get("clusterTime").unwrap().clone());
    let (_, again) = Watcher::open(&mut client, "db", "c", options).await;
    assert_eq!(again.len(), 5, "all of one millisecond of the test's clock");
    let earlier = Document::new()
        .with("startAtOperationTime", bson::Timestamp { seconds: 1_700_000_000, increment: 1 });
    assert_eq!(client.fails("db", aggregate("c", earlier, &[])).await.0, 286, "no stream watched yet");
}

#[tokio::test(flavor = "multi_thread")]
async fn t28_an_expiry_is_a_delete_at_its_instant_purged_or_not() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let index =
        r#"{"createIndexes": "c", "indexes": [{"key": {"_ts": 1}, "name": "t", "expireAfterSeconds": -1}]}"#;
    run(&mut client, &[index]).await;
    let options = json(r#"{"fullDocument": "updateLookup"}"#);
    let (mut watcher, _) = Watcher::open(&mut client, "db", "c", options).await;
    let start = watcher.token.clone();
    run(
        &mut client,
        &[
            r#"{"insert": "c", "documents": [{"_id": 1, "ttl": 5}, {"_id": 2, "ttl": 50}]}"#,
            r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}]}"#,
        ],
    )
    .await;
    server.clock.advance(Duration::from_secs(6));
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 3}]}"#]).await;
    let events = watcher.news(&mut client).await;
    let told: Vec<_> = events.iter().map(short).collect();
    assert_eq!(
        told,
        ["insert c 1", "insert c 2", "update c 1", "delete c 1 expired", "insert c 3"],
        "before what was written after it"
    );
    assert_eq!(events[2].get("fullDocument"), Some(&Value::Null), "an expired document is gone");
    assert_eq!(events[3].get("wallTime"), Some(&Value::DateTime(1_700_000_005_000)));
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 1, "again": true}]}"#]).await;
    assert_eq!(watcher.short(&mut client).await, ["insert c 1"]);

    server.engine.purge_step(1000).unwrap();
    let options = Document::new().with("resumeAfter", start).with("fullDocument", "updateLookup");
    let (_, again) = Watcher::open(&mut client, "db", "c", options).await;
    assert_eq!(again[3..5], events[3..5], "the purge is not seen, not even in the tokens");
    assert_eq!(again.len(), 6);

    server.clock.advance(Duration::from_mins(1));
    assert_eq!(watcher.short(&mut client).await, ["delete c 2 expired"], "no client wrote anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn t28_databases_and_the_deployment_are_watched_with_what_is_made_later() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    run(&mut client, &[r#"{"insert": "a", "documents": [{"_id": 0}]}"#]).await;
    let (mut database, _) = Watcher::open(&mut client, "db", "", Document::new()).await;
    let all = json(r#"{"allChangesForCluster": true}"#);
    let (mut deployment, _) = Watcher::open(&mut client, "admin", "", all).await;
    let begun = deployment.token.clone();
    run(
        &mut client,
        &[
            r#"{"insert": "a", "documents": [{"_id": 1}]}"#,
            r#"{"insert": "b", "documents": [{"_id": 2}]}"#,
            r#"{"delete": "a", "deletes": [{"q": {"_id": 0}, "limit": 1}]}"#,
            r#"{"drop": "b"}"#,
            r#"{"insert": "b", "documents": [{"_id": 3}]}"#,
        ],
    )
    .await;
    client.done("other", json(r#"{"insert": "o", "documents": [{"_id": 4}]}"#)).await;
    client.ok(json(r#"{"renameCollection": "db.a", "to": "other.a2"}"#)).await;
    client.done("other", json(r#"{"insert": "a2", "documents": [{"_id": 5}]}"#)).await;
    client.done("other", json(r#"{"dropDatabase": 1}"#)).await;
    let of_database =
        ["insert a 1", "insert b 2", "delete a 0", "drop b", "insert b 3", "rename a a2"].map(str::to_owned);
    assert_eq!(
        database.short(&mut client).await,
        of_database,
        "also what was in the collection that is gone"
    );
    let mut of_all = of_database[..5].to_vec();
    let rest = ["insert o 4", "rename a a2", "insert a2 5", "drop a2", "drop o", "dropDatabase"];
    of_all.extend(rest.map(str::to_owned));
    assert_eq!(deployment.short(&mut client).await, of_all);
    client.done("db", json(r#"{"dropDatabase": 1}"#)).await;
    assert_eq!(database.short(&mut client).await, ["drop b", "dropDatabase", "invalidate"]);
    assert_eq!(database.cursor, 0, "the stream has ended");
    assert_eq!(deployment.short(&mut client).await, ["drop b", "dropDatabase"]);
    assert_ne!(deployment.cursor, 0);

    let kill = Document::new().with("killCursors", "$cmd.aggregate");
    let kill = kill.with("cursors", vec![Value::Int64(deployment.cursor)]);
    let killed = client.done("admin", kill).await;
    assert_eq!(inner(&killed, "cursorsKilled").as_array().unwrap().len(), 1);

    of_all.extend(["drop b", "dropDatabase"].map(str::to_owned));
    let options = json(r#"{"allChangesForCluster": true}"#).with("resumeAfter", begun);
    let (_, again) = Watcher::open(&mut client, "admin", "", options).await;
    assert_eq!(again.iter().map(short).collect::<Vec<_>>(), of_all, "all of it is still known");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_over_a_collection_ends_with_its_name() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    for end in [r#"{"drop": "c"}"#, r#"{"dropDatabase": 1}"#] {
        let (mut watcher, _) = Watcher::open(&mut client, "db", "c", Document::new()).await;
        run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 1}]}"#, end]).await;
        let events = watcher.news(&mut client).await;
        assert_eq!(events.iter().map(short).collect::<Vec<_>>(), ["insert c 1", "drop c", "invalidate"]);
        assert_eq!(watcher.cursor, 0);
        let after_drop = Document::new().with("resumeAfter", events[1].get("_id").unwrap().clone());
        let reply = client.done("db", aggregate("c", after_drop, &[])).await;
        assert_eq!(inner(&reply, "cursor.id"), &Value::Int64(0));
        assert_eq!(
            inner(&reply, "cursor.firstBatch").as_array().unwrap()[0].as_document().unwrap(),
            &events[2],
            "the end is told again"
        );
        let end = events[2].get("_id").unwrap().clone();
        let resumed = Document::new().with("resumeAfter", end.clone());
        assert_eq!(client.fails("db", aggregate("c", resumed, &[])).await.0, 260);
        let (mut next, first) =
            Watcher::open(&mut client, "db", "c", Document::new().with("startAfter", end)).await;
        assert!(first.is_empty());
        run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 2}]}"#]).await;
        assert_eq!(next.short(&mut client).await, ["insert c 2"]);
        run(&mut client, &[r#"{"drop": "c"}"#]).await;
    }
    let (mut watcher, _) = Watcher::open(&mut client, "db", "c", Document::new()).await;
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 1}]}"#]).await;
    client.ok(json(r#"{"renameCollection": "db.c", "to": "db.d"}"#)).await;
    run(&mut client, &[r#"{"insert": "d", "documents": [{"_id": 2}]}"#]).await;
    assert_eq!(watcher.short(&mut client).await, ["insert c 1", "rename c d", "invalidate"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_shown_where_the_collection_has_them() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let required = json(r#"{"fullDocumentBeforeChange": "required"}"#);
    let available = json(r#"{"fullDocumentBeforeChange": "whenAvailable", "fullDocument": "whenAvailable"}"#);
    let update = r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}"#;
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 1, "n": 1}]}"#]).await;
    let (mut watcher, _) = Watcher::open(&mut client, "db", "c", available.clone()).await;
    let (refused, _) = Watcher::open(&mut client, "db", "c", required.clone()).await;
    run(&mut client, &[update]).await;
    let event = watcher.news(&mut client).await.remove(0);
    assert_eq!(event.get("fullDocumentBeforeChange"), Some(&Value::Null));
    assert_eq!(event.get("fullDocument"), Some(&Value::Null));
    let more = Document::new().with("getMore", refused.cursor).with("collection", "c");
    let reply = client.on("db", more).await;
    assert_eq!((crate::client::code(&reply), labels(&reply)), (47, vec!["NonResumableChangeStreamError"]));

    run(&mut client, &[r#"{"collMod": "c", "changeStreamPreAndPostImages": {"enabled": true}}"#]).await;
    let (mut strict, _) = Watcher::open(&mut client, "db", "c", required).await;
    run(&mut client, &[update, r#"{"delete": "c", "deletes": [{"q": {}, "limit": 0}]}"#]).await;
    let events = watcher.news(&mut client).await;
    assert_eq!(inner(&events[0], "fullDocumentBeforeChange.n"), &Value::Int32(2));
    assert_eq!(inner(&events[0], "fullDocument.n"), &Value::Int32(3));
    assert_eq!(inner(&events[1], "fullDocumentBeforeChange.n"), &Value::Int32(3));
    assert_eq!(strict.short(&mut client).await, ["update c 1", "delete c 1"]);
    let wrong = json(r#"{"collMod": "c", "changeStreamPreAndPostImages": {"on": true}}"#);
    assert_eq!(client.fails("db", wrong).await.0, 40415);
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_behind_a_stream_shape_its_events_and_leave_the_token_alone() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let stages = [
        r#"{"$match": {"operationType": "insert", "fullDocument.n": {"$gt": 1}}}"#,
        r#"{"$project": {"ns": 0}}"#,
    ];
    let opened = client.done("db", aggregate("c", Document::new(), &stages)).await;
    let unset = client.done("db", aggregate("c", Document::new(), &[r#"{"$unset": "_id"}"#])).await;
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 1, "n": 1}, {"_id": 2, "n": 2}]}"#]).await;
    let more = |reply: &Document| {
        Document::new().with("getMore", inner(reply, "cursor.id").clone()).with("collection", "c")
    };
    let events = events(&client.done("db", more(&opened)).await, "nextBatch");
    assert_eq!(events.len(), 1);
    assert!(events[0].get("ns").is_none() && events[0].get("documentKey").is_some());
    let reply = client.on("db", more(&unset)).await;
    assert_eq!((crate::client::code(&reply), labels(&reply)), (280, vec!["NonResumableChangeStreamError"]));
    for (stage, code) in [(r#"{"$sort": {"_id": 1}}"#, 20), (r#"{"$changeStreamSplitLargeEvent": {}}"#, 115)]
    {
        assert_eq!(client.fails("db", aggregate("c", Document::new(), &[stage])).await.0, code, "{stage}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_waits_for_changes_and_answers_when_there_are_some() {
    let server = Server::start().await;
    let (mut client, mut writer) = (server.connect().await, server.connect().await);
    let (watcher, _) = Watcher::open(&mut client, "db", "c", Document::new()).await;
    let more = Document::new().with("getMore", watcher.cursor).with("collection", "c");
    let wait = tokio::spawn(async move { client.done("db", more.with("maxTimeMS", 1_000_000)).await });
    run(&mut writer, &[r#"{"insert": "c", "documents": [{"_id": 1}]}"#]).await;
    let reply = wait.await.unwrap();
    assert_eq!(events(&reply, "nextBatch").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn t28_a_client_goes_on_after_hours() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (watcher, _) = Watcher::open(&mut client, "db", "", Document::new()).await;
    for hour in 0..23 {
        run(&mut client, &[&format!(r#"{{"insert": "c{hour}", "documents": [{{"_id": 1}}]}}"#)]).await;
        server.clock.advance(Duration::from_hours(1));
        server.engine.purge_step(1000).unwrap();
    }
    run(&mut client, &[r#"{"drop": "c7"}"#]).await;
    let options = Document::new().with("resumeAfter", watcher.token);
    let (_, told) = Watcher::open(&mut client, "db", "", options).await;
    let told: Vec<_> = told.iter().map(short).collect();
    assert_eq!((told.len(), told[7].as_str(), told[23].as_str()), (24, "insert c7 1", "drop c7"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_any_more_or_not_offered_is_refused() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (mut watcher, _) = Watcher::open(&mut client, "db", "c", Document::new()).await;
    let old = watcher.token.clone();
    server.clock.advance(Duration::from_hours(25));
    let reply = client.on("db", aggregate("c", Document::new().with("resumeAfter", old), &[])).await;
    assert_eq!((crate::client::code(&reply), labels(&reply)), (286, vec!["NonResumableChangeStreamError"]));
    watcher = Watcher::open(&mut client, "db", "c", Document::new()).await.0;
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 1}]}"#]).await;
    assert_eq!(watcher.short(&mut client).await, ["insert c 1"]);
    // A cut or changed token names no position, not even one nearby.
    let Some(Value::String(digits)) = watcher.token.get("_data").cloned() else {
        panic!("{:?}", watcher.token)
    };
    let last = if digits.ends_with('0') { "1" } else { "0" };
    for damaged in
        [&digits[..digits.len() - 2], &digits[..66], &format!("{}{last}", &digits[..digits.len() - 1])]
    {
        for option in ["resumeAfter", "startAfter"] {
            let options = Document::new().with(option, Document::new().with("_data", damaged));
            let (code, text) = client.fails("db", aggregate("c", options, &[])).await;
            assert_eq!((code, text.contains("cut or changed")), (260, true), "{damaged}: {text}");
        }
    }

    run(&mut client, &[r#"{"create": "v", "viewOn": "c", "pipeline": []}"#]).await;
    for (database, on, options, code) in [
        ("db", "v", "{}", 166),
        ("db", "c", r#"{"showExpandedEvents": true}"#, 115),
        ("db", "c", r#"{"allChangesForCluster": true}"#, 72),
        ("db", "c", r#"{"resumeAfter": {"_data": "00"}}"#, 260),
        ("db", "c", r#"{"resumeAfter": {}}"#, 40647),
        ("admin", "", "{}", 73),
        ("db", "system.x", "{}", 73),
    ] {
        let told = client.fails(database, aggregate(on, json(options), &[])).await;
        assert_eq!(told.0, code, "{on} {options}: {}", told.1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_carries_no_more_than_other_cursors_do() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (mut watcher, _) = Watcher::open(&mut client, "db", "c", Document::new()).await;
    let large = "x".repeat(9 * 1024 * 1024);
    for id in [1, 2] {
        let document = Document::new().with("_id", id).with("x", large.as_str());
        let insert = Document::new().with("insert", "c").with("documents", vec![Value::Document(document)]);
        client.done("db", insert).await;
    }
    assert_eq!(watcher.short(&mut client).await, ["insert c 1"]);
    // The event that was held back comes next, also for a client that resumes elsewhere.
    let after = Document::new().with("resumeAfter", watcher.token.clone());
    let (_, resumed) = Watcher::open(&mut client, "db", "c", after).await;
    assert_eq!(resumed.iter().map(short).collect::<Vec<_>>(), ["insert c 2"]);
    assert_eq!(watcher.short(&mut client).await, ["insert c 2"]);
    assert!(watcher.short(&mut client).await.is_empty());
    // An update and the document after it are together larger than any document.
    let options = json(r#"{"fullDocument": "updateLookup"}"#);
    let (watcher, _) = Watcher::open(&mut client, "db", "c", options).await;
    let set = Document::new().with("$set", Document::new().with("x", format!("{large}y")));
    let update = Document::new().with("q", json(r#"{"_id": 1}"#)).with("u", set);
    let update = Document::new().with("update", "c").with("updates", vec![Value::Document(update)]);
    client.done("db", update).await;
    let more = Document::new().with("getMore", watcher.cursor).with("collection", "c").with("maxTimeMS", 1);
    assert_eq!(client.fails("db", more).await.0, 10334);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_stream_waits_for_its_place_in_a_batch() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (mut watcher, _) = Watcher::open(&mut client, "db", "c", Document::new()).await;
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 1}]}"#, r#"{"drop": "c"}"#]).await;
    let mut told = Vec::new();
    while watcher.cursor != 0 {
        let more = Document::new().with("getMore", watcher.cursor).with("collection", "c");
        let reply = client.done("db", more.with("maxTimeMS", 1).with("batchSize", 1)).await;
        let Value::Int64(cursor) = *inner(&reply, "cursor.id") else { panic!("{reply:?}") };
        watcher.cursor = cursor;
        told.push(events(&reply, "nextBatch").iter().map(short).collect::<Vec<_>>().join(", "));
    }
    assert_eq!(told, ["insert c 1", "drop c", "invalidate"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_waits_does_not_hold_up_the_shutdown() {
    let mut settings = settings();
    settings.limits.drain_timeout = Duration::from_hours(1);
    let mut server = Server::with(settings).await;
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    let (watcher, _) = Watcher::open(&mut client, "db", "c", Document::new()).await;
    let more = Document::new().with("getMore", watcher.cursor).with("collection", "c").with("$db", "db");
    client.send(&op_msg(7, 0, &[kind_0(&more.with("maxTimeMS", 3_600_000))])).await;
    let waiting = json(r#"{"currentOp": 1, "command.getMore": {"$exists": true}}"#);
    while other.ok(waiting.clone()).await.get("inprog").and_then(Value::as_array).unwrap().is_empty() {}
    server.shut_down();
    let answer = client.read().await.expect("an answer");
    assert!(events(&reply(&answer), "nextBatch").is_empty());
    assert!(client.is_closed().await);
    server.ended.take().unwrap().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_and_its_event_have_one_time_and_streams_start_there() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let (mut watcher, _) = Watcher::open(&mut client, "db", "c", Document::new()).await;
    let time = |reply: &Document| match reply.get("operationTime") {
        Some(Value::Timestamp(time)) => *time,
        other => panic!("no operationTime but {other:?}"),
    };
    // The test's clock stands still: all of this happens in one millisecond.
    let mut times = Vec::new();
    for command in [
        r#"{"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}"#,
        r#"{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 2}}}]}"#,
        r#"{"findAndModify": "c", "query": {"_id": 2}, "update": {"a": 3}}"#,
        r#"{"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}"#,
    ] {
        times.push(time(&client.done("db", json(command)).await));
    }
    let transaction = r#""lsid": {"id": {"$binary": {"base64": "AAECAwQFBgcICQoLDA0ODw==", "subType": "04"}}}, "txnNumber": {"$numberLong": "1"}, "autocommit": false"#;
    let insert =
        format!(r#"{{"insert": "c", "documents": [{{"_id": 5}}], {transaction}, "startTransaction": true}}"#);
    client.done("db", json(&insert)).await;
    times.push(time(&client.ok(json(&format!(r#"{{"commitTransaction": 1, {transaction}}}"#))).await));
    let events = watcher.news(&mut client).await;
    let told: Vec<_> = events.iter().map(short).collect();
    let of_event = |event: &Document| match event.get("clusterTime") {
        Some(Value::Timestamp(time)) => *time,
        other => panic!("no clusterTime but {other:?}"),
    };
    let of_events: Vec<_> = events.iter().map(of_event).collect();
    assert_eq!(of_events, [times[0], times[0], times[1], times[2], times[3], times[4]], "{told:?}");
    let from = |time: bson::Timestamp| Document::new().with("startAtOperationTime", time);
    for (at, first) in [(0, 0), (1, 2), (2, 3), (3, 4), (4, 5)] {
        let (_, rest) = Watcher::open(&mut client, "db", "c", from(times[at])).await;
        assert_eq!(rest.iter().map(short).collect::<Vec<_>>(), told[first..], "from the write {at}");
    }
    let behind = bson::Timestamp { increment: times[4].increment + 1, ..times[4] };
    let read = time(&client.done("db", json(r#"{"find": "c"}"#)).await);
    let mut watchers = Vec::new();
    for start in [behind, read] {
        let (watcher, rest) = Watcher::open(&mut client, "db", "c", from(start)).await;
        assert_eq!(rest.iter().map(short).collect::<Vec<_>>(), Vec::<String>::new());
        watchers.push(watcher);
    }
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 6}]}"#]).await;
    for mut watcher in watchers {
        assert_eq!(watcher.short(&mut client).await, ["insert c 6"]);
    }
}

/// What happens before the first stream over a collection is not kept, so a read before it is no place to start from. The stream
/// that was refused has turned the feed on: a read after it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_a_place_to_start_from_once_the_feed_is_on() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 1}]}"#]).await;
    let from_a_read = async |client: &mut Client<TcpStream>| {
        let reply = client.done("db", json(r#"{"find": "c"}"#)).await;
        Document::new().with("startAtOperationTime", reply.get("operationTime").unwrap().clone())
    };
    let before = from_a_read(&mut client).await;
    server.clock.advance(Duration::from_millis(5));
    for _ in 0..2 {
        let (code, words) = client.fails("db", aggregate("c", before.clone(), &[])).await;
        assert_eq!(code, 286, "{words}");
    }
    let after = from_a_read(&mut client).await;
    server.clock.advance(Duration::from_millis(5));
    run(&mut client, &[r#"{"insert": "c", "documents": [{"_id": 2}]}"#]).await;
    let (_, shown) = Watcher::open(&mut client, "db", "c", after).await;
    assert_eq!(shown.iter().map(short).collect::<Vec<_>>(), ["insert c 2"]);
}
