//! Checks the server's accounting of memory: the bytes it counts for peers, against the memory of the process.
//!
//! `request-memory` bounds the bytes counted. That only bounds memory if the count is correct, so the resident memory may
//! grow by at most 1.3 times the counted bytes.

use std::any::Any;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bolide_bench::client::{Bson, Client, message, resident_kib_of};
use direct::{Blocking, Call};
use rntbd::OperationType;

use crate::hostile_peers::unread_answers_to;
use crate::item_client::account;
use crate::overload_peers::{held_bytes, make_large_items, signed, wait_for};
use crate::process::{Launch, Server};
use crate::{Outcome, Setting};

/// How many times the counted bytes the memory may grow by.
const MOST: f64 = 1.3;
/// The fewest counted bytes for which the ratio is judged.
const COUNTED_LEAST: u64 = 64 << 20;
/// The count is stable when it has not changed for this long.
const STILL: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The path of the items.
const ITEMS: &str = "/dbs/db/colls/c/docs";
const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey: [\"p\"]\r\n";

/// A kind of peer, and what it makes the server hold.
struct Kind {
    name: &'static str,
    /// More peers than there is memory for, or enough to judge.
    peers: usize,
    /// Makes one peer do so, for as long as the result exists.
    begin: fn(&Server) -> Result<Box<dyn Any>>,
}

const KINDS: [Kind; 5] = [
    Kind { name: "pages over HTTP that are not read", peers: 80, begin: unread_page },
    Kind { name: "pages over HTTP/2 that have no window", peers: 20, begin: unread_http2_pages },
    Kind { name: "bodies over HTTP without their end", peers: 60, begin: unfinished_body },
    Kind { name: "MongoDB messages without their end", peers: 4, begin: unfinished_message },
    Kind { name: "pages in direct mode that are not read", peers: 20, begin: unread_direct_pages },
];

/// Runs the check.
pub fn run(setting: &Setting, place: &Path) -> Result<Outcome> {
    let launch = Launch::new(&setting.server, place);
    let mut told = Vec::new();
    for kind in &KINDS {
        told.push(kind.check(&launch).context(kind.name)?);
    }
    Ok(Outcome::Held(told.join("; ")))
}

impl Kind {
    /// Compares the count with the memory, of a server that has held nothing yet.
    fn check(&self, launch: &Launch) -> Result<String> {
        let server = launch.start()?;
        let mut client = Client::connect(&server.address)?;
        make_large_items(&mut client)?;
        // The memory that the first page brings into the caches does not belong to an answer.
        client.request("GET", ITEMS, PARTITION_KEY, "")?.expect(200)?;
        let before = resident_kib_of(server.id())?.0 << 10;
        let peers = (0..self.peers).map(|_| (self.begin)(&server)).collect::<Result<Vec<_>>>()?;
        let counted = counted_at_last(&server)?;
        let grown = (resident_kib_of(server.id())?.0 << 10).saturating_sub(before);
        ensure!(counted >= COUNTED_LEAST, "only {} MiB are counted, which shows nothing", counted >> 20);
        let ratio = grown as f64 / counted as f64;
        let told = format!(
            "{}: {} MiB are counted, memory grew by {} MiB, {ratio:.2} times as much",
            self.name,
            counted >> 20,
            grown >> 20
        );
        ensure!(ratio <= MOST, "{told}; {MOST} would do");
        drop(peers);
        server.kill()?;
        std::fs::remove_dir_all(&launch.data).context("cannot remove the data")?;
        Ok(told)
    }
}

fn unread_page(server: &Server) -> Result<Box<dyn Any>> {
    let mut stream = TcpStream::connect(&server.address)?;
    let request = format!("GET {ITEMS} HTTP/1.1\r\nhost: x\r\n{}{PARTITION_KEY}\r\n", signed("GET", ITEMS));
    stream.write_all(request.as_bytes())?;
    Ok(Box::new(stream))
}

/// Asks for pages with a key and grants no window for them.
fn unread_http2_pages(server: &Server) -> Result<Box<dyn Any>> {
    let lines = [signed("GET", ITEMS), PARTITION_KEY.to_owned()].concat();
    let headers: Vec<_> = lines.lines().filter_map(|line| line.split_once(": ")).collect();
    let mut stream = TcpStream::connect(&server.address)?;
    stream.write_all(&unread_answers_to(ITEMS, &headers, 4))?;
    Ok(Box::new(stream))
}

fn unfinished_body(server: &Server) -> Result<Box<dyn Any>> {
    const BYTES: usize = 2_000_000;
    let mut stream = TcpStream::connect(&server.address)?;
    let head = format!(
        "POST {ITEMS} HTTP/1.1\r\nhost: x\r\n{}{PARTITION_KEY}content-length: {BYTES}\r\n\r\n",
        signed("POST", ITEMS)
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&vec![b' '; BYTES - 1])?;
    Ok(Box::new(stream))
}

fn unfinished_message(server: &Server) -> Result<Box<dyn Any>> {
    let text = "z".repeat(4_000_000);
    let documents = (0..8).map(|_| Bson::new().text("text", &text).finish());
    let bytes = message("test", Bson::new().text("insert", "large").array("documents", documents));
    let mut stream = TcpStream::connect(&server.mongo)?;
    stream.write_all(&bytes[..bytes.len() - 1])?;
    Ok(Box::new(stream))
}

fn unread_direct_pages(server: &Server) -> Result<Box<dyn Any>> {
    let mut client = Blocking::connect(server.address.parse()?, &server.root_certificate()?, account())?;
    let pages = Call::new(OperationType::ReadFeed, &ITEMS[1..]).key("[\"p\"]");
    for _ in 0..4 {
        client.send(&pages)?;
    }
    Ok(Box::new(client))
}

/// Returns the count once it has stopped growing.
fn counted_at_last(server: &Server) -> Result<u64> {
    let (mut most, mut since) = (0, Instant::now());
    wait_for(MAX_WAIT, || {
        let counted = held_bytes(server)?;
        if counted > most {
            (most, since) = (counted, Instant::now());
        }
        Ok(most > 0 && since.elapsed() >= STILL)
    })?;
    held_bytes(server)
}
