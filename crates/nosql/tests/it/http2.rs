//! HTTP/2 with prior knowledge on the same port, written by hand: preface, settings, one request.

use std::sync::Arc;
use std::time::Duration;

use account::Kind;
use nosql::limits::STREAM_BYTES;
use nosql::{Limits, tenant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{advance, timeout};
use transport::{Admission, Bounds, Work};

use crate::client::{DATE, KEY, Server, sign};
use crate::direct_time::{MOMENT, stop_clock};

/// How long a test waits for an answer, or for an end.
const MAX_WAIT: Duration = Duration::from_mins(1);

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

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// Sends one request; returns the first byte of the answer's headers and its body.
async fn ask(server: &Server, method: &str, path: &str, body: &[u8]) -> (u8, Vec<u8>) {
    let mut stream = begin(server, &[], method, path, body).await;
    timeout(MAX_WAIT, read_answer(&mut stream)).await.unwrap()
}

/// A connection with those settings, on which one request is sent.
async fn begin(server: &Server, settings: &[u8], method: &str, path: &str, body: &[u8]) -> TcpStream {
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, settings));
    let block = signed_block(server, method, path);
    bytes.extend(frame(HEADERS, if body.is_empty() { 5 } else { 4 }, 1, &block));
    if !body.is_empty() {
        bytes.extend(frame(DATA, 1, 1, body));
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream
}

/// The headers of a signed request.
fn signed_block(server: &Server, method: &str, path: &str) -> Vec<u8> {
    let authority = server.address.to_string();
    let headers = [
        (":method", method),
        (":scheme", "http"),
        (":authority", &authority),
        (":path", path),
        ("x-ms-date", DATE),
        ("authorization", &sign(method, path, DATE, KEY)),
    ];
    plain_block(0, &headers)
}

/// Encodes the headers of the request of that number.
type Block = fn(u32, &[(&str, &str)]) -> Vec<u8>;

/// Returns the headers of a request, uncompressed.
fn plain_block(_: u32, headers: &[(&str, &str)]) -> Vec<u8> {
    headers.iter().flat_map(|(name, value)| field(name, value)).collect()
}

