//! HTTP/2 with prior knowledge on the same port, spoken by hand: preface, settings, one request.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{DATE, KEY, Server, sign};

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

/// One request; the first byte of the answer's headers and its body.
async fn ask(server: &Server, method: &str, path: &str, body: &[u8]) -> (u8, Vec<u8>) {
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
    bytes.extend(frame(4, 0, 0, &[]));
    bytes.extend(frame(1, if body.is_empty() { 5 } else { 4 }, 1, &block));
    if !body.is_empty() {
        bytes.extend(frame(0, 1, 1, body));
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    timeout(Duration::from_secs(10), read_answer(&mut stream)).await.unwrap()
}

async fn read_answer(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let (mut status, mut body) = (0, Vec::new());
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        match head[3] {
            0 => body.extend_from_slice(&payload),
            1 => status = payload[0],
            _ => continue,
        }
        if head[4] & 1 == 1 {
            return (status, body);
        }
    }
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
