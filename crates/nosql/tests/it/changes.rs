//! The change feed, latest version.

use crate::client::{Reply, Server};

async fn feed(server: &Server, pairs: &[(&str, &str)]) -> Reply {
    let request = server.get("/dbs/db/colls/c/docs").header("a-im", "Incremental Feed");
    pairs.iter().fold(request, |request, (name, value)| request.header(name, value)).send().await
}

/// Reads to the end; returns the ids in order, and the last etag.
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
async fn a_feed_can_start_now_or_at_a_time_and_shows_no_expired_item_t14() {
    let server = Server::with_container("\"defaultTtl\":100").await;
    server.create("p", r#"{"id":"old","pk":"p","ttl":10}"#).await.expect_status(201);
    let now = feed(&server, &[("if-none-match", "*")]).await.expect_status(304);
    assert_eq!(now.header("x-ms-item-count"), Some("0"), "the .NET client parses it of every page");
    let etag = now.header("etag").unwrap().to_owned();
    server.advance(50);
    server.create("p", r#"{"id":"new","pk":"p"}"#).await.expect_status(201);
    assert_eq!(drain(&server, Some(&etag)).await.0, ["new"]);
    assert_eq!(drain(&server, None).await.0, ["new"], "the old one has expired");
    let since = feed(&server, &[("if-modified-since", "Tue, 14 Nov 2023 22:14:00 GMT")]).await;
    assert_eq!(since.expect_status(200).ids("Documents"), ["new"]);
    // The second itself is not included, as in the service: 22:14:10 is when the item was written.
    let before = feed(&server, &[("if-modified-since", "Tue, 14 Nov 2023 22:14:09 GMT")]).await;
    assert_eq!(before.expect_status(200).ids("Documents"), ["new"]);
    feed(&server, &[("if-modified-since", "Tue, 14 Nov 2023 22:14:10 GMT")]).await.expect_status(304);
    feed(&server, &[("if-none-match", "\"nonsense\"")]).await.expect_error(400, 0, "BadRequest");
    feed(&server, &[("if-modified-since", "yesterday")]).await.expect_error(400, 0, "BadRequest");
    server.get("/dbs/db/colls/c/docs").header("a-im", "x").send().await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn a_start_time_equal_to_an_items_ts_leaves_that_item_out() {
    let server = Server::with_container("").await;
    server.create("p", r#"{"id":"first","pk":"p"}"#).await.expect_status(201);
    server.advance(3);
    server.create("p", r#"{"id":"second","pk":"p"}"#).await.expect_status(201);
    let page = feed(&server, &[("if-modified-since", crate::client::DATE)]).await;
    assert_eq!(page.expect_status(200).ids("Documents"), ["second"]);
}

#[tokio::test]
async fn a_change_feed_with_a_query_is_refused_by_name() {
    let server = Server::with_container(RETENTION).await;
    server.create("p", r#"{"id":"a","pk":"p"}"#).await.expect_status(201);
    for mode in ["Incremental Feed", "Full-Fidelity Feed"] {
        let request = server.post("/dbs/db/colls/c/docs", r#"{"query":"SELECT * FROM c WHERE c.n > 1"}"#);
        let request = request.header("x-ms-documentdb-isquery", "True").header("a-im", mode).key("p");
        let refused = request.send().await.expect_error(400, 0, "BadRequest");
        assert!(refused.message().contains("change feed with a query"), "{}", refused.message());
    }
}

const RETENTION: &str = r#""defaultTtl":-1,"changeFeedPolicy":{"retentionDuration":10}"#;

async fn all_versions(server: &Server, position: &str) -> Reply {
    let request = server.get("/dbs/db/colls/c/docs").header("a-im", "Full-Fidelity Feed");
    let request = request.header("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15");
    request.header("if-none-match", position).send().await
}

#[tokio::test]
async fn t28_all_versions_and_deletes_come_in_envelopes_with_expiries_as_deletes() {
    let server = Server::with_container(RETENTION).await;
    let now = all_versions(&server, "*").await.expect_status(304);
    let etag = now.header("etag").unwrap().to_owned();
    let created = server.create("p", r#"{"id":"a","pk":"p","n":1,"ttl":5}"#).await.expect_status(201);
    let put = server.put("/dbs/db/colls/c/docs/a", r#"{"id":"a","pk":"p","n":2,"ttl":5}"#).key("p");
    let replaced = put.send().await.expect_status(200);
    server.create("p", r#"{"id":"b","pk":"p"}"#).await.expect_status(201);
    server.delete("/dbs/db/colls/c/docs/b").key("p").send().await.expect_status(204);
    server.advance(100);
    let page = all_versions(&server, &etag).await.expect_status(200);
    assert_eq!(page.header("x-ms-item-count"), Some("5"));
    let next = page.header("etag").unwrap().to_owned();
    let events = page.member("Documents");
    let events = events.as_array().unwrap();
    let metadata = |at: usize, name: &str| {
        events[at].get("metadata").unwrap().get(name).map_or(String::new(), document::Value::to_json)
    };
    let kinds: Vec<_> = (0..5).map(|at| metadata(at, "operationType")).collect();
    assert_eq!(kinds, [r#""create""#, r#""replace""#, r#""create""#, r#""delete""#, r#""delete""#]);
    assert_eq!(events[0].get("current").unwrap().get("_etag").unwrap().as_str(), created.header("etag"));
    assert_eq!(events[0].get("previous"), None);
    assert_eq!(events[1].get("current").unwrap(), &replaced.json());
    assert_eq!(events[1].get("previous"), None, "the container does not ask for it");
    assert_eq!(metadata(1, "previousImageLSN"), metadata(0, "lsn"));
    assert_eq!(events[4].get("current").unwrap().to_json(), "{}");
    assert_eq!(events[4].get("previous").unwrap(), &replaced.json());
    let identity =
        ["timeToLiveExpired", "id", "partitionKey", "previousImageLSN"].map(|name| metadata(4, name));
    let previous = metadata(1, "lsn");
    assert_eq!(identity, ["true", r#""a""#, r#"{"pk":"p"}"#, previous.as_str()]);
    assert_eq!(metadata(4, "crts"), (crate::client::START + 5).to_string(), "as of the instant of expiry");
    assert_eq!((metadata(3, "timeToLiveExpired"), metadata(4, "lsn")), ("false".into(), metadata(3, "lsn")));
    all_versions(&server, &next).await.expect_status(304);
}

/// The images are always kept: a container that begins to ask for them has those of earlier replaces, too.
#[tokio::test]
async fn t28_a_replaced_item_comes_with_its_previous_image_where_the_container_asks_for_it() {
    let server = Server::with_container(RETENTION).await;
    let start = all_versions(&server, "*").await.header("etag").unwrap().to_owned();
    let created = server.create("p", r#"{"id":"a","pk":"p","n":1}"#).await.expect_status(201);
    let put = server.put("/dbs/db/colls/c/docs/a", r#"{"id":"a","pk":"p","n":2}"#).key("p");
    let replaced = put.send().await.expect_status(200);
    server.delete("/dbs/db/colls/c/docs/a").key("p").send().await.expect_status(204);
    let set_lifecycle = |value: &'static str| {
        server.admin("PATCH", "/_bolide/ttl/db/c", &format!("{{\"previousImages\":{value}}}")).send()
    };
    for (value, shown) in [("null", false), ("true", true), ("null", false)] {
        set_lifecycle(value).await.expect_status(200);
        let page = all_versions(&server, &start).await.expect_status(200).member("Documents");
        let previous = |at: usize| page.as_array().unwrap()[at].get("previous").cloned();
        assert_eq!(previous(0), None);
        assert_eq!(previous(1), shown.then(|| created.json()), "{value}");
        assert_eq!(previous(2), Some(replaced.json()), "a delete always has it");
        let metadata = page.as_array().unwrap()[1].get("metadata").unwrap();
        assert!(metadata.get("previousImageLSN").is_some());
    }
    set_lifecycle("false").await.expect_error(400, 0, "BadRequest");
}

#[tokio::test]
async fn t28_all_versions_are_read_from_now_or_a_position_that_is_kept() {
    let server = Server::with_container(RETENTION).await;
    let from_the_beginning = server.get("/dbs/db/colls/c/docs").header("a-im", "Full-Fidelity Feed");
    from_the_beginning.send().await.expect_error(400, 0, "BadRequest");
    let time = server.get("/dbs/db/colls/c/docs").header("a-im", "Full-Fidelity Feed");
    let time = time.header("if-modified-since", "Tue, 14 Nov 2023 22:14:00 GMT").send().await;
    time.expect_error(400, 0, "BadRequest");
    all_versions(&server, "\"nonsense\"").await.expect_error(400, 0, "BadRequest");
    let early = all_versions(&server, "*").await.header("etag").unwrap().to_owned();
    server.advance(601);
    let error = all_versions(&server, &early).await.expect_error(400, 0, "BadRequest");
    let words = "You must read the change feed from within the retention period.";
    assert!(error.message().contains(words), "{}", error.message());
    let replace = async |more: &str| {
        let key = r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}"#;
        let definition = format!(r#"{{"id":"c",{key},"defaultTtl":-1{more}}}"#);
        server.put("/dbs/db/colls/c", &definition).send().await.expect_status(200)
    };
    let kept = replace("").await.member("changeFeedPolicy");
    assert_eq!(kept.to_json(), r#"{"retentionDuration":10}"#, "a client that cannot send it does not end it");
    all_versions(&server, "*").await.expect_status(304);
    replace(r#","changeFeedPolicy":{"retentionDuration":0}"#).await;
    let error = all_versions(&server, "*").await.expect_error(400, 0, "BadRequest");
    assert!(error.message().contains("retentionDuration"), "{}", error.message());
}

#[tokio::test]
async fn latest_versions_come_in_envelopes_where_the_client_asks_for_them() {
    let server = Server::with_container("").await;
    server.create("p", r#"{"id":"a","pk":"p"}"#).await.expect_status(201);
    let page = feed(&server, &[("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")]).await;
    let documents = page.expect_status(200).member("Documents");
    let item = &documents.as_array().unwrap()[0];
    let current = item.get("current").unwrap();
    assert_eq!(current.get("id").unwrap().as_str(), Some("a"));
    let metadata = item.get("metadata").unwrap();
    assert_eq!(metadata.get("lsn"), current.get("_lsn"));
    assert_eq!((metadata.get("crts"), metadata.get("operationType")), (current.get("_ts"), None));
}
