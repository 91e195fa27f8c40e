//! Many idle connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::process::Server;

const WANTED: usize = 2_500;

/// Returns how many files this process may open, without those that it needs itself.
fn possible() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3)?.parse::<usize>().ok());
    soft.unwrap_or(1024).saturating_sub(200).min(WANTED)
}

#[test]
fn thousands_of_idle_connections_cost_little_and_delay_no_request() {
    let server = Server::start(&["--memory", "--max-unauthenticated-connections", "5000"]);
    server.create_container("");
    let before = server.resident_kib();
    let count = possible();
    if count < WANTED {
        eprintln!("the limit on open files allows only {count} connections instead of {WANTED}");
    }
    let mut held = Vec::with_capacity(count);
    for n in 0..count {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // Half of them are silent, half have had one answer and stay.
        if n % 2 == 0 {
            stream.write_all(b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
        }
        held.push(stream);
    }
    assert_eq!(server.create("1"), 201);
    assert_eq!(server.read("1"), 200);
    if let (Some(before), Some(after)) = (before, server.resident_kib()) {
        let each = (after - before.min(after)) * 1024 / count as u64;
        assert!(each < 32 * 1024, "{each} bytes for each idle connection");
    }
    drop(held);
    assert_eq!(server.terminate(), Some(0));
}

/// A burst of connections waits to be accepted: with a short queue the system would drop some, for a second each.
#[test]
fn a_thousand_connections_wait_for_a_server_that_is_busy() {
    let server = Server::start(&["--memory"]);
    let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    let count = allowed.trim().parse().unwrap_or(128).min(1000).min(possible());
    let address = server.address.parse().unwrap();
    server.signal("STOP");
    let mut waiting: Vec<TcpStream> =
        (0..count).map(|_| TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap()).collect();
    server.signal("CONT");
    let last = waiting.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    last.write_all(b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    last.read_exact(&mut [0]).unwrap();
    assert_eq!(server.terminate(), Some(0));
}

/// With few files, connections get those that the store does not need, and a new connection replaces an unauthenticated
/// one.
#[test]
fn few_files_are_left_to_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("sh");
    let server = env!("CARGO_BIN_EXE_bolide");
    command.args([
        "-c",
        "ulimit -n 256 && exec \"$@\"",
        "sh",
        server,
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
    ]);
    let server = Server::start_command(command.arg(directory.path()));
    server.create_container("");
    let alive = b"GET /alive HTTP/1.1\r\nhost: x\r\n\r\n";
    // Reads it whole, so that nothing is left for the next time: the answer is small.
    let is_served = |stream: &mut TcpStream| {
        stream.write_all(alive).is_ok() && stream.read(&mut [0; 4096]).is_ok_and(|read| read > 100)
    };
    let mut held: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    // The server may evict the first of them for the last.
    held.retain_mut(is_served);
    held.retain_mut(is_served);
    assert_eq!(held.len(), 64, "connections with 256 files");
    assert!(is_served(&mut TcpStream::connect(&server.address).unwrap()), "a newcomer");
    assert_eq!(server.create("1"), 201);
    assert_eq!(server.terminate(), Some(0));
}
