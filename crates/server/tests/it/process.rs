//! A running `bolide`, and a small client for it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

pub(crate) const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Returns the binary as a command, without the caller's settings in its environment.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bolide"));
    let is_setting = |name: &str| name.starts_with("BOLIDE_") || name.starts_with("AZURE_COSMOS_EMULATOR_");
    for (name, _) in std::env::vars().filter(|(name, _)| is_setting(name)) {
        command.env_remove(name);
    }
    command
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    command().args(arguments).output().unwrap()
}

/// A server on a free port.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// `127.0.0.1:port`, as the connection string says.
    pub(crate) address: String,
    pub(crate) connection_string: String,
    /// The connection string of the MongoDB API, unless that is off.
    pub(crate) mongo: Option<String>,
    /// The address of the explorer, unless it is off.
    pub(crate) explorer: Option<String>,
    /// Kept open, or the server's next line would break its pipe.
    stdout: BufReader<std::process::ChildStdout>,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Server {
        Server::start_command(command().args(["serve", "--listen", "127.0.0.1:0"]).args(arguments))
    }

    pub(crate) fn in_directory(directory: &Path, arguments: &[&str]) -> Server {
        let data = ["--data", directory.to_str().unwrap()];
        Server::start(&[&data, arguments].concat())
    }

    /// Starts as [`Server::in_directory`], and appends the log to a file.
    pub(crate) fn logging(directory: &Path, log: &Path, arguments: &[&str]) -> Server {
        let log = File::options().create(true).append(true).open(log).unwrap();
        let data = ["serve", "--listen", "127.0.0.1:0", "--data", directory.to_str().unwrap()];
        Server::start_command(command().args(data).args(arguments).stderr(log))
    }

    /// Starts and waits for the connection string.
    pub(crate) fn start_command(command: &mut Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let (mut mongo, mut explorer) = (None, None);
        while !line.starts_with("AccountEndpoint=") {
            mongo = mongo.or_else(|| line.starts_with("mongodb://").then(|| line.trim().to_owned()));
            explorer = explorer.or_else(|| line.strip_prefix("Explorer: ").map(|url| url.trim().to_owned()));
            line.clear();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "the server ended before it was ready");
        }
        let connection_string = line.trim().to_owned();
        let endpoint = connection_string.strip_prefix("AccountEndpoint=http://").unwrap();
        let address = endpoint.split('/').next().unwrap().to_owned();
        Server { child, address, connection_string, mongo, explorer, stdout }
    }

    /// Returns the line that the server prints after its connection string.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Sends SIGTERM and waits; returns the exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns the resident memory in KiB, where the system reports it.
    pub(crate) fn resident_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.request("GET", path, &[], "")
    }

    /// Sends a request without credentials.
    pub(crate) fn open(&self, path: &str) -> (u16, String) {
        self.exchange("GET", path, &[], "")
    }

    pub(crate) fn admin(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.admin_with(KEY, method, path, body)
    }

    pub(crate) fn admin_with(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        self.exchange(method, path, &[("authorization", &format!("Bearer {key}"))], body)
    }

    /// Sends a request signed with the emulator's key.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        self.request_with(KEY, method, path, headers, body)
    }

    /// Sends a request signed with any key.
    pub(crate) fn request_with(
        &self,
        key: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let date = now();
        let token = sign(method, path, &date, key);
        let mut all = vec![("x-ms-date", date.as_str()), ("authorization", token.as_str())];
        all.extend_from_slice(headers);
        self.exchange(method, path, &all, body)
    }

    /// Sends a request with these headers and no others.
    pub(crate) fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(self.head(method, path, headers, body.len()).as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        read_answer(&mut stream)
    }

    /// Runs a command of the MongoDB API, which must succeed.
    pub(crate) fn run_mongo(&self, json: &str) {
        let address = self.mongo.as_ref().unwrap().strip_prefix("mongodb://").unwrap();
        let mut stream = TcpStream::connect(address.split('/').next().unwrap()).unwrap();
        let command = bson::parse_extended_json(json).unwrap();
        let body = bson::RawDocument::from_document(command.as_document().unwrap());
        let length = i32::try_from(16 + 5 + body.as_bytes().len()).unwrap();
        let mut message = Vec::new();
        for number in [length, 1, 0, 2013, 0] {
            message.extend_from_slice(&number.to_le_bytes());
        }
        message.push(0);
        message.extend_from_slice(body.as_bytes());
        stream.write_all(&message).unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; i32::from_le_bytes(length) as usize - 4];
        stream.read_exact(&mut answer).unwrap();
        // After the rest of the header, the flags and the kind of the only section.
        let reply = bson::RawDocument::parse(answer.split_off(12 + 5).into()).unwrap().to_document();
        assert_eq!(reply.get("ok"), Some(&bson::Value::Double(1.0)), "{reply:?}");
        assert_eq!(reply.get("writeErrors"), None, "{reply:?}");
    }

    /// Returns a signed request's head, for tests that send the rest in their own way.
    pub(crate) fn signed_head(&self, method: &str, path: &str, body_bytes: usize) -> String {
        let date = now();
        let token = sign(method, path, &date, KEY);
        self.head(method, path, &[("x-ms-date", &date), ("authorization", &token)], body_bytes)
    }

    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], body_bytes: usize) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.extend(["content-length: ", &body_bytes.to_string(), "\r\nconnection: close\r\n\r\n"]);
        head
    }

    /// Creates database `db` with container `c`, whose definition has `extra` members.
    pub(crate) fn create_container(&self, extra: &str) {
        assert_eq!(self.request("POST", "/dbs", &[], r#"{"id":"db"}"#).0, 201);
        let body = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"version":2}}{extra}}}"#);
        let (status, text) = self.request("POST", "/dbs/db/colls", &[], &body);
        assert_eq!(status, 201, "{text}");
    }

    pub(crate) fn create(&self, id: &str) -> u16 {
        let body = format!("{{\"id\":\"{id}\",\"pk\":\"a\"}}");
        self.request("POST", "/dbs/db/colls/c/docs", &[("x-ms-documentdb-partitionkey", "[\"a\"]")], &body).0
    }

    pub(crate) fn read(&self, id: &str) -> u16 {
        let key = [("x-ms-documentdb-partitionkey", "[\"a\"]")];
        self.request("GET", &format!("/dbs/db/colls/c/docs/{id}"), &key, "").0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns status and body of an answer that ends with the connection; bytes that are not text are replaced.
pub(crate) fn read_answer(stream: &mut TcpStream) -> (u16, String) {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    (status.unwrap_or_else(|| panic!("no answer: {answer:?}")), body.unwrap_or_default())
}

/// Returns the machine's time as an RFC 1123 date.
pub(crate) fn now() -> String {
    let date =
        Command::new("date").args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"]).env("LC_ALL", "C").output().unwrap();
    String::from_utf8(date.stdout).unwrap().trim().to_owned()
}

/// Returns the authorization header as the SDKs make it.
pub(crate) fn sign(method: &str, path: &str, date: &str, key: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (kind, link) = match segments.len() {
        0 => ("", String::new()),
        count if count % 2 == 1 => (segments[count - 1], segments[..count - 1].join("/")),
        count => (segments[count - 2], segments.join("/")),
    };
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
    mac.update(text.as_bytes());
    let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()));
    utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
}
