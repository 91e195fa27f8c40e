//! Checks the server's accounting of memory: answers that authenticated peers leave unread, against the memory of the
//! process.
//!
//! `request-memory` bounds what is counted. That only bounds memory if the count is correct, so the resident memory may grow
//! by 1.3 times the bytes that are counted, and by no more.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bolide_bench::client::{Client, resident_kib_of};

use crate::overload_peers::{held_bytes, make_large_items, signed, wait_for};
use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// Memory may grow by so many times the bytes that are counted.
const MOST: f64 = 1.3;
/// The least that has to be counted for a ratio to say something.
const COUNTED_LEAST: u64 = 64 << 20;
/// More peers than there is room for.
const PEERS: usize = 80;
/// The count is stable when it has not changed for this long.
const STILL: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs it.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let launch = Launch::new(&setting.server, place);
    let server = launch.start()?;
    let mut client = Client::connect(&server.address)?;
    make_large_items(&mut client)?;
    let path = "/dbs/db/colls/c/docs";
    let headers = "x-ms-documentdb-partitionkey: [\"p\"]\r\n";
    // The memory that the first page brings into the caches does not belong to an answer.
    client.request("GET", path, headers, "")?.expect(200)?;
    let before = resident_kib_of(server.id())?.0 << 10;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{}{headers}\r\n", signed("GET", path));
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        let mut stream = TcpStream::connect(&server.address)?;
        stream.write_all(request.as_bytes())?;
        peers.push(stream);
    }
    let counted = counted_at_last(&server)?;
    let grown = (resident_kib_of(server.id())?.0 << 10).saturating_sub(before);
    ensure!(counted >= COUNTED_LEAST, "only {} MiB are counted, which shows nothing", counted >> 20);
    let ratio = grown as f64 / counted as f64;
    let told = format!(
        "{PEERS} peers with a key left pages unread: {} MiB are counted, memory grew by {} MiB, {ratio:.2} times as much",
        counted >> 20,
        grown >> 20
    );
    ensure!(ratio <= MOST, "{told}; {MOST} would do");
    drop(peers);
    server.stop(Duration::from_secs(60))?;
    Ok(Outcome::Held(told))
}

/// Returns the count once it has stopped growing.
fn counted_at_last(server: &Server) -> Result<u64> {
    let (mut most, mut since) = (0, Instant::now());
    wait_for(PATIENCE, || {
        let counted = held_bytes(server)?;
        if counted > most {
            (most, since) = (counted, Instant::now());
        }
        Ok(most > 0 && since.elapsed() >= STILL)
    })?;
    held_bytes(server)
}
