//! Overload, and answers that clients do not read: refusals that clients understand, while others are served.

use std::sync::Arc;
use std::time::Duration;

use account::Kind;
use nosql::tenant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use transport::{Admission, Api, Bounds, Tenant, Work};

use crate::client::Server;

fn bounds() -> Bounds {
    Bounds { brief: 1, queries: 1, max_wait: Duration::from_millis(50), ..Bounds::default() }
}

async fn server(load: &Arc<Admission>) -> Server {
    let server = Server::with_admission(Arc::clone(load)).await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    server.create_container("c", "").await.expect_status(201);
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    server
}

#[tokio::test]
async fn what_gets_no_turn_is_told_when_to_come_back() {
    let load = Arc::new(Admission::new(bounds()));
    let server = server(&load).await;
    let taken = load.enter(tenant(Kind::Primary), Work::Query).await.unwrap();
    let refused = server.query("SELECT * FROM c").await.expect_error(429, 3200, "TooManyRequests");
    let wait: u64 = refused.header("x-ms-retry-after-ms").unwrap().parse().unwrap();
    assert!((100..500).contains(&wait), "{wait}");
    assert!(refused.message().contains("more to do than it can"), "{}", refused.message());
    server.get("/dbs/db/colls/c/docs").send().await.expect_error(429, 3200, "TooManyRequests");
    server.read("a", "1").await.expect_status(200);
    server.create("a", r#"{"id":"2","pk":"a"}"#).await.expect_status(201);
    server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
    assert_eq!(load.stats(Work::Query).shed, 2);
    drop(taken);
    server.query("SELECT * FROM c").await.expect_status(200);

    let taken = load.enter(tenant(Kind::Primary), Work::Brief).await.unwrap();
    server.create("a", r#"{"id":"3","pk":"a"}"#).await.expect_error(429, 3200, "TooManyRequests");
    server.read("a", "3").await.expect_error(404, 0, "NotFound");
    server.read("a", "1").await.expect_status(200);
    drop(taken);
    server.create("a", r#"{"id":"3","pk":"a"}"#).await.expect_status(201);
}

#[tokio::test]
async fn what_would_not_fit_is_refused_before_its_body_is_read() {
    let load = Arc::new(Admission::new(Bounds { held_bytes: 1 << 20, ..bounds() }));
    let server = server(&load).await;
    let large = format!(r#"{{"id":"large","pk":"a","x":"{}"}}"#, "x".repeat(100_000));
    server.create("a", &large).await.expect_status(201);
    let half = load.hold(tenant(Kind::Primary), 1 << 18).unwrap();
    server.query("SELECT * FROM c").await.expect_error(429, 3200, "TooManyRequests");
    server.create("a", r#"{"id":"2","pk":"a"}"#).await.expect_status(201);
    server.read("a", "large").await.expect_status(200);
    let rest = load.hold(tenant(Kind::Primary), 1 << 17).unwrap();
    server.create("a", r#"{"id":"3","pk":"a"}"#).await.expect_error(429, 3200, "TooManyRequests");
    server.read("a", "large").await.expect_error(429, 3200, "TooManyRequests");
    // A small request that runs without waiting holds nothing.
    server.read("a", "1").await.expect_status(200);
    server.get("/alive").unsigned().send().await.expect_status(200);
    server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
    drop((half, rest));
    server.read("a", "large").await.expect_status(200);
    until(|| load.held_bytes() == 0).await;
}

/// There would be memory for a small answer, and the size of this one is known only once it is made.
#[tokio::test]
async fn a_read_whose_answer_finds_no_room_is_refused_and_its_connection_stays() {
    let load = Arc::new(Admission::new(Bounds { held_bytes: 1 << 20, ..bounds() }));
    let server = server(&load).await;
    let large = format!(r#"{{"id":"large","pk":"a","x":"{}"}}"#, "x".repeat(400_000));
    server.create("a", &large).await.expect_status(201);
    let held = load.hold(tenant(Kind::Primary), 1 << 17).unwrap();
    server.read("a", "large").await.expect_error(429, 3200, "TooManyRequests");
    server.query("SELECT * FROM c").await.expect_error(429, 3200, "TooManyRequests");
    server.query("SELECT * FROM c WHERE c.id = '1'").await.expect_status(200);
    drop(held);
    server.read("a", "large").await.expect_status(200);
    server.query("SELECT * FROM c").await.expect_status(200);
    until(|| load.held_bytes() == 0).await;
}

/// Clients that announce much and send nothing.
#[tokio::test]
async fn large_bodies_that_do_not_come_hold_up_other_large_ones_alone() {
    let load = Arc::new(Admission::new(Bounds { held_bytes: 1 << 20, ..bounds() }));
    let server = server(&load).await;
    let large = format!(r#"{{"id":"large","pk":"a","x":"{}"}}"#, "x".repeat(400_000));
    let (head, _) = server.post("/dbs/db/colls/c/docs", &large).key("a").upsert().to_bytes();
    let mut silent = tokio::net::TcpStream::connect(server.address).await.unwrap();
    silent.write_all(&head).await.unwrap();
    until(|| load.held_bytes() >= large.len()).await;
    server.create("a", &large).await.expect_error(429, 3200, "TooManyRequests");
    server.create("a", r#"{"id":"2","pk":"a"}"#).await.expect_status(201);
    server.query("SELECT * FROM c").await.expect_status(200);
    server.read("a", "1").await.expect_status(200);
    assert_eq!(load.refused_for_bytes(), 1);
    drop(silent);
    until(|| load.held_bytes() == 0).await;
    server.create("a", &large).await.expect_status(201);
}

#[tokio::test]
async fn a_body_and_an_answer_are_counted_until_they_are_gone() {
    let load = Arc::new(Admission::new(bounds()));
    let server = server(&load).await;
    let large = format!(r#"{{"id":"large","pk":"a","x":"{}"}}"#, "x".repeat(1_500_000));
    server.create("a", &large).await.expect_status(201);
    assert_eq!(load.held_bytes(), 0);

    let (head, body) = server.post("/dbs/db/colls/c/docs", &large).key("a").upsert().to_bytes();
    let mut sender = tokio::net::TcpStream::connect(server.address).await.unwrap();
    sender.write_all(&head).await.unwrap();
    sender.write_all(&body[..1000]).await.unwrap();
    until(|| load.held_bytes() == large.len().next_multiple_of(4096)).await;
    drop(sender);
    until(|| load.held_bytes() == 0).await;

    // More than the kernel's buffers take from the server.
    for id in 0..4 {
        let body = large.replace("large", &format!("large-{id}"));
        server.create("a", &body).await.expect_status(201);
    }
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut reader = socket.connect(server.address).await.unwrap();
    let (head, _) = server.get("/dbs/db/colls/c/docs").to_bytes();
    reader.write_all(&head).await.unwrap();
    until(|| load.held_bytes() > 3_000_000).await;
    let mut answer = Vec::new();
    reader.read_to_end(&mut answer).await.unwrap();
    assert!(answer.len() > 3_000_000);
    until(|| load.held_bytes() == 0).await;
}

/// Forty long scans of a read-only key, and requests of a read-write key meanwhile.
#[tokio::test]
async fn a_greedy_key_does_not_hold_up_the_queries_of_another() {
    let load = Arc::new(Admission::new(Bounds { queries: 8, ..bounds() }));
    let server = server(&load).await;
    let greedy = tenant(Kind::PrimaryReadonly);
    let mut permits = Vec::new();
    while let Ok(permit) = load.enter(greedy, Work::Query).await {
        permits.push(permit);
    }
    assert_eq!((permits.len(), load.stats(Work::Query).shed), (6, 1), "it has its share and no more");
    for _ in 0..8 {
        server.query("SELECT * FROM c").await.expect_status(200);
    }
    server.get("/ready").unsigned().send().await.expect_status(200);
}

/// Refusing tenants that hold nothing makes a server not ready.
#[tokio::test]
async fn a_server_that_refuses_honest_work_is_not_ready_until_it_does_it_again() {
    let bounds = Bounds { unready_after: Duration::from_millis(60), ..bounds() };
    let load = Arc::new(Admission::new(bounds));
    let server = server(&load).await;
    let ready = || server.get("/ready").unsigned().send();
    let others = Tenant::new(Api::Mongo, "user");
    let permit = load.enter(others, Work::Query).await.unwrap();
    ready().await.expect_status(200);
    while server.query("SELECT * FROM c").await.status == 429 {
        if load.starved().is_some() {
            break;
        }
    }
    let refused = ready().await.expect_status(503);
    assert!(refused.text().contains("\"ready\":false"), "{}", refused.text());
    assert!(refused.text().contains("clients that hold nothing have been refused"), "{}", refused.text());
    drop(permit);
    server.query("SELECT * FROM c").await.expect_status(200);
    ready().await.expect_status(200);
}

/// Applications open many connections at once and authenticate on each; unauthenticated connections of the same address do not keep them out.
#[tokio::test]
async fn too_many_connections_without_a_key_from_one_address_cost_the_oldest_silent_one() {
    let load = Arc::new(Admission::new(Bounds { unauthenticated_per_address: 3, ..Bounds::default() }));
    let server = server(&load).await;
    let signed = server.get("/dbs/db").keep_alive();
    let alive = b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n";
    let connect = || async { tokio::net::TcpStream::connect(server.address).await.unwrap() };
    let is_answered = async |stream: &mut tokio::net::TcpStream, request: &[u8]| {
        stream.write_all(request).await.is_ok() && matches!(stream.read(&mut [0; 4096]).await, Ok(1..))
    };
    let mut known = Vec::new();
    for _ in 0..5 {
        let mut stream = connect().await;
        assert!(is_answered(&mut stream, &signed).await);
        known.push(stream);
    }
    until(|| load.unauthenticated().connections == 0).await;
    let mut probe = connect().await;
    assert!(is_answered(&mut probe, alive).await);
    let mut silent = connect().await;
    until(|| load.unauthenticated().connections == 2).await;
    let _others = [connect().await, connect().await];
    until(|| load.unauthenticated().cut_off == 1).await;
    assert!(!matches!(silent.read(&mut [0]).await, Ok(1..)), "the oldest that has said nothing is closed");
    assert!(is_answered(&mut probe, alive).await, "one that was answered is not");
    for stream in &mut known {
        assert!(is_answered(stream, &signed).await, "authenticated ones do not count");
    }
}

/// Waits: the server works in the background.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not come to that");
}
