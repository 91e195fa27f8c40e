//! LSNs and session tokens: counted per range, of the range that they name, and accepted with every request (decision
//! 0027).

use document::Value;

use crate::client::{Reply, Request, Server};
use crate::hybrid_row::told;
use crate::ranges::{DOCS, RANGE_ID, four_ranges, item};

const TOKEN: &str = "x-ms-session-token";
/// The headers with the position of the range.
const OF_RANGE: [&str; 5] = [
    "lsn",
    "x-ms-cosmos-llsn",
    "x-ms-quorum-acked-lsn",
    "x-ms-cosmos-quorum-acked-llsn",
    "x-ms-global-committed-lsn",
];
const OF_ITEM: [&str; 2] = ["x-ms-item-lsn", "x-ms-cosmos-item-llsn"];

/// Returns the range and the LSN that an answer shows, equal in all headers.
#[track_caller]
fn shown(reply: &Reply) -> (usize, u64) {
    let token = reply.header(TOKEN).unwrap_or_else(|| panic!("no token: {}", reply.text()));
    let (range, lsn) = token.split_once(":-1#").expect("the form that clients read");
    assert_eq!(reply.header(RANGE_ID), Some(range));
    for name in OF_RANGE {
        assert_eq!(reply.header(name), Some(lsn), "{name}");
    }
    (range.parse().expect("a number"), lsn.parse().expect("a number"))
}

#[track_caller]
fn item_lsn(reply: &Reply) -> u64 {
    let [first, second] = OF_ITEM.map(|name| reply.header(name).unwrap_or_default().to_owned());
    assert_eq!(first, second);
    first.parse().unwrap_or_else(|_| panic!("no item: {:?}", reply.headers))
}

fn upsert(server: &Server, container: &str, key: &str, id: &str) -> Request {
    server.post(&format!("/dbs/db/colls/{container}/docs"), &item(key, id)).key(key).upsert()
}

/// Creates a container `other` to which another client writes.
async fn with_other(server: &Server) {
    server.create_container("other", "").await.expect_status(201);
}

async fn write_elsewhere(server: &Server) {
    upsert(server, "other", "x", "x").send().await;
}

