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
    by_link(&server, "GET", "dbs/abcdeA==/", None, None, "").await.expect_status(200);
}
