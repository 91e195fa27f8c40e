//! Continuation tokens as clients send them back: with another filter, in another layout, cut, changed, or elsewhere.

use document::Value;

use crate::client::{Reply, Request, Server};

const DOCS: &str = "/dbs/db/colls/wide/docs";
const TOKEN: &str = "x-ms-continuation";

/// A server with container `wide` of several ranges, and 40 items in it.
async fn filled() -> Server {
    let server = Server::start().await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let definition = r#"{"id":"wide","defaultTtl":-1,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
        "changeFeedPolicy":{"retentionDuration":10}}"#;
    let request = server.post("/dbs/db/colls", definition).header("x-ms-offer-throughput", "20000");
    request.send().await.expect_status(201);
    for n in 0..40 {
        let ttl = if n % 4 == 0 { r#","ttl":100"# } else { "" };
        let body = format!(r#"{{"id":"{n}","pk":"p{}","n":{n}{ttl}}}"#, n % 8);
        server.post(DOCS, &body).key(&format!("p{}", n % 8)).send().await.expect_status(201);
    }
    server
}

/// A request for a page of three rows of a query.
fn page(server: &Server, text: &str, token: Option<&str>) -> Request {
    let body = format!("{{\"query\":{}}}", Value::String(text.to_owned()).to_json());
    let request = server
        .post(DOCS, &body)
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-query-enablecrosspartition", "true")
        .header("x-ms-max-item-count", "3");
    match token {
        Some(token) => request.header(TOKEN, token),
        None => request,
    }
}

fn in_range(request: Request, range: usize) -> Request {
    request.header("x-ms-documentdb-partitionkeyrangeid", &range.to_string())
}

fn rows(reply: &Reply) -> Vec<String> {
    let documents = reply.member("Documents");
    documents.as_array().expect("a feed").iter().map(Value::to_json).collect()
}

async fn ranges(server: &Server) -> usize {
    let reply = server.get("/dbs/db/colls/wide/pkranges").send().await.expect_status(200);
    reply.member("PartitionKeyRanges").as_array().expect("a feed").len()
}

#[track_caller]
fn assert_refused(reply: Reply, what: &str) {
    let reply = reply.expect_error(400, 0, "BadRequest");
    assert!(reply.message().contains("Invalid Continuation Token"), "{what}: {}", reply.message());
}

/// The request of .NET and JavaScript to resume a merge: a range's own token, and a filter in the rewritten query.
#[tokio::test]
async fn a_range_of_an_ordered_query_is_resumed_with_a_filter() {
    let server = filled().await;
    let rewritten = |filter: &str| {
        format!(
            "SELECT c._rid, [{{\"item\": c.n}}] AS orderByItems, c.n AS payload\nFROM c\nWHERE ((c.n >= 0) AND ({filter}))\nORDER BY c.n"
        )
    };
    let mut resumed = 0;
    for range in 0..ranges(&server).await {
        let whole =
            in_range(page(&server, &rewritten("true"), None), range).header("x-ms-max-item-count", "-1");
        let whole = rows(&whole.send().await.expect_status(200));
        let first = in_range(page(&server, &rewritten("true"), None), range).send().await.expect_status(200);
        let mut got = rows(&first);
        let mut token = first.header(TOKEN).map(str::to_owned);
        while let Some(text) = token {
            resumed += 1;
            let filter = format!("c.n >= {}", got.len() % 3);
            let next = in_range(page(&server, &rewritten(&filter), Some(&text)), range);
            let next = next.send().await.expect_status(200);
            got.extend(rows(&next));
            token = next.header(TOKEN).map(str::to_owned);
        }
        assert_eq!(got, whole, "range {range}");
    }
    assert!(resumed > 4, "{resumed}");
}

/// T14, T16: a resumed page shows nothing that has expired since, whatever its filter.
#[tokio::test]
async fn t14_t16_a_resumed_page_shows_only_what_lives() {
    let server = filled().await;
    let first = page(&server, "SELECT VALUE c.n FROM c ORDER BY c.n", None).send().await;
    assert_eq!(rows(&first), ["0", "1", "2"]);
    server.advance(100);
    let next = page(&server, "SELECT VALUE c.n FROM c WHERE c.n > 2 ORDER BY c.n", first.header(TOKEN));
    assert_eq!(rows(&next.send().await.expect_status(200)), ["3", "5", "6"]);
}

#[tokio::test]
async fn only_the_layout_of_other_queries_may_change() {
    let server = filled().await;
    for (text, same, other) in [
        ("SELECT * FROM c", "select *\nfrom  c", "SELECT * FROM c WHERE (true)"),
        (
            "SELECT * FROM c WHERE c.n > 1",
            "SELECT * FROM c WHERE ((c.n > 1))",
            "SELECT * FROM c WHERE c.n > 2",
        ),
        (
            "SELECT VALUE c.n FROM c ORDER BY c.n",
            "SELECT c FROM c WHERE c.n > 1 ORDER BY c.n ASC",
            "SELECT * FROM c ORDER BY c.id",
        ),
        (
            "SELECT TOP 9 * FROM c ORDER BY c.n",
            "select top 9 * from c order by c.n",
            "SELECT TOP 9 * FROM c WHERE true ORDER BY c.n",
        ),
        (
            "SELECT DISTINCT c.n FROM c",
            "SELECT  DISTINCT c.n FROM c",
            "SELECT DISTINCT c.n FROM c WHERE true",
        ),
        (
            "SELECT * FROM c OFFSET 1 LIMIT 9",
            "SELECT * FROM c offset 1 limit 9",
            "SELECT * FROM c OFFSET 1 LIMIT 10",
        ),
    ] {
        let first = page(&server, text, None).send().await.expect_status(200);
        let token = first.header(TOKEN).expect("there is more");
        page(&server, same, Some(token)).send().await.expect_status(200);
        assert_refused(page(&server, other, Some(token)).send().await, other);
    }
}

#[tokio::test]
async fn a_token_is_of_one_container_key_and_range() {
    let server = filled().await;
    server.create_container("c", "").await.expect_status(201);
    for text in ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n"] {
        let first = page(&server, text, None).key("p1").send().await.expect_status(200);
        let token = first.header(TOKEN).expect("there is more");
        page(&server, text, Some(token)).key("p1").send().await.expect_status(200);
        assert_refused(page(&server, text, Some(token)).key("p2").send().await, "another key");
        assert_refused(page(&server, text, Some(token)).send().await, "no key");
        assert_refused(in_range(page(&server, text, Some(token)), 0).send().await, "a range");
        let first = page(&server, text, None).send().await.expect_status(200);
        let body = format!("{{\"query\":{}}}", Value::String(text.to_owned()).to_json());
        let elsewhere = server
            .post("/dbs/db/colls/c/docs", &body)
            .header("x-ms-documentdb-isquery", "true")
            .header("x-ms-documentdb-query-enablecrosspartition", "true")
            .header(TOKEN, first.header(TOKEN).expect("there is more"));
        assert_refused(elsewhere.send().await, "another container");
    }
}

