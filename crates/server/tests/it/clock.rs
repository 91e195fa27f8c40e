//! The test clock and the purge loop in the real process.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use storage::{ClockOptions, EmbeddedOptions, EmbeddedStore, ManualClock, Store, Time};

use crate::process::{Server, command};
use crate::tools::{succeed, tool};

fn number(json: &str, name: &str) -> u64 {
    let rest = json.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {json}")).1;
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[test]
fn a_year_passes_at_once_and_clients_keep_working_t29() {
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    server.create_container(",\"defaultTtl\":31536000");
    assert_eq!(server.create("1"), 201);
    let (status, before) = server.admin("GET", "/_bolide/clock", "");
    assert_eq!(status, 200);
    assert!(before.contains("\"testClock\":true"), "{before}");
    let (status, after) = server.admin("POST", "/_bolide/clock", "{\"advanceSeconds\":31536000}");
    assert_eq!(status, 200, "{after}");
    assert!(number(&after, "now") >= number(&before, "now") + 31_536_000);
    assert_eq!(server.read("1"), 404);
    assert_eq!(server.create("1"), 201);
}

#[test]
fn the_clock_is_not_moved_without_the_mode_t29() {
    let server = Server::start(&["--memory"]);
    let (status, body) = server.admin("POST", "/_bolide/clock", "{\"advanceSeconds\":1}");
    assert_eq!(status, 400);
    assert!(body.contains("test-clock mode"), "{body}");
}

#[test]
fn an_advanced_store_opens_only_with_the_mode_t29() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &["--test-clock"]);
    let (_, after) = server.admin("POST", "/_bolide/clock", "{\"advanceSeconds\":1000000}");
    server.kill();
    let data = directory.path().to_str().unwrap();
    let refused = command().args(["--data", data, "--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("test-clock mode"));
    let server = Server::in_directory(directory.path(), &["--test-clock"]);
    let (_, clock) = server.admin("GET", "/_bolide/clock", "");
    assert!(number(&clock, "now") >= number(&after, "now"), "time went back over a kill");
}

#[test]
fn the_purge_runs_by_itself_when_something_is_due_t19() {
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    server.create_container(",\"defaultTtl\":1000");
    for n in 0..5 {
        assert_eq!(server.create(&n.to_string()), 201);
    }
    server.admin("POST", "/_bolide/clock", "{\"advanceSeconds\":2000}");
    for _ in 0..2400 {
        let (_, status) = server.admin("GET", "/_bolide/purge", "");
        if number(&status, "purgedItems") == 5 {
            return;
        }
        wait(Duration::from_millis(25));
    }
    panic!("nothing was purged: {}", server.admin("GET", "/_bolide/status", "").1);
}

#[test]
fn an_idle_store_on_disk_purges_expired_items_t19() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &[]);
    server.create_container(",\"defaultTtl\":-1");
    let key = [("x-ms-documentdb-partitionkey", "[\"a\"]")];
    let body = r#"{"id":"1","pk":"a","ttl":1}"#;
    assert_eq!(server.request("POST", "/dbs/db/colls/c/docs", &key, body).0, 201);
    // No request wakes the purge meanwhile: it must wake by itself.
    for _ in 0..240 {
        let (_, status) = server.admin("GET", "/_bolide/status", "");
        if number(&status, "purgedItems") == 1 {
            return;
        }
        wait(Duration::from_millis(250));
    }
    panic!("nothing was purged: {}", server.admin("GET", "/_bolide/status", "").1);
}

#[test]
fn the_limit_of_a_start_gap_is_set_t34() {
    for (limit, leap) in [("60", true), ("7200", false)] {
        let directory = tempfile::tempdir().unwrap();
        use_an_hour_ago(directory.path());
        let server = Server::in_directory(directory.path(), &["--max-start-gap", limit]);
        let (_, clock) = server.admin("GET", "/_bolide/clock", "");
        assert_eq!(clock.contains("\"leap\":\"start\""), leap, "limit {limit}: {clock}");
    }
}

