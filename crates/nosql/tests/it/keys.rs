//! The account's keys over the wire: the rights of each, and the effect of replacing it.

use account::Kind;

use crate::client::{KEY, Reply, Request, Server};

const DOCS: &str = "/dbs/db/colls/c/docs";
const ITEM: &str = "/dbs/db/colls/c/docs/1";
const BODY: &str = r#"{"id":"1","pk":"a"}"#;
const QUERY: &str = r#"{"query":"SELECT * FROM c"}"#;

/// A server with an item, a user and a permission.
async fn server() -> Server {
    let server = Server::with_container("").await;
    server.create("a", BODY).await.expect_status(201);
    server.post("/dbs/db/users", r#"{"id":"u"}"#).send().await.expect_status(201);
    let permission = r#"{"id":"p","permissionMode":"All","resource":"dbs/db/colls/c"}"#;
    server.post("/dbs/db/users/u/permissions", permission).send().await.expect_status(201);
    server
}

fn query(server: &Server, path: &str) -> Request {
    server
        .post(path, QUERY)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-query-enablecrosspartition", "true")
}

fn made(server: &Server, kind: Kind) -> String {
    server.keys.regenerate(kind).unwrap().reveal().to_owned()
}

fn refused(reply: Reply) -> Reply {
    reply.expect_error(401, 0, "Unauthorized")
}

#[tokio::test]
async fn a_read_only_key_reads_and_queries() {
    let server = server().await;
    for kind in [Kind::PrimaryReadonly, Kind::SecondaryReadonly] {
        let key = made(&server, kind);
        for request in [
            server.get("/"),
            server.get("/dbs"),
            server.get("/dbs/db"),
            server.get("/dbs/db/colls/c"),
            server.get("/dbs/db/colls/c/pkranges"),
            server.get("/dbs/db/users/u"),
            server.get("/offers"),
            server.get(ITEM).key("a"),
            server.get(DOCS),
            server.get(DOCS).header("a-im", "Incremental feed"),
            query(&server, DOCS),
            query(&server, "/dbs"),
            query(&server, DOCS)
                .header("x-ms-cosmos-is-query-plan-request", "true")
                .header("x-ms-cosmos-supported-query-features", "None"),
        ] {
            request.signed_with(&key).send().await.expect_status(200);
        }
    }
}

#[tokio::test]
async fn a_read_only_key_writes_nothing_and_says_why() {
    let server = server().await;
    let key = made(&server, Kind::PrimaryReadonly);
    for request in [
        server.post(DOCS, r#"{"id":"2","pk":"a"}"#).key("a"),
        server.post(DOCS, BODY).key("a").upsert(),
        server.put(ITEM, BODY).key("a"),
        server.patch(ITEM, r#"[{"op":"add","path":"/x","value":1}]"#).key("a"),
        server.delete(ITEM).key("a"),
        server.post(DOCS, "[]").key("a").header("x-ms-cosmos-is-batch-request", "true"),
        server.post("/dbs/db/colls/c/operations/partitionkeydelete", "").key("a"),
        server.post("/dbs/db/colls/c/sprocs/s", "[]").key("a"),
        server.post("/dbs", r#"{"id":"d2"}"#),
        server.post("/dbs/db/colls", "{}"),
        server.put("/dbs/db/colls/c", "{}"),
        server.delete("/dbs/db/colls/c"),
        server.delete("/dbs/db"),
        server.post("/dbs/db/users", r#"{"id":"v"}"#),
    ] {
        let reply = refused(request.signed_with(&key).send().await);
        assert!(reply.message().contains("read-only key"), "{}", reply.message());
        assert!(!reply.text().contains(&key));
    }
    server.read("a", "1").await.expect_status(200);
    assert_eq!(server.get(DOCS).send().await.ids("Documents"), ["1"]);
}

/// The token in a permission grants the rights of the permission: a client that may only read must not get the rights to
/// write by reading one.
#[tokio::test]
async fn a_read_only_key_sees_no_permissions() {
    let server = server().await;
    let key = made(&server, Kind::PrimaryReadonly);
    let permissions = "/dbs/db/users/u/permissions";
    for request in
        [server.get(permissions), server.get(&format!("{permissions}/p")), query(&server, permissions)]
    {
        let reply = refused(request.signed_with(&key).send().await);
        assert!(!reply.text().contains("type=resource"), "{}", reply.text());
    }
}

#[tokio::test]
async fn the_admin_api_wants_a_key_that_may_write() {
    let server = server().await;
    let (reader, second) = (made(&server, Kind::PrimaryReadonly), made(&server, Kind::Secondary));
    let status = || server.get("/_bolide/status");
    status().bearer(KEY).send().await.expect_status(200);
    status().bearer(&second).send().await.expect_status(200);
    let reply = status().bearer(&reader).send().await.expect_error(403, 0, "Forbidden");
    assert!(reply.message().contains("read-only"), "{}", reply.message());
    refused(status().bearer("b3RoZXI=").send().await);
    let scheme = format!("Basic {KEY}");
    refused(status().unsigned().header("authorization", &scheme).send().await);
    let figures = server.get("/metrics").bearer(&reader).send().await.expect_status(200).text();
    assert_ne!(figures, server.get("/metrics").unsigned().send().await.text(), "figures by container");
}

#[tokio::test]
async fn a_revoked_key_is_refused_from_the_next_request_on() {
    let server = server().await;
    let read = || server.get(ITEM).key("a");
    for kind in [Kind::Secondary, Kind::PrimaryReadonly, Kind::SecondaryReadonly] {
        let old = made(&server, kind);
        read().signed_with(&old).send().await.expect_status(200);
        let new = made(&server, kind);
        let wrong = refused(read().signed_with(&old).send().await);
        assert!(wrong.message().contains("The wrong key is being used"), "{}", wrong.message());
        refused(server.get("/_bolide/status").bearer(&old).send().await);
        read().signed_with(&new).send().await.expect_status(200);
        read().send().await.expect_status(200);
    }
}

#[tokio::test]
async fn a_resource_token_ends_with_the_key_that_it_was_read_with() {
    let server = server().await;
    let second = made(&server, Kind::Secondary);
    let permission = || server.get("/dbs/db/users/u/permissions/p");
    let of_first = permission().send().await.string("_token");
    let of_second = permission().signed_with(&second).send().await.string("_token");
    let read = |token: &str| server.get(ITEM).key("a").unsigned().header("authorization", token).send();
    read(&of_first).await.expect_status(200);
    read(&of_second).await.expect_status(200);
    made(&server, Kind::Secondary);
    read(&of_first).await.expect_status(200);
    refused(read(&of_second).await);
}

#[tokio::test]
async fn keys_are_listed_and_replaced_over_the_admin_api_and_shown_once() {
    let server = server().await;
    let listed = server.admin("GET", "/_bolide/keys", "").send().await.expect_status(200);
    assert_eq!(
        listed.text(),
        r#"{"primary":{"right":"readWrite","origin":"setting","setting":"key","fingerprint":"FP"},"secondary":null,"primaryReadonly":null,"secondaryReadonly":null}"#
            .replace("FP", &server.keys.entries()[0].key.fingerprint())
    );
    let regenerate =
        |kind: &str| server.admin("POST", "/_bolide/keys", &format!("{{\"regenerate\":\"{kind}\"}}")).send();
    for kind in ["secondary", "primaryReadonly", "secondaryReadonly"] {
        let made = regenerate(kind).await.expect_status(200);
        assert_eq!(made.header("cache-control"), Some("no-store"));
        server.get(ITEM).key("a").signed_with(&made.string("key")).send().await.expect_status(200);
        let listed = server.admin("GET", "/_bolide/keys", "").send().await.expect_status(200);
        assert!(listed.text().contains(&made.string("fingerprint")), "{}", listed.text());
        for entry in server.keys.entries() {
            assert!(!listed.text().contains(entry.key.reveal()), "{}", listed.text());
        }
    }
    let given = regenerate("primary").await.expect_error(409, 0, "Conflict");
    assert!(given.message().contains("'key'"), "{}", given.message());
    for body in
        ["{}", r#"{"regenerate":"tertiary"}"#, r#"{"regenerate":1}"#, r#"{"regenerate":"secondary","x":1}"#]
    {
        server.admin("POST", "/_bolide/keys", body).send().await.expect_error(400, 0, "BadRequest");
    }
    server.admin("DELETE", "/_bolide/keys", "").send().await.expect_error(405, 0, "MethodNotAllowed");
    let reader = made(&server, Kind::PrimaryReadonly);
    for method in ["GET", "POST"] {
        let body = r#"{"regenerate":"secondary"}"#;
        let request = server.request(method, "/_bolide/keys", body).bearer(&reader);
        request.send().await.expect_error(403, 0, "Forbidden");
    }
}
