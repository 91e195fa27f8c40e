//! Permissions and their resource tokens: a token grants the rights of its permission, as long as that has them.

use std::sync::atomic::Ordering;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::client::{Reply, Request, START, Server};

const FEED: &str = "/dbs/db/users/u/permissions";
const DOCS: &str = "/dbs/db/colls/c/docs";
const ITEM: &str = "/dbs/db/colls/c/docs/1";
const BODY: &str = r#"{"id":"1","pk":"a"}"#;

/// A server with the items `1` under the keys `a` and `b`, and a user.
async fn server() -> Server {
    let server = Server::with_container("").await;
    server.create_container("other", "").await.expect_status(201);
    server.create("a", BODY).await.expect_status(201);
    server.create("b", r#"{"id":"1","pk":"b"}"#).await.expect_status(201);
    server.post("/dbs/db/users", r#"{"id":"u"}"#).send().await.expect_status(201);
    server
}

fn definition(id: &str, mode: &str, resource: &str, extra: &str) -> String {
    format!(r#"{{"id":"{id}","permissionMode":"{mode}","resource":"{resource}"{extra}}}"#)
}

/// Creates the permission `p` and returns its token.
async fn token(server: &Server, mode: &str, resource: &str, extra: &str) -> String {
    let body = definition("p", mode, resource, extra);
    server.post(FEED, &body).upsert().send().await.string("_token")
}

/// Sends a request with a token, without a date, as JavaScript clients do.
async fn send(request: Request, token: &str) -> Reply {
    let encoded = utf8_percent_encode(token, NON_ALPHANUMERIC).to_string();
    request.unsigned().without("x-ms-date").header("authorization", &encoded).send().await
}

#[tokio::test]
async fn permissions_are_kept_replaced_queried_and_deleted() {
    let server = server().await;
    let body = |id: &str, mode: &str| definition(id, mode, "dbs/AQAAAA==/colls/AQAAAJ0fgTc=", "");
    let created = server.post(FEED, &body("one", "Read")).send().await.expect_status(201);
    assert_eq!(created.string("resource"), "dbs/AQAAAA==/colls/AQAAAJ0fgTc=");
    assert!(created.string("_token").starts_with("type=resource&ver=1.0&sig="));
    assert!(created.header("etag").is_some());
    server.post(FEED, &body("one", "Read")).send().await.expect_error(409, 0, "Conflict");
    let changed = server.post(FEED, &body("one", "All")).upsert().send().await.expect_status(200);
    assert_eq!(changed.string("permissionMode"), "All");
    server.post(FEED, &body("two", "All")).upsert().send().await.expect_status(201);
    assert_eq!(server.get(FEED).send().await.ids("Permissions"), ["one", "two"]);
    let query = server.post(FEED, r#"{"query":"SELECT * FROM root r WHERE r.id='two'"}"#);
    let found = query.header("content-type", "application/query+json").send().await.expect_status(200);
    assert_eq!(found.ids("Permissions"), ["two"]);
    let renamed = server.put(&format!("{FEED}/one"), &body("three", "Read")).send().await.expect_status(200);
    assert_eq!(renamed.string("_rid"), created.string("_rid"));
    server.get(&format!("{FEED}/one")).send().await.expect_error(404, 0, "NotFound");
    let by_link = server.get(&format!("/{}", created.string("_self"))).send().await.expect_status(200);
    assert_eq!(by_link.string("id"), "three");
    server.delete(&format!("{FEED}/three")).send().await.expect_status(204);
    server.delete(&format!("{FEED}/three")).send().await.expect_error(404, 0, "NotFound");
    server.get("/dbs/db/users/none/permissions").send().await.expect_error(404, 1003, "NotFound");
}

#[tokio::test]
async fn definitions_that_mean_nothing_are_refused() {
    let server = server().await;
    for body in [
        r#"{"id":"p"}"#,
        r#"{"id":"p","permissionMode":"All"}"#,
        &definition("p", "Write", "dbs/db/colls/c", ""),
        &definition("p", "All", "dbs/db/colls/c", r#","resourcePartitionKey":[]"#),
    ] {
        server.post(FEED, body).send().await.expect_error(400, 0, "BadRequest");
    }
    for seconds in ["9", "18001", "soon"] {
        let request = server.get(FEED).header("x-ms-documentdb-expiry-seconds", seconds);
        request.send().await.expect_error(400, 0, "BadRequest");
    }
}

#[tokio::test]
async fn a_reader_reads_one_container_and_nothing_else() {
    let server = server().await;
    let token = token(&server, "Read", "dbs/db/colls/c", "").await;
    let query = || {
        server
            .post(DOCS, r#"{"query":"SELECT * FROM c"}"#)
            .header("content-type", "application/query+json")
            .header("x-ms-documentdb-query-enablecrosspartition", "true")
    };
    for request in [
        server.get("/"),
        server.get("/dbs/db/colls/c"),
        server.get("/dbs/db/colls/c/pkranges"),
        server.get("/dbs/db/colls/c/sprocs"),
        server.get(ITEM).key("a"),
        server.get(DOCS),
        query(),
    ] {
        send(request, &token).await.expect_status(200);
    }
    for request in [
        server.post(DOCS, BODY).key("a"),
        server.post(DOCS, BODY).key("a").upsert(),
        server.put(ITEM, BODY).key("a"),
        server.patch(ITEM, r#"[{"op":"add","path":"/x","value":1}]"#).key("a"),
        server.delete(ITEM).key("a"),
        server.post(DOCS, "[]").key("a").header("x-ms-cosmos-is-batch-request", "true"),
        server.post("/dbs/db/colls/c/operations/partitionkeydelete", "").key("a"),
        server.post("/dbs/db/colls/c/sprocs", r#"{"id":"s","body":"f"}"#),
        server.put("/dbs/db/colls/c", "{}"),
        server.delete("/dbs/db/colls/c"),
        server.get("/dbs/db/colls/other"),
        server.get("/dbs/db/colls/other/docs"),
        server.get("/dbs/db/colls/none"),
        server.get("/dbs"),
        server.get("/dbs/db"),
        server.get("/dbs/db/colls"),
        server.post("/dbs/db/colls", "{}"),
        server.get("/dbs/db/users"),
        server.get(FEED),
        server.get(&format!("{FEED}/p")),
        server.get("/offers"),
    ] {
        send(request, &token).await.expect_error(403, 0, "Forbidden");
    }
    // Nor is the token a bearer key.
    let admin = server.get("/_bolide/status").unsigned().header("authorization", &format!("Bearer {token}"));
    admin.send().await.expect_error(401, 0, "Unauthorized");
}

#[tokio::test]
async fn a_permission_with_a_partition_key_ends_at_that_key() {
    let server = server().await;
    let token = token(&server, "all", "dbs/db/colls/c", r#","resourcePartitionKey":["a"]"#).await;
    send(server.get("/dbs/db/colls/c"), &token).await.expect_status(200);
    send(server.get(ITEM).key("a"), &token).await.expect_status(200);
    let listed = send(server.get(DOCS).key("a"), &token).await.expect_status(200);
    assert_eq!(listed.ids("Documents"), ["1"]);
    send(server.post(DOCS, r#"{"id":"2","pk":"a"}"#).key("a"), &token).await.expect_status(201);
    let lie = server.post(DOCS, r#"{"id":"3","pk":"b"}"#).key("a");
    send(lie, &token).await.expect_error(400, 1001, "BadRequest");
    let bulk = r#"[{"operationType":"Read","id":"1","partitionKey":"[\"b\"]"}]"#;
    for request in [
        server.get(ITEM).key("b"),
        server.get(DOCS),
        server.get(DOCS).key("b"),
        server.get(DOCS).header("x-ms-documentdb-partitionkey", "[]"),
        server.get(DOCS).header("a-im", "Incremental Feed"),
        server.get(DOCS).header("x-ms-documentdb-partitionkeyrangeid", "0"),
        server.post(DOCS, BODY),
        server.delete(ITEM).key("b"),
        server.post(DOCS, bulk).key("a").header("x-ms-cosmos-is-batch-request", "true"),
        server.post("/dbs/db/colls/c/operations/partitionkeydelete", "").key("b"),
        server.delete("/dbs/db/colls/c"),
        server.get("/dbs/db/colls/c/sprocs").key("a"),
    ] {
        send(request, &token).await.expect_error(403, 0, "Forbidden");
    }
    let read = server.post(DOCS, r#"[{"operationType":"Read","id":"1"}]"#).key("a");
    let read = read.header("x-ms-cosmos-is-batch-request", "true").header("x-ms-cosmos-batch-atomic", "true");
    send(read, &token).await.expect_status(200);
    send(server.delete(ITEM).key("a"), &token).await.expect_status(204);
}

#[tokio::test]
async fn a_permission_for_an_item_is_for_no_other_id() {
    let server = server().await;
    server.create("a", r#"{"id":"2","pk":"a"}"#).await.expect_status(201);
    let link = server.read("a", "1").await.string("_self");
    let rid_path = format!("/{link}");
    for resource in ["dbs/db/colls/c/docs/1", link.as_str()] {
        let token = token(&server, "All", resource, "").await;
        for path in [ITEM, rid_path.as_str()] {
            send(server.get(path).key("a"), &token).await.expect_status(200);
            send(server.put(path, BODY).key("a"), &token).await.expect_status(200);
            let rename = server.put(path, r#"{"id":"3","pk":"a"}"#).key("a");
            send(rename, &token).await.expect_error(403, 0, "Forbidden");
        }
        send(server.get("/dbs/db/colls/c"), &token).await.expect_status(200);
        send(server.get("/dbs/db/colls/c/pkranges"), &token).await.expect_status(200);
        for request in [
            server.get(&format!("{DOCS}/2")).key("a"),
            server.get(DOCS).key("a"),
            server.post(DOCS, BODY).key("a").upsert(),
            server.delete("/dbs/db/colls/c"),
        ] {
            send(request, &token).await.expect_error(403, 0, "Forbidden");
        }
    }
    // A resource id names one item, not every item with that id.
    let token = token(&server, "All", &link, "").await;
    send(server.get(ITEM).key("b"), &token).await.expect_error(403, 0, "Forbidden");
    send(server.delete(ITEM).key("a"), &token).await.expect_status(204);
}

#[tokio::test]
async fn a_permission_for_a_script_is_for_that_script() {
    let server = server().await;
    let sprocs = "/dbs/db/colls/c/sprocs";
    for id in ["s", "t"] {
        server.post(sprocs, &format!(r#"{{"id":"{id}","body":"f"}}"#)).send().await.expect_status(201);
    }
    let token = token(&server, "All", "dbs/db/colls/c/sprocs/s", "").await;
    send(server.get(&format!("{sprocs}/s")), &token).await.expect_status(200);
    let replace = |body: &str| server.put(&format!("{sprocs}/s"), body);
    send(replace(r#"{"id":"s","body":"g"}"#), &token).await.expect_status(200);
    send(replace(r#"{"id":"z","body":"g"}"#), &token).await.expect_error(403, 0, "Forbidden");
    send(server.get(&format!("{sprocs}/t")), &token).await.expect_error(403, 0, "Forbidden");
    send(server.get(ITEM).key("a"), &token).await.expect_error(403, 0, "Forbidden");
}

#[tokio::test]
async fn a_token_lives_as_long_as_was_asked_by_real_time_t29() {
    let server = server().await;
    token(&server, "Read", "dbs/db/colls/c", "").await;
    let short = server.get(&format!("{FEED}/p")).header("x-ms-documentdb-expiry-seconds", "10").send().await;
    let (short, long) =
        (short.string("_token"), server.get(&format!("{FEED}/p")).send().await.string("_token"));
    server.admin("POST", "/_bolide/clock", r#"{"advanceSeconds":86400}"#).send().await.expect_status(200);
    send(server.get(DOCS), &short).await.expect_status(200);
    server.real_seconds.store(START + 10, Ordering::Relaxed);
    let expired = send(server.get(DOCS), &short).await.expect_error(403, 0, "Forbidden");
    assert!(expired.message().contains("not valid at the current time"), "{}", expired.message());
    send(server.get("/"), &short).await.expect_error(403, 0, "Forbidden");
    server.real_seconds.store(START + 3599, Ordering::Relaxed);
    send(server.get(DOCS), &long).await.expect_status(200);
    server.real_seconds.store(START + 3600, Ordering::Relaxed);
    send(server.get(DOCS), &long).await.expect_error(403, 0, "Forbidden");
}

#[tokio::test]
async fn a_token_is_worth_what_its_permission_says_now() {
    let server = server().await;
    let first = token(&server, "All", "dbs/db/colls/c", "").await;
    send(server.put(ITEM, BODY).key("a"), &first).await.expect_status(200);
    token(&server, "Read", "dbs/db/colls/c", "").await;
    send(server.put(ITEM, BODY).key("a"), &first).await.expect_error(403, 0, "Forbidden");
    send(server.get(DOCS), &first).await.expect_status(200);
    let rid = server.get(&format!("{FEED}/p")).send().await.string("_rid");
    server.delete(&format!("{FEED}/p")).send().await.expect_status(204);
    send(server.get(DOCS), &first).await.expect_error(403, 0, "Forbidden");
    send(server.get("/"), &first).await.expect_error(403, 0, "Forbidden");
    // A new permission with the same id is a different one, and so is one whose id is the old resource id.
    let second = token(&server, "All", "dbs/db/colls/c", "").await;
    server.post(FEED, &definition(&rid, "All", "dbs/db/colls/c", "")).send().await.expect_status(201);
    send(server.get(DOCS), &first).await.expect_error(403, 0, "Forbidden");
    send(server.get(DOCS), &second).await.expect_status(200);
    server.delete("/dbs/db/users/u").send().await.expect_status(204);
    send(server.get(DOCS), &second).await.expect_error(403, 0, "Forbidden");
}

#[tokio::test]
async fn a_forged_token_is_unauthorized() {
    let server = server().await;
    let good = token(&server, "Read", "dbs/db/colls/c", "").await;
    let (head, payload) = good.split_once(';').unwrap();
    let flipped = if head.ends_with("A=") { "B=" } else { "A=" };
    for forged in [
        format!("{}{flipped};{payload}", &head[..head.len() - 2]),
        format!("{head};AAAA{payload}"),
        format!("{head};"),
        format!("type=resource&ver=1.0&sig=;{payload}"),
        good.replace("ver=1.0", "ver=2.0"),
        good.replace("type=resource", "type=master"),
    ] {
        send(server.get(DOCS), &forged).await.expect_error(401, 0, "Unauthorized");
    }
    let plain = server.get(DOCS).unsigned().header("authorization", &good);
    plain.send().await.expect_status(200);
}
