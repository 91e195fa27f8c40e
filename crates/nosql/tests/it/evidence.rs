//! Archives (T32) and deletion records through the admin API.

use document::Value;
use engine::Verifier;

use crate::client::{Reply, Server};

async fn set_lifecycle(server: &Server, body: &str) -> Reply {
    server.admin("PATCH", "/_bolide/ttl/db/c", body).send().await
}

async fn purge(server: &Server) -> Reply {
    server.admin("POST", "/_bolide/purge", r#"{"now":true}"#).send().await.expect_status(200)
}

async fn show(server: &Server) -> Reply {
    server.admin("GET", "/_bolide/ttl/db/c", "").send().await.expect_status(200)
}

#[tokio::test]
async fn t32_an_archive_is_configured_and_reported() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    let refused = set_lifecycle(&server, r#"{"archive":{"directory":"../../etc"}}"#).await;
    assert!(refused.expect_error(400, 0, "BadRequest").message().contains("'archive' must be"));
    set_lifecycle(&server, r#"{"archive":{"directory":"cold"}}"#).await.expect_status(200);
    for id in ["1", "2"] {
        server.create("a", &format!(r#"{{"id":"{id}","pk":"a"}}"#)).await.expect_status(201);
    }
    server.advance(10);
    server.archive.set_full("cold", true);
    let waits = purge(&server).await;
    assert_eq!(
        (waits.member("purgedItems"), waits.member("waitingForArchive")),
        (Value::Int(0), Value::Int(1))
    );
    let shown = show(&server).await;
    let failure = shown.member("archive").get("failure").cloned().expect("it is told");
    assert_eq!(failure.get("error"), Some(&Value::String("no room in 'cold'".into())));
    assert_eq!(shown.member("backlog").get("items"), Some(&Value::Int(2)));
    let metrics = server.get("/metrics").unsigned().send().await.expect_status(200).text();
    assert!(metrics.contains("\nbolide_archive_waiting_containers 1\n"), "{metrics}");
    // A purge on demand tries twice: the first try may have begun before it.
    assert!(metrics.contains("\nbolide_archive_failures_total 2\n"), "{metrics}");

    let dropped = server.delete("/dbs/db/colls/c").send().await;
    assert!(dropped.expect_error(503, 0, "ServiceUnavailable").message().contains("archive"));
    server.archive.set_full("cold", false);
    let done = purge(&server).await;
    assert_eq!(
        (done.member("purgedItems"), done.member("waitingForArchive")),
        (Value::Int(2), Value::Int(0))
    );
    let archive = show(&server).await.member("archive");
    assert_eq!(archive.get("archived").and_then(|tally| tally.get("items")), Some(&Value::Int(2)));
    assert_eq!(
        (archive.get("failure"), archive.get("directory")),
        (Some(&Value::Null), Some(&Value::String("cold".into())))
    );
    let off = set_lifecycle(&server, r#"{"archive":null}"#).await.expect_status(200);
    assert_eq!(off.member("archive"), Value::Null);
    server.delete("/dbs/db/colls/c").send().await.expect_status(204);
}

#[tokio::test]
async fn a_deletion_record_is_exported_and_outlives_its_container() {
    let server = Server::with_container("\"defaultTtl\":10").await;
    set_lifecycle(&server, r#"{"deletionRecord":1}"#).await.expect_error(400, 0, "BadRequest");
    let on = set_lifecycle(&server, r#"{"deletionRecord":true}"#).await.expect_status(200);
    assert_eq!(on.member("lifecycle").get("deletionRecord"), Some(&Value::Bool(true)));
    for id in ["1", "2", "3"] {
        server.create("a", &format!(r#"{{"id":"{id}","pk":"a"}}"#)).await.expect_status(201);
    }
    server.advance(10);
    purge(&server).await;
    let logs = show(&server).await.member("deletionRecord");
    let log = logs.as_array().and_then(|logs| logs.first()).expect("one partition").clone();
    assert_eq!((log.get("count"), log.get("open")), (Some(&Value::Int(4)), Some(&Value::Bool(true))));

    let page = server.admin("GET", "/_bolide/ttl/db/c/log", "").send().await.expect_status(200);
    assert_eq!(page.header("content-type"), Some("application/x-ndjson"));
    assert_eq!((page.header("x-bolide-log-count"), page.header("x-bolide-log-last")), (Some("4"), Some("4")));
    let head = page.header("x-bolide-log-head").expect("a head").to_owned();
    assert_eq!(log.get("head"), Some(&Value::String(head.clone())));
    let mut verifier = Verifier::default();
    for line in page.text().split_inclusive('\n') {
        verifier.line(line.as_bytes()).unwrap();
    }
    assert_eq!(verifier.finish(Some(&head), Some(4)), Ok(head));
    let rest = server.admin("GET", "/_bolide/ttl/db/c/log?after=3&partition=0", "").send().await;
    assert_eq!(rest.expect_status(200).text().lines().count(), 1);
    for (path, status, code) in [
        ("/_bolide/ttl/db/c/log?after=x", 400, "BadRequest"),
        ("/_bolide/ttl/db/c/log?partition=1", 400, "BadRequest"),
        ("/_bolide/ttl/db/none/log", 404, "NotFound"),
        ("/_bolide/log/99999", 404, "NotFound"),
        ("/_bolide/log/x", 400, "BadRequest"),
    ] {
        server.admin("GET", path, "").send().await.expect_error(status, 0, code);
    }
    server.admin("DELETE", "/_bolide/log", "").send().await.expect_error(405, 0, "MethodNotAllowed");

    server.delete("/dbs/db/colls/c").send().await.expect_status(204);
    let all = server.admin("GET", "/_bolide/log", "").send().await.expect_status(200).member("logs");
    let closed = all.as_array().and_then(|logs| logs.first()).expect("it is still there").clone();
    assert_eq!((closed.get("count"), closed.get("open")), (Some(&Value::Int(5)), Some(&Value::Bool(false))));
    let number = closed.get("log").and_then(Value::as_i64).expect("a number");
    let lines = server.admin("GET", &format!("/_bolide/log/{number}"), "").send().await.expect_status(200);
    assert!(lines.text().lines().last().expect("lines").contains(r#""event":"dropped","items":0"#));
}
