//! A small client of the NoSQL API over one kept connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The emulator's public key, which the server accepts on loopback.
pub const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// What was answered.
pub struct Answer {
    pub status: u16,
    pub charge: f64,
    /// Empty if there is none; of a feed the position to go on from.
    pub etag: String,
    pub body: String,
}

impl Answer {
    /// The number behind the first member of that name.
    pub fn number(&self, name: &str) -> Option<u64> {
        let (_, rest) = self.body.split_once(&format!("\"{name}\":"))?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
    }

    pub fn expect(self, status: u16) -> Result<Answer> {
        ensure!(self.status == status, "{} instead of {status}: {}", self.status, self.body);
        Ok(self)
    }
}

pub struct Client {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Client {
    pub fn connect(address: &str) -> Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Client { stream: BufReader::new(stream), address: address.to_owned() })
    }

    /// A call of the admin API.
    pub fn admin(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        self.exchange(method, path, &format!("authorization: Bearer {KEY}\r\n"), body)
    }

    /// A signed request with further header lines.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<Answer> {
        let date = date();
        let token = sign(method, path, &date)?;
        self.exchange(
            method,
            path,
            &format!("x-ms-date: {date}\r\nauthorization: {token}\r\n{headers}"),
            body,
        )
    }

    fn exchange(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<Answer> {
        let (host, length) = (&self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status =
            line.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status line")?;
        let (mut length, mut charge, mut etag) = (0, 0.0, String::new());
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the connection ended within an answer");
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse()?,
                "x-ms-request-charge" => charge = value.parse()?,
                "etag" => value.clone_into(&mut etag),
                "transfer-encoding" => bail!("a chunked answer"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, charge, etag, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// Makes a database.
    pub fn database(&mut self, name: &str) -> Result<()> {
        self.request("POST", "/dbs", "", &format!("{{\"id\":\"{name}\"}}"))?.expect(201).map(drop)
    }

    /// Makes a container with partition key `/pk` and further members in database `db`.
    pub fn container(&mut self, name: &str, more: &str, headers: &str) -> Result<()> {
        let body =
            format!("{{\"id\":\"{name}\",\"partitionKey\":{{\"paths\":[\"/pk\"],\"version\":2}}{more}}}");
        self.request("POST", "/dbs/db/colls", headers, &body)?.expect(201).map(drop)
    }

    /// Inserts items into one logical partition in one request.
    pub fn batch(&mut self, container: &str, pk: &str, bodies: &[String]) -> Result<()> {
        let operations: Vec<String> = bodies
            .iter()
            .map(|body| format!("{{\"operationType\":\"Create\",\"resourceBody\":{body}}}"))
            .collect();
        let headers = format!(
            "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n\
             x-ms-documentdb-partitionkey: [\"{pk}\"]\r\n"
        );
        let path = format!("/dbs/db/colls/{container}/docs");
        self.request("POST", &path, &headers, &format!("[{}]", operations.join(",")))?.expect(200).map(drop)
    }

    pub fn read(&mut self, container: &str, pk: &str, id: &str) -> Result<Answer> {
        let headers = format!("x-ms-documentdb-partitionkey: [\"{pk}\"]\r\n");
        self.request("GET", &format!("/dbs/db/colls/{container}/docs/{id}"), &headers, "")
    }

    pub fn upsert(&mut self, container: &str, pk: &str, body: &str) -> Result<Answer> {
        let headers =
            format!("x-ms-documentdb-partitionkey: [\"{pk}\"]\r\nx-ms-documentdb-is-upsert: True\r\n");
        self.request("POST", &format!("/dbs/db/colls/{container}/docs"), &headers, body)
    }

    pub fn advance(&mut self, seconds: u64) -> Result<()> {
        let body = format!("{{\"advanceSeconds\":{seconds}}}");
        self.admin("POST", "/_bolide/clock", &body)?.expect(200).map(drop)
    }

    /// Items purged and items that wait.
    pub fn purge(&mut self) -> Result<(u64, u64)> {
        let status = self.admin("GET", "/_bolide/status", "")?.expect(200)?;
        let backlog =
            status.body.split_once("\"backlog\":").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        let backlog = Answer { status: 0, charge: 0.0, etag: String::new(), body: backlog };
        Ok((status.number("purgedItems").unwrap_or(0), backlog.number("items").unwrap_or(0)))
    }
}

/// The machine's date as the protocol wants it, asked for once a minute.
pub fn date() -> String {
    static LAST: LazyLock<Mutex<Option<(Instant, String)>>> = LazyLock::new(Mutex::default);
    let mut last = LAST.lock().expect("nobody panics with it");
    match &*last {
        Some((when, date)) if when.elapsed() < Duration::from_secs(60) => date.clone(),
        _ => {
            let format = "+%a, %d %b %Y %H:%M:%S GMT";
            let output =
                Command::new("date").args(["-u", format]).env("LC_ALL", "C").output().expect("date runs");
            let date = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            *last = Some((Instant::now(), date.clone()));
            date
        }
    }
}

/// The authorization header's value for a request on that path at that date.
pub fn sign(method: &str, path: &str, date: &str) -> Result<String> {
    static DECODED: LazyLock<Vec<u8>> = LazyLock::new(|| STANDARD.decode(KEY).expect("a valid key"));
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (kind, link) = match segments.len() {
        0 => ("", String::new()),
        count if count % 2 == 1 => (segments[count - 1], segments[..count - 1].join("/")),
        count => (segments[count - 2], segments.join("/")),
    };
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let mut mac = Hmac::<Sha256>::new_from_slice(&DECODED)?;
    mac.update(text.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let escaped = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    Ok(format!("type%3Dmaster%26ver%3D1.0%26sig%3D{escaped}"))
}
