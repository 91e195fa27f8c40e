//! A server to talk to, and a client that is small enough to send anything, also what no driver would send.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use account::{Key, Keyring};
use bson::{Document, RawDocument, Value};
use bytes::Bytes;
use engine::Engine;
use mongo::{Account, Authentication, Host, Limits, Profile, Service, Settings};
use storage::{ClockOptions, ManualClock, MemoryStore, Time};
use telemetry::Registry;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

pub(crate) const START: u64 = 1_700_000_000;
pub(crate) const PASSWORD: &str = "c29tZSBrZXk+Lz0=";

/// Long enough for a busy machine; a test that waits in vain fails after this long.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// A running front end.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) service: Arc<Service>,
    pub(crate) registry: Arc<Registry>,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) ended: Option<tokio::task::JoinHandle<()>>,
}

/// A replica set without authentication, with test commands.
pub(crate) fn settings() -> Settings {
    Settings {
        profile: Profile::ReplicaSet { name: "globaldb".to_owned() },
        advertise: None,
        authentication: Authentication::Optional,
        account: Account { user: "bolide".to_owned(), keys: Keyring::of(Key::parse(PASSWORD).unwrap()) },
        test_commands: true,
        tls: None,
        host: Host {
            name: "machine".to_owned(),
            system: ("Linux".to_owned(), "6".to_owned()),
            cores: 2,
            memory_bytes: 1 << 30,
            process: 7,
            used_bytes: || (5 << 20, 9 << 20),
        },
        arguments: vec!["bolide".to_owned()],
        // Tests of wrong passwords do not wait.
        limits: Limits { wrong_proof_pause: Duration::ZERO, ..Limits::default() },
        scratch: None,
        admission: Arc::default(),
        registry: Arc::default(),
    }
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::with(settings()).await
    }

    pub(crate) async fn with(settings: Settings) -> Server {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(Arc::clone(&clock) as _)).unwrap());
        Server::over(Arc::new(Engine::open(store).unwrap()), clock, settings).await
    }

    /// Returns a second front end over the same data, as after a restart.
    pub(crate) async fn again(&self) -> Server {
        Server::over(Arc::clone(&self.engine), Arc::clone(&self.clock), settings()).await
    }

    pub(crate) async fn over(engine: Arc<Engine>, clock: Arc<ManualClock>, settings: Settings) -> Server {
        let registry = Arc::clone(&settings.registry);
        let service = Service::new(Arc::clone(&engine), settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(mongo::serve(listener, Arc::clone(&service), async move {
            let _ = stopped.await;
        }));
        Server { address, engine, clock, service, registry, stop: Some(stop), ended: Some(ended) }
    }

    pub(crate) async fn connect(&self) -> Client<TcpStream> {
        Client { stream: TcpStream::connect(self.address).await.unwrap(), requests: 0 }
    }

    pub(crate) fn shut_down(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }
}

/// One side of a connection.
pub(crate) struct Client<S> {
    pub(crate) stream: S,
    pub(crate) requests: i32,
}

/// A message from the server.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) response_to: i32,
    pub(crate) opcode: i32,
    pub(crate) body: Bytes,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// Runs a command on `admin`; returns any answer.
    pub(crate) async fn admin(&mut self, command: Document) -> Document {
        self.on("admin", command).await
    }

    pub(crate) async fn on(&mut self, database: &str, command: Document) -> Document {
        self.requests += 1;
        let bytes = op_msg(self.requests, 0, &[kind_0(&command.with("$db", database))]);
        self.send(&bytes).await;
        let message = self.read().await.expect("an answer");
        assert_eq!((message.response_to, message.opcode), (self.requests, 2013));
        reply(&message)
    }

    /// Runs a command that must succeed.
    pub(crate) async fn ok(&mut self, command: Document) -> Document {
        let reply = self.admin(command).await;
        assert_eq!(reply.get("ok"), Some(&Value::Double(1.0)), "{reply:?}");
        reply
    }

    /// Runs a command that must fail; its code and message.
    pub(crate) async fn refused(&mut self, command: Document) -> (i32, String) {
        let reply = self.admin(command).await;
        assert_eq!(reply.get("ok"), Some(&Value::Double(0.0)), "{reply:?}");
        (code(&reply), reply.get("errmsg").and_then(Value::as_str).unwrap().to_owned())
    }

    /// Runs a command on a database, which must succeed.
    pub(crate) async fn done(&mut self, database: &str, command: Document) -> Document {
        let reply = self.on(database, command).await;
        assert_eq!(reply.get("ok"), Some(&Value::Double(1.0)), "{reply:?}");
        reply
    }

    /// Runs a command on a database, which must fail; its code and message.
    pub(crate) async fn fails(&mut self, database: &str, command: Document) -> (i32, String) {
        let reply = self.on(database, command).await;
        assert_eq!(reply.get("ok"), Some(&Value::Double(0.0)), "{reply:?}");
        (code(&reply), reply.get("errmsg").and_then(Value::as_str).unwrap().to_owned())
    }

    pub(crate) async fn ping(&mut self) {
        self.ok(Document::new().with("ping", 1)).await;
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // The server may close the connection at any time; tests look at its answer, or at its silence.
        let _ = timeout(MAX_WAIT, self.stream.write_all(bytes)).await.expect("the server takes bytes");
        let _ = self.stream.flush().await;
    }

    /// The next message; none if the server has closed the connection.
    pub(crate) async fn read(&mut self) -> Option<Message> {
        let mut header = [0; 16];
        let read = timeout(MAX_WAIT, self.stream.read_exact(&mut header)).await.expect("an answer or an end");
        read.ok()?;
        let word = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let mut body = vec![0; word(0) as usize - 16];
        self.stream.read_exact(&mut body).await.ok()?;
        Some(Message { response_to: word(8), opcode: word(12), body: body.into() })
    }

    /// Whether the server closes the connection without another message.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.read().await.is_none()
    }
}

