//! Broken or malicious clients: they get a correct 4xx or a clean close, and the server continues.

use std::net::SocketAddr;
use std::time::Duration;

use nosql::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::client::{Reply, Server};

/// How long a busy machine may take for work that an idle one does at once.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Sends bytes and reads until the server closes.
pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = timeout(MAX_WAIT, stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "the server neither answered nor closed");
    answer
}

async fn is_alive(server: &Server) {
    server.get("/ready").unsigned().send().await.expect_status(200);
}

/// As [`is_alive`], where the time for a request's head is short: repeats until one request is in time.
async fn is_alive_in_the_end(server: &Server) {
    let asks = async {
        let request = b"GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        while !exchange(server.address, request).await.starts_with(b"HTTP/1.1 200") {}
    };
    assert!(timeout(MAX_WAIT, asks).await.is_ok(), "no request is answered any more");
}

#[tokio::test]
async fn malformed_bodies_are_refused() {
    let server = Server::with_container("").await;
    for body in [
        "",
        "{",
        "nonsense",
        "[]",
        "7",
        "{\"id\":\"1\",\"pk\":\"a\"} x",
        "{\"id\":\"1\",\"id\":\"2\",\"pk\":\"a\"}",
    ] {
        server.create("a", body).await.expect_error(400, 0, "BadRequest");
        let upsert = server.post("/dbs/db/colls/c/docs", body).key("a").upsert();
        upsert.send().await.expect_error(400, 0, "BadRequest");
        server.post("/dbs", body).send().await.expect_error(400, 0, "BadRequest");
        server.post("/dbs/db/colls", body).send().await.expect_error(400, 0, "BadRequest");
    }
    for body in [b"{\"id\":\"\xff\"}".to_vec(), vec![0x80, 0xff, 0xff], vec![0x80], vec![0; 100]] {
        let request = server.post("/dbs/db/colls/c/docs", "").key("a").bytes(body);
        request.send().await.expect_error(400, 0, "BadRequest");
    }
    let query = server.post("/dbs/db/colls/c/docs", "{").header("x-ms-documentdb-isquery", "true");
    query.send().await.expect_error(400, 0, "BadRequest");
    server.patch("/dbs/db/colls/c/docs/1", "{").key("a").send().await.expect_error(400, 0, "BadRequest");
    is_alive(&server).await;
}

#[tokio::test]
async fn a_three_megabyte_body_is_too_large() {
    let server = Server::with_container("").await;
    let body = format!("{{\"id\":\"1\",\"pk\":\"a\",\"x\":\"{}\"}}", "x".repeat(3 * 1024 * 1024));
    let reply = server.create("a", &body).await.expect_error(413, 0, "RequestEntityTooLarge");
    assert!(reply.message().contains("too large"));
    let batch = format!("[{{\"operationType\":\"Create\",\"resourceBody\":{body}}}]");
    let request = server.post("/dbs/db/colls/c/docs", &batch).key("a");
    let request =
        request.header("x-ms-cosmos-is-batch-request", "true").header("x-ms-cosmos-batch-atomic", "true");
    request.send().await.expect_error(413, 0, "RequestEntityTooLarge");
    server.read("a", "1").await.expect_error(404, 0, "NotFound");
    let fits = format!("{{\"id\":\"1\",\"pk\":\"a\",\"x\":\"{}\"}}", "x".repeat(2_000_000));
    server.create("a", &fits).await.expect_status(201);
}

#[tokio::test]
async fn ten_thousand_levels_are_too_deep() {
    let server = Server::with_container("").await;
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let body = format!("{{\"id\":\"1\",\"pk\":\"a\",\"x\":{deep}}}");
    server.create("a", &body).await.expect_error(400, 0, "BadRequest");
    let objects = format!("{}1{}", "{\"x\":".repeat(10_000), "}".repeat(10_000));
    server.create("a", &objects).await.expect_error(400, 0, "BadRequest");
    let query = format!("SELECT * FROM c WHERE {}true{}", "[".repeat(10_000), "]".repeat(10_000));
    server.query(&query).await.expect_error(400, 0, "BadRequest");
    let key =
        server.get("/dbs/db/colls/c/docs/1").header("x-ms-documentdb-partitionkey", &"[".repeat(10_000));
    key.send().await.expect_error(400, 0, "BadRequest");
    is_alive(&server).await;
}

