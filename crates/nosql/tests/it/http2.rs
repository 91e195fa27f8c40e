//! HTTP/2 with prior knowledge on the same port, spoken by hand: preface, settings, one request.

use std::sync::Arc;
use std::time::Duration;

use account::Kind;
use nosql::limits::STREAM_BYTES;
use nosql::{Limits, tenant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use transport::{Admission, Bounds, Work};

use crate::client::{DATE, KEY, Server, sign};

/// How long an answer, or an end, is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header field without indexing and without compression.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        let length = text.len();
        if length < 127 {
            bytes.push(u8::try_from(length).unwrap());
        } else {
            bytes.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                bytes.push(u8::try_from(rest % 128).unwrap() | 128);
                rest /= 128;
            }
            bytes.push(u8::try_from(rest).unwrap());
        }
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// One request; the first byte of the answer's headers and its body.
async fn ask(server: &Server, method: &str, path: &str, body: &[u8]) -> (u8, Vec<u8>) {
    let mut stream = begin(server, &[], method, path, body).await;
    timeout(PATIENCE, read_answer(&mut stream)).await.unwrap()
}

/// A connection with those settings, on which one request is sent.
async fn begin(server: &Server, settings: &[u8], method: &str, path: &str, body: &[u8]) -> TcpStream {
    let authority = server.address.to_string();
    let headers = [
        (":method", method),
        (":scheme", "http"),
        (":authority", &authority),
        (":path", path),
        ("x-ms-date", DATE),
        ("authorization", &sign(method, path, DATE, KEY)),
    ];
    let block: Vec<u8> = headers.iter().flat_map(|(name, value)| field(name, value)).collect();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, settings));
    bytes.extend(frame(HEADERS, if body.is_empty() { 5 } else { 4 }, 1, &block));
    if !body.is_empty() {
        bytes.extend(frame(DATA, 1, 1, body));
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream
}

async fn read_answer(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let (mut status, mut body) = (0, Vec::new());
    loop {
        let (kind, flags, payload) = read_frame(stream).await;
        match kind {
            DATA => body.extend_from_slice(&payload),
            HEADERS => status = payload[0],
            _ => continue,
        }
        if flags & 1 == 1 {
            return (status, body);
        }
    }
}

/// Kind, flags and payload.
async fn read_frame(stream: &mut (impl AsyncReadExt + Unpin)) -> (u8, u8, Vec<u8>) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await.unwrap();
    (head[3], head[4], payload)
}

/// A setting: answers have no window but what is granted later.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

