//! A small client of the MongoDB wire protocol over one kept connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Bson, Value};

const OP_MSG: i32 = 2013;
/// Sixteen bytes of header, four of flags, one for the kind of section.
const BODY_AT: usize = 21;
const MAX_MESSAGE_BYTES: usize = 48 << 20;

pub struct WireClient {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl WireClient {
    pub fn connect(address: &str) -> Result<WireClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(WireClient { stream, answer: Vec::new() })
    }

    /// Runs a command in a database. Any failure is an error, also failed writes.
    pub fn command(&mut self, database: &str, command: Bson) -> Result<&[u8]> {
        self.exchange(&message(database, command))?;
        self.checked()
    }

    /// Sends a finished message and reads the answer, success or not.
    pub fn exchange(&mut self, message: &[u8]) -> Result<&[u8]> {
        self.stream.write_all(message)?;
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_le_bytes(head) as usize;
        ensure!((BODY_AT..=MAX_MESSAGE_BYTES).contains(&length), "a message of {length} bytes");
        self.answer.resize(length, 0);
        self.stream.read_exact(&mut self.answer[4..])?;
        Ok(&self.answer[BODY_AT..])
    }

    /// Returns the last answer, if it is a success.
    pub fn checked(&self) -> Result<&[u8]> {
        let body = self.answer.get(BODY_AT..).context("no answer yet")?;
        let ok = Value::field(body, "ok")?.and_then(|ok| ok.number());
        let failed = ok != Some(1.0) || Value::field(body, "writeErrors")?.is_some();
        ensure!(!failed, "the command failed: {}", String::from_utf8_lossy(body));
        Ok(body)
    }
}

/// Returns an `OP_MSG` of one document.
pub fn message(database: &str, command: Bson) -> Vec<u8> {
    let body = command.text("$db", database).finish();
    let mut message = Vec::with_capacity(BODY_AT + body.len());
    for number in [(BODY_AT + body.len()) as i32, 1, 0, OP_MSG, 0] {
        message.extend_from_slice(&number.to_le_bytes());
    }
    message.push(0);
    message.extend_from_slice(&body);
    message
}
