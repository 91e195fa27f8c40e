//! Direct mode: how long requests and connections are waited for.

use std::time::Duration;

use account::Kind;
use direct::Call;
use nosql::tenant;
use rntbd::OperationType::Query;
use transport::{Bounds, Work};

use crate::direct::{Fixture, ITEMS, body, create, expect, item, read};

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