/// Every token from an answer, with its end cut off or one character changed.
#[tokio::test]
async fn a_cut_or_changed_token_of_any_kind_is_refused() {
    let server = filled().await;
    for n in 0..5 {
        server.post("/dbs", &format!(r#"{{"id":"more{n}"}}"#)).send().await.expect_status(201);
        server.post("/dbs/db/users", &format!(r#"{{"id":"user{n}"}}"#)).send().await.expect_status(201);
    }
    let feed = |mode: &str| server.get(DOCS).header("a-im", mode).header("x-ms-max-item-count", "3");
    let queries = ["SELECT * FROM c", "SELECT * FROM c ORDER BY c.n", "SELECT DISTINCT VALUE c.n FROM c"];
    let mut checked = 0;
    for (kind, header) in [
        ("query 0", TOKEN),
        ("query 1", TOKEN),
        ("query 2", TOKEN),
        ("items", TOKEN),
        ("databases", TOKEN),
        ("users", TOKEN),
        ("latest versions", "if-none-match"),
        ("all versions", "if-none-match"),
    ] {
        let request = || match kind {
            "items" => server.get(DOCS).header("x-ms-max-item-count", "3"),
            "databases" => server.get("/dbs").header("x-ms-max-item-count", "3"),
            "users" => server.get("/dbs/db/users").header("x-ms-max-item-count", "3"),
            "latest versions" => feed("Incremental Feed"),
            "all versions" => feed("Full-Fidelity Feed"),
            query => page(&server, queries[usize::from(query.as_bytes()[6] - b'0')], None),
        };
        let first = match kind {
            "all versions" => request().header("if-none-match", "*").send().await,
            _ => request().send().await,
        };
        let token =
            first.header(if header == TOKEN { TOKEN } else { "etag" }).expect("there is more").to_owned();
        let bare = token.trim_matches('"');
        let whole = request().header(header, &token).send().await;
        assert!(whole.status == 200 || whole.status == 304, "{kind}: {}", whole.text());
        let middle = bare.len() / 2;
        let other = if &bare[middle..=middle] == "A" { "B" } else { "A" };
        for damaged in [
            bare[..bare.len() - 8].to_owned(),
            bare[..bare.len() - 1].to_owned(),
            bare[..middle].to_owned(),
            format!("{}{other}{}", &bare[..middle], &bare[middle + 1..]),
            format!("{bare}A"),
        ] {
            checked += 1;
            assert_refused(request().header(header, &damaged).send().await, &format!("{kind}: {damaged}"));
        }
    }
    assert_eq!(checked, 40);
}
