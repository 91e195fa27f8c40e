//! Peers without a key, as bytes: HTTP/2 with closed windows, prefaces, MongoDB headers that only announce.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use bolide_bench::client::{Bson, message};

use crate::process::Server;

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
/// Flags: the stream ends and the headers do; the ping is answered.
const END: u8 = 5;
const ACK: u8 = 1;

/// The setting that gives answers no window beyond later grants.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Connections that are made and kept. Those that the server closes are replaced, at most a tenth of the count every
/// second: the attack has little traffic. A flood is the network's problem.
pub struct PeerGroup {
    pub count: usize,
    /// The bytes that each sends.
    pub says: Vec<u8>,
    /// Whether they go to the MongoDB port.
    pub to_mongo: bool,
    /// Whether they read the server's bytes.
    pub reading: Reading,
}

/// Whether a peer reads its socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Reads everything, so that the kernel's buffers hold nothing up; answers pings.
    All,
    /// Nothing of HTTP/2: what the server writes stays in the kernel's buffers until they are full.
    Nothing,
}

impl PeerGroup {
    /// Keeps the connections until it is over; returns how many there were.
    pub fn keep(&self, server: &Server, over: &AtomicBool) -> Result<u64> {
        let address = if self.to_mongo { &server.mongo } else { &server.address };
        let (mut peers, mut made) = (Vec::new(), 0);
        let tenth = self.count.div_ceil(10);
        let mut pause = Duration::from_millis(100);
        while !over.load(Ordering::Relaxed) {
            peers.retain_mut(|peer| self.reading.is_open(peer));
            for _ in 0..(self.count - peers.len()).min(tenth) {
                let Ok(mut peer) = TcpStream::connect(address) else { break };
                peer.set_write_timeout(Some(Duration::from_secs(1)))?;
                let _ = peer.write_all(&self.says);
                peer.set_nonblocking(true)?;
                peers.push(peer);
                made += 1;
            }
            if made >= self.count as u64 {
                pause = Duration::from_secs(1);
            }
            std::thread::sleep(pause);
        }
        ensure!(made >= self.count as u64, "only {made} of {} connections were made", self.count);
        Ok(made)
    }
}

impl Reading {
    /// Handles the server's bytes, and returns whether the server has the connection open.
    fn is_open(self, peer: &mut TcpStream) -> bool {
        match self {
            Reading::All => drain(peer),
            // A peer that does not read sees no end; but a server that has closed resets what is written to it.
            Reading::Nothing => match peer.write(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])) {
                Ok(_) => true,
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            },
        }
    }
}

/// Reads the bytes that have come and answers pings, until the server closes.
fn drain(peer: &mut TcpStream) -> bool {
    let mut bytes = [0; 16 * 1024];
    loop {
        match peer.read(&mut bytes) {
            Ok(0) => return false,
            Ok(count) => {
                let ping = [0, 0, 8, PING, 0, 0, 0, 0, 0];
                let found = bytes[..count].windows(17).find(|frame| frame.starts_with(&ping));
                if let Some(found) = found {
                    let _ = peer.write_all(&frame(PING, ACK, 0, &found[9..]));
                }
            }
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the length of a text and the text, as HPACK has it without compression.
fn string(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if text.len() < 127 {
        bytes.push(text.len() as u8);
    } else {
        bytes.push(127);
        let mut rest = text.len() - 127;
        while rest >= 128 {
            bytes.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        bytes.push(rest as u8);
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Returns the beginning of a connection of HTTP/2, and no request.
pub fn preface() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// Returns so many requests for one path, whose answers have no window. The path is sent once and kept in the table of
/// headers, so that each further request takes a few bytes.
pub fn unread_answers(path: &str, requests: u32) -> Vec<u8> {
    unread_answers_to(path, &[], requests)
}

/// Returns such requests with further headers.
pub fn unread_answers_to(path: &str, headers: &[(&str, &str)], requests: u32) -> Vec<u8> {
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &NO_WINDOW)].concat();
    // `:method: GET`, `:scheme: http`, `:authority` as it is.
    let fixed = [&[0x82, 0x86, 0x01][..], &string("localhost")].concat();
    let further: Vec<u8> =
        headers.iter().flat_map(|(name, value)| [vec![0], string(name), string(value)].concat()).collect();
    for request in 0..requests {
        // The path, kept; then the last kept entry.
        let path = if request == 0 { [&[0x44][..], &string(path)].concat() } else { vec![0x80 | 62] };
        bytes.extend(frame(HEADERS, END, 2 * request + 1, &[&fixed[..], &path, &further].concat()));
    }
    bytes
}

/// Returns the first message of an authentication that is not continued. The server keeps it several times.
pub fn unfinished_authentication() -> Vec<u8> {
    let first = format!("n,,n={},r=abcdefghijklmnopqrstuvwx", "u".repeat(4000));
    let start = Bson::new().int("saslStart", 1).text("mechanism", "SCRAM-SHA-256").text("payload", &first);
    message("admin", start)
}

/// Returns the header of a MongoDB message that announces so many bytes.
pub fn announcement(bytes: i32) -> Vec<u8> {
    [bytes, 1, 0, 2013].map(i32::to_le_bytes).concat()
}
