//! The records of requests in direct mode: the same as of those by HTTP.

use std::sync::Arc;
use std::time::Duration;

use direct::Call;
use rntbd::OperationType::{Create, Query};
use telemetry::{AuditEvent, AuditSink, Registry, SlowLog, Texts};

use crate::direct::{Fixture, ITEMS, body, create, expect, is_closed, item, read};

const USERS: &str = "dbs/db/users";

#[tokio::test]
async fn metrics_and_the_count_of_slow_operations_include_direct_mode() {
    // All operations count as slow.
    let registry = Registry::new(None, SlowLog::new(Duration::ZERO, Texts::Shapes));
    let fixture = Fixture::recorded(registry).await;
    let mut client = fixture.connect().await;
    let path = item("1");
    expect(&mut client, &read(&path), 404).await;
    expect(&mut client, &create(&body("1", "")), 201).await;
    expect(&mut client, &read(&path), 200).await;
    let query = Call::new(Query, ITEMS).key(r#"["p"]"#).payload(r#"{"query":"SELECT * FROM c"}"#);
    expect(&mut client, &query, 200).await;
    let page = fixture.server.admin("GET", "/metrics", "").send().await.expect_status(200).text();
    for line in [
        r#"bolide_requests_total{api="nosql",operation="ReadItem",outcome="ok"} 1"#,
        r#"bolide_requests_total{api="nosql",operation="ReadItem",outcome="not_found"} 1"#,
        r#"bolide_requests_total{api="nosql",operation="CreateItem",outcome="ok"} 1"#,
        r#"bolide_requests_total{api="nosql",operation="QueryItems",outcome="ok"} 1"#,
        r#"bolide_request_duration_seconds_count{api="nosql",operation="ReadItem"} 2"#,
        // The other two were the creations of the database and the container by HTTP.
        r#"bolide_slow_operations_total{api="nosql"} 6"#,
        "bolide_direct_connections_open 1",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} in {page}");
    }
}

/// Panics where no handler is.
struct BrokenSink;

impl AuditSink for BrokenSink {
    fn record(&self, event: AuditEvent) {
        assert!(event.action != "CreateUser", "as the test wants");
    }
}

#[tokio::test]
async fn a_panic_beside_the_handlers_ends_the_connection_of_a_client_that_would_wait() {
    let fixture = Fixture::recorded(Registry::default().with_audit(Arc::new(BrokenSink))).await;
    let mut client = fixture.connect().await;
    let path = item("1");
    expect(&mut client, &read(&path), 404).await;
    client.sender.send(&Call::new(Create, USERS).payload(r#"{"id":"u"}"#)).await.unwrap();
    assert!(is_closed(&mut client).await);
    let mut other = fixture.connect().await;
    expect(&mut other, &read(&path), 404).await;
}
