//! Tracks where HTTP/1.1 requests end, beside hyper, and refuses what two programs could read differently.
//!
//! A proxy and the server behind it must agree on where a request ends, or a client can hide one request in another.
//! hyper accepts a line that ends without a carriage return, and silently drops `Content-Length` beside
//! `Transfer-Encoding`. Neither is visible in its result, so this module tracks the bytes as far as framing goes: lines
//! of a head, lengths of a body, chunks. From the first such request on, the connection is only answered with 400.
//! Requests that hyper itself refuses, and HTTP/2, are not tracked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The preface of every HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// The longest line; longer ones make a head that is refused for its size.
const LINE_BYTES_MAX: usize = 128 * 1024;
/// How much of a line is kept: hyper keeps the whole line, and what matters here stands at its beginning.
const KEPT_BYTES_MAX: usize = 512;

/// Reports which requests of a connection are refused for their framing.
#[derive(Debug, Clone)]
pub(crate) struct Ambiguity(Arc<AtomicUsize>);

impl Ambiguity {
    /// Returns whether the request with this number, counted from 0, is refused. That is known once hyper has read its
    /// head.
    pub(crate) fn is_in(&self, request: usize) -> bool {
        request >= self.0.load(Ordering::Acquire)
    }
}

impl Default for Ambiguity {
    fn default() -> Ambiguity {
        Ambiguity(Arc::new(AtomicUsize::new(usize::MAX)))
    }
}

/// Marks a request refused for its framing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ambiguous;

/// Tracks the bytes of one connection.
#[derive(Debug, Default)]
pub(crate) struct Framing {
    ambiguity: Ambiguity,
    /// Heads that have ended.
    heads: usize,
    state: State,
    line: Line,
    head: Head,
}

/// A line so far.
#[derive(Debug, Default)]
struct Line {
    /// Its beginning.
    kept: Vec<u8>,
    length: usize,
    last: u8,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Within the lines of a head.
    #[default]
    Head,
    /// Within a body of which so many bytes are left.
    Body(u64),
    /// Within a line that says how long a chunk is,
    ChunkSize,
    /// within the chunk and the end of its line,
    Chunk(u64),
    /// or within the lines behind the last one.
    Trailer,
    /// No longer tracked.
    Unchecked,
}

/// The headers of a head so far that matter for framing.
#[derive(Debug, Default)]
struct Head {
    lines: usize,
    length: Option<u64>,
    is_chunked: bool,
    /// Whether a line that matters was too long to be kept.
    is_cut: bool,
}

impl Framing {
    /// Returns a shared view of the result.
    pub(crate) fn ambiguity(&self) -> Ambiguity {
        self.ambiguity.clone()
    }

    /// Tracks the bytes just read.
    pub(crate) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = match self.state {
                State::Unchecked => return,
                State::Body(left) => self.skip(left, bytes.len(), State::Body, State::Head),
                State::Chunk(left) => self.skip(left, bytes.len(), State::Chunk, State::ChunkSize),
                State::Head | State::ChunkSize | State::Trailer => self.take_line(bytes),
            };
            bytes = &bytes[taken..];
        }
    }

    fn skip(&mut self, left: u64, there: usize, more: fn(u64) -> State, then: State) -> usize {
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(there);
        let left = left - taken as u64;
        self.state = if left > 0 { more(left) } else { then };
        taken
    }

    /// Consumes a part of a line; returns the number of bytes.
    fn take_line(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if self.line.length + part.len() > LINE_BYTES_MAX {
            self.state = State::Unchecked;
            return bytes.len();
        }
        self.line.add(part);
        let Some(end) = end else { return bytes.len() };
        let mut line = std::mem::take(&mut self.line);
        let next = if line.last == b'\r' { self.next_state(line.text(), line.is_whole()) } else { None };
        line.clear();
        self.line = line;
        if next.is_none() {
            self.ambiguity.0.store(self.heads, Ordering::Release);
        }
        self.state = next.unwrap_or(State::Unchecked);
        end + 1
    }

    /// Returns the state after a line that has ended, of which this was kept; `None` if the request must be refused.
    fn next_state(&mut self, line: &[u8], is_whole: bool) -> Option<State> {
        match self.state {
            State::ChunkSize if !is_whole && !line.contains(&b';') => None,
            State::ChunkSize => Some(match chunk_bytes(line) {
                Some(0) => State::Trailer,
                // Including the line end of the chunk.
                Some(bytes) => State::Chunk(bytes.saturating_add(2)),
                None => State::Unchecked,
            }),
            State::Head if line.is_empty() && self.head.lines > 0 => {
                let body = std::mem::take(&mut self.head).body()?;
                self.heads += 1;
                Some(body)
            }
            // The end of a trailer, or an empty line before a request, which is skipped.
            State::Trailer | State::Head if line.is_empty() => Some(State::Head),
            State::Head if self.head.lines == 0 && line.starts_with(HTTP2_PREFACE) => Some(State::Unchecked),
            State::Head => {
                self.head.read(line, is_whole);
                Some(State::Head)
            }
            other => Some(other),
        }
    }
}

impl Line {
    fn add(&mut self, part: &[u8]) {
        let wanted = (KEPT_BYTES_MAX - self.kept.len()).min(part.len());
        self.kept.extend_from_slice(&part[..wanted]);
        self.length += part.len();
        self.last = part.last().copied().unwrap_or(self.last);
    }

