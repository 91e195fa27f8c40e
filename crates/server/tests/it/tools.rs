//! Tools that talk to a running server: `bolide status`, `bolide ttl`.

use std::process::Output;

use crate::process::{Server, run};

/// Runs a tool against a server; returns its exit code and output.
pub(crate) fn tool(server: &Server, arguments: &[&str]) -> (Option<i32>, String) {
    let url = format!("http://{}", server.address);
    told(&run(&[arguments, &["--url", &url]].concat()))
}

fn told(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// Runs a tool that must succeed.
#[track_caller]
pub(crate) fn succeed(server: &Server, arguments: &[&str]) -> String {
    let (code, text) = tool(server, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {text}");
    text
}

fn advance(server: &Server, seconds: u64) {
    let (status, text) = server.admin("POST", "/_bolide/clock", &format!("{{\"advanceSeconds\":{seconds}}}"));
    assert_eq!(status, 200, "{text}");
}

#[test]
fn status_tells_how_a_server_is() {
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    server.create_container(",\"defaultTtl\":3600");
    assert_eq!(server.create("x"), 201);
    let text = succeed(&server, &["status"]);
    for part in ["ready", "a test clock", "1 in 1 database", "db/c", "1 h"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = succeed(&server, &["status", "--json"]);
    assert!(json.contains("\"ready\":true") && json.contains("\"problems\":[]"), "{json}");
    let (code, text) = tool(&server, &["status", "--key", "b3RoZXI="]);
    assert!(code == Some(2) && text.contains("does not accept the key"), "{text}");
    assert!(!text.contains("b3RoZXI="), "{text}");
    let address = server.address.clone();
    server.kill();
    let (code, text) = told(&run(&["status", "--url", &format!("http://{address}")]));
    assert!(code == Some(2) && text.contains("is it running?"), "{text}");
}

#[test]
fn status_ends_with_1_when_a_promise_was_missed_t24() {
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    server.create_container(",\"defaultTtl\":10");
    assert_eq!(server.create("x"), 201);
    assert_eq!(server.admin("PATCH", "/_bolide/ttl/db/c", "{\"maxPurgeDelay\":60}").0, 200);
    succeed(&server, &["ttl", "purge", "pause"]);
    advance(&server, 600);
    // The background checks its promises by itself, at a time of its own.
    let mut last = String::new();
    for _ in 0..600 {
        let (code, text) = tool(&server, &["status"]);
        if code == Some(1) {
            assert!(text.contains("PROBLEM") && text.contains("maxPurgeDelay"), "{text}");
            return;
        }
        last = text;
        advance(&server, 60);
    }
    panic!("{last}");
}

#[test]
fn ttl_reports_forecasts_and_tries_t30() {
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    server.create_container(",\"defaultTtl\":7200");
    for id in ["x", "y", "z"] {
        assert_eq!(server.create(id), 201);
    }
    let report = succeed(&server, &["ttl", "report", "db/c"]);
    assert!(report.contains("default TTL 2 h\n") && report.contains("living      3 items"), "{report}");
    assert!(succeed(&server, &["ttl", "report"]).contains("db/c"));
    let forecast = succeed(&server, &["ttl", "forecast", "db/c", "--by", "hour", "--count", "3"]);
    assert!(
        forecast.contains(&"█".repeat(40)) && forecast.contains("0 items (0 B) never expire"),
        "{forecast}"
    );
    let tried = succeed(&server, &["ttl", "dry-run", "db/c", "--default-ttl", "600"]);
    assert!(tried.contains("0 items (0 B) would expire at once, 3 items"), "{tried}");
    advance(&server, 1000);
    let tried = succeed(&server, &["ttl", "dry-run", "db/c", "--default-ttl", "600"]);
    assert!(tried.contains("3 items") && tried.contains("would expire at once, 0 items"), "{tried}");
    let tried = succeed(&server, &["ttl", "dry-run", "db/c", "--default-ttl", "-1", "--json"]);
    assert!(tried.contains("\"defaultTtl\":-1"), "{tried}");
    let (code, text) = tool(&server, &["ttl", "report", "db/d"]);
    assert!(code == Some(2) && text.contains("it has: db/c"), "{text}");
}

#[test]
fn ttl_holds_and_purges_t31() {
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    server.create_container(",\"defaultTtl\":10");
    for id in ["x", "y"] {
        assert_eq!(server.create(id), 201);
    }
    let item = ["--id", "x", "--partition-key", "a"];
    succeed(&server, &[&["ttl", "hold", "place", "db/c", "--reason", "case 7"], &item[..]].concat());
    let listed = succeed(&server, &["ttl", "hold", "list", "db/c"]);
    assert!(listed.contains("[\"a\"] \"x\"") && listed.contains("case 7"), "{listed}");
    succeed(&server, &["ttl", "purge", "pause"]);
    advance(&server, 100);
    assert_eq!((server.read("x"), server.read("y")), (200, 404));
    let (code, text) = tool(&server, &["ttl", "purge", "now"]);
    assert!(code == Some(2) && text.contains("paused"), "{text}");
    succeed(&server, &["ttl", "purge", "resume"]);
    succeed(&server, &["ttl", "purge", "now", "db/c"]);
    assert!(succeed(&server, &["ttl", "report", "db/c"]).contains("expired     0 items"));
    succeed(&server, &[&["ttl", "hold", "lift", "db/c"], &item[..]].concat());
    assert_eq!(server.read("x"), 404);
    succeed(&server, &["ttl", "hold", "place", "db/c", "--reason", "audit"]);
    assert!(
        succeed(&server, &["ttl", "hold", "list", "db/c"]).contains("the whole container is held: audit")
    );
    succeed(&server, &["ttl", "hold", "lift", "db/c", "--confirm"]);
    let json = succeed(&server, &["ttl", "hold", "list", "db/c", "--json"]);
    assert_eq!(json.trim(), r#"{"container":null,"items":[]}"#);
}

#[test]
fn top_shows_what_happens_between_two_looks() {
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    server.create_container(",\"defaultTtl\":10");
    assert_eq!(server.create("x"), 201);
    let page = succeed(&server, &["top", "--once", "--interval", "0.1"]);
    for part in ["requests    ", "latency     half ", "purge       0.0 items/s", "db/c", "AdminReadStatus"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains('\u{1b}'), "a pipe is no terminal: {page}");
    assert!(!page.contains("CreateItem"), "it was before: {page}");
}

#[test]
fn tools_use_tls_with_servers_of_the_given_root() {
    let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Server::in_directory(directory.path(), &[]);
    let other_server = Server::in_directory(other.path(), &[]);
    let url = format!("https://{}", server.address);
    let root = |directory: &std::path::Path| directory.join("tls/root.pem").to_str().unwrap().to_owned();
    let status = |root: &[&str]| told(&run(&[&["status", "--url", &url], root].concat()));
    let (code, text) = status(&["--ca", &root(directory.path())]);
    assert!(code == Some(0) && text.contains(&url), "{text}");
    let (code, text) = status(&["--ca", &root(other.path())]);
    assert!(code == Some(2) && text.contains("TLS with") && text.contains("--ca"), "{text}");
    let (code, text) = status(&[]);
    assert!(code == Some(2) && text.contains("--ca FILE"), "{text}");
    drop(other_server);
}
