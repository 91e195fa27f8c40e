//! The change feed, latest version.

use crate::client::{Reply, Server};

async fn feed(server: &Server, pairs: &[(&str, &str)]) -> Reply {
    let request = server.get("/dbs/db/colls/c/docs").header("a-im", "Incremental Feed");
    pairs.iter().fold(request, |request, (name, value)| request.header(name, value)).send().await
}

/// Reads to the end; the ids in order, and the last etag.
async fn drain(server: &Server, start: Option<&str>) -> (Vec<String>, String) {
    let (mut seen, mut etag) = (Vec::new(), start.map(str::to_owned));
    loop {
        let mut pairs = vec![("x-ms-max-item-count", "2")];
        if let Some(etag) = &etag {
            pairs.push(("if-none-match", etag));
        }
        let page = feed(server, &pairs).await;
        let next = page.header("etag").unwrap().to_owned();
        if page.status == 304 {
            assert!(page.body.is_empty());
            return (seen, next);
        }
        let documents = page.expect_status(200).member("Documents");
        for document in documents.as_array().unwrap() {
            assert!(document.get("_lsn").is_some());
            seen.push(document.get("id").unwrap().as_str().unwrap().to_owned());
        }
        etag = Some(next);
    }
}

#[tokio::test]
async fn changes_come_in_the_order_of_writing_each_item_once() {
    let server = Server::with_container("").await;
    for id in ["a", "b", "c", "d", "e"] {
        server.create("p", &format!("{{\"id\":\"{id}\",\"pk\":\"p\"}}")).await.expect_status(201);
    }
    let put = server.put("/dbs/db/colls/c/docs/b", r#"{"id":"b","pk":"p","n":1}"#).key("p");
    put.send().await.expect_status(200);
    server.delete("/dbs/db/colls/c/docs/d").key("p").send().await.expect_status(204);
    let (seen, etag) = drain(&server, None).await;
    assert_eq!(seen, ["a", "c", "e", "b"]);
    server.create("p", r#"{"id":"f","pk":"p"}"#).await.expect_status(201);
    assert_eq!(drain(&server, Some(&etag)).await.0, ["f"]);
}

#[tokio::test]
async fn a_feed_can_start_now_or_at_a_time_and_shows_no_dead_t14() {
    let server = Server::with_container("\"defaultTtl\":100").await;
    server.create("p", r#"{"id":"old","pk":"p","ttl":10}"#).await.expect_status(201);
    let now = feed(&server, &[("if-none-match", "*")]).await.expect_status(304);
    let etag = now.header("etag").unwrap().to_owned();
    server.advance(50);
    server.create("p", r#"{"id":"new","pk":"p"}"#).await.expect_status(201);
    assert_eq!(drain(&server, Some(&etag)).await.0, ["new"]);
    assert_eq!(drain(&server, None).await.0, ["new"], "the old one is dead");
    let since = feed(&server, &[("if-modified-since", "Tue, 14 Nov 2023 22:14:00 GMT")]).await;
    assert_eq!(since.expect_status(200).ids("Documents"), ["new"]);
    feed(&server, &[("if-none-match", "\"nonsense\"")]).await.expect_error(400, 0, "BadRequest");
    feed(&server, &[("if-modified-since", "yesterday")]).await.expect_error(400, 0, "BadRequest");
    server.get("/dbs/db/colls/c/docs").header("a-im", "x").send().await.expect_error(400, 0, "BadRequest");
}
