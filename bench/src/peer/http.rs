//! HTTP/1.1 over one kept connection, with as little work as the protocol allows.

use std::io::{Read, Write};

use anyhow::{Context, Result, ensure};

use super::socket::{Socket, Trust};

const READ_BYTES: usize = 64 << 10;
const MAX_ANSWER_BYTES: usize = 64 << 20;

pub(super) struct Http {
    stream: Socket,
    /// The whole of the last answer.
    answer: Vec<u8>,
    head_end: usize,
}

impl Http {
    pub(super) fn connect(address: &str, trust: Option<&Trust>) -> Result<Http> {
        let stream = Socket::connect(address, trust)?;
        Ok(Http { stream, answer: Vec::with_capacity(READ_BYTES), head_end: 0 })
    }

    /// Sends a whole request and reads the whole answer; returns its status.
    pub(super) fn exchange(&mut self, request: &[u8]) -> Result<u16> {
        self.stream.write_all(request)?;
        self.stream.flush()?;
        self.answer.clear();
        self.head_end = loop {
            let searched = self.answer.len().saturating_sub(3);
            self.read()?;
            if let Some(at) = find(&self.answer[searched..], b"\r\n\r\n") {
                break searched + at + 4;
            }
        };
        match self.header("content-length") {
            Some(length) => {
                let end = self.head_end + length.parse::<usize>()?;
                ensure!(end < MAX_ANSWER_BYTES, "an answer of {end} bytes");
                while self.answer.len() < end {
                    self.read()?;
                }
            }
            None if self.header("transfer-encoding").is_some() => {
                while !self.answer.ends_with(b"0\r\n\r\n") {
                    ensure!(self.answer.len() < MAX_ANSWER_BYTES, "an answer without an end");
                    self.read()?;
                }
            }
            None => {}
        }
        let status = self.answer.get(9..12).context("a short status line")?;
        Ok(std::str::from_utf8(status)?.parse()?)
    }

    fn read(&mut self) -> Result<()> {
        let held = self.answer.len();
        self.answer.resize(held + READ_BYTES, 0);
        let count = self.stream.read(&mut self.answer[held..])?;
        self.answer.truncate(held + count);
        ensure!(count > 0, "the connection ended within an answer");
        Ok(())
    }

    /// Returns a header of the last answer, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let head = std::str::from_utf8(&self.answer[..self.head_end]).ok()?;
        head.split("\r\n").find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.answer[self.head_end..]
    }
}

pub(super) fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
