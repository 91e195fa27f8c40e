//! A container of four ranges: the range that an answer names, and its numbers.

use std::collections::BTreeMap;

use crate::client::{Reply, Request, Server};

pub(crate) const RANGE_ID: &str = "x-ms-documentdb-partitionkeyrangeid";
pub(crate) const DOCS: &str = "/dbs/db/colls/c/docs";

/// A server whose container `c` has four ranges, and a partition key of each of them.
pub(crate) async fn four_ranges(extra: &str) -> (Server, [String; 4]) {
    let server = Server::start().await;
    let keys = four_ranges_in(&server, extra).await;
    (server, keys)
}

/// Creates the container `c` with four ranges, and returns a partition key of each of them.
pub(crate) async fn four_ranges_in(server: &Server, extra: &str) -> [String; 4] {
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let comma = if extra.is_empty() { "" } else { "," };
    let definition =
        format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{comma}{extra}}}"#);
    let request = server.post("/dbs/db/colls", &definition).header("x-ms-offer-throughput", "20000");
    request.send().await.expect_status(201);
    let mut keys = BTreeMap::new();
    for n in 0.. {
        let key = format!("PK{n}");
        let body = format!(r#"{{"id":"first","pk":"{key}"}}"#);
        let reply = server.create(&key, &body).await.expect_status(201);
        keys.entry(range(&reply)).or_insert(key);
        if keys.len() == 4 {
            break;
        }
    }
    [0, 1, 2, 3].map(|range| keys.remove(&range).expect("a key of each range"))
}

/// Returns the range that an answer names, equal in all headers.
#[track_caller]
fn range(reply: &Reply) -> usize {
    let token = reply.header("x-ms-session-token").unwrap_or_else(|| panic!("no token: {}", reply.text()));
    let (range, _) = token.split_once(":-1#").expect("the form that clients read");
    assert_eq!(reply.header(RANGE_ID), Some(range), "{token}");
    range.parse().expect("a number")
}

pub(crate) fn item(key: &str, id: &str) -> String {
    format!(r#"{{"id":"{id}","pk":"{key}"}}"#)
}

/// One failing request of each kind for a key, with the status it must have.
fn failing(server: &Server, key: &str) -> Vec<(u16, Request)> {
    let (first, none) = (format!("{DOCS}/first"), format!("{DOCS}/none"));
    let batch = |request: Request, atomic: &str| {
        request.header("x-ms-cosmos-is-batch-request", "True").header("x-ms-cosmos-batch-atomic", atomic)
    };
    let query = |text: &str| {
        let request = server.post(DOCS, &format!(r#"{{"query":"{text}"}}"#));
        request.header("content-type", "application/query+json").header("x-ms-documentdb-isquery", "True")
    };
    vec![
        (409, server.post(DOCS, &item(key, "first")).key(key)),
        (409, server.post(DOCS, &item(key, "first"))),
        (400, server.post(DOCS, &format!(r#"{{"id":"t","pk":"{key}","ttl":0}}"#)).key(key)),
        (400, server.post(DOCS, &format!(r#"{{"id":"t","pk":"{key}","ttl":0}}"#))),
        (400, server.post(DOCS, "{").key(key)),
        (404, server.get(&none).key(key)),
        (412, server.get(&first).key(key).header("if-match", "\"other\"")),
        (404, server.put(&none, &item(key, "none")).key(key)),
        (412, server.put(&first, &item(key, "first")).key(key).header("if-match", "\"other\"")),
        (412, server.put(&first, &item(key, "first")).header("if-match", "\"other\"")),
        (400, server.patch(&first, r#"{"operations":[{"op":"fly"}]}"#).key(key)),
        (404, server.patch(&none, r#"{"operations":[{"op":"add","path":"/a","value":1}]}"#).key(key)),
        (404, server.delete(&none).key(key)),
        (412, server.delete(&first).key(key).header("if-match", "\"other\"")),
        (400, batch(server.post(DOCS, "[]").key(key), "True")),
        (400, query("SELECT * FRM c").key(key)),
        (400, query("SELECT * FROM c").key(key).header("x-ms-continuation", "nonsense")),
        (400, server.get(DOCS).key(key).header("a-im", "Incremental Feed").header("if-none-match", "\"x\"")),
    ]
}

#[tokio::test]
async fn errors_name_the_range_of_their_key() {
    let (server, keys) = four_ranges("").await;
    for (expected, key) in keys.iter().enumerate() {
        for (at, (status, request)) in failing(&server, key).into_iter().enumerate() {
            let reply = request.send().await.expect_status(status);
            assert_eq!(range(&reply), expected, "request {at} of {key}");
        }
    }
}

#[tokio::test]
async fn errors_name_the_range_that_was_asked_for_and_no_other() {
    let (server, _) = four_ranges("").await;
    let query = || {
        let request = server.post(DOCS, r#"{"query":"SELECT * FRM c"}"#);
        request.header("content-type", "application/query+json").header("x-ms-documentdb-isquery", "True")
    };
    for id in ["0", "1", "2", "3"] {
        let reply = query().header(RANGE_ID, id).send().await.expect_status(400);
        assert_eq!(range(&reply).to_string(), id);
        let bulk = server.post(DOCS, "[]").header(RANGE_ID, id);
        let bulk = bulk.header("x-ms-cosmos-is-batch-request", "True").send().await.expect_status(400);
        assert_eq!(range(&bulk).to_string(), id);
    }
    // An error outside of all ranges names none: a client would consider its list of ranges outdated.
    let nowhere = [query(), query().header(RANGE_ID, "9"), server.post(DOCS, "{")];
    for request in nowhere {
        let reply = request.send().await;
        assert!(reply.status == 400 || reply.status == 410, "{}", reply.status);
        assert_eq!((reply.header("x-ms-session-token"), reply.header(RANGE_ID)), (None, None));
    }
}
