//! The strict gateway: which queries it refuses, which it answers, and the page behind a full one.

use direct::Call;
use document::{Value, parse_json};
use nosql::{AccountSettings, Gateway, Limits};
use rntbd::OperationType::{Query, ReadFeed};

use crate::client::{Reply, Request, Server};
use crate::direct::{Fixture, ITEMS, body, create, expect, json};
use crate::queries::plan;

const ALL_KEYS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "True");
const RANGE: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "0");
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

/// What a strict gateway does with a query over several partition keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It answers.
    Answered,
    /// It refuses, with the plan.
    NeedsPlan,
    /// It refuses, in the words for aggregates that are members of rows.
    OnlyValues,
}
use Outcome::{Answered, NeedsPlan, OnlyValues};

const QUERIES: &[(&str, Outcome)] = &[
    ("SELECT * FROM c", Answered),
    ("SELECT c.id, c.n FROM c WHERE c.n > 1", Answered),
    ("SELECT VALUE c.id FROM c WHERE c.id IN ('1', '2') AND c.id LIKE '1%'", Answered),
    ("SELECT c.id, t FROM c JOIN t IN c.tags", Answered),
    ("SELECT c.id, ARRAY(SELECT VALUE t FROM t IN c.tags ORDER BY t) AS t FROM c", Answered),
    ("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c", Answered),
    ("SELECT * FROM c WHERE c.pk IN ('a', 'b')", Answered),
    // One partition key, in the query itself.
    ("SELECT * FROM c WHERE c.pk = 'a' ORDER BY c.n", Answered),
    ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'a'", Answered),
    ("SELECT c.n, COUNT(1) AS k FROM c WHERE c.pk = 'a' GROUP BY c.n", Answered),
    // No item at all.
    ("SELECT 1 AS one", Answered),
    ("SELECT * FROM c ORDER BY c.n", NeedsPlan),
    ("SELECT * FROM c ORDER BY c.n DESC, c.pk", NeedsPlan),
    ("SELECT * FROM c WHERE c.pk IN ('a', 'b') ORDER BY c.n", NeedsPlan),
    ("SELECT TOP 2 * FROM c", NeedsPlan),
    ("SELECT * FROM c OFFSET 1 LIMIT 2", NeedsPlan),
    ("SELECT DISTINCT VALUE c.pk FROM c", NeedsPlan),
    ("SELECT VALUE COUNT(1) FROM c", NeedsPlan),
    ("SELECT VALUE SUM(c.n) FROM c", NeedsPlan),
    ("SELECT VALUE AVG(c.n) FROM c", NeedsPlan),
    ("SELECT VALUE MAX(c.n) FROM c", NeedsPlan),
    ("SELECT c.pk FROM c GROUP BY c.pk", NeedsPlan),
    ("SELECT TOP 2 c.id FROM c ORDER BY VectorDistance(c.v, [1, 2])", NeedsPlan),
    ("SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'tea')", NeedsPlan),
    ("SELECT COUNT(1) FROM c", OnlyValues),
    ("SELECT MIN(c.n) AS low, MAX(c.n) AS high FROM c", OnlyValues),
    ("SELECT c.pk, COUNT(1) AS k FROM c GROUP BY c.pk", OnlyValues),
];

