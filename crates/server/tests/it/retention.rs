//! The retention promise through the real process (T24): after its bound no file of the data directory has a byte of the
//! expired items, under load and over kill -9.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::process::Server;

const KEY: [(&str, &str); 1] = [("x-ms-documentdb-partitionkey", "[\"a\"]")];
const ITEMS: usize = 60;

/// Whether any file below `directory` has these bytes.
fn holds(directory: &Path, marker: &str) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, marker);
        }
        // A file that disappears meanwhile contains nothing.
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
    })
}

/// Items that carry a marker in their id and in their body.
fn create_marked(server: &Server, marker: &str) {
    for number in 0..ITEMS {
        let body =
            format!(r#"{{"id":"{marker}-{number}","pk":"a","secret":"{number} {marker} {number:x}"}}"#);
        assert_eq!(server.request("POST", "/dbs/db/colls/c/docs", &KEY, &body).0, 201);
    }
}

fn advance(server: &Server, seconds: u64) {
    let (status, text) = server.admin("POST", "/_bolide/clock", &format!("{{\"advanceSeconds\":{seconds}}}"));
    assert_eq!(status, 200, "{text}");
}

/// Returns a figure of the purge.
fn figure(server: &Server, name: &str) -> usize {
    let (_, text) = server.admin("GET", "/_bolide/purge", "");
    let (_, rest) = text.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name}: {text}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Waits until a figure of the purge is at least so large.
fn wait_for(server: &Server, name: &str, least: usize) {
    for _ in 0..1200 {
        if figure(server, name) >= least {
            return;
        }
        pause();
    }
    panic!("{name} stays below {least}: {}", server.admin("GET", "/_bolide/purge", "").1);
}

fn promise(server: &Server) {
    server.create_container(",\"defaultTtl\":1000");
    let (status, text) = server.admin("PATCH", "/_bolide/ttl/db/c", "{\"maxPurgeDelay\":60}");
    assert_eq!(status, 200, "{text}");
}

#[test]
fn t24_after_the_bound_no_file_has_expired_data_under_reads_and_writes() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &["--test-clock", "--stopped-clock"]);
    promise(&server);
    create_marked(&server, "vanishing");
    assert!(holds(directory.path(), "vanishing"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..50).cycle() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let body = format!(r#"{{"id":"busy-{number}","pk":"a","ttl":-1}}"#);
                let headers = [KEY[0], ("x-ms-documentdb-is-upsert", "True")];
                assert!(server.request("POST", "/dbs/db/colls/c/docs", &headers, &body).0 < 300);
                assert_eq!(server.read(&format!("busy-{number}")), 200);
            }
        });
        advance(&server, 1000);
        wait_for(&server, "purgedItems", ITEMS);
        advance(&server, 30);
        wait_for(&server, "scrubs", 1);
        over.store(true, Ordering::Relaxed);
    });
    assert!(!holds(directory.path(), "vanishing"));
    assert_eq!(figure(&server, "missedBounds"), 0);
    assert_eq!(server.read("busy-7"), 200);
}

#[test]
fn t24_what_was_purged_before_a_kill_is_gone_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &["--test-clock", "--stopped-clock"]);
    promise(&server);
    create_marked(&server, "vanishing");
    advance(&server, 1000);
    wait_for(&server, "purgedItems", ITEMS);
    server.kill();
    assert!(holds(directory.path(), "vanishing"), "it was killed before the scrub");
    let server = Server::in_directory(directory.path(), &["--test-clock", "--stopped-clock"]);
    wait_for(&server, "scrubs", 1);
    assert!(!holds(directory.path(), "vanishing"));
}

/// Killed before the purge, and then again and again in the middle of a scrub.
#[test]
fn t24_expired_data_is_gone_however_often_the_work_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let start = || Server::in_directory(directory.path(), &["--test-clock", "--stopped-clock"]);
    let server = start();
    promise(&server);
    create_marked(&server, "vanishing");
    assert_eq!(server.admin("POST", "/_bolide/purge", "{\"paused\":true}").0, 200);
    advance(&server, 1000);
    assert_eq!(figure(&server, "purgedItems"), 0);
    server.kill();

    let server = start();
    wait_for(&server, "purgedItems", ITEMS);
    server.kill();
    // A scrub begins with the start. Each may get twice as far as the previous one, until one finishes.
    let mut kills_in_a_scrub = 0;
    loop {
        let server = start();
        if !wait_for_changes(&server, directory.path(), 1 << kills_in_a_scrub) {
            break;
        }
        server.kill();
        kills_in_a_scrub += 1;
    }
    assert!(kills_in_a_scrub >= 3, "{kills_in_a_scrub}");
    assert!(!holds(directory.path(), "vanishing"));
}

