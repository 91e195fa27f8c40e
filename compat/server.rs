//! A Bolide process and its test clock, for the suites of all Rust clients: each includes this file as a module of its own and
//! adds its client.
//!
//! The admin API is spoken over a plain socket, so that no suite needs an HTTP client beside what it tests. Nothing sleeps for
//! a deadline: time is moved, and stands still otherwise.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The key every Cosmos emulator shares; Bolide accepts it while it listens on loopback only.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// One `bolide serve --memory --test-clock --stopped-clock` on free ports, killed when dropped.
pub struct Server {
    child: Child,
    http: String,
    mongo: String,
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// With more arguments for `bolide serve`.
    pub fn start_with(extra: &[&str]) -> Server {
        let binary = std::env::var("BOLIDE_BIN")
            .expect("BOLIDE_BIN must name the server binary; `cargo xtask compat` sets it");
        let mut child = Command::new(binary)
            .args(["serve", "--memory", "--test-clock", "--stopped-clock", "--listen", "127.0.0.1:0"])
            .args(extra)
            .env_remove("BOLIDE_BIN")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let (mut http, mut mongo) = (None, None);
        for line in lines.by_ref().map_while(Result::ok) {
            mongo = mongo.or_else(|| announced(&line, "mongodb://"));
            http = announced(&line, "AccountEndpoint=http://");
            if http.is_some() {
                break;
            }
        }
        // Keep the pipe drained, or a chatty server would block on it.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Server {
            child,
            http: http.expect("the server announces its address"),
            mongo: mongo.expect("the server announces its MongoDB port"),
        };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if matches!(self.call("GET", "/ready", ""), Ok((200, _))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not become ready");
    }

    /// One HTTP/1.1 exchange with the bearer key: status and body.
    fn call(&self, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
        let mut socket = TcpStream::connect(&self.http)?;
        socket.set_read_timeout(Some(START_TIMEOUT))?;
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {EMULATOR_KEY}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.http,
            body.len()
        )?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|text| text.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Ok((status.unwrap_or(0), body.to_owned()))
    }

    pub fn admin(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, body) = self.call(method, path, body).expect("the admin API answers");
        assert_eq!(status, 200, "{method} {path}: {body}");
        serde_json::from_str(&body).unwrap_or(Value::Null)
    }

    /// Returns the certificate that clients by TLS should trust, PEM.
    pub fn root_certificate(&self) -> String {
        let (status, pem) = self.call("GET", "/_explorer/emulator.pem", "").expect("the server answers");
        assert_eq!(status, 200, "{pem}");
        pem
    }

    pub fn now(&self) -> i64 {
        self.admin("GET", "/_bolide/clock", "")["now"].as_i64().expect("now is a number")
    }

    pub fn advance(&self, seconds: i64) {
        self.admin("POST", "/_bolide/clock", &json!({"advanceSeconds": seconds}).to_string());
    }

    /// Pauses the purge: expired items stay where they are.
    pub fn pause_purge(&self) {
        self.admin("POST", "/_bolide/purge", &json!({"paused": true}).to_string());
    }

    /// Moves to an instant in Unix seconds, which must not lie in the past.
    pub fn move_to(&self, instant: i64) {
        let distance = instant - self.now();
        assert!(distance >= 0, "the clock cannot go back by {} s", -distance);
        self.advance(distance);
    }

    /// Host and port of the NoSQL API.
    pub fn http_address(&self) -> &str {
        &self.http
    }

    /// Host and port of the MongoDB API.
    pub fn mongo_address(&self) -> &str {
        &self.mongo
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The host and port behind that prefix.
fn announced(line: &str, prefix: &str) -> Option<String> {
    let (_, rest) = line.split_once(prefix)?;
    let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest);
    rest.split('/').next().map(str::to_owned)
}