#[tokio::test]
async fn a_peer_that_grants_no_window_loses_its_place() {
    let limits = Limits { write_pause_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Server::with_limits(limits).await;
    let mut silent = begin(&server, &NO_WINDOW, "GET", "/", b"").await;
    let ended = timeout(PATIENCE, silent.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the connection is still there");
    let (status, _) = ask(&server, "GET", "/", b"").await;
    assert_eq!(status, OK);
}

#[tokio::test]
async fn a_peer_that_grants_its_window_late_is_answered() {
    let server = Server::start().await;
    let mut late = begin(&server, &NO_WINDOW, "GET", "/", b"").await;
    // The answer's head needs no window; once it is here, the body waits.
    while read_frame(&mut late).await.0 != HEADERS {}
    late.write_all(&frame(WINDOW_UPDATE, 0, 1, &60_000_u32.to_be_bytes())).await.unwrap();
    let (_, body) = timeout(PATIENCE, read_answer(&mut late)).await.unwrap();
    assert!(body.starts_with(b"{"), "{}", String::from_utf8_lossy(&body));
}

/// A connection of a peer without a key that grants no window and wants `requests` answers at once.
async fn flood(server: &Server, path: &str, requests: u32) -> TcpStream {
    let authority = server.address.to_string();
    let headers = [(":method", "GET"), (":scheme", "http"), (":authority", &authority), (":path", path)];
    let block: Vec<u8> = headers.iter().flat_map(|(name, value)| field(name, value)).collect();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &NO_WINDOW));
    for request in 0..requests {
        bytes.extend(frame(HEADERS, 5, 2 * request + 1, &block));
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream
}

#[tokio::test]
async fn answers_that_strangers_leave_unread_take_nothing_from_key_holders() {
    let load = Arc::new(Admission::new(Bounds { held_bytes: 1 << 20, ..Bounds::default() }));
    let server = Server::with_admission(Arc::clone(&load)).await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    server.create_container("c", "").await.expect_status(201);
    let mut peers = Vec::new();
    for _ in 0..40 {
        peers.push(flood(&server, "/dbs", 250).await);
    }
    // Eight, and those that came with the eighth, are answered; the others stay in the peer's buffers.
    let (least, most) = (40 * 8 * STREAM_BYTES, 40 * 30 * STREAM_BYTES);
    while load.strangers().bytes < least {
        tokio::task::yield_now().await;
    }
    assert_eq!((load.held_bytes(), load.strangers().cut_off), (0, 0));
    assert_eq!(load.check_room(tenant(Kind::Primary), Some(Work::Query)), Ok(()));
    for id in 0..10 {
        server.create("a", &format!(r#"{{"id":"{id}","pk":"a"}}"#)).await.expect_status(201);
        server.query("SELECT * FROM c").await.expect_status(200);
    }
    server.get("/ready").unsigned().send().await.expect_status(200);
    let bytes = load.strangers().bytes;
    assert!((least..most).contains(&bytes), "{bytes} bytes are held for strangers");
}

/// So many requests at once on a new connection, whose answers are read; the first byte of the head of each answer.
async fn burst(server: &Server, requests: u32, signature: Option<&str>) -> Vec<u8> {
    let authority = server.address.to_string();
    let mut headers =
        vec![(":method", "GET"), (":scheme", "http"), (":authority", &authority), (":path", "/dbs")];
    if let Some(signature) = signature {
        headers.extend([("x-ms-date", DATE), ("authorization", signature)]);
    }
    let block: Vec<u8> = headers.iter().flat_map(|(name, value)| field(name, value)).collect();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes.extend(frame(WINDOW_UPDATE, 0, 0, &10_000_000_u32.to_be_bytes()));
    for request in 0..requests {
        bytes.extend(frame(HEADERS, 5, 2 * request + 1, &block));
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let sent = tokio::spawn(async move {
        writer.write_all(&bytes).await.unwrap();
        writer
    });
    let mut heads = Vec::new();
    while heads.len() < requests as usize {
        let (kind, _, payload) = timeout(PATIENCE, read_frame(&mut reader)).await.unwrap();
        if kind == HEADERS {
            heads.push(payload[0]);
        }
    }
    drop(sent.await.unwrap());
    heads
}

#[tokio::test]
async fn a_burst_of_requests_on_a_new_connection_is_answered_with_a_key_and_without() {
    let load = Arc::new(Admission::default());
    let server = Server::with_admission(Arc::clone(&load)).await;
    let signature = sign("GET", "/dbs", DATE, KEY);
    assert_eq!(burst(&server, 200, Some(&signature)).await, [OK; 200]);
    let refused = burst(&server, 200, None).await;
    assert!(refused.iter().all(|status| *status != OK), "{refused:?}");
    assert_eq!(load.strangers().cut_off, 0, "who reads its answers is not cut off");
}

#[tokio::test]
async fn a_connection_without_a_request_ends_like_an_idle_one_although_it_answers_pings() {
    let limits = Limits { head_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Server::with_limits(limits).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let goodbye = async {
        loop {
            match read_frame(&mut stream).await {
                (GOAWAY, ..) => return,
                (PING, 0, payload) => stream.write_all(&frame(PING, 1, 0, &payload)).await.unwrap(),
                _ => {}
            }
        }
    };
    timeout(PATIENCE, goodbye).await.expect("the server says that the connection ends");
    let ended = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "and ends it, whatever the peer does");
}

/// Places of `:status` in the static header table.
const OK: u8 = 0x88;
const NOT_FOUND: u8 = 0x8d;

#[tokio::test]
async fn the_same_port_speaks_http2_with_prior_knowledge() {
    let server = Server::start().await;
    let (status, body) = ask(&server, "GET", "/", b"").await;
    assert_eq!(status, OK, "{}", String::from_utf8_lossy(&body));
    let account = String::from_utf8(body).unwrap();
    assert!(account.contains(&format!("http://{}/", server.address)), "{account}");
    let (_, body) = ask(&server, "POST", "/dbs", br#"{"id":"two"}"#).await;
    assert!(String::from_utf8(body).unwrap().contains("\"id\":\"two\""));
    let (status, _) = ask(&server, "GET", "/dbs/two", b"").await;
    assert_eq!(status, OK);
    let (status, body) = ask(&server, "GET", "/dbs/none", b"").await;
    assert_eq!(status, NOT_FOUND);
    assert!(body.starts_with(b"{\"code\":\"NotFound\""));
    server.get("/dbs/two").send().await.expect_status(200);
}
