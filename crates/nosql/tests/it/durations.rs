//! Every answer has the duration that the server took.

use crate::client::{KEY, Reply, Server};

#[track_caller]
fn assert_timed(reply: &Reply, what: &str) {
    let text =
        reply.header("x-ms-request-duration-ms").unwrap_or_else(|| panic!("{what}: {:?}", reply.headers));
    let (whole, fraction) = text.split_once('.').unwrap_or_else(|| panic!("{what}: {text}"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    assert!(is_number(whole) && is_number(fraction) && fraction.len() == 3, "{what}: {text}");
    assert!(text.parse::<f64>().expect("a number") < 60_000.0, "{what}: {text}");
}

#[tokio::test]
async fn answers_and_refusals_say_how_long_they_took() {
    let server = Server::with_container(r#""changeFeedPolicy":{"retentionDuration":10}"#).await;
    let item = r#"{"id":"a","pk":"p"}"#;
    for (status, request) in [
        (200, server.get("/")),
        (201, server.post("/dbs/db/colls/c/docs", item).key("p")),
        (409, server.post("/dbs/db/colls/c/docs", item).key("p")),
        (200, server.get("/dbs/db/colls/c/docs/a").key("p")),
        (200, server.request("HEAD", "/dbs/db/colls/c/docs/a", "").key("p")),
        (404, server.get("/dbs/db/colls/c/docs/b").key("p")),
        (
            304,
            server
                .get("/dbs/db/colls/c/docs")
                .header("a-im", "Incremental Feed")
                .header("if-none-match", "*"),
        ),
        (200, server.get("/dbs/db/colls/c/docs")),
        (400, server.get("/dbs/db/colls/c/docs").header("x-ms-max-item-count", "none")),
        (401, server.get("/dbs/db").unsigned()),
        (401, server.get("/dbs/db").signed_with("d3Jvbmc=")),
        (404, server.get("/no/such/path")),
        (405, server.request("PATCH", "/dbs", "")),
        (405, server.request("BREW", "/dbs", "")),
        (400, server.get("/dbs/%FF%FE")),
        (413, server.post("/dbs/db/colls/c/docs", &"x".repeat(5 << 20)).key("p")),
        (204, server.delete("/dbs/db/colls/c/docs/a").key("p")),
        (200, server.get("/alive").unsigned()),
        (200, server.get("/metrics").unsigned()),
        (200, server.request("GET", "/_bolide/status", "").bearer(KEY)),
        (401, server.request("GET", "/_bolide/status", "").bearer("d3Jvbmc=")),
    ] {
        let (head, _) = request.to_bytes();
        let what = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
        let reply = request.send().await;
        assert_eq!(reply.status, status, "{what}: {}", reply.text());
        assert_timed(&reply, &what);
    }
}
