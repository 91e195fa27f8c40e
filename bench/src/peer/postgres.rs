//! PostgreSQL with documents as jsonb and an expiry column, over its own wire protocol.
//!
//! Every statement is prepared once for a connection; reads filter by the column, so that they do not see expired items.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::process::{Process, first_line, free_port, new_folder};
use super::{About, Connection, Peer};
use crate::documents::{DataSet, Fields, Shape, TTL_SECONDS};
use crate::workload::{Kind, Operation};

const USER: &str = "postgres";
const SETTINGS: [&str; 2] = ["max_connections=200", "synchronous_commit=on"];
const MAX_MESSAGE_BYTES: usize = 64 << 20;

pub struct Postgres {
    process: Process,
    port: u16,
    about: About,
}

impl Postgres {
    /// Starts it; `programs` is the folder with `initdb` and `postgres`, `cache_mib` the size of its cache.
    pub fn start(programs: &Path, cache_mib: u64) -> Result<Postgres> {
        let (folder, port) = (new_folder("postgres"), free_port()?);
        std::fs::create_dir(&folder)?;
        let data = folder.join("data");
        own(&folder)?;
        let mut initialise = as_user(programs.join("initdb"));
        initialise.arg("-D").arg(&data).args(["-U", USER, "--auth=trust", "--no-instructions"]);
        let made = initialise.stdout(Stdio::null()).status().context("cannot start initdb")?;
        ensure!(made.success(), "initdb failed");
        let mut command = as_user(programs.join("postgres"));
        command.arg("-D").arg(&data).args(["-p", &port.to_string()]).arg("-k").arg(&folder);
        let cache = format!("shared_buffers={cache_mib}MB");
        for setting in SETTINGS.into_iter().chain([cache.as_str()]) {
            command.args(["-c", setting]);
        }
        let process = Process::start(&mut command, folder, port)?;
        let about = About {
            version: first_line(Command::new(programs.join("postgres")).arg("--version"))?,
            settings: format!(
                "{cache}, {}; prepared statements; indexes on id, (doc->>'group'), (pk, n), expires",
                SETTINGS.join(", ")
            ),
            durability: "synced to disk (fsync and synchronous_commit on)".to_owned(),
        };
        Ok(Postgres { process, port, about })
    }

    /// Returns the folder in which Debian installs the programs.
    pub fn installed() -> Option<PathBuf> {
        let folder = PathBuf::from("/usr/lib/postgresql/15/bin");
        folder.join("initdb").exists().then_some(folder)
    }
}

/// Returns a command as another user: PostgreSQL refuses to run as root.
fn as_user(program: PathBuf) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(program);
    command
}

