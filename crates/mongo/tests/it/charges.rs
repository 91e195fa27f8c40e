//! What commands cost, where documents expire and where they do not.

use std::collections::BTreeSet;
use std::time::Duration;

use bson::{Document, Value, to_extended_json};
use engine::{Charge, QueryMetrics};
use fastrand::Rng;
use tokio::net::TcpStream;

use crate::client::{Client, START, Server, inner, json};

const IDS: i32 = 6;
const EXPIRE_AFTER_SECONDS: u64 = 20;
/// How many documents each batch shows.
const BATCH: i32 = 20;

/// A server with a collection whose documents have a date, and one connection to it.
struct World {
    server: Server,
    client: Client<TcpStream>,
}

impl World {
    /// `rule` is what makes the index on the date a rule (T27), or nothing.
    async fn new(rule: &str) -> World {
        let server = Server::start().await;
        let mut client = server.connect().await;
        let indexes = format!(
            r#"{{"createIndexes": "c", "indexes": [{{"key": {{"d": 1}}, "name": "d_1"{rule}}},
                {{"key": {{"a": 1}}, "name": "a_1"}},
                {{"key": {{"u": 1}}, "name": "u_1", "unique": true, "sparse": true}}]}}"#
        );
        client.done("db", json(&indexes)).await;
        World { server, client }
    }

    async fn ids(&mut self) -> BTreeSet<i32> {
        let reply = self.client.done("db", json(r#"{"find": "c", "batchSize": 100}"#)).await;
        let documents = inner(&reply, "cursor.firstBatch").as_array().unwrap();
        let id = |document: &Value| match document.as_document().unwrap().get("_id") {
            Some(Value::Int32(id)) => *id,
            other => panic!("{other:?}"),
        };
        documents.iter().map(id).collect()
    }

    async fn delete(&mut self, id: i32) {
        let delete = format!(r#"{{"delete": "c", "deletes": [{{"q": {{"_id": {id}}}, "limit": 1}}]}}"#);
        self.client.done("db", json(&delete)).await;
    }

    /// Runs a command; returns the parts of its answer that tell what was done, and its cost.
    async fn run(&mut self, command: &str) -> (Vec<Option<Value>>, Value) {
        let reply = self.client.on("db", json(command)).await;
        let said = ["ok", "code", "n", "nModified"].map(|name| reply.get(name).cloned()).to_vec();
        (said, self.cost().await)
    }

    /// Returns the cost of the last command.
    async fn cost(&mut self) -> Value {
        let statistics = self.client.ok(Document::new().with("getLastRequestStatistics", 1)).await;
        inner(&statistics, "RequestCharge").clone()
    }

    /// Runs a command that opens a cursor, and asks for so many further batches; returns how many documents each batch had,
    /// and its cost.
    async fn batches(&mut self, command: &str, further: usize) -> Vec<(usize, Value)> {
        let opened = self.client.done("db", json(command)).await;
        let mut batches = vec![(shown(&opened, "firstBatch"), self.cost().await)];
        let more = Document::new()
            .with("getMore", inner(&opened, "cursor.id").clone())
            .with("collection", "c")
            .with("batchSize", BATCH);
        for _ in 0..further {
            let reply = self.client.done("db", more.clone()).await;
            batches.push((shown(&reply, "nextBatch"), self.cost().await));
        }
        batches
    }

    /// Creates the collection again, with so many documents of half a kilobyte.
    async fn fill(&mut self, count: i32) {
        self.client.on("db", json(r#"{"drop": "c"}"#)).await;
        let index = r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}"#;
        self.client.done("db", json(index)).await;
        let documents: Vec<String> = (0..count)
            .map(|id| format!(r#"{{"_id": {id}, "a": {}, "t": "{}"}}"#, id % 2, "x".repeat(500)))
            .collect();
        let insert = format!(r#"{{"insert": "c", "documents": [{}]}}"#, documents.join(", "));
        self.client.done("db", json(&insert)).await;
    }
}

/// Returns how many documents a batch has.
fn shown(reply: &Document, batch: &str) -> usize {
    inner(reply, &format!("cursor.{batch}")).as_array().unwrap().len()
}

/// A document with a date that is near, past, or none.
fn draw_fields(rng: &mut Rng, now: u64) -> String {
    let date = match rng.u8(..4) {
        0 => String::new(),
        1 => r#", "d": "not a date""#.to_owned(),
        _ => {
            let millis = (now - 25 + rng.u64(..30)) * 1000;
            format!(r#", "d": {{"$date": {{"$numberLong": "{millis}"}}}}"#)
        }
    };
    let (a, u, fill) = (rng.u8(..3), rng.u8(..9), "y".repeat(rng.usize(..3) * 900));
    format!(r#""a": {a}, "u": {u}, "fill": "{fill}"{date}"#)
}

fn draw(rng: &mut Rng, now: u64) -> String {
    let (id, fields, a) = (rng.i32(..IDS), draw_fields(rng, now), rng.u8(..3));
    match rng.u8(..7) {
        0 => format!(r#"{{"insert": "c", "documents": [{{"_id": {id}, {fields}}}]}}"#),
        1 => format!(
            r#"{{"insert": "c", "ordered": false, "documents": [{{"_id": {id}, {fields}}}, {{"_id": {}, "a": 1}}]}}"#,
            (id + 1) % IDS
        ),
        2 => format!(
            r#"{{"update": "c", "updates": [{{"q": {{"_id": {id}}}, "u": {{"$set": {{{fields}}}}}, "upsert": {}}}]}}"#,
            rng.bool()
        ),
        3 => format!(
            r#"{{"update": "c", "updates": [{{"q": {{"a": {a}}}, "u": {{"$inc": {{"n": 1}}}}, "multi": true}}]}}"#
        ),
        4 => format!(
            r#"{{"findAndModify": "c", "query": {{"a": {a}}}, "sort": {{"_id": 1}}, "update": {{{fields}}}}}"#
        ),
        5 => format!(r#"{{"delete": "c", "deletes": [{{"q": {{"_id": {id}}}, "limit": 1}}]}}"#),
        _ => format!(r#"{{"delete": "c", "deletes": [{{"q": {{"a": {a}}}, "limit": 0}}]}}"#),
    }
}

const READS: [&str; 5] = [
    r#"{"find": "c"}"#,
    r#"{"find": "c", "filter": {"a": 1}}"#,
    r#"{"find": "c", "sort": {"d": -1}}"#,
    r#"{"count": "c"}"#,
    r#"{"aggregate": "c", "pipeline": [{"$group": {"_id": "$a", "n": {"$sum": 1}}}], "cursor": {}}"#,
];

/// The same commands where a date expires documents, with and without purge, and where the same index is no rule and the
/// same documents are deleted instead: all cost the same.
#[tokio::test(flavor = "multi_thread")]
async fn t21_no_command_costs_more_or_less_because_of_a_date_rule() {
    let rule = format!(r#", "expireAfterSeconds": {EXPIRE_AFTER_SECONDS}"#);
    let mut expiries = 0;
    for seed in 0..10 {
        let (mut rng, mut now) = (Rng::with_seed(seed), START);
        let mut expiring = World::new(&rule).await;
        let mut purged = World::new(&rule).await;
        let mut plain = World::new("").await;
        for step in 0..40 {
            if rng.bool() {
                now += 7;
                for world in [&expiring, &purged, &plain] {
                    world.server.clock.advance(Duration::from_secs(7));
                }
                purged.server.engine.purge_at_once(None, usize::MAX).unwrap();
            }
            let command = draw(&mut rng, now);
            for command in [command.as_str()].into_iter().chain(READS) {
                // Documents expire with time, and so they may by a write.
                for id in plain.ids().await.difference(&expiring.ids().await) {
                    plain.delete(*id).await;
                    expiries += 1;
                }
                let expected = plain.run(command).await;
                assert_eq!(expiring.run(command).await, expected, "seed {seed} step {step} {command}");
                assert_eq!(purged.run(command).await, expected, "purged: seed {seed} step {step} {command}");
            }
        }
    }
    assert!(expiries > 20, "{expiries} expiries prove nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_costs_what_it_shows_however_much_there_is_behind_it() {
    let mut world = World::new("").await;
    let mut costs = Vec::new();
    for count in [101, 1000] {
        world.fill(count).await;
        let mut of_count = Vec::new();
        for command in [
            r#"{"find": "c", "batchSize": 101}"#,
            r#"{"find": "c", "filter": {"_id": {"$gte": 0}}, "batchSize": 101}"#,
            r#"{"find": "c", "batchSize": 20}"#,
            r#"{"find": "c", "sort": {"_id": 1}, "batchSize": 101}"#,
            r#"{"find": "c", "sort": {"_id": -1}, "batchSize": 20}"#,
            r#"{"find": "c", "sort": {"_id": 1}, "skip": 10, "batchSize": 20}"#,
            r#"{"aggregate": "c", "pipeline": [{"$project": {"a": 1}}], "cursor": {"batchSize": 101}}"#,
            r#"{"aggregate": "c", "pipeline": [{"$sort": {"_id": 1}}, {"$addFields": {"b": "$a"}}], "cursor": {"batchSize": 20}}"#,
            r#"{"aggregate": "c", "pipeline": [{"$addFields": {"b": "$a"}}, {"$match": {"b": {"$gte": 0}}}], "cursor": {"batchSize": 20}}"#,
        ] {
            of_count.push(world.run(command).await);
        }
        costs.push(of_count);
    }
    assert_eq!(costs[0], costs[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_further_batch_costs_what_it_shows_however_much_there_is_behind_it() {
    let mut world = World::new("").await;
    let mut costs = Vec::new();
    for count in [140, 1000] {
        world.fill(count).await;
        let mut of_count = Vec::new();
        for opening in [
            r#"{"find": "c""#,
            r#"{"find": "c", "filter": {"_id": {"$gte": 0}}"#,
            r#"{"find": "c", "filter": {"a": 1}"#,
            r#"{"find": "c", "filter": {"a": 1, "t": {"$gt": "x"}}"#,
            r#"{"find": "c", "sort": {"_id": 1}"#,
            r#"{"find": "c", "sort": {"_id": -1}, "skip": 3"#,
            r#"{"find": "c", "sort": {"a": 1}"#,
        ] {
            let command = format!(r#"{opening}, "batchSize": {BATCH}}}"#);
            of_count.push((opening, world.batches(&command, 2).await));
        }
        for stages in [
            r#"{"$project": {"a": 1}}"#,
            r#"{"$match": {"a": 1}}, {"$addFields": {"b": 1}}"#,
            r#"{"$sort": {"_id": 1}}, {"$addFields": {"b": "$a"}}"#,
            r#"{"$addFields": {"b": "$a"}}, {"$match": {"b": {"$gte": 0}}}"#,
            r#"{"$unwind": "$t"}, {"$skip": 2}"#,
        ] {
            let command = format!(
                r#"{{"aggregate": "c", "pipeline": [{stages}], "cursor": {{"batchSize": {BATCH}}}}}"#
            );
            of_count.push((stages, world.batches(&command, 2).await));
        }
        for (command, batches) in &of_count {
            assert!(batches.iter().all(|(shown, _)| *shown == BATCH as usize), "{command}: {batches:?}");
        }
        costs.push(of_count);
    }
    assert_eq!(costs[0], costs[1]);
}

/// An entry on `_id` does not show whether its document is living: what is loaded to find that out is what is shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_find_along_id_loads_each_document_once() {
    let mut world = World::new("").await;
    world.fill(60).await;
    // The same, and so many entries of the index.
    let index_entries = Charge::query(&QueryMetrics { index_entries: 20, ..QueryMetrics::default() }, 1).0
        - Charge::query(&QueryMetrics::default(), 1).0;
    let dearer = |(shown, cost): (usize, Value)| match cost {
        Value::Double(units) => {
            (shown, Value::Double(Charge((units * 100.0).round() as u64 + index_entries).units()))
        }
        other => panic!("{other:?}"),
    };
    let natural = world.batches(r#"{"find": "c", "batchSize": 20}"#, 2).await;
    let expected: Vec<_> = natural.into_iter().map(dearer).collect();
    for along in [
        r#"{"find": "c", "sort": {"_id": 1}, "batchSize": 20}"#,
        r#"{"find": "c", "sort": {"_id": -1}, "batchSize": 20}"#,
        r#"{"find": "c", "filter": {"_id": {"$gte": 0}}, "hint": "_id_", "batchSize": 20}"#,
        r#"{"aggregate": "c", "pipeline": [{"$sort": {"_id": 1}}], "cursor": {"batchSize": 20}}"#,
    ] {
        assert_eq!(world.batches(along, 2).await, expected, "{along}");
        let explained = format!(r#"{{"explain": {along}, "verbosity": "executionStats"}}"#);
        let reply = world.client.done("db", json(&explained)).await;
        let plan = to_extended_json(inner(&reply, "queryPlanner.winningPlan").view(), true);
        assert!(plan.contains(r#""_id_""#), "{along}: {plan}");
        for figure in ["nReturned", "totalKeysExamined", "totalDocsExamined"] {
            assert_eq!(
                inner(&reply, &format!("executionStats.{figure}")),
                &Value::Int32(60),
                "{along}: {figure}"
            );
        }
    }
}
