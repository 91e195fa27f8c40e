//! A small client of the NoSQL API over one kept connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calendar::http_date;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The emulator's public key, which the server accepts on loopback.
pub const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// An answer.
pub struct Answer {
    pub status: u16,
    pub charge: f64,
    /// Empty if there is none; of a feed the position from which to continue.
    pub etag: String,
    /// The progress of a container's new index, in percent.
    pub index_progress: Option<u8>,
    /// When to retry after a refusal.
    pub retry_after_ms: Option<u64>,
    pub body: String,
}

impl Answer {
    /// Returns the number behind the first member of that name.
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

    /// Sends a request to the admin API.
    pub fn admin(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        self.exchange(method, path, &format!("authorization: Bearer {KEY}\r\n"), body)
    }

    /// Sends a signed request with further header lines.
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

    /// Sends a request with these header lines and no others.
    pub fn plain(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<Answer> {
        self.exchange(method, path, headers, body)
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
        let (mut index_progress, mut retry_after_ms) = (None, None);
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the connection ended within an answer");
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse()?,
                "x-ms-request-charge" => charge = value.parse()?,
                "etag" => value.clone_into(&mut etag),
                "x-ms-documentdb-collection-index-transformation-progress" => {
                    index_progress = value.parse().ok()
                }
                "x-ms-retry-after-ms" => retry_after_ms = value.parse().ok(),
                "transfer-encoding" => bail!("a chunked answer"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Answer { status, charge, etag, index_progress, retry_after_ms, body })
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

    /// Pauses the purge, or lets it go on.
    pub fn pause_purge(&mut self, is_paused: bool) -> Result<()> {
        let body = format!("{{\"paused\":{is_paused}}}");
        self.admin("POST", "/_bolide/purge", &body)?.expect(200).map(drop)
    }

    /// Returns the number of items purged and of items that wait.
    pub fn purge(&mut self) -> Result<(u64, u64)> {
        let status = self.admin("GET", "/_bolide/status", "")?.expect(200)?;
        let purged = status.number("purgedItems").unwrap_or(0);
        let backlog =
            status.body.split_once("\"backlog\":").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        let waiting = Answer { body: backlog, ..status };
        Ok((purged, waiting.number("items").unwrap_or(0)))
    }
}

/// Returns the machine's date as the protocol wants it.
pub fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    http_date(seconds)
}

/// Returns the authorization header's value for a request on that path at that date.
pub fn sign(method: &str, path: &str, date: &str) -> Result<String> {
    let (kind, link) = kind_and_link(path);
    Ok(sign_link(method, kind, &link, &date.to_lowercase()))
}

fn kind_and_link(path: &str) -> (&str, String) {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.len() {
        0 => ("", String::new()),
        count if count % 2 == 1 => (segments[count - 1], segments[..count - 1].join("/")),
        count => (segments[count - 2], segments.join("/")),
    }
}

/// Returns the same for a caller that knows the parts; method and date may be in lower case.
pub fn sign_link(method: &str, kind: &str, link: &str, lower_date: &str) -> String {
    static MAC: LazyLock<Hmac<Sha256>> = LazyLock::new(|| {
        let key = STANDARD.decode(KEY).expect("a valid key");
        Hmac::new_from_slice(&key).expect("any length will do")
    });
    token(MAC.clone(), method, kind, link, lower_date)
}

/// Returns the authorization header's value for a request that another key of the account signs.
pub fn sign_with(key: &str, method: &str, path: &str, date: &str) -> Result<String> {
    let (kind, link) = kind_and_link(path);
    let mac = Hmac::new_from_slice(&STANDARD.decode(key)?)?;
    Ok(token(mac, method, kind, &link, &date.to_lowercase()))
}

fn token(mut mac: Hmac<Sha256>, method: &str, kind: &str, link: &str, lower_date: &str) -> String {
    for part in [method.to_lowercase().as_str(), "\n", kind, "\n", link, "\n", lower_date, "\n\n"] {
        mac.update(part.as_bytes());
    }
    let mut token = String::with_capacity(100);
    token.push_str("type%3Dmaster%26ver%3D1.0%26sig%3D");
    for sign in STANDARD.encode(mac.finalize().into_bytes()).chars() {
        match sign {
            '+' => token.push_str("%2B"),
            '/' => token.push_str("%2F"),
            '=' => token.push_str("%3D"),
            other => token.push(other),
        }
    }
    token
}
