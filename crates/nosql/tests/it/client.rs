//! A server, and a client that is small enough to send anything, also requests that no library would send.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use account::{Key, Keyring};
use document::{Value, parse_json};
use engine::{Engine, MemoryArchive, Options};
use nosql::{AccountSettings, AdminHooks, Limits, Service, Tls};
use storage::{ClockOptions, ManualClock, MemoryDisk, MemoryStore, TestClock, Time};
use telemetry::{MemoryAuditSink, Registry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use transport::Admission;

pub(crate) use crate::signature::{sign, sign_link};

pub(crate) const KEY: &str = "c29tZSBzZWNyZXQga2V5IGZvciB0ZXN0cw==";
pub(crate) const START: u64 = 1_700_000_000;
pub(crate) const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";

/// A running front end and everything that a test may change.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) engine: Arc<Engine>,
    /// The disk of the store.
    pub(crate) disk: MemoryDisk,
    /// The wall clock for the dates of signatures.
    pub(crate) real_seconds: Arc<AtomicU64>,
    /// The archive of containers that name one.
    pub(crate) archive: Arc<MemoryArchive>,
    /// The account's keys, of which `KEY` is the primary one.
    pub(crate) keys: Keyring,
    /// The audit log, unless the server was given another one.
    pub(crate) audit: Arc<MemoryAuditSink>,
    stop: Option<oneshot::Sender<()>>,
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::with_limits(Limits::default()).await
    }

    pub(crate) async fn with_limits(limits: Limits) -> Server {
        Server::with(limits, true, |service| service).await
    }

    /// A server whose clock is not a test clock, so that leaps make it suspect.
    pub(crate) async fn with_guarded_clock() -> Server {
        Server::with(Limits::default(), false, |service| service).await
    }

    /// A server that also speaks TLS, whose metrics go to a registry, and audit events, too, if it has a log.
    pub(crate) async fn with_tls(
        limits: Limits,
        tls: Tls,
        registry: Registry,
        more: impl FnOnce(Service) -> Service,
    ) -> Server {
        let more = |service: Service| more(service.with_tls(tls));
        Server::over(Options::default(), limits, true, registry, more).await
    }

    /// A server with this admission control.
    pub(crate) async fn with_admission(admission: Arc<Admission>) -> Server {
        Server::with(Limits::default(), true, |service| service.with_admission(admission)).await
    }

    /// A server whose account the operator has set.
    pub(crate) async fn with_account(account: AccountSettings) -> Server {
        Server::with(Limits::default(), true, |service| service.with_account(account)).await
    }

    /// A server with these hooks of the admin API.
    pub(crate) async fn with_admin_hooks(hooks: AdminHooks) -> Server {
        Server::with(Limits::default(), true, |service| service.with_admin_hooks(hooks)).await
    }

    /// A server with this admission control, over an engine with these options.
    pub(crate) async fn with_admission_and_options(admission: Arc<Admission>, options: Options) -> Server {
        let more = |service: Service| service.with_admission(admission);
        Server::over(options, Limits::default(), true, Registry::default(), more).await
    }

    /// A server with this admission control, and these pages.
    pub(crate) async fn with_admission_and_pages(
        admission: Arc<Admission>,
        pages: Arc<dyn nosql::Pages>,
    ) -> Server {
        let more = |service: Service| service.with_admission(admission).with_pages(pages);
        Server::with(Limits::default(), true, more).await
    }

    async fn with(limits: Limits, test_clock: bool, more: impl FnOnce(Service) -> Service) -> Server {
        Server::over(Options::default(), limits, test_clock, Registry::default(), more).await
    }

    async fn over(
        options: Options,
        limits: Limits,
        test_clock: bool,
        registry: Registry,
        more: impl FnOnce(Service) -> Service,
    ) -> Server {
        let engine_options = options;
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        let mut options = ClockOptions::new(Arc::clone(&clock) as Arc<_>);
        options.test_clock = TestClock::running(test_clock);
        let disk = MemoryDisk::new();
        let store = Arc::new(MemoryStore::open(disk.clone(), options).unwrap());
        let archive = Arc::new(MemoryArchive::default());
        let options = Options { archive: Some(Arc::clone(&archive) as Arc<_>), ..engine_options };
        let engine = Arc::new(Engine::open_with(Arc::clone(&store) as Arc<_>, options).unwrap());
        let real_seconds = Arc::new(AtomicU64::new(START));
        let seconds = Arc::clone(&real_seconds);
        let wall = Arc::new(move || seconds.load(Ordering::Relaxed));
        let keys = Keyring::of(Key::parse(KEY).unwrap());
        let audit = Arc::<MemoryAuditSink>::default();
        let has_log = registry.audit().is_some();
        let registry = if has_log { registry } else { registry.with_audit(Arc::clone(&audit) as _) };
        let registry = Arc::new(registry);
        let service = Service::new(Arc::clone(&engine), keys.clone(), wall, limits, registry);
        let service = Arc::new(more(service));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(nosql::serve(listener, service, async {
            let _ = stopped.await;
        }));
        Server { address, clock, store, engine, disk, real_seconds, archive, keys, audit, stop: Some(stop) }
    }

    /// A server with database `db` and container `c` keyed by `/pk`, whose definition has `extra` members.
    pub(crate) async fn with_container(extra: &str) -> Server {
        let server = Server::start().await;
        server.post("/dbs", r#"{"id":"db"}"#).send().await.expect_status(201);
        server.create_container("c", extra).await.expect_status(201);
        server
    }

    pub(crate) async fn create_container(&self, id: &str, extra: &str) -> Reply {
        let comma = if extra.is_empty() { "" } else { "," };
        let body = format!(
            r#"{{"id":"{id}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{comma}{extra}}}"#
        );
        self.post("/dbs/db/colls", &body).send().await
    }

    /// Creates an item in `c` under that key.
    pub(crate) async fn create(&self, pk: &str, body: &str) -> Reply {
        self.post("/dbs/db/colls/c/docs", body).key(pk).send().await
    }

    pub(crate) async fn read(&self, pk: &str, id: &str) -> Reply {
        self.get(&format!("/dbs/db/colls/c/docs/{id}")).key(pk).send().await
    }

    pub(crate) async fn query(&self, text: &str) -> Reply {
        let body = Value::String(text.to_owned()).to_json();
        self.post("/dbs/db/colls/c/docs", &format!("{{\"query\":{body}}}"))
            .header("content-type", "application/query+json")
            .header("x-ms-documentdb-isquery", "True")
            .header("x-ms-documentdb-query-enablecrosspartition", "True")
            .send()
            .await
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn get(&self, path: &str) -> Request {
        self.request("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Request {
        self.request("POST", path, body)
    }

    pub(crate) fn put(&self, path: &str, body: &str) -> Request {
        self.request("PUT", path, body)
    }

    pub(crate) fn patch(&self, path: &str, body: &str) -> Request {
        self.request("PATCH", path, body)
    }

    pub(crate) fn delete(&self, path: &str) -> Request {
        self.request("DELETE", path, "")
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Request {
        Request {
            address: self.address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("x-ms-date".to_owned(), DATE.to_owned())],
            body: body.as_bytes().to_vec(),
            sign: Sign::Master(KEY.to_owned()),
        }
    }

    /// Returns an admin request with the right bearer key.
    pub(crate) fn admin(&self, method: &str, path: &str, body: &str) -> Request {
        self.request(method, path, body).bearer(KEY)
    }

    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

enum Sign {
    Master(String),
    No,
}

/// A request under construction.
pub(crate) struct Request {
    address: SocketAddr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    sign: Sign,
}

impl Request {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self
    }

    /// The partition key `["value"]`.
    pub(crate) fn key(self, value: &str) -> Self {
        let text = format!("[{}]", Value::String(value.to_owned()).to_json());
        self.header("x-ms-documentdb-partitionkey", &text)
    }

    pub(crate) fn upsert(self) -> Self {
        self.header("x-ms-documentdb-is-upsert", "True")
    }

    pub(crate) fn bytes(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn signed_with(mut self, key: &str) -> Self {
        self.sign = Sign::Master(key.to_owned());
        self
    }

    pub(crate) fn bearer(self, key: &str) -> Self {
        self.unsigned().header("authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn unsigned(mut self) -> Self {
        self.sign = Sign::No;
        self
    }

    /// Returns the request head and body as bytes, for tests that send them in their own way.
    pub(crate) fn to_bytes(&self) -> (Vec<u8>, Vec<u8>) {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {}\r\n", self.method, self.path, self.address);
        if let Sign::Master(key) = &self.sign {
            let date = self.headers.iter().find(|(name, _)| name == "x-ms-date").map_or("", |(_, date)| date);
            let signature = sign(&self.method, &self.path, date, key);
            head.extend(["authorization: ", &signature, "\r\n"]);
        }
        for (name, value) in &self.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.extend(["content-length: ", &self.body.len().to_string(), "\r\nconnection: close\r\n\r\n"]);
        (head.into_bytes(), self.body.clone())
    }

    /// Returns the request head without the header that ends its connection.
    pub(crate) fn keep_alive(&self) -> Vec<u8> {
        let (head, _) = self.to_bytes();
        String::from_utf8(head).unwrap().replace("connection: close\r\n", "").into_bytes()
    }

    pub(crate) async fn send(self) -> Reply {
        let (head, body) = self.to_bytes();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(&head).await.unwrap();
        let _ = stream.write_all(&body).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        Reply::parse(&answer)
    }
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn parse(answer: &[u8]) -> Reply {
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(answer)));
        let head = std::str::from_utf8(&answer[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap_or((line, "")))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        Reply { status, headers, body: answer[end + 4..].to_vec() }
    }

    #[track_caller]
    pub(crate) fn expect_status(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    /// Checks an error's status, substatus and code, and everything that each error must have.
    #[track_caller]
    pub(crate) fn expect_error(self, status: u16, substatus: u32, code: &str) -> Reply {
        let reply = self.expect_status(status);
        assert_eq!(reply.header("x-ms-substatus"), Some(substatus.to_string().as_str()));
        assert!(reply.header("x-ms-request-charge").is_some(), "no charge");
        assert!(reply.header("x-ms-activity-id").is_some(), "no activity id");
        assert!(reply.header("x-ms-request-duration-ms").is_some(), "no duration");
        assert_eq!(reply.member("code"), Value::String(code.to_owned()), "{}", reply.text());
        assert!(reply.message().contains("ActivityId: "), "{}", reply.message());
        reply
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        parse_json(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns a member of the body, null if it is absent.
    #[track_caller]
    pub(crate) fn member(&self, name: &str) -> Value {
        self.json().get(name).cloned().unwrap_or(Value::Null)
    }

    #[track_caller]
    pub(crate) fn string(&self, name: &str) -> String {
        self.member(name).as_str().unwrap_or_else(|| panic!("no '{name}' in {}", self.text())).to_owned()
    }

    pub(crate) fn message(&self) -> String {
        self.string("message")
    }

    /// Returns the ids in a feed, sorted.
    #[track_caller]
    pub(crate) fn ids(&self, envelope: &str) -> Vec<String> {
        let feed = self.member(envelope);
        let list = feed.as_array().unwrap_or_else(|| panic!("no '{envelope}' in {}", self.text()));
        let id = |item: &Value| item.get("id").and_then(Value::as_str).unwrap_or("?").to_owned();
        let mut ids: Vec<String> = list.iter().map(id).collect();
        ids.sort();
        ids
    }
}
