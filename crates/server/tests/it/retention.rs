//! The retention promise through the real process (T24): after its bound no file of the data directory has a byte of what
//! died, under load and over kill -9.

use std::path::Path;
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
        // A file that goes while we look holds nothing.
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

/// A figure of the purge.
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
fn t24_after_the_bound_no_file_has_what_died_though_others_read_and_write() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &["--test-clock"]);
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
    let server = Server::in_directory(directory.path(), &["--test-clock"]);
    promise(&server);
    create_marked(&server, "vanishing");
    advance(&server, 1000);
    wait_for(&server, "purgedItems", ITEMS);
    server.kill();
    assert!(holds(directory.path(), "vanishing"), "it was killed before the scrub");
    let server = Server::in_directory(directory.path(), &["--test-clock"]);
    wait_for(&server, "scrubs", 1);
    assert!(!holds(directory.path(), "vanishing"));
}

#[test]
fn t24_a_missed_bound_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::in_directory(directory.path(), &["--test-clock"]);
    promise(&server);
    create_marked(&server, "vanishing");
    assert_eq!(server.admin("POST", "/_bolide/purge", "{\"paused\":true}").0, 200);
    advance(&server, 1060);
    wait_for(&server, "missedBounds", 1);
    assert_eq!(server.admin("POST", "/_bolide/purge", "{\"paused\":false}").0, 200);
    wait_for(&server, "scrubs", 1);
    assert!(!holds(directory.path(), "vanishing"));
}

#[expect(clippy::disallowed_methods, reason = "another process cannot be told to hurry")]
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}
