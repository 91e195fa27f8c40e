//! Direct mode: what becomes of the requests of a client that has left.

use std::time::Duration;

use account::Kind;
use direct::Call;
use nosql::tenant;
use rntbd::OperationType::Query;
use transport::{Admission, Bounds, Work};

use crate::direct::{Fixture, ITEMS, body, create, item, read};
use crate::overload::until;

/// Requests wait for as long as the test lasts.
const LONG: Duration = Duration::from_mins(5);
/// Requests of a connection that are carried out at once.
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
    // Fewer than may be in flight, and so many that the others are not read.
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
    let (mut other, path) = (fixture.connect().await, item("1"));
    // The commit takes its own time.
    for _ in 0..12_000 {
        if other.call(&read(&path)).await.unwrap().status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it is not done");
}
