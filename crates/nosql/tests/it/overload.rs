//! More than can be done, and bytes that nobody takes: refusals that clients understand, and others are served.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use transport::{Bounds, Load, Work};

use crate::client::Server;

fn bounds() -> Bounds {
    Bounds { brief: 1, queries: 1, patience: Duration::from_millis(50), ..Bounds::default() }
}

async fn server(load: &Arc<Load>) -> Server {
    let server = Server::with_load(Arc::clone(load)).await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    server.create_container("c", "").await.expect_status(201);
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    server
}

#[tokio::test]
async fn what_gets_no_turn_is_told_when_to_come_back() {
    let load = Arc::new(Load::new(bounds()));
    let server = server(&load).await;
    let taken = load.enter(Work::Query).await.unwrap();
    let refused = server.query("SELECT * FROM c").await.expect_error(429, 3200, "TooManyRequests");
    let wait: u64 = refused.header("x-ms-retry-after-ms").unwrap().parse().unwrap();
    assert!((100..500).contains(&wait), "{wait}");
    assert!(refused.message().contains("more to do than it can"), "{}", refused.message());
    server.get("/dbs/db/colls/c/docs").send().await.expect_error(429, 3200, "TooManyRequests");
    server.read("a", "1").await.expect_status(200);
    server.create("a", r#"{"id":"2","pk":"a"}"#).await.expect_status(201);
    server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
    assert_eq!(load.figures(Work::Query).shed, 2);
    drop(taken);
    server.query("SELECT * FROM c").await.expect_status(200);

    let taken = load.enter(Work::Brief).await.unwrap();
    server.create("a", r#"{"id":"3","pk":"a"}"#).await.expect_error(429, 3200, "TooManyRequests");
    server.read("a", "3").await.expect_error(404, 0, "NotFound");
    server.read("a", "1").await.expect_status(200);
    drop(taken);
    server.create("a", r#"{"id":"3","pk":"a"}"#).await.expect_status(201);
}

#[tokio::test]
async fn what_would_not_fit_is_refused_before_its_body_is_read() {
    let load = Arc::new(Load::new(Bounds { held_bytes: 1 << 20, ..bounds() }));
    let server = server(&load).await;
    let large = format!(r#"{{"id":"large","pk":"a","x":"{}"}}"#, "x".repeat(100_000));
    server.create("a", &large).await.expect_status(201);
    let half = load.hold(1 << 18);
    server.query("SELECT * FROM c").await.expect_error(429, 3200, "TooManyRequests");
    server.create("a", r#"{"id":"2","pk":"a"}"#).await.expect_status(201);
    server.read("a", "large").await.expect_status(200);
    let rest = load.hold(1 << 18);
    server.create("a", r#"{"id":"3","pk":"a"}"#).await.expect_error(429, 3200, "TooManyRequests");
    server.read("a", "large").await.expect_error(429, 3200, "TooManyRequests");
    // What is small and done on the spot holds nothing.
    server.read("a", "1").await.expect_status(200);
    server.get("/alive").unsigned().send().await.expect_status(200);
    server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
    drop((half, rest));
    server.read("a", "large").await.expect_status(200);
    until(|| load.held_bytes() == 0).await;
}

/// Peers that announce much and send nothing.
#[tokio::test]
async fn large_bodies_that_do_not_come_hold_up_other_large_ones_alone() {
    let load = Arc::new(Load::new(Bounds { held_bytes: 1 << 20, ..bounds() }));
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
    let load = Arc::new(Load::new(bounds()));
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

    // More than the kernel takes off the server's hands.
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

/// The server does things in its own time.
async fn until(holds: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not come to that");
}
