//! The store's clock as clients and probes see it (T34).

use document::Value;
use storage::Time;

use crate::client::{START, Server};

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

/// The system clock is set back by 12.4 s; a test clock's advance is not part of the offset.
#[tokio::test]
async fn t34_the_offset_from_the_system_clock_is_in_clock_status_and_metrics() {
    let server = Server::start().await;
    let clock = server.admin("GET", "/_bolide/clock", "").send().await.expect_status(200);
    assert_eq!(clock.member("offsetSeconds"), Value::Double(0.0));
    assert_eq!(clock.member("offset"), Value::from("in step with the system clock"));
    server.clock.set_wall(Time::from_millis(START * 1000 - 12_400));
    let ahead = "12.4 s ahead of the system clock, slowing down until they agree";
    let clock = server.admin("GET", "/_bolide/clock", "").send().await.expect_status(200);
    assert_eq!(clock.member("offsetSeconds"), Value::Double(12.4));
    assert_eq!(clock.member("offset"), Value::from(ahead));
    let moved = server.admin("POST", "/_bolide/clock", r#"{"advanceSeconds":86400}"#).send().await;
    assert_eq!(moved.expect_status(200).member("offsetSeconds"), Value::Double(12.4));
    let status = server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
    let offset = format!("{ahead} (the test clock's advance apart)");
    assert_eq!(status.member("clock").get("offset"), Some(&Value::from(offset)));
    let metrics = server.get("/metrics").unsigned().send().await.expect_status(200);
    assert!(has_line(&metrics.text(), "bolide_clock_offset_seconds 12.4"), "{}", metrics.text());
}

#[tokio::test]
async fn t34_ready_names_the_command_that_accepts_a_suspect_time() {
    let server = Server::with_guarded_clock().await;
    let ready = || server.get("/ready").unsigned().send();
    assert_eq!(ready().await.expect_status(200).text(), r#"{"ready":true}"#);
    let commits = server.disk.commits();
    server.clock.advance(std::time::Duration::from_mins(1));
    ready().await.expect_status(200);
    assert_eq!(server.disk.commits(), commits, "a probe renews no lease");
    server.clock.set_wall(Time::from_seconds(START + 2 * 60 * 60 + 60));
    let clock = server.admin("GET", "/_bolide/clock", "").send().await.expect_status(200);
    let suspect = ready().await.expect_status(200);
    assert_eq!(
        suspect.member("clock"),
        Value::from("suspect: while the server ran, the system clock leapt 2 h ahead")
    );
    assert_eq!(suspect.member("acceptWith"), Value::from("bolide clock accept"));
    assert_eq!(clock.member("suspect").get("leap"), Some(&Value::from("running")));
    assert_eq!(clock.member("offsetSeconds"), Value::Double(-7200.0));
    server.admin("POST", "/_bolide/clock", r#"{"accept":true}"#).send().await.expect_status(200);
    assert_eq!(ready().await.expect_status(200).text(), r#"{"ready":true}"#);
}

/// A commit failed on the disk, and it is unknown whether it will be replayed. If it will, the item that it renews is
/// alive: until a restart the server shows no time by which the item has expired.
#[tokio::test]
async fn t13_after_a_failed_commit_time_stands_still_and_the_server_is_not_ready() {
    let server = Server::with_container("\"defaultTtl\":30").await;
    server.create("a", r#"{"id":"1","pk":"a"}"#).await.expect_status(201);
    server.advance(28);
    server.create("a", r#"{"id":"2","pk":"a"}"#).await.expect_status(201);
    server.advance(1);
    server.disk.fail_sync_after(0);
    let renewed = server.post("/dbs/db/colls/c/docs", r#"{"id":"1","pk":"a"}"#).key("a");
    renewed.header("x-ms-documentdb-is-upsert", "True").send().await.expect_status(503);
    for waited in [0, 1, 60, 3600] {
        server.advance(waited);
        let ready = server.get("/ready").unsigned().send().await.expect_status(503);
        assert_eq!(ready.member("ready"), Value::Bool(false));
        let reason = ready.member("reason").as_str().unwrap_or_default().to_owned();
        assert!(reason.contains("a commit failed") && reason.contains("restart the server"), "{reason}");
        server.get("/alive").unsigned().send().await.expect_status(200);
        server.read("a", "1").await.expect_status(200);
        let clock = server.admin("GET", "/_bolide/clock", "").send().await.expect_status(200);
        assert_eq!(clock.member("now"), Value::Int(START as i64 + 29));
        let status = server.admin("GET", "/_bolide/status", "").send().await.expect_status(200);
        assert_eq!(status.member("store").get("stopped"), Some(&Value::Bool(true)));
    }
    let metrics = server.get("/metrics").unsigned().send().await.expect_status(200);
    assert!(has_line(&metrics.text(), "bolide_clock_offset_seconds -3661"), "{}", metrics.text());
}
