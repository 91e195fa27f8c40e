//! Direct mode: how long the server waits for requests and connections.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use account::Kind;
use direct::{Call, Client};
use nosql::{Limits, tenant};
use rntbd::OperationType::Query;
use tokio::time::{advance, pause};
use transport::{Bounds, Work};

use crate::direct::{
    Fixture, ITEMS, body, create, expect, is_closed, item, read, send_query, with_one_query,
};

/// Longer than any test.
const LONG: Duration = Duration::from_mins(5);
/// How long a client waits by its own token, in milliseconds.
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

/// All memory for payloads is taken.
#[tokio::test]
async fn a_large_payload_waits_for_memory_no_longer_than_its_client_and_holds_up_those_behind_it_shortly() {
    let bounds = Bounds { held_bytes: 1 << 20, max_wait: LONG, ..Bounds::default() };
    let (fixture, admission) = Fixture::bounded(bounds).await;
    let (mut client, path) = (fixture.connect().await, item("large"));
    expect(&mut client, &read(&path), 404).await;
    let large = body("large", &format!(r#","x":"{}""#, "x".repeat(400_000)));
    let taken = admission.receive(tenant(Kind::Primary), large.len()).await.unwrap();
    let impatient = create(&large).with(|tokens| tokens.remaining_time_ms = Some(SHORT_MS));
    let _clock = stop_clock();
    while_time_goes_on(expect(&mut client, &impatient, 408)).await;
    while_time_goes_on(expect(&mut client, &create(&large), 429)).await;
    expect(&mut client, &read(&path), 404).await;
    drop(taken);
    expect(&mut client, &create(&large), 201).await;
}

#[tokio::test]
async fn a_payload_that_stops_arriving_is_answered_408_and_ends_the_connection() {
    let body_pause_timeout = Duration::from_millis(50);
    let limits = Limits { body_pause_timeout, ..Limits::default() };
    let fixture = Fixture::made(limits, |service| service).await;
    for (bytes, with_length) in [(100, true), (400_000, true), (100, false)] {
        let mut client = fixture.connect().await;
        expect(&mut client, &read(&item("1")), 404).await;
        let payload = body("1", &format!(r#","x":"{}""#, "x".repeat(bytes)));
        let missing = if with_length { 1 } else { payload.len() + 1 };
        let (number, frame) = client.sender.session.request(&create(&payload)).unwrap();
        client.sender.write(&frame[..frame.len() - missing]).await.unwrap();
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

/// Only the test moves the time as long as this exists: while a thread blocks, a paused clock does not skip to the next
/// timer.
pub(crate) struct StoppedClock {
    _release: mpsc::Sender<()>,
}

pub(crate) fn stop_clock() -> StoppedClock {
    let (release, released) = mpsc::channel();
    tokio::task::spawn_blocking(move || released.recv());
    pause();
    StoppedClock { _release: release }
}

/// Waits for a future while time advances in steps that timers can tell apart.
pub(crate) async fn while_time_goes_on<T>(waiting: impl Future<Output = T>) -> T {
    let clock = async {
        loop {
            advance(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        value = waiting => value,
        never = clock => never,
    }
}

/// Much longer than timers need to tell two times apart.
pub(crate) const MOMENT: Duration = Duration::from_millis(10);
/// How long a stopping server keeps a silent connection open.
pub(crate) const QUIET: Duration = Duration::from_millis(500);

#[tokio::test]
async fn an_unauthenticated_client_is_disconnected_after_thirty_seconds_and_a_known_client_never() {
    const UNAUTHENTICATED_MAX: Duration = Duration::from_secs(30);
    let fixture = Fixture::start().await;
    let _clock = stop_clock();
    let (mut unauthenticated, mut known) = (fixture.unauthenticated().await, fixture.connect().await);
    let path = item("1");
    expect(&mut unauthenticated, &read(&path), 401).await;
    advance(UNAUTHENTICATED_MAX.saturating_sub(MOMENT)).await;
    expect(&mut unauthenticated, &read(&path), 401).await;
    // Its first valid request comes at the last moment.
    expect(&mut known, &read(&path), 404).await;
    advance(2 * MOMENT).await;
    assert!(is_closed(&mut unauthenticated).await);
    for days in [1, 10, 100] {
        expect(&mut known, &read(&path), 404).await;
        advance(Duration::from_hours(24) * days).await;
    }
    expect(&mut known, &read(&path), 404).await;
}

#[tokio::test]
async fn a_server_that_stops_waits_for_its_requests_until_the_drain_limit() {
    let drain = Limits::default().drain_timeout;
    let (mut fixture, admission) = with_one_query().await;
    let _taken = admission.enter(tenant(Kind::Primary), Work::Query).await.unwrap();
    let (mut client, _query) = send_query(&fixture).await;
    let path = item("1");
    let _clock = stop_clock();
    fixture.server.stop();
    while client.call(&read(&path)).await.unwrap().status != 410 {}
    advance(drain.saturating_sub(MOMENT)).await;
    expect(&mut client, &read(&path), 410).await;
    advance(2 * MOMENT).await;
    assert!(is_closed(&mut client).await, "although its query is not answered");
}

#[tokio::test]
async fn a_server_that_stops_answers_gone_while_a_request_takes_long() {
    let (mut fixture, admission) = with_one_query().await;
    let taken = admission.enter(tenant(Kind::Primary), Work::Query).await.unwrap();
    let (mut client, slow) = send_query(&fixture).await;
    let path = item("1");
    let _clock = stop_clock();
    fixture.server.stop();
    while client.call(&read(&path)).await.unwrap().status != 410 {}
    for _ in 0..3 {
        advance(QUIET + MOMENT).await;
        expect(&mut client, &read(&path), 410).await;
    }
    drop(taken);
    assert_eq!(client.receiver.reply_to(slow).await.unwrap().status, 200);
    assert!(while_time_goes_on(is_closed(&mut client)).await);
}
