//! Redis with documents as strings, and EX for those that expire. It cannot query their content.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::process::{Process, first_line, free_port, new_folder};
use super::{About, Connection, Measured, Peer};
use crate::documents::{DataSet, Fields, Shape, TTL_SECONDS};
use crate::workload::{Kind, Operation};

pub struct Redis {
    process: Process,
    port: u16,
    about: About,
}

impl Redis {
    pub fn start() -> Result<Redis> {
        let (folder, port) = (new_folder("redis"), free_port()?);
        std::fs::create_dir(&folder)?;
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]).arg("--dir").arg(&folder);
        let process = Process::start(&mut command, folder, port)?;
        let about = About {
            version: first_line(Command::new("redis-server").arg("--version"))?,
            settings: "appendonly yes, appendfsync always; documents as strings, EX for expiring ones"
                .to_owned(),
            durability: "synced to disk (appendfsync always), once for all clients of one turn".to_owned(),
        };
        Ok(Redis { process, port, about })
    }
}

impl Peer for Redis {
    fn name(&self) -> &str {
        "redis"
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Read
                | Kind::Insert
                | Kind::InsertExpiring
                | Kind::Replace
                | Kind::Upsert
                | Kind::Mixed50
                | Kind::Mixed95
        )
    }

    fn prepare(&self, _: &DataSet) -> Result<()> {
        Ok(())
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let (name, shape) = (set.name.clone(), set.shape);
        Ok(Box::new(RedisConnection {
            stream,
            name,
            shape,
            request: Vec::new(),
            answer: Vec::new(),
            document: String::new(),
        }))
    }

    fn measured(&self) -> &dyn Measured {
        &self.process
    }
}

struct RedisConnection {
    stream: TcpStream,
    name: String,
    shape: Shape,
    request: Vec<u8>,
    answer: Vec<u8>,
    document: String,
}

impl RedisConnection {
    fn set(&mut self, id: u64, version: u64, more: &[&str]) -> Result<()> {
        self.document.clear();
        Fields::new(id, version, self.shape).json(&mut self.document);
        let (key, document) = (format!("{}:{id}", self.name), std::mem::take(&mut self.document));
        let mut words = vec!["SET", &key, &document];
        words.extend(more);
        let done = self.call(&words);
        self.document = document;
        done
    }

    /// Sends a command and reads one answer, which is a status or a string.
    fn call(&mut self, words: &[&str]) -> Result<()> {
        self.request.clear();
        write!(self.request, "*{}\r\n", words.len())?;
        for word in words {
            write!(self.request, "${}\r\n{word}\r\n", word.len())?;
        }
        self.stream.write_all(&self.request)?;
        self.answer.clear();
        while !self.whole()? {
            let held = self.answer.len();
            self.answer.resize(held + (32 << 10), 0);
            let count = self.stream.read(&mut self.answer[held..])?;
            self.answer.truncate(held + count);
            ensure!(count > 0, "the connection ended within an answer");
        }
        let good = self.answer.starts_with(b"+OK") || (self.answer[0] == b'$' && self.answer[1] != b'-');
        ensure!(good, "Redis: {}", String::from_utf8_lossy(&self.answer));
        Ok(())
    }

    fn whole(&self) -> Result<bool> {
        let Some(end) = self.answer.windows(2).position(|pair| pair == b"\r\n") else { return Ok(false) };
        let line = std::str::from_utf8(&self.answer[..end])?;
        match line.strip_prefix('$') {
            Some("-1") | None => Ok(true),
            Some(length) => {
                let length: usize = length.parse().context("no length")?;
                Ok(self.answer.len() >= end + length + 4)
            }
        }
    }
}

impl Connection for RedisConnection {
    fn run(&mut self, operation: Operation) -> Result<()> {
        match operation {
            Operation::Insert(id) => self.set(id, 0, &["NX"]),
            Operation::InsertExpiring(id) => self.set(id, 0, &["NX", "EX", &TTL_SECONDS.to_string()]),
            Operation::Replace(id, version) => self.set(id, version, &["XX"]),
            Operation::Upsert(id, version) => self.set(id, version, &[]),
            Operation::Read(id) => {
                let key = format!("{}:{id}", self.name);
                self.call(&["GET", &key])
            }
            other => bail!("Redis has no {other:?}"),
        }
    }

    fn rows(&self) -> Result<usize> {
        Ok(1)
    }
}
