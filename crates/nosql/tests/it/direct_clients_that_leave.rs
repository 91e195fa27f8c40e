//! Direct mode: the requests of a client that has left.

use std::time::Duration;

use account::Kind;
use direct::{Call, TlsClient};
use nosql::tenant;
use rntbd::OperationType::Query;
use transport::{Admission, Bounds, Work};

use crate::direct::{Fixture, ITEMS, body, create, item, read};
use crate::overload::until;

/// How long requests wait: longer than the test.
const LONG: Duration = Duration::from_mins(5);
/// The number of a connection's requests that run at once.
const IN_FLIGHT: usize = 64;

fn query() -> Call<'static> {
    Call::new(Query, ITEMS).key(r#"["p"]"#).payload(r#"{"query":"SELECT * FROM c"}"#)
}

async fn until_waiting(admission: &Admission, work: Work, count: usize) {
    until(|| admission.stats(work).waiting == count).await;
}

#[tokio::test]
async fn the_queries_of_a_client_that_has_left_are_ended() {
    let (fixture, admission) =
        Fixture::bounded(Bounds { queries: 1, max_wait: LONG, ..Bounds::default() }).await;
    let _taken = admission.enter(tenant(Kind::Primary), Work::Query).await.unwrap();
    // Fewer than may be in flight, and so many that the server does not read the others.
    for (sent, waiting) in [(3, 3), (IN_FLIGHT + 3, IN_FLIGHT)] {
        let mut client = fixture.connect().await;
        for _ in 0..sent {
            client.sender.send(&query()).await.unwrap();
        }
        until_waiting(&admission, Work::Query, waiting).await;
        drop(client);
        until_waiting(&admission, Work::Query, 0).await;
    }
}

#[tokio::test]
async fn the_writes_of_a_client_that_has_left_are_done() {
    let bounds = Bounds { queries: 1, brief: 1, max_wait: LONG, ..Bounds::default() };
    let (fixture, admission) = Fixture::bounded(bounds).await;
    let tenant = tenant(Kind::Primary);
    let query_permit = admission.enter(tenant, Work::Query).await.unwrap();
    let write_permit = admission.enter(tenant, Work::Brief).await.unwrap();
    let mut client = fixture.connect().await;
    client.sender.send(&create(&body("1", ""))).await.unwrap();
    client.sender.send(&query()).await.unwrap();
    until_waiting(&admission, Work::Brief, 1).await;
    until_waiting(&admission, Work::Query, 1).await;
    drop(client);
    until_waiting(&admission, Work::Query, 0).await;
    assert_eq!(admission.stats(Work::Brief).waiting, 1, "the write waits on");
    drop((query_permit, write_permit));
    until_found(&mut fixture.connect().await, "1").await;
}

#[tokio::test]
async fn the_queries_of_a_client_that_leaves_behind_a_broken_frame_are_ended() {
    let (fixture, admission) =
        Fixture::bounded(Bounds { queries: 1, max_wait: LONG, ..Bounds::default() }).await;
    let _taken = admission.enter(tenant(Kind::Primary), Work::Query).await.unwrap();
    let mut client = fixture.connect().await;
    for _ in 0..3 {
        client.sender.send(&query()).await.unwrap();
    }
    client.sender.write(&u32::MAX.to_le_bytes()).await.unwrap();
    until_waiting(&admission, Work::Query, 3).await;
    drop(client);
    until_waiting(&admission, Work::Query, 0).await;
}

/// The client's end is not visible behind so many frames, so the server notices it first by an answer that it cannot send.
#[tokio::test]
async fn the_writes_of_a_client_to_which_no_answer_can_be_sent_are_done() {
    let bounds = Bounds { brief: 1, max_wait: LONG, ..Bounds::default() };
    let (fixture, admission) = Fixture::bounded(bounds).await;
    let permit = admission.enter(tenant(Kind::Primary), Work::Brief).await.unwrap();
    let mut client = fixture.connect().await;
    for number in 0..IN_FLIGHT {
        client.sender.send(&create(&body(&number.to_string(), ""))).await.unwrap();
    }
    for _ in 0..100 {
        client.sender.send(&query()).await.unwrap();
    }
    until_waiting(&admission, Work::Brief, IN_FLIGHT).await;
    drop(client);
    drop(permit);
    let mut other = fixture.connect().await;
    for number in 0..IN_FLIGHT {
        until_found(&mut other, &number.to_string()).await;
    }
}

/// Waits until an item exists: a commit takes a while.
async fn until_found(client: &mut TlsClient, id: &str) {
    for _ in 0..12_000 {
        if client.call(&read(&item(id))).await.unwrap().status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{id} is not there");
}