/// Returns the headers of one of several similar requests: the first enters them in the dynamic table, the others refer to
/// that.
fn indexed_block(request: u32, headers: &[(&str, &str)]) -> Vec<u8> {
    if request > 0 {
        // The last entry is number 62.
        return (0..headers.len()).rev().map(|place| 0x80 | u8::try_from(62 + place).unwrap()).collect();
    }
    let entered = headers.iter().map(|(name, value)| {
        let mut field = field(name, value);
        field[0] = 0x40;
        field
    });
    entered.collect::<Vec<_>>().concat()
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

/// A setting that gives answers no window beyond later grants.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

#[tokio::test]
async fn a_peer_that_grants_no_window_loses_its_place() {
    let limits = Limits { write_pause_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Server::with_limits(limits).await;
    let mut silent = begin(&server, &NO_WINDOW, "GET", "/", b"").await;
    let ended = timeout(MAX_WAIT, silent.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the connection is still there");
    let (status, _) = ask(&server, "GET", "/", b"").await;
    assert_eq!(status, OK);
}

#[tokio::test]
async fn a_peer_that_grants_its_window_late_is_answered() {
    let server = Server::start().await;
    let mut late = begin(&server, &NO_WINDOW, "GET", "/", b"").await;
    // The answer's head needs no window; once it has come, the body waits.
    while read_frame(&mut late).await.0 != HEADERS {}
    late.write_all(&frame(WINDOW_UPDATE, 0, 1, &60_000_u32.to_be_bytes())).await.unwrap();
    let (_, body) = timeout(MAX_WAIT, read_answer(&mut late)).await.unwrap();
    assert!(body.starts_with(b"{"), "{}", String::from_utf8_lossy(&body));
}

/// A connection of a client without a key that grants no window and requests `requests` answers at once.
async fn flood(server: &Server, path: &str, requests: u32) -> TcpStream {
    let authority = server.address.to_string();
    let headers = [(":method", "GET"), (":scheme", "http"), (":authority", &authority), (":path", path)];
    let block = plain_block(0, &headers);
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &NO_WINDOW));
    for request in 0..requests {
        bytes.extend(frame(HEADERS, 5, 2 * request + 1, &block));
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    stream
}

#[tokio::test]
async fn answers_that_unauthenticated_clients_leave_unread_take_nothing_from_key_holders() {
    let load = Arc::new(Admission::new(Bounds { held_bytes: 1 << 20, ..Bounds::default() }));
    let server = Server::with_admission(Arc::clone(&load)).await;
    server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
    server.create_container("c", "").await.expect_status(201);
    let mut peers = Vec::new();
    for _ in 0..40 {
        peers.push(flood(&server, "/dbs", 250).await);
    }
    // Eight are answered at once; the server reads the others slowly, since a window may come with them.
    while load.unauthenticated().bytes < 40 * 8 * STREAM_BYTES {
        tokio::task::yield_now().await;
    }
    assert_eq!(load.held_bytes(), 0);
    assert_eq!(load.check_memory(tenant(Kind::Primary), Work::Query), Ok(()));
    for id in 0..10 {
        server.create("a", &format!(r#"{{"id":"{id}","pk":"a"}}"#)).await.expect_status(201);
        server.query("SELECT * FROM c").await.expect_status(200);
    }
    server.get("/ready").unsigned().send().await.expect_status(200);
    for peer in &mut peers {
        let ended = timeout(MAX_WAIT, peer.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "a client that grants no window and sends ever more requests is cut off");
    }
    assert_eq!((load.unauthenticated().cut_off, load.unauthenticated().bytes), (40, 0));
}

#[tokio::test]
async fn a_peer_without_a_key_whose_window_comes_behind_its_requests_is_answered() {
    let load = Arc::new(Admission::default());
    let server = Server::with_admission(Arc::clone(&load)).await;
    let mut stream = flood(&server, "/dbs", 9).await;
    let (mut heads, mut whole) = (0, 0);
    while whole < 9 {
        let (kind, flags, _) = timeout(MAX_WAIT, read_frame(&mut stream)).await.unwrap();
        heads += usize::from(kind == HEADERS);
        whole += usize::from(kind == DATA && flags & 1 == 1);
        // As many answers wait as allowed, and the last request may be unread.
        if kind == HEADERS && heads == 8 {
            for request in 0..9 {
                let granted = frame(WINDOW_UPDATE, 0, 2 * request + 1, &5_000_u32.to_be_bytes());
                stream.write_all(&granted).await.unwrap();
            }
        }
    }
    assert_eq!((heads, load.unauthenticated().cut_off), (9, 0));
}

/// Sends so many requests at once on a new connection and reads their answers; returns the first byte of the head of each.
async fn burst(server: &Server, requests: u32, signature: Option<&str>, block: Block) -> Vec<u8> {
    let authority = server.address.to_string();
    let mut headers =
        vec![(":method", "GET"), (":scheme", "http"), (":authority", &authority), (":path", "/dbs")];
    if let Some(signature) = signature {
        headers.extend([("x-ms-date", DATE), ("authorization", signature)]);
    }
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    bytes.extend(frame(WINDOW_UPDATE, 0, 0, &10_000_000_u32.to_be_bytes()));
    for request in 0..requests {
        bytes.extend(frame(HEADERS, 5, 2 * request + 1, &block(request, &headers)));
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let sent = tokio::spawn(async move {
        writer.write_all(&bytes).await.unwrap();
        writer
    });
    let mut heads = Vec::new();
    while heads.len() < requests as usize {
        let (kind, _, payload) = timeout(MAX_WAIT, read_frame(&mut reader)).await.unwrap();
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
    for block in [plain_block, indexed_block] {
        assert_eq!(burst(&server, 200, Some(&signature), block).await, [OK; 200]);
        let refused = burst(&server, 200, None, block).await;
        assert!(refused.iter().all(|status| *status != OK), "{refused:?}");
    }
    assert_eq!(load.unauthenticated().cut_off, 0, "who reads its answers is not cut off");
}

#[tokio::test]
async fn a_connection_without_a_request_ends_like_an_idle_one_although_it_answers_pings() {
    let limits = Limits { head_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Server::with_limits(limits).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
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
    timeout(MAX_WAIT, goodbye).await.expect("the server says that the connection ends");
    let ended = timeout(MAX_WAIT, stream.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "and ends it, whatever the peer does");
}

#[tokio::test]
async fn a_request_that_crosses_the_end_of_an_idle_connection_is_answered() {
    let limits = Limits {
        head_timeout: Duration::from_millis(200),
        drain_timeout: Duration::from_secs(1),
        body_pause_timeout: Duration::from_secs(2),
        ..Limits::default()
    };
    let server = Server::with_limits(limits).await;
    let _clock = stop_clock();
    let ping = frame(PING, 0, 0, &[7; 8]);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), &ping].concat()).await.unwrap();
    until_answered(&mut stream).await;
    advance(limits.head_timeout + MOMENT).await;
    while read_frame(&mut stream).await.0 != GOAWAY {}
    // Its body does not come, so that its answer comes later than the end of a connection without requests.
    let request = frame(HEADERS, 4, 1, &signed_block(&server, "POST", "/dbs"));
    stream.write_all(&[request, ping].concat()).await.unwrap();
    until_answered(&mut stream).await;
    advance(limits.drain_timeout + MOMENT).await;
    advance(limits.body_pause_timeout).await;
    let (_, body) = read_answer(&mut stream).await;
    assert!(body.starts_with(b"{\"code\":\"RequestTimeout\""), "{}", String::from_utf8_lossy(&body));
}

/// Reads until a ping is answered: the server has then what was sent before.
async fn until_answered(stream: &mut TcpStream) {
    loop {
        let (kind, flags, _) = read_frame(stream).await;
        if (kind, flags) == (PING, 1) {
            return;
        }
    }
}

/// The indexes of `:status` in the static header table.
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
