//! PostgreSQL's protocol: simple queries, and prepared statements with values as text.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// The extended protocol, values as text.
pub(super) struct Wire {
    stream: TcpStream,
    out: Vec<u8>,
    input: Vec<u8>,
    at: usize,
    /// The number of rows that the last statement returned or changed.
    pub(super) rows: usize,
    /// The last row's value, if the row is one short number.
    pub(super) number: Option<usize>,
    /// The rows of the statement, where they are wanted.
    kept: Option<Vec<Vec<String>>>,
}

impl Wire {
    pub(super) fn connect(port: u16) -> Result<Wire> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut wire =
            Wire { stream, out: Vec::new(), input: Vec::new(), at: 0, rows: 0, number: None, kept: None };
        let mut hello = 196_608_i32.to_be_bytes().to_vec();
        hello.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
        wire.out.extend_from_slice(&(hello.len() as i32 + 4).to_be_bytes());
        wire.out.extend_from_slice(&hello);
        wire.flush_and_wait()?;
        Ok(wire)
    }

    /// Adds a message; its length is filled in after its body.
    fn message(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(kind);
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        body(&mut self.out);
        let length = (self.out.len() - at) as i32;
        self.out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }

    pub(super) fn simple(&mut self, text: &str) -> Result<()> {
        self.message(b'Q', |out| {
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        });
        self.flush_and_wait()
    }

    /// Runs a statement without parameters, and returns its rows.
    pub(super) fn rows_of(&mut self, text: &str) -> Result<Vec<Vec<String>>> {
        self.kept = Some(Vec::new());
        let done = self.simple(text);
        let rows = self.kept.take().unwrap_or_default();
        done.map(|()| rows)
    }

    pub(super) fn prepare(&mut self, name: &str, text: &str) -> Result<()> {
        self.message(b'P', |out| {
            for part in [name, text] {
                out.extend_from_slice(part.as_bytes());
                out.push(0);
            }
            out.extend_from_slice(&[0; 2]);
        });
        self.message(b'S', |_| {});
        self.flush_and_wait()
    }

    pub(super) fn execute(&mut self, name: &str, values: &[&str]) -> Result<()> {
        self.message(b'B', |out| {
            out.push(0);
            out.extend_from_slice(name.as_bytes());
            out.push(0);
            out.extend_from_slice(&[0; 2]);
            out.extend_from_slice(&(values.len() as i16).to_be_bytes());
            for value in values {
                out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                out.extend_from_slice(value.as_bytes());
            }
            out.extend_from_slice(&[0; 2]);
        });
        self.message(b'E', |out| out.extend_from_slice(&[0; 5]));
        self.message(b'S', |_| {});
        self.flush_and_wait()
    }

    /// Reads until the server is ready for the next statement.
    fn flush_and_wait(&mut self) -> Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        (self.rows, self.number) = (0, None);
        let mut failure = None;
        loop {
            let (kind, from, to) = self.next()?;
            let body = &self.input[from..to];
            match kind {
                b'Z' => break,
                b'E' => failure = Some(String::from_utf8_lossy(body).replace('\0', " ")),
                b'D' => {
                    self.rows += 1;
                    if let Some(kept) = &mut self.kept {
                        kept.push(columns(body)?);
                    }
                    let value = body.get(6..).filter(|value| value.len() < 12);
                    self.number = value.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
                }
                b'C' if self.rows == 0 => {
                    let text = String::from_utf8_lossy(body);
                    let count = text.trim_end_matches('\0').rsplit(' ').next().unwrap_or_default();
                    self.rows = count.parse().unwrap_or(0);
                }
                b'R' => ensure!(body == [0; 4], "the server wants a password"),
                _ => {}
            }
        }
        match failure {
            Some(failure) => bail!("PostgreSQL: {failure}"),
            None => Ok(()),
        }
    }

    /// Returns the next message: its kind, and the range of its body.
    fn next(&mut self) -> Result<(u8, usize, usize)> {
        loop {
            let held = &self.input[self.at..];
            if held.len() >= 5 {
                let length = u32::from_be_bytes([held[1], held[2], held[3], held[4]]) as usize;
                ensure!((4..MAX_MESSAGE_BYTES).contains(&length), "a message of {length} bytes");
                if held.len() > length {
                    let (kind, from) = (held[0], self.at + 5);
                    self.at += length + 1;
                    return Ok((kind, from, self.at));
                }
            }
            self.input.drain(..self.at);
            self.at = 0;
            let held = self.input.len();
            self.input.resize(held + (32 << 10), 0);
            let count = self.stream.read(&mut self.input[held..])?;
            self.input.truncate(held + count);
            ensure!(count > 0, "the connection ended within an answer");
        }
    }
}

/// Returns the columns of a row as text; null is empty.
fn columns(row: &[u8]) -> Result<Vec<String>> {
    let (count, mut rest) = row.split_first_chunk::<2>().context("a short row")?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, value) = rest.split_first_chunk::<4>().context("a short row")?;
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        columns.push(String::from_utf8_lossy(value.get(..length).context("a short row")?).into_owned());
        rest = &value[length..];
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_split_into_columns() {
        let row = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\x01c";
        assert_eq!(columns(row).unwrap(), ["ab", "", "c"]);
        assert!(columns(&row[..9]).is_err());
    }
}
