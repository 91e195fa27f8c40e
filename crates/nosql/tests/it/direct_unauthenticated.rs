//! Direct mode: the charges of unauthenticated clients, and the last answers that arrive when the server ends a connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use direct::{Account, Call, TlsClient};
use nosql::Limits;
use nosql::limits::REQUEST_BYTES;
use rntbd::HEAD_BYTES;
use rntbd::OperationType::{Create, Read};
use tokio::time::advance;
use tokio_rustls::TlsConnector;
use transport::Admission;

use crate::client::{DATE, KEY, Server};
use crate::direct_time::{QUIET, stop_clock, while_time_goes_on};
use crate::overload::until;
use crate::tls;

const PATH: &str = "dbs/db/colls/c/docs/1";
/// The number of an unauthenticated client's requests that are answered.
const REFUSALS: usize = 16;

/// A server with its admission control.
struct Fixture {
    server: Server,
    connector: TlsConnector,
    load: Arc<Admission>,
}

impl Fixture {
    async fn start() -> Fixture {
        let load = Arc::new(Admission::default());
        let shared = Arc::clone(&load);
        let (server, connector) =
            tls::server_with(Limits::default(), &[], |service| service.with_admission(shared)).await;
        server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
        server.create_container("c", "").await.expect_status(201);
        Fixture { server, connector, load }
    }

    async fn connect(&self, key: &str) -> TlsClient {
        let account = Account { key: key.to_owned(), date: DATE.to_owned() };
        TlsClient::connect(self.server.address, &self.connector, account).await.unwrap()
    }

    async fn unauthenticated(&self) -> TlsClient {
        self.connect("d3Jvbmc=").await
    }

    /// Waits until the bytes that unauthenticated connections hold fulfil a condition.
    async fn until_held(&self, is_wanted: impl Fn(usize) -> bool) {
        for _ in 0..12_000 {
            if is_wanted(self.load.unauthenticated().bytes) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{:?}", self.load.unauthenticated());
    }
}

fn read() -> Call<'static> {
    Call::new(Read, PATH).key(r#"["p"]"#)
}

/// Reads answers with a status until the server ends the connection; returns how many there were. An error is a connection
/// that was reset, or that ended inside of an answer.
async fn rest(client: &mut TlsClient, status: u32) -> io::Result<usize> {
    let mut count = 0;
    while let Some(reply) = client.receiver.reply().await? {
        assert_eq!(reply.status, status, "{}", reply.text());
        count += 1;
    }
    Ok(count)
}

#[tokio::test]
async fn an_unauthenticated_request_is_charged_with_its_head_and_no_longer_than_it_is_worked_on() {
    let fixture = Fixture::start().await;
    fixture.until_held(|bytes| bytes == 0).await;
    let mut unauthenticated = fixture.unauthenticated().await;
    let (number, bytes) = unauthenticated.sender.session.request(&read()).unwrap();
    let (head, others) = bytes.split_at(HEAD_BYTES);
    unauthenticated.sender.write(head).await.unwrap();
    // The whole frame, and no more than that: if unauthenticated clients hold the whole budget, the one that holds most is
    // evicted.
    let charged = REQUEST_BYTES + bytes.len();
    fixture.until_held(|bytes| bytes == charged).await;
    unauthenticated.sender.write(others).await.unwrap();
    assert_eq!(unauthenticated.receiver.reply_to(number).await.unwrap().status, 401);
    fixture.until_held(|bytes| bytes == 0).await;
    // Of many requests one is charged: the server does not read the others.
    let (_, bytes) = unauthenticated.sender.session.request(&read()).unwrap();
    let (many, half) = (bytes.repeat(5), &bytes[..bytes.len() / 2]);
    unauthenticated.sender.write(&[&many, half].concat()).await.unwrap();
    for _ in 0..5 {
        assert_eq!(unauthenticated.receiver.reply().await.unwrap().unwrap().status, 401);
    }
    fixture.until_held(|bytes| bytes == charged).await;
    drop(unauthenticated);
    fixture.until_held(|bytes| bytes == 0).await;
}

#[tokio::test]
async fn a_request_of_a_known_client_is_not_charged_to_unauthenticated_clients() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect(KEY).await;
    assert_eq!(client.call(&read()).await.unwrap().status, 404);
    fixture.until_held(|bytes| bytes == 0).await;
    let (number, bytes) = client.sender.session.request(&read()).unwrap();
    client.sender.write(&bytes[..10]).await.unwrap();
    // The server has read the beginning once it has answered another client that came later.
    let mut other = fixture.connect(KEY).await;
    assert_eq!(other.call(&read()).await.unwrap().status, 404);
    fixture.until_held(|bytes| bytes == 0).await;
    client.sender.write(&bytes[10..]).await.unwrap();
    assert_eq!(client.receiver.reply_to(number).await.unwrap().status, 404);
}

