//! Bolide in direct mode: the same operations as by REST, in frames of RNTBD inside TLS.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use rntbd::{
    ActivityId, AnswerHead, AnswerTokens, ContextRequest, HEAD_BYTES, OperationType, PAYLOAD_LENGTH_BYTES,
    Request, RequestTokens, ResourceType, payload_bytes,
};

use super::rest::{self, occurrences, version};
use super::socket::{Socket, Trust, trust_in};
use super::{About, Connection, Measured, Peer};
use crate::client::{Server, date, sign_link};
use crate::documents::{DataSet, Fields, Shape};
use crate::workload::{Kind, Operation};

const READ_BYTES: usize = 64 << 10;
const ANSWER_BYTES_MAX: usize = 64 << 20;
const TEN_BY_GROUP: &str = "SELECT * FROM c WHERE c.group = @g";

pub struct BolideDirect {
    server: Arc<Server>,
    about: About,
}

impl BolideDirect {
    pub fn new(server: Arc<Server>, binary: &Path) -> Result<BolideDirect> {
        let about = About {
            version: version(binary)?,
            settings: "default settings; direct mode inside TLS; every path indexed (the default policy)"
                .to_owned(),
            durability: "synced to disk, in group commits".to_owned(),
        };
        Ok(BolideDirect { server, about })
    }

    /// Opens a connection on which several requests may be in flight.
    pub fn open(&self, set: &DataSet) -> Result<DirectConnection> {
        DirectConnection::open(&self.server.address, &trust_in(self.server.directory())?, set)
    }
}

impl Peer for BolideDirect {
    fn name(&self) -> &str {
        "bolide direct"
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Read | Kind::Insert | Kind::Query)
    }

    fn prepare(&self, set: &DataSet) -> Result<()> {
        rest::prepare(&self.server.address, set, "")
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        Ok(Box::new(self.open(set)?))
    }

    fn measured(&self) -> &dyn Measured {
        &*self.server
    }
}

pub struct DirectConnection {
    socket: Socket,
    collection: String,
    shape: Shape,
    /// The signed date, in both spellings.
    date: (String, String),
    sent: u32,
    request: Vec<u8>,
    body: String,
    received: Vec<u8>,
    last: Operation,
    payload: Vec<u8>,
}

impl DirectConnection {
    fn open(address: &str, trust: &Trust, set: &DataSet) -> Result<DirectConnection> {
        let now = date();
        let mut connection = DirectConnection {
            socket: Socket::connect(address, Some(trust))?,
            collection: set.name.to_owned(),
            shape: set.shape,
            date: (now.to_lowercase(), now),
            sent: 0,
            request: Vec::new(),
            body: String::new(),
            received: Vec::with_capacity(READ_BYTES),
            last: Operation::Tail,
            payload: Vec::new(),
        };
        let context = ContextRequest {
            protocol_version: Some(1),
            client_version: Some("2020-07-15"),
            user_agent: Some("bolide-bench"),
            ..ContextRequest::default()
        };
        context.encode(ActivityId::default(), &mut connection.request)?;
        connection.socket.write_all(&connection.request)?;
        connection.socket.flush()?;
        let greeting = connection.head()?;
        ensure!(greeting.status == 200, "{} for the context request", greeting.status);
        connection.take(greeting.frame_bytes)?;
        Ok(connection)
    }

    /// Sends an operation without waiting for its answer.
    pub fn send(&mut self, operation: Operation) -> Result<()> {
        self.last = operation;
        self.body.clear();
        match operation {
            Operation::Insert(id) => {
                Fields::new(id, 0, self.shape).json(&mut self.body);
                self.write(OperationType::Create, None, Some(id))
            }
            Operation::Read(id) => self.write(OperationType::Read, Some(id), Some(id)),
            Operation::Query(group) => {
                let _ = write!(
                    self.body,
                    "{{\"query\":\"{TEN_BY_GROUP}\",\"parameters\":[{{\"name\":\"@g\",\"value\":\"g{group}\"}}]}}"
                );
                self.write(OperationType::Query, None, None)
            }
            other => bail!("{other:?} is not measured in direct mode"),
        }
    }

    /// Sends a request about one document, or about all; `keyed` names the document whose partition key it has.
    fn write(
        &mut self,
        operation_type: OperationType,
        document: Option<u64>,
        keyed: Option<u64>,
    ) -> Result<()> {
        let method = if operation_type == OperationType::Read { "get" } else { "post" };
        let name = document.map(|id| id.to_string());
        let container = format!("dbs/db/colls/{}", self.collection);
        let link = name.as_ref().map_or_else(|| container.clone(), |name| format!("{container}/docs/{name}"));
        let authorization = sign_link(method, "docs", &link, &self.date.0);
        let key = keyed.map(|id| format!("[\"{}\"]", self.shape.partition(id)));
        self.sent += 1;
        let tokens = RequestTokens {
            authorization: Some(&authorization),
            date: Some(&self.date.1),
            replica_path: Some("/0/1p"),
            database_name: Some("db"),
            collection_name: Some(&self.collection),
            document_name: name.as_deref(),
            partition_key: key.as_deref(),
            partition_key_range_id: if keyed.is_none() { Some("0") } else { None },
            remaining_time_ms: Some(30_000),
            transport_request_id: Some(self.sent),
            ..RequestTokens::default()
        };
        let payload = Some(self.body.as_bytes()).filter(|body| !body.is_empty());
        self.request.clear();
        let activity_id = ActivityId(u128::from(self.sent).to_le_bytes());
        Request { resource_type: ResourceType::Document, operation_type, activity_id, tokens }
            .encode(payload, &mut self.request)?;
        self.socket.write_all(&self.request)?;
        Ok(self.socket.flush()?)
    }

    /// Waits for the next answer, to any request.
    pub fn receive(&mut self) -> Result<()> {
        let head = self.head()?;
        let frame = self.take(head.frame_bytes)?;
        let has_payload = AnswerTokens::decode(&frame[HEAD_BYTES..])?.has_payload();
        self.payload.clear();
        if has_payload {
            let length = self.take(PAYLOAD_LENGTH_BYTES)?;
            let length = payload_bytes(&length, ANSWER_BYTES_MAX)?.context("four bytes")?;
            self.payload = self.take(length)?;
        }
        if !matches!(head.status, 200 | 201) {
            bail!("{}: {}", head.status, String::from_utf8_lossy(&self.payload));
        }
        Ok(())
    }

    fn head(&mut self) -> Result<AnswerHead> {
        loop {
            if let Some(head) = AnswerHead::parse(&self.received, ANSWER_BYTES_MAX)? {
                return Ok(head);
            }
            self.read()?;
        }
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>> {
        while self.received.len() < count {
            self.read()?;
        }
        Ok(self.received.drain(..count).collect())
    }

    fn read(&mut self) -> Result<()> {
        let held = self.received.len();
        self.received.resize(held + READ_BYTES, 0);
        let count = self.socket.read(&mut self.received[held..])?;
        self.received.truncate(held + count);
        ensure!(count > 0, "the connection ended within an answer");
        Ok(())
    }
}

impl Connection for DirectConnection {
    fn run(&mut self, operation: Operation) -> Result<()> {
        self.send(operation)?;
        self.receive()
    }

    fn rows(&self) -> Result<usize> {
        match self.last {
            Operation::Query(_) => Ok(occurrences(&self.payload, b"\"_etag\"")),
            _ => Ok(1),
        }
    }
}