#[tokio::test]
async fn huge_or_many_headers_end_the_connection_cleanly() {
    let server = Server::start().await;
    let huge = server.get("/dbs").header("x-huge", &"x".repeat(1_000_000)).to_bytes().0;
    let answer = exchange(server.address, &huge).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
    let many: Vec<String> = (0..10_000).map(|n| format!("x-{n}: y\r\n")).collect();
    let many = many.concat();
    let answer = exchange(server.address, format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
    let path = format!("GET /dbs/{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "x".repeat(20_000));
    assert!(exchange(server.address, path.as_bytes()).await.starts_with(b"HTTP/1.1 4"));
    is_alive(&server).await;
}

#[tokio::test]
async fn bytes_that_are_not_http_end_the_connection() {
    let server = Server::start().await;
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        vec![0; 1000],
        b"\r\n\r\n\r\n\r\nx y z\r\n\r\n".to_vec(),
    ] {
        let answer = exchange(server.address, &bytes).await;
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    is_alive(&server).await;
}

#[tokio::test]
async fn slow_peers_lose_their_place() {
    // Each limit has a server of its own: an honest client on a busy machine needs longer than a limit that is short for a
    // test.
    let short = Duration::from_millis(200);
    let server = Server::with_limits(Limits { head_timeout: short, ..Limits::default() }).await;
    // Silence, half of each protocol's opening, half a head: all closed.
    for start in [&b""[..], b"PRI * HT", b"GET /dbs HTTP/1.1\r\nhost: x\r\nx-slow:"] {
        let answer = exchange(server.address, start).await;
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    is_alive_in_the_end(&server).await;
    // A body that stops in the middle: the answer reports that.
    let server = Server::with_limits(Limits { body_pause_timeout: short, ..Limits::default() }).await;
    let (head, _) = server.post("/dbs", "").bytes(vec![b' '; 100]).to_bytes();
    let answer = exchange(server.address, &[head, b"{\"id\"".to_vec()].concat()).await;
    assert!(answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
    is_alive(&server).await;
}

#[tokio::test]
async fn a_known_header_that_is_not_text_is_refused_and_never_counts_as_absent() {
    let server = Server::with_container("").await;
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    let delete = |name: &str| {
        let request = server.delete("/dbs/db/colls/c/docs/1").key("a").header(name, "\"RAW\"");
        let mut bytes = request.to_bytes().0;
        let place = bytes.windows(3).position(|window| window == b"RAW").unwrap();
        bytes[place..place + 3].copy_from_slice(b"\xff\xfe!");
        let address = server.address;
        async move { exchange(address, &bytes).await }
    };
    for name in [
        "if-match",
        "if-none-match",
        "x-ms-session-token",
        "x-ms-consistency-level",
        "x-ms-documentdb-pre-trigger-include",
        "x-ms-cosmos-intended-collection-rid",
        "x-ms-documentdb-partitionkey",
    ] {
        let reply = Reply::parse(&delete(name).await).expect_error(400, 0, "BadRequest");
        assert!(reply.message().contains(name), "{}", reply.message());
    }
    server.read("a", "1").await.expect_status(200);
    assert_eq!(Reply::parse(&delete("x-unknown").await).status, 204, "unknown headers are ignored");
}

#[tokio::test]
async fn a_peer_that_does_not_read_loses_its_place() {
    let limits = Limits { write_pause_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Server::with_limits(limits).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let requests = b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000);
    // Pipelined requests until the server stops answering a client that does not read.
    let flood = async { while stream.write_all(&requests).await.is_ok() {} };
    assert!(timeout(MAX_WAIT, flood).await.is_ok(), "the connection is still served");
    is_alive(&server).await;
}

#[tokio::test]
async fn connections_beyond_the_cap_are_closed_and_free_places_are_used_again() {
    let server = Server::with_limits(Limits { connections: 4, ..Limits::default() }).await;
    let asked = async |request: &[u8]| {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.read_exact(&mut [0; 12]).await.unwrap();
        stream
    };
    let alive = b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut unauthenticated = asked(alive).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(asked(&server.get("/").keep_alive()).await);
    }
    let end = timeout(MAX_WAIT, unauthenticated.read_to_end(&mut Vec::new())).await;
    assert!(end.is_ok(), "an unauthenticated client makes way");
    let answer = exchange(server.address, alive).await;
    assert!(answer.is_empty(), "who is known stays");
    drop(held);
    // The server notices the closed ones later.
    for _ in 0..2000 {
        let request = b"GET /alive HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        if exchange(server.address, request).await.starts_with(b"HTTP/1.1 200") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no place became free");
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_the_port() {
    let mut server = Server::start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut byte = [0];
    idle.read_exact(&mut byte).await.unwrap();
    server.stop();
    let mut rest = Vec::new();
    timeout(MAX_WAIT, idle.read_to_end(&mut rest)).await.unwrap().unwrap();
    for _ in 0..2000 {
        if TcpStream::connect(server.address).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the port is still open");
}

#[tokio::test]
async fn a_query_that_takes_too_long_is_stopped_and_told_so() {
    let server =
        Server::with_limits(Limits { query_timeout: Duration::from_millis(1), ..Limits::default() }).await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    server.create_container("c", "").await.expect_status(201);
    // The server checks for cancellation between two items, so there are some, each of which takes a while.
    let numbers = (0..50).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    for id in 1..=20 {
        let item = format!(r#"{{"id":"{id}","pk":"a","n":[{numbers}]}}"#);
        server.create("a", &item).await.expect_status(201);
    }
    let endless = "SELECT VALUE COUNT(1) FROM c JOIN x IN c.n JOIN y IN c.n JOIN z IN c.n";
    let stopped = server.query(endless).await.expect_error(408, 0, "RequestTimeout");
    assert!(stopped.message().contains("max-query-time"), "{}", stopped.message());
    server.read("a", "1").await.expect_status(200);
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_operator_says() {
    let server = Server::with_limits(Limits { body_bytes: 100, ..Limits::default() }).await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(100));
    server.post("/dbs", &long).send().await.expect_error(413, 0, "RequestEntityTooLarge");
}

/// Requests that a proxy before the server might read as another request, or another name, are answered only with 400.
#[tokio::test]
async fn requests_that_two_programs_could_read_differently_are_refused() {
    let server = Server::with_container("").await;
    let smuggled = "0\r\n\r\nGET /alive HTTP/1.1\r\nhost: x\r\n\r\n";
    for request in [
        format!(
            "POST /dbs HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n{smuggled}"
        ),
        format!(
            "POST /dbs HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n{smuggled}"
        ),
        "GET /alive HTTP/1.1\nhost: x\r\n\r\n".to_owned(),
        "GET /alive HTTP/1.1\r\nhost: x\n\r\n".to_owned(),
        "GET /alive HTTP/1.1\nhost: x\n\n".to_owned(),
        "GET /alive HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /_explorer/ HTTP/1.1\r\nhost: x\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(),
    ] {
        let answer = String::from_utf8(exchange(server.address, request.as_bytes()).await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{request:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{request:?}: {answer}");
    }
    let sound = "GET /alive HTTP/1.1\r\nhost: x\r\n\r\nPOST /dbs HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n\
                 3\r\n\n{}\r\n0\r\n\r\nGET /alive HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = String::from_utf8(exchange(server.address, sound.as_bytes()).await).unwrap();
    let answers: Vec<&str> =
        answer.match_indices("HTTP/1.1 ").map(|(at, _)| &answer[at + 9..at + 12]).collect();
    assert_eq!(answers, ["200", "401", "200"], "{answer}");
    is_alive(&server).await;
}

#[tokio::test]
async fn no_answer_lets_a_browser_guess_what_it_is() {
    let server = Server::with_container("").await;
    for reply in [
        server.get("/dbs/db").send().await,
        server.get("/dbs/none").send().await.expect_error(404, 0, "NotFound"),
        server.get("/dbs/db").unsigned().send().await.expect_error(401, 0, "Unauthorized"),
        server.get("/alive").unsigned().send().await,
        server.get("/metrics").unsigned().send().await,
        server.get("/nothing").unsigned().send().await,
    ] {
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{reply:?}");
    }
}

/// Unauthenticated clients cannot enlarge the answers that they leave unread.
#[tokio::test]
async fn what_an_unauthenticated_client_sends_is_not_sent_back_at_length() {
    let server = Server::start().await;
    let path = format!("/dbs/{}", "x".repeat(7_000));
    let date = "y".repeat(30_000);
    for request in [
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nx-ms-date: Tue, 14 Nov 2023 22:13:20 GMT\r\nauthorization: \
             type%3Dmaster%26ver%3D1.0%26sig%3DeA%3D%3D\r\nconnection: close\r\n\r\n"
        ),
        format!(
            "GET / HTTP/1.1\r\nhost: x\r\nauthorization: type={date}&ver=1.0&sig=x\r\nconnection: close\r\n\r\n"
        ),
        format!("GET /{date} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
    ] {
        let answer = exchange(server.address, request.as_bytes()).await;
        assert!(answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
        assert!(answer.len() < 2_500, "{} bytes for {}", answer.len(), request.len());
    }
}
