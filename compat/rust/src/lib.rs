//! A Bolide process, its test clock, and an account client for it.
//!
//! The admin API is spoken over a plain socket, so that the suite needs no HTTP client beside the SDK's own.
//! Nothing sleeps for a deadline: time is moved. The SDK itself is used untouched: HTTP/2 with prior knowledge
//! and item bodies in Cosmos binary JSON are its defaults.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use azure_data_cosmos::models::{ContainerProperties, TimeToLive};
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, ContainerClient, CosmosClient, CosmosError, DatabaseClient,
    RoutingStrategy,
};
use serde_json::{Value, json};

/// The key every Cosmos emulator shares; Bolide accepts it while it listens on loopback only.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// One `bolide serve --memory --test-clock` on a free port, killed when dropped.
pub struct Server {
    child: Child,
    port: u16,
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// With more arguments for `bolide serve`.
    pub fn start_with(extra: &[&str]) -> Server {
        let binary = std::env::var("BOLIDE_BIN")
            .expect("BOLIDE_BIN must name the server binary; `cargo xtask compat rust` sets it");
        let mut child = Command::new(binary)
            .args(["serve", "--memory", "--test-clock", "--listen", "127.0.0.1:0"])
            .args(extra)
            .env_remove("BOLIDE_BIN")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let port = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| announced_port(&line))
            .expect("the server announces its address");
        // Keep the pipe drained, or a chatty server would block on it.
        std::thread::spawn(move || lines.for_each(drop));
        let server = Server { child, port };
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
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(START_TIMEOUT))?;
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {EMULATOR_KEY}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|text| text.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        Ok((status.unwrap_or(0), body.to_owned()))
    }

    fn admin(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, body) = self.call(method, path, body).expect("the admin API answers");
        assert_eq!(status, 200, "{method} {path}: {body}");
        serde_json::from_str(&body).unwrap_or(Value::Null)
    }

    pub fn now(&self) -> i64 {
        self.admin("GET", "/_bolide/clock", "")["now"].as_i64().expect("now is a number")
    }

    pub fn advance(&self, seconds: i64) {
        self.admin("POST", "/_bolide/clock", &json!({"advanceSeconds": seconds}).to_string());
    }

    /// Moves to an instant in Unix seconds, which must not lie in the past.
    pub fn move_to(&self, instant: i64) {
        let distance = instant - self.now();
        assert!(distance >= 0, "the clock cannot go back by {} s", -distance);
        self.advance(distance);
    }

    pub async fn client(&self) -> CosmosClient {
        let endpoint: AccountEndpoint =
            format!("http://127.0.0.1:{}/", self.port).parse().expect("a well-formed endpoint");
        let account = AccountReference::with_authentication_key(endpoint, EMULATOR_KEY.to_owned());
        CosmosClient::builder()
            .build(account, RoutingStrategy::ProximityTo("South Central US".into()))
            .await
            .expect("the account is readable")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn announced_port(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("http://127.0.0.1:")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// A database of its own, made on this server.
pub async fn database(client: &CosmosClient, id: &str) -> DatabaseClient {
    client.create_database(id, None).await.expect("the database is created");
    client.database_client(id.to_owned())
}

/// A container with partition key `/pk` and that default TTL.
pub async fn container(database: &DatabaseClient, id: &str, default_ttl: TimeToLive) -> ContainerClient {
    let properties = ContainerProperties::new(id.to_owned(), "/pk".into()).with_default_ttl(default_ttl);
    database.create_container(properties, None).await.expect("the container is created");
    database.container_client(id.to_owned(), None).await.expect("the container is found")
}

/// The HTTP status behind an SDK error.
pub fn status(error: &CosmosError) -> u16 {
    u16::from(error.status().status_code())
}