fn own(folder: &Path) -> Result<()> {
    if is_root() {
        let done = Command::new("chown").arg(format!("{USER}:{USER}")).arg(folder).status()?;
        ensure!(done.success(), "cannot give the folder to {USER}");
    }
    Ok(())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

impl Peer for Postgres {
    fn name(&self) -> &str {
        "postgresql"
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, kind: Kind) -> bool {
        kind != Kind::Tail
    }

    fn prepare(&self, set: &DataSet) -> Result<()> {
        let name = &set.name;
        let mut wire = Wire::connect(self.port)?;
        wire.simple(&format!(
            "create table {name} (id text primary key, pk text not null, doc jsonb not null, expires timestamptz);\
             create index on {name} ((doc->>'group'));\
             create index on {name} (pk, ((doc->>'n')::int));\
             create index on {name} (expires) where expires is not null"
        ))
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        let mut wire = Wire::connect(self.port)?;
        for (name, text) in statements(&set.name, set.shape) {
            wire.prepare(name, &text)?;
        }
        Ok(Box::new(PostgresConnection { wire, shape: set.shape, document: String::new() }))
    }

    fn cpu_seconds(&self) -> Result<f64> {
        self.process.cpu_seconds()
    }

    fn resident_mib(&self) -> Result<u64> {
        self.process.resident_mib()
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.process.disk_bytes()
    }
}

fn statements(table: &str, shape: Shape) -> [(&'static str, String); 10] {
    let middle = shape.middle();
    let living = "(expires is null or expires > now())";
    [
        ("insert", format!("insert into {table} (id, pk, doc) values ($1, $2, $3)")),
        (
            "expiring",
            format!(
                "insert into {table} (id, pk, doc, expires) \
                 values ($1, $2, $3, now() + interval '{TTL_SECONDS} seconds')"
            ),
        ),
        ("read", format!("select doc from {table} where id = $1 and {living}")),
        ("replace", format!("update {table} set doc = $2 where id = $1 and {living}")),
        (
            "upsert",
            format!(
                "insert into {table} (id, pk, doc) values ($1, $2, $3) \
                 on conflict (id) do update set doc = excluded.doc, expires = null"
            ),
        ),
        (
            "patch",
            format!("update {table} set doc = jsonb_set(doc, '{{price}}', $2) where id = $1 and {living}"),
        ),
        ("query", format!("select doc from {table} where doc->>'group' = $1 and {living}")),
        ("scoped", format!("select doc from {table} where pk = $1 and doc->>'group' = $2 and {living}")),
        (
            "top",
            format!(
                "select doc from {table} where pk = $1 and {living} order by (doc->>'n')::int desc limit 10"
            ),
        ),
        (
            "count",
            format!(
                "select count(*) from {table} where pk = $1 and (doc->>'n')::int < {middle} and {living}"
            ),
        ),
    ]
}

struct PostgresConnection {
    wire: Wire,
    shape: Shape,
    document: String,
}

impl PostgresConnection {
    fn whole(&mut self, statement: &str, id: u64, version: u64) -> Result<()> {
        self.document.clear();
        Fields::new(id, version, self.shape).json(&mut self.document);
        let (id, pk) = (id.to_string(), self.shape.partition(id).to_string());
        if statement == "replace" {
            return self.wire.execute(statement, &[&id, &self.document]);
        }
        self.wire.execute(statement, &[&id, &pk, &self.document])
    }
}

impl Connection for PostgresConnection {
    fn run(&mut self, operation: Operation) -> Result<()> {
        match operation {
            Operation::Insert(id) => self.whole("insert", id, 0),
            Operation::InsertExpiring(id) => self.whole("expiring", id, 0),
            Operation::Replace(id, version) => self.whole("replace", id, version),
            Operation::Upsert(id, version) => self.whole("upsert", id, version),
            Operation::Read(id) => self.wire.execute("read", &[&id.to_string()]),
            Operation::Patch(id, version) => {
                self.wire.execute("patch", &[&id.to_string(), &version.to_string()])
            }
            Operation::Query(group) => self.wire.execute("query", &[&format!("g{group}")]),
            Operation::Scoped(group) => {
                let pk = self.shape.partition_of_group(group).to_string();
                self.wire.execute("scoped", &[&pk, &format!("g{group}")])
            }
            Operation::Top(pk) => self.wire.execute("top", &[&pk.to_string()]),
            Operation::Count(pk) => self.wire.execute("count", &[&pk.to_string()]),
            Operation::Tail => bail!("PostgreSQL has no feed"),
        }?;
        ensure!(self.wire.rows > 0, "nothing for {operation:?}");
        Ok(())
    }

    fn rows(&self) -> Result<usize> {
        Ok(self.wire.number.unwrap_or(self.wire.rows))
    }
}

/// The extended protocol, values as text.
struct Wire {
    stream: TcpStream,
    out: Vec<u8>,
    input: Vec<u8>,
    at: usize,
    /// The number of rows that the last statement returned or changed.
    rows: usize,
    /// The last row's value, if the row is one short number.
    number: Option<usize>,
}

impl Wire {
    fn connect(port: u16) -> Result<Wire> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut wire = Wire { stream, out: Vec::new(), input: Vec::new(), at: 0, rows: 0, number: None };
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

    fn simple(&mut self, text: &str) -> Result<()> {
        self.message(b'Q', |out| {
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        });
        self.flush_and_wait()
    }

    fn prepare(&mut self, name: &str, text: &str) -> Result<()> {
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

    fn execute(&mut self, name: &str, values: &[&str]) -> Result<()> {
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
