//! Signatures over the wire; the rules themselves are tested beside the code.

use std::sync::atomic::Ordering;

use crate::client::{DATE, KEY, START, Server, sign_link};

#[tokio::test]
async fn only_a_good_signature_gets_in() {
    let server = Server::with_container("").await;
    server.get("/dbs/db").send().await.expect_status(200);
    server.get("/dbs/db").unsigned().send().await.expect_error(401, 0, "Unauthorized");
    let wrong = server.get("/dbs/db").signed_with("b3RoZXI=").send().await;
    let wrong = wrong.expect_error(401, 0, "Unauthorized");
    assert!(wrong.message().contains("dbs/db"), "the payload is shown: {}", wrong.message());
    assert!(!wrong.text().contains(KEY));
    for token in ["type=resource&ver=1.0&sig=a;b;", "type=aad&ver=1.0&sig=abc", "nonsense", ""] {
        let request = server.get("/dbs/db").unsigned().header("authorization", token);
        request.send().await.expect_error(401, 0, "Unauthorized");
    }
    server.get("/dbs/db").header("x-ms-date", "yesterday").send().await.expect_error(401, 0, "Unauthorized");
}

#[tokio::test]
async fn skew_is_judged_by_real_time_and_not_by_the_test_clock_t29() {
    let server = Server::with_container("").await;
    server.admin("POST", "/_bolide/clock", r#"{"advanceSeconds":31536000}"#).send().await.expect_status(200);
    server.get("/dbs/db").send().await.expect_status(200);
    server.real_seconds.store(START + 901, Ordering::Relaxed);
    let reply = server.get("/dbs/db").send().await.expect_error(403, 0, "Forbidden");
    assert!(reply.message().contains("not valid at the current time"));
}

#[tokio::test]
async fn trailing_slashes_and_encoded_names_do_not_matter() {
    let server = Server::start().await;
    server.post("/dbs/", r#"{"id":"caf\u00e9 x"}"#).send().await.expect_status(201);
    for path in ["/dbs/caf%C3%A9%20x", "/dbs/caf%C3%A9%20x/"] {
        let reply = server.get(path).send().await.expect_status(200);
        assert_eq!(reply.string("id"), "café x");
    }
}

#[tokio::test]
async fn offers_sign_their_id_in_lower_case() {
    let server = Server::with_container("").await;
    let offers = server.get("/offers").send().await.expect_status(200);
    let rid = offers.ids("Offers").remove(0);
    server.get(&format!("/offers/{rid}")).send().await.expect_status(200);
    let wrong = sign_link("GET", "offers", &format!("offers/{rid}"), DATE, KEY);
    let request = server.get(&format!("/offers/{rid}")).unsigned().header("authorization", &wrong);
    request.send().await.expect_error(401, 0, "Unauthorized");
}

/// A client that sends head and body separately, as Python's does, gets the refusal instead of a reset.
#[tokio::test]
async fn a_refused_body_that_comes_behind_its_head_does_not_break_the_connection() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Server::with_container("").await;
    for _ in 0..20 {
        let request = server.post("/dbs/db/colls/c/docs", "").unsigned().bytes(vec![b'x'; 40_000]);
        let (head, body) = request.to_bytes();
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&head).await.unwrap();
        tokio::task::yield_now().await;
        stream.write_all(&body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 401"), "{}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test]
async fn an_unauthenticated_client_cannot_make_the_server_read_a_body() {
    let server = Server::with_container("").await;
    let request = server.post("/dbs/db/colls/c/docs", "").unsigned().bytes(vec![b'x'; 100]);
    let (head, _) = request.to_bytes();
    // A client that would keep the connection announces a body that never comes; the refusal does not wait for it.
    let head = String::from_utf8(head).unwrap().replace("connection: close\r\n", "");
    let answer = crate::hostile::exchange(server.address, head.as_bytes()).await;
    let text = String::from_utf8_lossy(&answer).to_lowercase();
    assert!(text.starts_with("http/1.1 401"), "{text}");
    assert!(text.contains("connection: close"), "a client must not use this connection again: {text}");
}