#[tokio::test]
async fn an_unauthenticated_client_that_is_disconnected_with_unread_bytes_has_all_its_answers() {
    let fixture = Fixture::start().await;
    let mut unauthenticated = fixture.unauthenticated().await;
    let (_, bytes) = unauthenticated.sender.session.request(&read()).unwrap();
    // More than the server answers, so that the connection ends with requests that it has not read.
    unauthenticated.sender.write(&bytes.repeat(50 * REFUSALS)).await.unwrap();
    assert_eq!(rest(&mut unauthenticated, 401).await.expect("a goodbye and no reset"), REFUSALS);
}

#[tokio::test]
async fn a_client_that_sends_no_frame_has_the_answers_to_what_it_sent_before() {
    let fixture = Fixture::start().await;
    let mut client = fixture.connect(KEY).await;
    let body = format!(r#"{{"id":"1","pk":"p","x":"{}"}}"#, "x".repeat(100_000));
    let create = Call::new(Create, "dbs/db/colls/c/docs").key(r#"["p"]"#).payload(&body);
    assert_eq!(client.call(&create).await.unwrap().status, 201);
    let mut bytes = Vec::new();
    for _ in 0..30 {
        bytes.extend(client.sender.session.request(&read()).unwrap().1);
    }
    // Longer than any frame may be, with much behind it.
    bytes.extend(70_000_u32.to_le_bytes());
    bytes.resize(bytes.len() + 200_000, 7);
    client.sender.write(&bytes).await.unwrap();
    assert_eq!(rest(&mut client, 200).await.expect("a goodbye and no reset"), 30);
}

#[tokio::test]
async fn a_client_that_sends_while_a_server_that_stops_ends_its_connection_has_its_answers() {
    let mut fixture = Fixture::start().await;
    let mut client = fixture.connect(KEY).await;
    let body = format!(r#"{{"id":"1","pk":"p","x":"{}"}}"#, "x".repeat(1_000_000));
    let create = Call::new(Create, "dbs/db/colls/c/docs").key(r#"["p"]"#).payload(&body);
    assert_eq!(client.call(&create).await.unwrap().status, 201);
    for _ in 0..2 {
        client.sender.send(&read()).await.unwrap();
    }
    // The second answer waits in the system's buffers when the server, which has sent it, finds the connection silent.
    assert_eq!(client.receiver.reply().await.unwrap().unwrap().status, 200);
    until(|| fixture.load.held_bytes() == 0).await;
    let _clock = stop_clock();
    fixture.server.stop();
    for _ in 0..(QUIET + QUIET / 2).as_millis() {
        advance(Duration::from_millis(1)).await;
    }
    let _ = client.sender.send(&read()).await;
    let _ = client.sender.send(&read()).await;
    let mut rest = Vec::new();
    let reading = async {
        while let Some(reply) = client.receiver.reply().await.expect("a goodbye and no reset") {
            rest.push(reply.status);
        }
    };
    while_time_goes_on(reading).await;
    assert_eq!(rest.first(), Some(&200));
    assert!(rest[1..].iter().all(|status| *status == 410), "{rest:?}");
}