/// As an operator would after an alert.
#[test]
fn a_suspect_clock_is_shown_accepted_or_rejected_by_the_tool_t34() {
    for (decision, said, hours_back) in
        [("accept", "accepted the new time", 0), ("reject", "rejected the leap", 1)]
    {
        let directory = tempfile::tempdir().unwrap();
        use_an_hour_ago(directory.path());
        let server = Server::in_directory(directory.path(), &["--max-start-gap", "60"]);
        let (code, status) = tool(&server, &["status"]);
        assert!(code == Some(1) && status.contains("see bolide clock"), "{status}");
        let (code, shown) = tool(&server, &["clock"]);
        assert_eq!(code, Some(1), "{shown}");
        for part in ["\ntrusted ", "\nSUSPECT ", "clock 1 h ", "bolide clock accept", "bolide clock reject"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let (code, before) = tool(&server, &["clock", "--json"]);
        assert!(code == Some(1) && before.contains("\"leap\":\"start\""), "{before}");
        let decided = succeed(&server, &["clock", decision]);
        assert!(decided.starts_with(said) && !decided.contains("SUSPECT"), "{decided}");
        let after = succeed(&server, &["clock", "--json"]);
        let seconds_back = number(&before, "now").saturating_sub(number(&after, "now"));
        assert_eq!((seconds_back + 1800) / 3600, hours_back, "{before} {after}");
        assert_eq!(succeed(&server, &["status", "--ready"]), "");
        let again = succeed(&server, &["clock", decision]);
        assert!(again.contains("nothing changed"), "{again}");
    }
}

#[test]
fn a_test_clock_is_moved_by_the_tool_and_no_other_is_t29() {
    let server = Server::start(&["--memory", "--test-clock"]);
    let moved = succeed(&server, &["clock", "advance", "86400"]);
    assert!(moved.contains("advanced the clock by 1 d\n") && moved.contains("test clock  "), "{moved}");
    assert_eq!(number(&succeed(&server, &["clock", "--json"]), "advancedSeconds"), 86_400);
    let server = Server::start(&["--memory", "--test-clock", "--stopped-clock"]);
    let moved = succeed(&server, &["clock", "advance", "1"]);
    assert!(moved.contains("advanced by 1 s in total; it stands still until it is advanced\n"), "{moved}");
    let server = Server::start(&["--memory"]);
    let (code, text) = tool(&server, &["clock", "advance", "1"]);
    assert!(code == Some(2) && text.contains("test-clock mode"), "{text}");
    let (code, text) = tool(&server, &["clock", "advance", "-1"]);
    assert_eq!(code, Some(2), "{text}");
}

/// The store was used on a machine whose clock was 20 s ahead of this one's.
#[test]
fn t34_a_store_ahead_of_the_system_clock_is_told_by_tools_metrics_and_log() {
    let directory = tempfile::tempdir().unwrap();
    let (data, log) = (directory.path().join("data"), directory.path().join("log"));
    use_at(&data, 20);
    let server = Server::logging(&data, &log, &[]);
    let ahead = |text: &str| text.contains(" s ahead of the system clock, slowing down until they agree\n");
    for command in ["status", "clock"] {
        let shown = succeed(&server, &[command]);
        assert!(shown.contains("\noffset      ") && ahead(&shown), "{shown}");
    }
    let top = succeed(&server, &["top", "--once"]);
    assert!(ahead(&top), "{top}");
    let (_, metrics) = server.admin("GET", "/metrics", "");
    let offset = metrics.lines().find_map(|line| line.strip_prefix("bolide_clock_offset_seconds ")).unwrap();
    let offset: f64 = offset.parse().unwrap();
    assert!(offset > 1.0 && offset <= 20.0, "{offset}");
    let warnings = || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.lines().filter(|line| line.contains("WARN") && line.contains("s ahead of the")).count()
    };
    for _ in 0..1200 {
        if warnings() > 0 {
            break;
        }
        wait(Duration::from_millis(50));
    }
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(warnings(), 1, "{}", std::fs::read_to_string(&log).unwrap());
}

/// Leaves a store in the directory that was closed cleanly an hour ago, by its own clock.
fn use_an_hour_ago(directory: &Path) {
    use_at(directory, -3600);
}

/// Leaves a store in the directory that was closed cleanly so many seconds from now, by its own clock.
fn use_at(directory: &Path, seconds: i64) {
    #[expect(clippy::disallowed_methods, reason = "the server that opens the store goes by the real time")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let clock = ManualClock::new(Time::from_seconds(now.as_secs().strict_add_signed(seconds)));
    let store = EmbeddedStore::open(EmbeddedOptions::new(directory, ClockOptions::new(Arc::new(clock))));
    let store = store.unwrap();
    // A store that never returned a time has none to measure a gap from.
    store.now().unwrap();
    store.close().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "another process cannot be told to hurry")]
fn wait(duration: Duration) {
    std::thread::sleep(duration);
}
