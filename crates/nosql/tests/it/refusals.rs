//! A refused request has no effect: it does not restart a countdown either (T33). Pages are refused as requests are.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use account::Kind;
use bytes::Bytes;
use engine::{Burst, Enforcement, ItemAddress, Options};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use nosql::{Channel, Pages, Visitor, tenant};
use storage::{ManualClock, Time};
use transport::{Admission, Bounds, Work};

use crate::client::{Reply, START, Server};

const DOCS: &str = "/dbs/db/colls/c/docs";

/// Items that each meet one refusal, and one whose read is answered.
const ITEMS: [&str; 18] = [
    "answered",
    "queried",
    "unsigned",
    "other-key",
    "if-match",
    "session",
    "bad-session",
    "bad-key",
    "recreated",
    "batch",
    "bulk",
    "bad-token",
    "bad-option",
    "no-line",
    "no-room",
    "no-room-for-query",
    "no-room-for-its-size",
    "throttled",
];

fn batch(server: &Server, atomic: &str, id: &str) -> crate::client::Request {
    let read = format!(r#"{{"operationType":"Read","id":"{id}","partitionKey":"[\"a\"]"}}"#);
    let with_condition = read.replace('}', r#","ifMatch":"\"0\""}"#);
    // In a batch another operation fails; in bulk the read itself.
    let operations = match atomic {
        "true" => format!(r#"[{read},{{"operationType":"Read","id":"none"}}]"#),
        _ => format!("[{with_condition}]"),
    };
    server
        .post(DOCS, &operations)
        .key("a")
        .header("x-ms-cosmos-is-batch-request", "true")
        .header("x-ms-cosmos-batch-atomic", atomic)
        .header("x-ms-cosmos-batch-continue-on-error", "true")
}

fn query(server: &Server, id: &str) -> crate::client::Request {
    let text = format!(r#"{{"query":"SELECT * FROM c WHERE c.id = '{id}'"}}"#);
    let request = server.post(DOCS, &text).key("a").header("content-type", "application/query+json");
    request.header("x-ms-documentdb-isquery", "True")
}

#[tokio::test]
async fn a_refused_request_restarts_no_countdown_t33() {
    let bounds =
        Bounds { queries: 1, max_wait: Duration::from_millis(50), held_bytes: 1 << 20, ..Bounds::default() };
    let load = Arc::new(Admission::new(bounds));
    let units = Arc::new(ManualClock::new(Time::from_seconds(START)));
    let enforcement = Enforcement::On { clock: units, burst: Burst::Off };
    let options = Options { enforcement, ..Options::default() };
    let server = Server::with_admission_and_options(Arc::clone(&load), options).await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":20}"#;
    let made = server.post("/dbs/db/colls", definition).header("x-ms-offer-throughput", "4000");
    made.send().await.expect_status(201);
    let sliding = server.admin("PATCH", "/_bolide/ttl/db/c", r#"{"sliding":true}"#);
    sliding.send().await.expect_status(200);
    let filler = "x".repeat(50_000);
    for id in ITEMS {
        let large = if id.starts_with("no-room") { &filler } else { "" };
        server.create("a", &format!(r#"{{"id":"{id}","pk":"a","x":"{large}"}}"#)).await.expect_status(201);
    }
    server.advance(15);

    server.read("a", "answered").await.expect_status(200);
    assert_eq!(query(&server, "queried").send().await.expect_status(200).ids("Documents"), ["queried"]);
    let get = |id: &str| server.get(&format!("{DOCS}/{id}")).key("a");
    let refuse = |reply: Reply, status: u16| drop(reply.expect_status(status));
    refuse(get("unsigned").unsigned().send().await, 401);
    refuse(get("other-key").signed_with("b3RoZXI=").send().await, 401);
    refuse(get("if-match").header("if-match", "\"0\"").send().await, 412);
    refuse(get("session").header("x-ms-session-token", "0:-1#99999").send().await, 404);
    refuse(get("bad-session").header("x-ms-session-token", "nonsense").send().await, 400);
    refuse(get("bad-key").header("x-ms-documentdb-partitionkey", "[").send().await, 400);
    refuse(get("recreated").header("x-ms-cosmos-intended-collection-rid", "AAAAAAAAAAA=").send().await, 400);
    refuse(batch(&server, "true", "batch").send().await, 207);
    let bulk = batch(&server, "false", "bulk").send().await.expect_status(207);
    assert!(bulk.text().contains("412"), "{}", bulk.text());
    refuse(query(&server, "bad-token").header("x-ms-continuation", "nonsense").send().await, 400);
    refuse(query(&server, "bad-option").header("x-ms-max-item-count", "nonsense").send().await, 400);
    {
        let _permit = load.enter(tenant(Kind::Primary), Work::Query).await.unwrap();
        refuse(query(&server, "no-line").send().await, 429);
    }
    let held = load.hold(tenant(Kind::Primary), 1 << 19).unwrap();
    refuse(get("no-room").send().await, 429);
    refuse(query(&server, "no-room-for-query").send().await, 429);
    drop(held);
    let held = load.hold(tenant(Kind::Primary), 360_000).unwrap();
    refuse(get("no-room-for-its-size").send().await, 429);
    drop(held);
    let mut spent = 0;
    while server.create("a", &format!(r#"{{"id":"spend-{spent}","pk":"a"}}"#)).await.status != 429 {
        spent += 1;
    }
    refuse(get("throttled").send().await, 429);

    server.advance(6);
    let owner = server.engine.owner(engine::Api::NoSql, "db", "c").unwrap();
    let seen = server.engine.browse(&owner, None, 10_000).unwrap();
    let id = |address: &ItemAddress| match address {
        ItemAddress::Id(_, id) => id.clone(),
        other @ ItemAddress::DocumentId(_) => panic!("{other:?}"),
    };
    let living = seen.items.iter().map(|item| id(&item.address)).filter(|id| ITEMS.contains(&id.as_str()));
    assert_eq!(living.collect::<Vec<_>>(), ["answered", "queried"]);
}

/// Pages, each of which is a query.
struct Queries;

impl Pages for Queries {
    fn body_bytes(&self, _: &Parts) -> usize {
        100_000
    }

    fn visitor(&self, head: &Parts) -> Option<Visitor> {
        let work = (head.uri.path() != "/_explorer/sign-in").then_some(Work::Query);
        Some(Visitor { tenant: tenant(Kind::Primary), work })
    }

    fn refused(&self, retry_after_ms: u64) -> Response<Bytes> {
        let mut page = Response::new(Bytes::from(format!("come back in {retry_after_ms}")));
        *page.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        page
    }

    fn answer(
        &self,
        _: Request<Bytes>,
        _: Option<Channel>,
    ) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send + '_>> {
        Box::pin(async { Response::new(Bytes::from("a page")) })
    }
}

#[tokio::test]
async fn pages_pass_admission_control_like_every_request() {
    let bounds =
        Bounds { queries: 1, max_wait: Duration::from_millis(50), held_bytes: 1 << 17, ..Bounds::default() };
    let load = Arc::new(Admission::new(bounds));
    let server = Server::with_admission_and_pages(Arc::clone(&load), Arc::new(Queries)).await;
    let page = || server.get("/_explorer/c/nosql/db/c").unsigned();
    page().send().await.expect_status(200);
    let permit = load.enter(tenant(Kind::Primary), Work::Query).await.unwrap();
    let refused = page().send().await.expect_status(429);
    assert!(refused.text().starts_with("come back in "), "{}", refused.text());
    server.get("/_explorer/sign-in").unsigned().send().await.expect_status(200);
    drop(permit);
    page().send().await.expect_status(200);
    // Unread answers leave no memory for more, and large bodies wait for memory as everywhere.
    let held = load.hold(tenant(Kind::Primary), 1 << 17).unwrap();
    page().send().await.expect_status(429);
    drop(held);
    let body = load.receive(tenant(Kind::Primary), 1 << 16).await.unwrap();
    let form = server.post("/_explorer/sign-in", &"x".repeat(60_000)).unsigned();
    form.send().await.expect_status(429);
    drop(body);
    let form = server.post("/_explorer/sign-in", &"x".repeat(60_000)).unsigned();
    form.send().await.expect_status(200);
    assert_eq!((load.stats(Work::Query).working, load.held_bytes()), (0, 0));
}