    fn is_whole(&self) -> bool {
        self.kept.len() == self.length
    }

    /// Returns what was kept of a line that ends with a carriage return, without that.
    fn text(&self) -> &[u8] {
        if self.is_whole() { self.kept.strip_suffix(b"\r").unwrap_or_default() } else { &self.kept }
    }

    fn clear(&mut self) {
        self.kept.clear();
        (self.length, self.last) = (0, 0);
    }
}

impl Head {
    fn read(&mut self, line: &[u8], is_whole: bool) {
        self.lines += 1;
        let Some(colon) = line.iter().position(|byte| *byte == b':').filter(|_| self.lines > 1) else {
            return;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            self.length = Some(str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0));
            self.is_cut |= !is_whole;
        }
        self.is_chunked |= name.eq_ignore_ascii_case(b"transfer-encoding");
    }

    /// Returns the state after the head; `None` if it defines the body's length twice, or at absurd length.
    fn body(self) -> Option<State> {
        match (self.length, self.is_chunked) {
            (Some(_), true) => None,
            (Some(_), false) if self.is_cut => None,
            (None, true) => Some(State::ChunkSize),
            (None | Some(0), false) => Some(State::Head),
            (Some(bytes), false) => Some(State::Body(bytes)),
        }
    }
}

/// Parses the length of a chunk; `None` if it is malformed.
fn chunk_bytes(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?.trim_ascii();
    u64::from_str_radix(str::from_utf8(size).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    const SIZED: &str = "POST /a HTTP/1.1\r\nHost: x\r\ncontent-length:  7 \r\n\r\n\n\n\r\nabc";
    const CHUNKED: &str = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n\na\r\nb\r\nA\r\n0123456789\r\n0\r\nT: x\r\n\r\n";

    /// Returns the first refused request of a connection whose bytes arrive in pieces of this size.
    fn refused_from(text: &str, piece: usize) -> Option<usize> {
        let mut framing = Framing::default();
        text.as_bytes().chunks(piece).for_each(|piece| framing.follow(piece));
        (0..1000).find(|request| framing.ambiguity().is_in(*request))
    }

    #[test]
    fn sound_requests_pass_whatever_their_bodies_are_and_however_they_arrive() {
        let all = [PLAIN, "\r\n", SIZED, CHUNKED, PLAIN, CHUNKED, SIZED, SIZED, PLAIN].concat();
        let http2 = format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n\n{PLAIN}\n");
        for piece in 1..all.len() {
            assert_eq!((refused_from(&all, piece), refused_from(&http2, piece)), (None, None), "{piece}");
        }
        assert_eq!(refused_from(&format!("{all}\n"), 7), Some(8), "and it is known where they end");
    }

    #[test]
    fn two_ways_to_say_where_a_request_ends_are_refused_when_its_head_ends() {
        for lines in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "transfer-encoding: chunked\r\nHost: x\r\ncontent-length: 0\r\n",
            "TRANSFER-ENCODING: gzip\r\nCONTENT-LENGTH:x\r\n",
        ] {
            for (before, number) in [("", 0), (PLAIN, 1), (SIZED, 1), (CHUNKED, 1)] {
                let head = format!("{before}POST /a HTTP/1.1\r\n{lines}\r\n");
                for piece in 1..head.len() {
                    assert_eq!(refused_from(&head, piece), Some(number), "{head}");
                    assert_eq!(refused_from(&head[..head.len() - 1], piece), None, "{head}");
                }
            }
        }
    }

    #[test]
    fn of_long_lines_a_beginning_is_kept() {
        let long = "x".repeat(60_000);
        let head = format!("GET /{long} HTTP/1.1\r\nHost: x\r\nA: {long}\r\n\r\n");
        let chunked = CHUNKED.replace("x=y", &long);
        let all = format!("{head}{chunked}{SIZED}");
        let mut framing = Framing::default();
        for piece in all.as_bytes().chunks(1000) {
            framing.follow(piece);
            assert!(framing.line.kept.capacity() <= 2 * KEPT_BYTES_MAX);
        }
        assert_eq!(refused_from(&all, 1000), None);
        assert_eq!(refused_from(&format!("{all}\n"), 1000), Some(3), "and it is known where they end");
        // Where the rest of a line could matter, nothing behind it is answered.
        let zeros = "0".repeat(2000);
        let sized = format!("POST /a HTTP/1.1\r\nContent-Length: {zeros}7\r\n\r\n1234567{PLAIN}");
        assert_eq!(refused_from(&sized, 1000), Some(0));
        let chunked = CHUNKED.replace("A\r\n", &format!("{zeros}A\r\n"));
        assert_eq!(refused_from(&format!("{PLAIN}{chunked}{PLAIN}"), 1000), Some(2));
    }

    #[test]
    fn a_line_of_a_head_that_ends_without_a_carriage_return_is_refused() {
        for head in
            ["GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nHost: x\n", "GET / HTTP/1.1\r\nHost: x\r\n\n", "\n"]
        {
            for (before, number) in [("", 0), (PLAIN, 1), (SIZED, 1), (CHUNKED, 1)] {
                let text = format!("{before}{head}");
                for piece in 1..text.len() {
                    assert_eq!(refused_from(&text, piece), Some(number), "{text:?}");
                }
            }
        }
        assert_eq!(refused_from(&CHUNKED.replace("T: x\r\n", "T: x\n"), 3), Some(1), "nothing behind it");
    }
}
