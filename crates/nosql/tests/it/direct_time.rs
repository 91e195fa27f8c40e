//! Direct mode: how long requests and connections are waited for.

use std::time::Duration;

use account::Kind;
use direct::{Call, Client};
use nosql::{Limits, tenant};
use rntbd::OperationType::Query;
use transport::{Bounds, Work};

use crate::direct::{Fixture, ITEMS, body, create, expect, is_closed, item, read};

/// Longer than any test.
const LONG: Duration = Duration::from_mins(5);
/// What a client says that it waits, in milliseconds.
const SHORT_MS: u32 = 30;

#[tokio::test]
async fn a_request_waits_no_longer_than_its_client() {
    let bounds = Bounds { queries: 1, brief: 1, max_wait: LONG, ..Bounds::default() };
    let (fixture, admission) = Fixture::bounded(bounds).await;
    let mut client = fixture.connect().await;
    let tenant = tenant(Kind::Primary);
    let query = Call::new(Query, ITEMS).key(r#"["p"]"#).payload(r#"{"query":"SELECT * FROM c"}"#);
    let small = body("small", "");
    for (work, call) in [(Work::Query, query), (Work::Brief, create(&small))] {
        let taken = admission.enter(tenant, work).await.unwrap();
        let impatient = call.with(|tokens| tokens.remaining_time_ms = Some(SHORT_MS));
        let late = expect(&mut client, &impatient, 408).await;
        assert!(late.text().contains("the client gives"), "{}", late.text());
        drop(taken);
    }
    expect(&mut client, &read(&item("small")), 404).await;
}

/// The memory for payloads is taken.
#[tokio::test]
async fn a_large_payload_waits_for_memory_no_longer_than_its_client_and_holds_up_those_behind_it_shortly() {
    let bounds = Bounds { held_bytes: 1 << 20, max_wait: LONG, ..Bounds::default() };
    let (fixture, admission) = Fixture::bounded(bounds).await;
    let mut client = fixture.connect().await;
    let large = body("large", &format!(r#","x":"{}""#, "x".repeat(400_000)));
    let taken = admission.receive(tenant(Kind::Primary), large.len()).await.unwrap();
    let impatient = create(&large).with(|tokens| tokens.remaining_time_ms = Some(SHORT_MS));
    expect(&mut client, &impatient, 408).await;
    expect(&mut client, &create(&large), 429).await;
    expect(&mut client, &read(&item("large")), 404).await;
    drop(taken);
    expect(&mut client, &create(&large), 201).await;
}

#[tokio::test]
async fn a_payload_that_stops_arriving_is_answered_408_and_ends_the_connection() {
    let body_pause_timeout = Duration::from_millis(50);
    let limits = Limits { body_pause_timeout, ..Limits::default() };
    let fixture = Fixture::made(limits, |service| service).await;
    for bytes in [100, 400_000] {
        let mut client = fixture.connect().await;
        expect(&mut client, &read(&item("1")), 404).await;
        let payload = body("1", &format!(r#","x":"{}""#, "x".repeat(bytes)));
        let (number, frame) = client.sender.session.request(&create(&payload)).unwrap();
        client.sender.write(&frame[..frame.len() - 1]).await.unwrap();
        let late = client.receiver.reply_to(number).await.unwrap().expect_status(408);
        assert!(late.text().contains("did not arrive in time"), "{}", late.text());
        assert!(is_closed(&mut client).await, "where its next frame begins is not known");
    }
}

/// A payload that arrives steadily has a limit, too.
#[tokio::test]
async fn a_payload_that_arrives_too_slowly_is_answered_408() {
    let limits = Limits { body_timeout: Duration::from_millis(50), ..Limits::default() };
    let fixture = Fixture::made(limits, |service| service).await;
    let Client { mut sender, mut receiver } = fixture.connect().await;
    let payload = body("1", &format!(r#","x":"{}""#, "x".repeat(1_500_000)));
    let (number, frame) = sender.session.request(&create(&payload)).unwrap();
    // The head and its tokens, and some of the payload.
    let (begin, rest) = frame.split_at(2000);
    sender.write(begin).await.unwrap();
    let dripping = async {
        for byte in rest[..rest.len() - 1].chunks(1) {
            if sender.write(byte).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        std::future::pending().await
    };
    let reply = tokio::select! {
        reply = receiver.reply_to(number) => reply.unwrap(),
        never = dripping => never,
    };
    let _ = reply.expect_status(408);
}