/// Waits until files have appeared or disappeared so many times; returns false if a scrub ends first.
fn wait_for_changes(server: &Server, directory: &Path, changes: usize) -> bool {
    let (mut before, mut seen) = (files(directory), 0);
    while figure(server, "scrubs") == 0 {
        let after = files(directory);
        seen += before.symmetric_difference(&after).count();
        if seen >= changes {
            return true;
        }
        before = after;
    }
    false
}

/// All files below a directory.
fn files(directory: &Path) -> BTreeSet<PathBuf> {
    // A directory that disappears meanwhile has no files.
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { BTreeSet::from([path]) };
    entries.flat_map(|entry| below(entry.path())).collect()
}

/// A collection of the MongoDB API that expires by a date of its documents (T27).
#[test]
fn t24_of_a_collection_nothing_is_left_either() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &["--test-clock", "--stopped-clock"]);
    server.run_mongo(
        r#"{"createIndexes": "c", "indexes": [{"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 0},
            {"key": {"secret": 1}, "name": "secret_1"}], "$db": "app"}"#,
    );
    let (status, text) = server.admin("PATCH", "/_bolide/ttl/app/c?api=mongodb", "{\"maxPurgeDelay\":60}");
    assert_eq!(status, 200, "{text}");
    let expires_ms = (seconds_now(&server) + 1000) * 1000;
    for number in 0..ITEMS {
        server.run_mongo(&format!(
            r#"{{"insert": "c", "documents": [{{"_id": "vanishing-{number}", "secret": "{number} vanishing {number:x}",
                "at": {{"$date": {{"$numberLong": "{expires_ms}"}}}}}}], "$db": "app"}}"#
        ));
    }
    server.run_mongo(r#"{"insert": "c", "documents": [{"_id": "remaining"}], "$db": "app"}"#);
    assert!(holds(directory.path(), "vanishing"));
    advance(&server, 1000);
    wait_for(&server, "purgedItems", ITEMS);
    server.kill();
    let server = Server::in_directory(directory.path(), &["--test-clock", "--stopped-clock"]);
    wait_for(&server, "scrubs", 1);
    assert!(!holds(directory.path(), "vanishing"));
    assert!(holds(directory.path(), "remaining"));
}

#[test]
fn t24_a_missed_bound_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (data, log) = (directory.path().join("data"), directory.path().join("log"));
    let server = Server::logging(&data, &log, &["--test-clock", "--stopped-clock"]);
    promise(&server);
    create_marked(&server, "vanishing");
    assert_eq!(server.admin("POST", "/_bolide/purge", "{\"paused\":true}").0, 200);
    advance(&server, 1059);
    assert_eq!(missed(&server), "0");
    advance(&server, 1);
    wait_for(&server, "missedBounds", 1);
    assert_eq!(missed(&server), "1");
    assert_eq!(server.admin("POST", "/_bolide/purge", "{\"paused\":false}").0, 200);
    wait_for(&server, "scrubs", 1);
    assert!(!holds(&data, "vanishing"));
    assert_eq!(missed(&server), "1", "it is counted once");
    assert_eq!(server.terminate(), Some(0));
    let log = std::fs::read_to_string(log).unwrap();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("retention promise missed")).collect();
    assert!(matches!(told[..], [line] if line.contains("ERROR") && line.contains("'db/c'")), "{log}");
}

/// The metric of missed bounds.
fn missed(server: &Server) -> String {
    let (_, page) = server.admin("GET", "/metrics", "");
    let lines = page.lines().filter_map(|line| line.strip_prefix("bolide_retention_missed_total "));
    lines.collect()
}

fn seconds_now(server: &Server) -> u64 {
    let (_, text) = server.admin("GET", "/_bolide/clock", "");
    let (_, rest) = text.split_once("\"now\":").unwrap();
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "another process cannot be told to hurry")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}
