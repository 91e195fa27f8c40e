//! The LSN numbers of direct mode in answers that belong to no range.

use std::time::Duration;

use account::Kind;
use direct::{Call, Reply};
use nosql::tenant;
use rntbd::OperationType::{Create, Query, Read};
use transport::{Bounds, Work};

use crate::direct::{Fixture, body, create, expect};

const FOUR: &str = "dbs/db/colls/four/docs";

/// Returns the number that an answer shows, equal in all tokens.
#[track_caller]
fn shown(reply: &Reply) -> i64 {
    let tokens = reply.tokens();
    let lsn = tokens.lsn.unwrap();
    let others = [
        tokens.local_lsn,
        tokens.quorum_acked_lsn,
        tokens.quorum_acked_local_lsn,
        tokens.global_committed_lsn,
    ];
    assert_eq!(others, [Some(lsn); 4]);
    lsn
}

#[tokio::test]
async fn a_refusal_shows_the_number_of_the_range_that_the_request_names() {
    let max_wait = Duration::from_millis(20);
    let (fixture, admission) =
        Fixture::bounded(Bounds { queries: 1, brief: 1, max_wait, ..Bounds::default() }).await;
    let definition = r#"{"id":"four","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let made = fixture.server.post("/dbs/db/colls", definition).header("x-ms-offer-throughput", "20000");
    made.send().await.expect_status(201);
    let mut client = fixture.connect().await;
    let (small, huge) = (body("1", ""), body("2", &format!(r#","x":"{}""#, "x".repeat(2_200_000))));
    let write = Call::new(Create, FOUR).key(r#"["p"]"#).payload(&small);
    let made = expect(&mut client, &write, 201).await;
    let (lsn, range) = (shown(&made), made.tokens().partition_key_range_id.unwrap());
    // The store and its other containers get further commits.
    for number in 0..5 {
        expect(&mut client, &create(&body(&number.to_string(), "")), 201).await;
    }
    let permits = [Work::Brief, Work::Query].map(|work| admission.enter(tenant(Kind::Primary), work));
    let [brief, query] = permits;
    let taken = (brief.await.unwrap(), query.await.unwrap());
    let address = format!("/{range}/1p");
    let ask = Call::new(Query, FOUR).payload(r#"{"query":"SELECT * FROM c"}"#);
    for (call, status) in [
        (write, 429),
        (write.with(|tokens| tokens.client_version = Some("1")), 400),
        (write.payload(&huge), 413),
        (ask.key(r#"["p"]"#), 429),
        (ask.with(|tokens| tokens.replica_path = Some(&address)), 429),
        (ask.with(|tokens| tokens.partition_key_range_id = Some(range)), 429),
    ] {
        let refused = expect(&mut client, &call, status).await;
        assert_eq!(refused.tokens().partition_key_range_id, Some(range), "{status}");
        assert_eq!(shown(&refused), lsn, "{status}");
    }
    drop(taken);
    let of_store = i64::try_from(fixture.server.engine.last_sequence()).unwrap();
    assert!(of_store > lsn);
    let missing = expect(&mut client, &Call::new(Read, "dbs/none"), 404).await;
    assert_eq!(shown(&missing), of_store, "databases are in no range");
    let mut unauthenticated = fixture.unauthenticated().await;
    let denied = expect(&mut unauthenticated, &write, 401).await;
    assert_eq!((shown(&denied), denied.tokens().partition_key_range_id), (of_store, None));
}
