//! Addressing by resource id: the `_self` links that SDKs send back.

use crate::client::{DATE, KEY, Reply, Server, sign_link};

/// Sends a request to a `_self` link, signed as SDKs sign those.
async fn by_link(
    server: &Server,
    method: &str,
    link: &str,
    feed: Option<&str>,
    key: Option<&str>,
    body: &str,
) -> Reply {
    let trimmed = link.trim_end_matches('/');
    let last = trimmed.rsplit('/').next().unwrap().to_lowercase();
    let kind = feed.unwrap_or_else(|| trimmed.rsplit('/').nth(1).unwrap());
    let path = feed.map_or_else(|| format!("/{trimmed}/"), |feed| format!("/{trimmed}/{feed}/"));
    let token = sign_link(method, kind, &last, DATE, KEY);
    let request = server.request(method, &path, body).unsigned().header("authorization", &token);
    match key {
        Some(key) => request.key(key).send().await,
        None => request.send().await,
    }
}

#[tokio::test]
async fn self_links_work_for_every_kind_of_resource() {
    let server = Server::with_container("").await;
    let database = server.get("/dbs/db").send().await.string("_self");
    let container = server.get("/dbs/db/colls/c").send().await.string("_self");
    let item = server.create("a", r#"{"id":"1","pk":"a"}"#).await.string("_self");
    assert_eq!(
        by_link(&server, "GET", &database, None, None, "").await.expect_status(200).string("id"),
        "db"
    );
    assert_eq!(
        by_link(&server, "GET", &container, None, None, "").await.expect_status(200).string("id"),
        "c"
    );
    let list = by_link(&server, "GET", &container, Some("docs"), None, "").await.expect_status(200);
    assert_eq!(list.ids("Documents"), ["1"]);
    let ranges = by_link(&server, "GET", &container, Some("pkranges"), None, "").await;
    ranges.expect_status(200);
    let body = r#"{"id":"1","pk":"a","n":2}"#;
    by_link(&server, "GET", &item, None, Some("a"), "").await.expect_status(200);
    by_link(&server, "PUT", &item, None, Some("a"), body).await.expect_status(200);
    by_link(&server, "GET", &item, None, Some("b"), "").await.expect_error(404, 0, "NotFound");
    by_link(&server, "DELETE", &item, None, Some("a"), "").await.expect_status(204);
    by_link(&server, "GET", &item, None, Some("a"), "").await.expect_error(404, 0, "NotFound");
}

#[tokio::test]
async fn a_database_named_like_a_resource_id_is_found_by_name() {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"abcdeA=="}"#).send().await.expect_status(201);
    server.get("/dbs/abcdeA==").send().await.expect_status(200);
    let by_rid = by_link(&server, "GET", "dbs/abcdeA==/", None, None, "").await;
    assert!(by_rid.expect_error(401, 0, "Unauthorized").message().contains("Sign the whole link"));
}

/// A signature over a resource id covers one segment, in lower case: by itself it must give access to nothing with other
/// names.
#[tokio::test]
async fn a_signature_over_a_resource_id_opens_nothing_else() {
    let server = Server::with_container("").await;
    server.post("/dbs", r#"{"id":"other"}"#).send().await.expect_status(201);
    for name in ["C", "secret"] {
        let body = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"]}}}}"#);
        server.post("/dbs/db/colls", &body).send().await.expect_status(201);
    }
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    let item = server.create("a", r#"{"id":"2","pk":"a"}"#).await.string("_rid");
    let rid = |path: &'static str| async { server.get(path).send().await.string("_rid") };
    let (db, c, other) = (rid("/dbs/db").await, rid("/dbs/db/colls/c").await, rid("/dbs/other").await);
    let user = server.post("/dbs/db/users", r#"{"id":"u"}"#).send().await.string("_rid");

    let opened = [
        format!("dbs/{db}"),
        format!("dbs/{db}/colls/{c}"),
        format!("dbs/{db}/colls/{c}/docs/{item}"),
        format!("dbs/{db}/users/{user}"),
    ];
    for link in &opened {
        by_link(&server, "GET", link, None, Some("a"), "").await.expect_status(200);
    }
    // The last segment determines nothing before it, and a name even less.
    let refused = [
        format!("dbs/{db}/colls/c"),
        format!("dbs/{db}/colls/C"),
        format!("dbs/{db}/colls/secret"),
        format!("dbs/{db}/colls/{c}/docs/1"),
        format!("dbs/{db}/colls/c/docs/{item}"),
        format!("dbs/{db}/users/u"),
    ];
    for link in &refused {
        let reply = by_link(&server, "GET", link, None, Some("a"), "").await;
        assert!(reply.expect_error(401, 0, "Unauthorized").message().contains("resource id"), "{link}");
    }
    for (link, feed) in
        [(format!("dbs/{db}/colls/secret"), "docs"), (format!("dbs/{db}/colls/c"), "pkranges")]
    {
        let reply = by_link(&server, "GET", &link, Some(feed), None, "").await;
        reply.expect_error(401, 0, "Unauthorized");
    }
    // A missing resource is not found by either kind of name; a container is found only in its database.
    for link in [format!("dbs/{other}/colls/{c}"), "dbs/AAAAfw==".to_owned()] {
        by_link(&server, "GET", &link, None, None, "").await.expect_error(404, 0, "NotFound");
    }
}

/// The protocol signs resource ids in lower case. `docs/security.md` says what follows.
#[tokio::test]
async fn a_signature_over_a_resource_id_opens_those_that_differ_in_case() {
    let server = Server::with_container("").await;
    let mut rids: Vec<String> = Vec::new();
    let (first, second) = loop {
        let item = format!(r#"{{"id":"{}","pk":"a"}}"#, rids.len());
        let rid = server.create("a", &item).await.string("_rid");
        if let Some(other) = rids.iter().find(|other| other.eq_ignore_ascii_case(&rid)) {
            break (other.clone(), rid);
        }
        rids.push(rid);
        assert!(rids.len() < 1000, "no two ids differ in case alone: then the warning may go");
    };
    let rid = |path: &'static str| async { server.get(path).send().await.string("_rid") };
    let (db, c) = (rid("/dbs/db").await, rid("/dbs/db/colls/c").await);
    let token = sign_link("GET", "docs", &first.to_lowercase(), DATE, KEY);
    for item in [&first, &second] {
        let path = format!("/dbs/{db}/colls/{c}/docs/{item}");
        let request = server.get(&path).unsigned().header("authorization", &token).key("a");
        assert_eq!(request.send().await.expect_status(200).string("_rid"), *item);
    }
}