/// A server with containers of one range (`c`) and several (`wide`), and ten items in each under keys `a` and `b`.
async fn filled(gateway: Gateway) -> Server {
    let server = Server::with_account(AccountSettings { gateway, ..Default::default() }).await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let definition = r#""defaultTtl":-1,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
        "vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","distanceFunction":"cosine",
            "dimensions":2}]},
        "fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/text","language":"en-US"}]}"#;
    for (id, throughput) in [("c", "400"), ("wide", "20000")] {
        let create = server.post("/dbs/db/colls", &format!(r#"{{"id":"{id}",{definition}}}"#));
        create.header("x-ms-offer-throughput", throughput).send().await.expect_status(201);
        for n in 0..10 {
            let (pk, ttl) = (["a", "b"][n % 2], if n < 5 { -1 } else { 100 });
            let item = format!(
                r#"{{"id":"{n}","pk":"{pk}","n":{n},"ttl":{ttl},"tags":["x"],"v":[1,{n}],"text":"tea {n}"}}"#
            );
            server.post(&docs(id), &item).key(pk).send().await.expect_status(201);
        }
    }
    server
}

fn docs(container: &str) -> String {
    format!("/dbs/db/colls/{container}/docs")
}

fn query(server: &Server, container: &str, text: &str, headers: &[(&str, &str)]) -> Request {
    let text = Value::from(text).to_json();
    let request = server.post(&docs(container), &format!("{{\"query\":{text}}}"));
    let request = request.header("content-type", "application/query+json");
    headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

#[track_caller]
fn check(reply: Reply, expected: Outcome, what: &str) {
    match expected {
        Answered => assert_eq!(reply.expect_status(200).header("x-ms-substatus"), None, "{what}"),
        NeedsPlan => {
            let reply = reply.expect_error(400, 1004, "BadRequest");
            let words = "The provided cross partition query can not be directly served by the gateway. This is a first \
                         chance (internal) exception that all newer clients will know how to handle gracefully.";
            assert!(reply.message().starts_with(words), "{what}: {}", reply.message());
        }
        OnlyValues => {
            let reply = reply.expect_error(400, 0, "BadRequest");
            let words = "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.";
            assert!(reply.message().contains(words), "{what}: {}", reply.message());
            assert_eq!(reply.member("additionalErrorInfo"), Value::Null, "{what}");
        }
    }
}

#[tokio::test]
async fn a_strict_gateway_refuses_a_query_over_all_keys_whose_rows_clients_join() {
    let server = filled(Gateway::Strict).await;
    for container in ["c", "wide"] {
        for (text, outcome) in QUERIES {
            let what = format!("{container}: {text}");
            let reply = query(&server, container, text, &[ALL_KEYS]).send().await;
            check(reply, *outcome, &what);
        }
    }
}

#[tokio::test]
async fn a_strict_gateway_answers_every_query_of_a_key_or_of_a_range() {
    let server = filled(Gateway::Strict).await;
    for (text, _) in QUERIES {
        let epk = [("x-ms-start-epk", ""), ("x-ms-end-epk", "FF"), ALL_KEYS];
        for headers in [&[KEY][..], &[KEY, ALL_KEYS], &[RANGE], &[RANGE, ALL_KEYS], &epk] {
            for container in ["c", "wide"] {
                let what = format!("{container}: {text} with {headers:?}");
                check(query(&server, container, text, headers).send().await, Answered, &what);
            }
        }
    }
}

#[tokio::test]
async fn the_default_gateway_answers_every_query() {
    let server = filled(Gateway::default()).await;
    for container in ["c", "wide"] {
        for (text, _) in QUERIES {
            check(query(&server, container, text, &[ALL_KEYS]).send().await, Answered, text);
        }
    }
}

/// Clients of JavaScript look for this member; the query in it is the one to send to each range.
#[tokio::test]
async fn the_refusal_has_the_plan_that_the_client_would_get_on_request() {
    let server = filled(Gateway::Strict).await;
    for (text, _) in QUERIES.iter().filter(|(_, outcome)| *outcome == NeedsPlan) {
        let refusal = query(&server, "wide", text, &[ALL_KEYS]).send().await;
        let given = parse_json(refusal.string("additionalErrorInfo").as_bytes()).unwrap();
        assert_eq!(given, plan(&server, "wide", text, None).await.expect_status(200).json(), "{text}");
    }
}

/// A query that is refused for what it is, is refused so in every setting.
#[tokio::test]
async fn errors_and_queries_that_are_not_meant_are_refused_as_ever() {
    let server = filled(Gateway::Strict).await;
    let ordered = "SELECT * FROM c ORDER BY c.n";
    let reply = query(&server, "c", ordered, &[]).send().await.expect_error(400, 0, "BadRequest");
    assert!(
        reply.message().contains("Cross partition query is required but disabled"),
        "{}",
        reply.message()
    );
    let reply = query(&server, "c", "SELECT * FRM c", &[ALL_KEYS]).send().await;
    assert!(reply.expect_error(400, 0, "BadRequest").message().contains("SC1001"));
}

/// Returns how many rows the pages of a query have, or of a list.
async fn pages(server: &Server, text: Option<&str>, size: usize, headers: &[(&str, &str)]) -> Vec<usize> {
    let (mut pages, mut token) = (Vec::new(), None::<String>);
    loop {
        let request = match text {
            Some(text) => query(server, "c", text, headers),
            None => server.get(&docs("c")),
        };
        let request = request.header("x-ms-max-item-count", &size.to_string());
        let request = match &token {
            Some(token) => request.header("x-ms-continuation", token),
            None => request,
        };
        let page = request.send().await.expect_status(200);
        pages.push(page.member("Documents").as_array().unwrap().len());
        token = page.header("x-ms-continuation").map(str::to_owned);
        if token.is_none() {
            return pages;
        }
    }
}

/// Where rows come as items are read, the service does not look whether more follow a full page.
#[tokio::test]
async fn behind_a_full_page_of_unordered_rows_a_strict_gateway_has_one_more() {
    let (strict, lenient) = (filled(Gateway::Strict).await, filled(Gateway::Lenient).await);
    for (text, size, headers, expected) in [
        (None, 5, &[][..], &[5, 5][..]),
        (None, 4, &[], &[4, 4, 2]),
        (None, 10, &[], &[10]),
        (Some("SELECT * FROM c"), 5, &[ALL_KEYS], &[5, 5]),
        (Some("SELECT * FROM c"), 3, &[ALL_KEYS], &[3, 3, 3, 1]),
        (Some("SELECT * FROM c"), 5, &[KEY], &[5]),
        (Some("SELECT * FROM c"), 2, &[RANGE], &[2, 2, 2, 2, 2]),
        (Some("SELECT * FROM c WHERE c.n < 4"), 2, &[ALL_KEYS], &[2, 2]),
        (Some("SELECT * FROM c WHERE c.n < 0"), 2, &[ALL_KEYS], &[0]),
        (Some("SELECT VALUE t FROM c JOIN t IN c.tags"), 5, &[ALL_KEYS], &[5, 5]),
    ] {
        assert_eq!(pages(&lenient, text, size, headers).await, expected, "{text:?} by {size}");
        let last_is_full = expected.last() == Some(&size);
        let expected = [expected, if last_is_full { &[0] } else { &[] }].concat();
        assert_eq!(pages(&strict, text, size, headers).await, expected, "{text:?} by {size}");
    }
}

/// azcosmos expects as many pages of `ORDER BY` as there are rows for.
#[tokio::test]
async fn sorted_joined_and_limited_rows_end_with_a_full_page() {
    for gateway in [Gateway::Lenient, Gateway::Strict] {
        let server = filled(gateway).await;
        for (text, size, headers, expected) in [
            ("SELECT * FROM c ORDER BY c.n DESC", 5, RANGE, &[5, 5][..]),
            ("SELECT * FROM c ORDER BY c.n", 5, KEY, &[5]),
            ("SELECT DISTINCT VALUE c.pk FROM c", 2, RANGE, &[2]),
            ("SELECT TOP 4 * FROM c", 2, RANGE, &[2, 2]),
            ("SELECT TOP 10 * FROM c", 5, RANGE, &[5, 5]),
            ("SELECT * FROM c OFFSET 6 LIMIT 4", 2, RANGE, &[2, 2]),
            ("SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'tea')", 2, RANGE, &[2]),
            ("SELECT c.pk, COUNT(1) AS k FROM c GROUP BY c.pk", 1, RANGE, &[1, 1]),
            ("SELECT VALUE COUNT(1) FROM c", 1, KEY, &[1]),
            ("SELECT 1 AS one", 1, KEY, &[1]),
        ] {
            assert_eq!(pages(&server, Some(text), size, &[headers]).await, expected, "{text} by {size}");
        }
    }
}

/// T14, T16: what has expired until a page is requested is not on it, and the page behind a full one stays empty.
#[tokio::test]
async fn t16_items_that_expire_between_pages_are_on_none_of_a_strict_gateway() {
    for expired_before_first in [false, true] {
        let server = filled(Gateway::Strict).await;
        let page = |text, token: Option<&str>| {
            let request = query(&server, "c", text, &[RANGE]).header("x-ms-max-item-count", "5");
            match token {
                Some(token) => request.header("x-ms-continuation", token).send(),
                None => request.send(),
            }
        };
        if expired_before_first {
            server.advance(100);
        }
        let first = page("SELECT * FROM c", None).await.expect_status(200);
        assert_eq!(first.ids("Documents"), ["0", "1", "2", "3", "4"]);
        let token = first.header("x-ms-continuation").unwrap();
        if !expired_before_first {
            server.advance(100);
        }
        let second = page("SELECT * FROM c", Some(token)).await.expect_status(200);
        assert!(second.ids("Documents").is_empty());
        assert_eq!(second.header("x-ms-continuation"), None);
        page("SELECT * FROM c WHERE true", Some(token)).await.expect_error(400, 0, "BadRequest");
    }
}

/// A query in direct mode names its range, by its address at least, so that it is never refused. Pages are those of HTTP.
#[tokio::test]
async fn in_direct_mode_a_strict_gateway_refuses_nothing_and_has_the_same_pages() {
    const PLAIN: &str = r#"{"query":"SELECT * FROM c"}"#;
    const ORDERED: &str = r#"{"query":"SELECT * FROM c ORDER BY c.id"}"#;
    for gateway in [Gateway::Lenient, Gateway::Strict] {
        let settings = AccountSettings { gateway, ..Default::default() };
        let fixture = Fixture::made(Limits::default(), |service| service.with_account(settings)).await;
        let mut client = fixture.connect().await;
        for id in ["1", "2"] {
            expect(&mut client, &create(&body(id, "")), 201).await;
        }
        let in_range = |call: Call<'static>| call.with(|tokens| tokens.partition_key_range_id = Some("0"));
        for (call, is_unordered) in [
            (in_range(Call::new(ReadFeed, ITEMS)), true),
            (in_range(Call::new(Query, ITEMS).payload(PLAIN)), true),
            (Call::new(Query, ITEMS).key(r#"["p"]"#).payload(PLAIN), true),
            (in_range(Call::new(Query, ITEMS).payload(ORDERED)), false),
        ] {
            let call = call.with(|tokens| tokens.page_size = Some(2));
            let first = expect(&mut client, &call, 200).await;
            assert_eq!(json(&first).get("_count"), Some(&Value::Int(2)));
            let token = first.tokens().continuation.map(str::to_owned);
            assert_eq!(token.is_some(), is_unordered && gateway == Gateway::Strict);
            let Some(token) = token else { continue };
            let call = call.with(|tokens| tokens.continuation = Some(&token));
            let behind = expect(&mut client, &call, 200).await;
            assert_eq!(json(&behind).get("_count"), Some(&Value::Int(0)));
            assert_eq!(behind.tokens().continuation, None);
        }
    }
}