fn query(server: &Server, text: &str) -> Request {
    let request = server.post(DOCS, &format!(r#"{{"query":"{text}"}}"#));
    let request = request.header("content-type", "application/query+json");
    request
        .header("x-ms-documentdb-isquery", "True")
        .header("x-ms-documentdb-query-enablecrosspartition", "True")
}

fn feed(server: &Server, mode: &str, position: Option<&str>) -> Request {
    let request = server.get(DOCS).header("a-im", mode);
    let request = request.header("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15");
    position.into_iter().fold(request, |request, position| request.header("if-none-match", position))
}

fn operations(request: Request, atomic: &str) -> Request {
    let request = request.header("x-ms-cosmos-is-batch-request", "True");
    request.header("x-ms-cosmos-batch-atomic", atomic).header("x-ms-cosmos-batch-continue-on-error", "True")
}

/// Requests that read one range, by its key or its id.
fn reads(server: &Server, range: usize, key: &str) -> Vec<Request> {
    let id = range.to_string();
    let read = r#"[{"operationType":"Read","id":"first"}]"#;
    let read_by_key = format!(r#"[{{"operationType":"Read","id":"first","partitionKey":"[\"{key}\"]"}}]"#);
    vec![
        server.get(&format!("{DOCS}/first")).key(key),
        server.get(&format!("{DOCS}/none")).key(key),
        server.get(DOCS).key(key),
        server.get(DOCS).header(RANGE_ID, &id),
        query(server, "SELECT * FROM c").key(key),
        query(server, "SELECT VALUE COUNT(1) FROM c").header(RANGE_ID, &id),
        query(server, "SELECT * FRM c").header(RANGE_ID, &id),
        feed(server, "Incremental Feed", None).header(RANGE_ID, &id),
        feed(server, "Incremental Feed", Some("*")).key(key),
        feed(server, "Full-Fidelity Feed", Some("*")).header(RANGE_ID, &id),
        operations(server.post(DOCS, read).key(key), "True"),
        operations(server.post(DOCS, &read_by_key).header(RANGE_ID, &id), "False"),
    ]
}

/// Requests that read several ranges at once.
fn wide_reads(server: &Server) -> Vec<Request> {
    vec![
        server.get(DOCS),
        server.get(DOCS).header("x-ms-max-item-count", "1"),
        query(server, "SELECT * FROM c ORDER BY c.id"),
        query(server, "SELECT VALUE COUNT(1) FROM c"),
        feed(server, "Incremental Feed", None),
        feed(server, "Incremental Feed", Some("*")),
        feed(server, "Full-Fidelity Feed", Some("*")),
    ]
}

/// Writes of each kind in a range, each of which is one commit.
fn writes(server: &Server, key: &str) -> Vec<(u16, Request)> {
    let first = format!("{DOCS}/first");
    let batch = format!(
        r#"[{{"operationType":"Create","resourceBody":{}}},{{"operationType":"Delete","id":"batched"}}]"#,
        item(key, "batched")
    );
    let bulk = format!(
        r#"[{{"operationType":"Upsert","partitionKey":"[\"{key}\"]","resourceBody":{}}}]"#,
        item(key, "bulk")
    );
    vec![
        (201, server.post(DOCS, &item(key, "made")).key(key)),
        (200, upsert(server, "c", key, "made")),
        (200, server.put(&first, &item(key, "first")).key(key)),
        (200, server.put(&first, &item(key, "first"))),
        (200, server.patch(&first, r#"{"operations":[{"op":"set","path":"/n","value":1}]}"#).key(key)),
        (204, server.delete(&format!("{DOCS}/made")).key(key)),
        (200, operations(server.post(DOCS, &batch).key(key), "True")),
        (200, operations(server.post(DOCS, &bulk), "False")),
    ]
}

const RETENTION: &str = r#""defaultTtl":-1,"changeFeedPolicy":{"retentionDuration":10}"#;

/// Four ranges of very different counts, with another client's writes in between; returns the LSN of each.
async fn uneven() -> (Server, [String; 4], [u64; 4]) {
    let (server, keys) = four_ranges(RETENTION).await;
    with_other(&server).await;
    let mut lsns = [0; 4];
    for (range, (key, count)) in keys.iter().zip([1, 7, 25, 80]).enumerate() {
        let begun = shown(&server.read(key, "first").await).1;
        for n in 0..count {
            write_elsewhere(&server).await;
            let reply = upsert(&server, "c", key, &n.to_string()).send().await;
            assert_eq!(shown(&reply), (range, begun + n + 1), "own and foreign writes in turn");
        }
        lsns[range] = begun + count;
    }
    (server, keys, lsns)
}

#[tokio::test]
async fn every_answer_shows_the_lsn_of_the_range_that_it_names() {
    let (server, keys, mut lsns) = uneven().await;
    for (range, key) in keys.iter().enumerate() {
        for (at, request) in reads(&server, range, key).into_iter().enumerate() {
            write_elsewhere(&server).await;
            assert_eq!(shown(&request.send().await), (range, lsns[range]), "read {at} of {key}");
        }
        for (at, (status, request)) in writes(&server, key).into_iter().enumerate() {
            write_elsewhere(&server).await;
            let reply = request.send().await.expect_status(status);
            lsns[range] += 1;
            assert_eq!(shown(&reply), (range, lsns[range]), "write {at} of {key}");
        }
    }
    for (at, request) in wide_reads(&server).into_iter().enumerate() {
        let (range, lsn) = shown(&request.send().await);
        assert_eq!(lsn, lsns[range], "read {at} of several ranges");
    }
    let delete = server.post("/dbs/db/colls/c/operations/partitionkeydelete", "").key(&keys[2]);
    assert_eq!(shown(&delete.send().await.expect_status(200)), (2, lsns[2] + 1));
}

#[tokio::test]
async fn each_token_is_accepted_by_every_request() {
    let (server, keys, lsns) = uneven().await;
    let mut tokens = Vec::new();
    for (range, key) in keys.iter().enumerate() {
        for request in reads(&server, range, key) {
            tokens.push(request.send().await.header(TOKEN).unwrap().to_owned());
        }
        for (_, request) in writes(&server, key) {
            tokens.push(request.send().await.header(TOKEN).unwrap().to_owned());
        }
    }
    for request in wide_reads(&server) {
        tokens.push(request.send().await.header(TOKEN).unwrap().to_owned());
    }
    let all = tokens.join(",");
    tokens.sort();
    tokens.dedup();
    assert!(tokens.len() > 30, "{tokens:?}");
    tokens.push(all.split(',').take(100).collect::<Vec<_>>().join(","));
    for token in &tokens {
        for (range, key) in keys.iter().enumerate() {
            let read = server.get(&format!("{DOCS}/first")).key(key).header(TOKEN, token);
            assert_eq!(shown(&read.send().await.expect_status(200)).0, range, "{token}");
        }
    }
    for (range, key) in keys.iter().enumerate() {
        let now = shown(&server.read(key, "first").await).1;
        assert!(now > lsns[range]);
        let requests = || reads(&server, range, key).into_iter().chain(wide_reads(&server));
        for (at, request) in requests().enumerate() {
            let reply = request.header(TOKEN, &format!("{range}:-1#{now}")).send().await;
            assert_ne!(reply.header("x-ms-substatus"), Some("1002"), "read {at}");
        }
        for request in requests() {
            let reply = request.header(TOKEN, &format!("{range}:-1#{}", now + 1)).send().await;
            reply.expect_error(404, 1002, "NotFound");
        }
    }
    // A number of the past in one range is of the future in another.
    let lsns = [0, 3].map(|range| format!("{range}:-1#{}", lsns[3]));
    let read = |token: &str| server.get(&format!("{DOCS}/first")).key(&keys[0]).header(TOKEN, token).send();
    read(&lsns[1]).await.expect_status(200);
    read(&lsns[0]).await.expect_error(404, 1002, "NotFound");
}

#[tokio::test]
async fn an_item_shows_the_lsn_of_its_last_write_and_the_range_its_own() {
    let (server, keys, _) = uneven().await;
    let key = &keys[1];
    let old = upsert(&server, "c", key, "old").send().await;
    let written = shown(&old).1;
    assert_eq!(item_lsn(&old), written);
    for n in 1..=3 {
        write_elsewhere(&server).await;
        upsert(&server, "c", key, "new").send().await;
        let read = server.read(key, "old").await.expect_status(200);
        assert_eq!((item_lsn(&read), shown(&read)), (written, (1, written + n)));
        assert_eq!(item_lsn(&server.read(key, "new").await), written + n);
    }
    let etag = old.header("etag").unwrap().to_owned();
    let unchanged = server.get(&format!("{DOCS}/old")).key(key).header("if-none-match", &etag).send().await;
    assert_eq!(item_lsn(&unchanged.expect_status(304)), written);
    let deleted = server.delete(&format!("{DOCS}/old")).key(key).send().await.expect_status(204);
    assert_eq!((item_lsn(&deleted), shown(&deleted).1), (written + 4, written + 4));
    for reply in [server.read(key, "old").await.expect_status(404), server.get(DOCS).key(key).send().await] {
        assert_eq!(shown(&reply), (1, written + 4));
        assert_eq!(OF_ITEM.map(|name| reply.header(name)), [None, None], "there is no item");
    }
}

/// A bulk request that names no range may reach several. Its answer names one of them, with the number of that one.
#[tokio::test]
async fn a_bulk_answer_names_one_range_that_it_reached() {
    let (server, keys, lsns) = uneven().await;
    let create = |key: &str, id: &str| {
        format!(
            r#"{{"operationType":"Upsert","partitionKey":"[\"{key}\"]","resourceBody":{}}}"#,
            item(key, id)
        )
    };
    let failing =
        |key: &str| format!(r#"{{"operationType":"Read","id":"none","partitionKey":"[\"{key}\"]"}}"#);
    let everywhere = format!(
        "[{},{},{},{},{}]",
        create(&keys[3], "p"),
        create(&keys[1], "p"),
        create(&keys[0], "p"),
        create(&keys[1], "q"),
        create(&keys[2], "p")
    );
    let send = |body: &str, id: Option<&str>| {
        let request = operations(server.post(DOCS, body), "False");
        id.into_iter().fold(request, |request, id| request.header(RANGE_ID, id)).send()
    };
    let reply = send(&everywhere, Some("1")).await.expect_status(207);
    assert_eq!(shown(&reply), (1, lsns[1] + 2), "the range that it is meant for, after both of its writes");
    let statuses: Vec<_> = told(&reply).iter().map(|result| result.0).collect();
    assert_eq!(statuses, [410, 201, 410, 201, 410]);
    let reply = send(&everywhere, None).await.expect_status(200);
    assert_eq!(shown(&reply), (3, lsns[3] + 1), "the first that was reached");
    let elsewhere = format!("[{}]", create(&keys[2], "r"));
    let reply = send(&elsewhere, Some("0")).await.expect_status(207);
    assert_eq!(shown(&reply), (0, lsns[0] + 1), "the range that was asked for, where nothing was done");
    let reply = send(&elsewhere, Some("2")).await.expect_status(200);
    assert_eq!(shown(&reply), (2, lsns[2] + 2), "and the refused write took no number of its own range");
    let nothing = format!("[{}]", failing(&keys[3]));
    assert_eq!(shown(&send(&nothing, None).await.expect_status(207)), (3, lsns[3] + 1));
    assert_eq!(shown(&send(&nothing, Some("3")).await.expect_status(207)), (3, lsns[3] + 1));
    let batch = format!("[{}]", r#"{"operationType":"Read","id":"none"}"#);
    let batch = operations(server.post(DOCS, &batch).key(&keys[1]), "True").send().await.expect_status(207);
    assert_eq!(shown(&batch), (1, lsns[1] + 4));
}

/// The computation of the change feed estimators in SDKs: LSN of the session token less `_lsn` of the first pending change
/// plus 1.
#[tokio::test]
async fn the_estimated_lag_counts_the_commits_of_the_range_alone() {
    let (server, keys, _) = uneven().await;
    let position = |reply: Reply| reply.header("etag").unwrap().to_owned();
    let estimate = |mode: &'static str, position: String| {
        let request = feed(&server, mode, Some(&position)).header(RANGE_ID, "2");
        request.header("x-ms-max-item-count", "1").send()
    };
    let first = |reply: &Reply, part: &str, name: &str| {
        let documents = reply.member("Documents");
        let value = documents.as_array().unwrap()[0].get(part).and_then(|part| part.get(name)).cloned();
        value.and_then(|value| Value::as_i64(&value)).expect("a number").cast_unsigned()
    };
    let now = |mode: &'static str| estimate(mode, "*".to_owned());
    let latest = position(now("Incremental Feed").await.expect_status(304));
    let versions = position(now("Full-Fidelity Feed").await.expect_status(304));
    let lag = async || {
        let page = estimate("Incremental Feed", latest.clone()).await.expect_status(200);
        let all = estimate("Full-Fidelity Feed", versions.clone()).await.expect_status(200);
        assert_eq!(first(&page, "current", "_lsn"), first(&page, "metadata", "lsn"));
        let lag = shown(&page).1 - first(&page, "current", "_lsn") + 1;
        assert_eq!(lag, shown(&all).1 - first(&all, "metadata", "lsn") + 1, "in both modes");
        lag
    };
    let elsewhere: Vec<String> = (0..100)
        .map(|n| {
            let body = item("x", &n.to_string());
            format!(r#"{{"operationType":"Upsert","partitionKey":"[\"x\"]","resourceBody":{body}}}"#)
        })
        .collect();
    let elsewhere = format!("[{}]", elsewhere.join(","));
    let many = || operations(server.post("/dbs/db/colls/other/docs", &elsewhere), "False").send();
    many().await.expect_status(200);
    server.create(&keys[2], &item(&keys[2], "pending")).await.expect_status(201);
    many().await.expect_status(200);
    many().await.expect_status(200);
    assert_eq!(lag().await, 1, "one new item, and 300 writes elsewhere");
    for n in 0..3 {
        upsert(&server, "c", &keys[2], &format!("more{n}")).send().await.expect_status(201);
        upsert(&server, "c", &keys[1], "neighbour").send().await;
    }
    assert_eq!(lag().await, 4);
}