/// The document of an `OP_MSG` answer, whose form must be the only one that drivers accept.
pub(crate) fn reply(message: &Message) -> Document {
    assert_eq!(message.body[..5], [0; 5], "no flags, one section of kind 0");
    RawDocument::parse(message.body.slice(5..)).unwrap().to_document()
}

pub(crate) fn code(reply: &Document) -> i32 {
    match reply.get("code") {
        Some(Value::Int32(code)) => *code,
        other => panic!("no code but {other:?} in {reply:?}"),
    }
}

pub(crate) fn labels(reply: &Document) -> Vec<&str> {
    let labels = reply.get("errorLabels").and_then(Value::as_array).unwrap_or_default();
    labels.iter().filter_map(Value::as_str).collect()
}

pub(crate) fn text<'a>(document: &'a Document, name: &str) -> &'a str {
    document.get(name).and_then(Value::as_str).unwrap_or_else(|| panic!("no text '{name}' in {document:?}"))
}

pub(crate) fn inner<'a>(document: &'a Document, path: &str) -> &'a Value {
    let mut names = path.split('.');
    let first = document.get(names.next().unwrap());
    let found = names.try_fold(first, |value, name| Some(value?.as_document()?.get(name)));
    found.flatten().unwrap_or_else(|| panic!("no '{path}' in {document:?}"))
}

/// The number, which must be a whole one.
pub(crate) fn whole(value: &Value) -> i64 {
    match value {
        Value::Int32(value) => (*value).into(),
        Value::Int64(value) => *value,
        other => panic!("not a whole number: {other:?}"),
    }
}

/// A document from its text.
pub(crate) fn json(text: &str) -> Document {
    match bson::parse_extended_json(text).unwrap() {
        Value::Document(document) => document,
        other => panic!("not a document but {other:?}"),
    }
}

/// A list of texts as a value.
pub(crate) fn texts(items: &[&str]) -> Value {
    Value::Array(items.iter().map(|item| Value::from(*item)).collect())
}

/// A whole message.
pub(crate) fn frame(id: i32, opcode: i32, body: &[u8]) -> Vec<u8> {
    let words = [body.len() as i32 + 16, id, 0, opcode];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn op_msg(id: i32, flags: u32, sections: &[Vec<u8>]) -> Vec<u8> {
    frame(id, 2013, &[flags.to_le_bytes().to_vec(), sections.concat()].concat())
}

pub(crate) fn kind_0(document: &Document) -> Vec<u8> {
    [&[0], RawDocument::from_document(document).as_bytes()].concat()
}

/// A ping as a message.
pub(crate) fn ping_message(id: i32) -> Vec<u8> {
    op_msg(id, 0, &[kind_0(&Document::new().with("ping", 1).with("$db", "admin"))])
}

pub(crate) fn op_query(id: i32, collection: &str, document: &Document) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend_from_slice(collection.as_bytes());
    body.extend_from_slice(&[0; 5]);
    body.extend_from_slice(&(-1_i32).to_le_bytes());
    body.extend_from_slice(RawDocument::from_document(document).as_bytes());
    frame(id, 2004, &body)
}
