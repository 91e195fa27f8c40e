//! Bolide over signed REST. The same requests go to every server of the protocol.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::http::{Http, find};
use super::socket::{Trust, trust_in};
use super::{About, Connection, Peer};
use crate::client::{Server, date, sign_link};
use crate::documents::{DataSet, Fields, Shape};
use crate::workload::{Kind, Operation};

/// Which paths of a document are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexing {
    /// All of them: the service's default.
    EveryPath,
    /// Only the one that is queried.
    OnePath,
}

impl Indexing {
    fn policy(self) -> &'static str {
        match self {
            Indexing::EveryPath => "",
            Indexing::OnePath => {
                ",\"indexingPolicy\":{\"indexingMode\":\"consistent\",\"automatic\":true,\
                 \"includedPaths\":[{\"path\":\"/group/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}"
            }
        }
    }
}

pub struct BolideRest {
    server: Arc<Server>,
    indexing: Indexing,
    /// Set if its connections are inside TLS.
    trust: Option<Trust>,
    about: About,
}

impl BolideRest {
    pub fn new(server: Arc<Server>, binary: &Path, indexing: Indexing) -> Result<BolideRest> {
        let paths = match indexing {
            Indexing::EveryPath => "every path indexed (the default policy)",
            Indexing::OnePath => "one path indexed",
        };
        let about = About {
            version: version(binary)?,
            settings: format!("default settings; signed requests; {paths}"),
            durability: "synced to disk, in group commits".to_owned(),
        };
        Ok(BolideRest { server, indexing, trust: None, about })
    }

    /// Returns the same peer with connections inside TLS, as SDKs that require it.
    pub fn inside_tls(self) -> Result<BolideRest> {
        let trust = Some(trust_in(self.server.directory())?);
        let settings = format!("{}; inside TLS", self.about.settings);
        Ok(BolideRest { trust, about: About { settings, ..self.about }, ..self })
    }
}

pub(super) fn version(binary: &Path) -> Result<String> {
    super::process::first_line(std::process::Command::new(binary).arg("--version"))
}

impl Peer for BolideRest {
    fn name(&self) -> &str {
        match self.indexing {
            Indexing::EveryPath if self.trust.is_some() => "bolide rest, tls",
            Indexing::EveryPath => "bolide rest",
            Indexing::OnePath => "bolide rest, one path",
        }
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn supports(&self, kind: Kind) -> bool {
        // Without an index on `n` these two would measure something different.
        self.indexing == Indexing::EveryPath || !matches!(kind, Kind::Top | Kind::Count)
    }

    fn prepare(&self, set: &DataSet) -> Result<()> {
        prepare(&self.server.address, set, self.indexing.policy())
    }

    fn connect(&self, set: &DataSet) -> Result<Box<dyn Connection>> {
        Ok(Box::new(RestConnection::connect(
            &self.server.address,
            self.trust.as_ref(),
            set,
            Dialect::Header,
        )?))
    }

    fn cpu_seconds(&self) -> Result<f64> {
        self.server.cpu_seconds()
    }

    fn resident_mib(&self) -> Result<u64> {
        self.server.resident_mib()
    }

    fn disk_bytes(&self) -> Result<u64> {
        super::process::folder_bytes(self.server.directory())
    }
}

/// Creates the database, unless it exists, and a container whose items may have a time to live.
pub(super) fn prepare(address: &str, set: &DataSet, more: &str) -> Result<()> {
    let mut connection = RestConnection::connect(address, None, set, Dialect::Header)?;
    let status = connection.send("POST", "dbs", "", "", "", "{\"id\":\"db\"}")?;
    ensure!(matches!(status, 201 | 409), "{status} for a database: {}", connection.shown());
    let body = format!(
        "{{\"id\":\"{}\",\"partitionKey\":{{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}},\
         \"defaultTtl\":-1{more}}}",
        set.name
    );
    let status = connection.send("POST", "colls", "dbs/db", "/dbs/db/colls", "", &body)?;
    ensure!(status == 201, "{status} for a container: {}", connection.shown());
    Ok(())
}

pub(super) struct RestConnection {
    http: Http,
    address: String,
    /// `dbs/db/colls/NAME`
    container: String,
    shape: Shape,
    dialect: Dialect,
    request: String,
    body: String,
    link: String,
    date: (Instant, String, String),
    last: Operation,
    etag: String,
}

const EVERYWHERE: &str = "x-ms-documentdb-query-enablecrosspartition: True\r\n";
const TEN_BY_GROUP: &str = "SELECT * FROM c WHERE c.group = @g";
/// The queries of one partition, one for each dialect.
const SCOPED: [&str; 2] = [TEN_BY_GROUP, "SELECT * FROM c WHERE c.pk = @p AND c.group = @g"];
const TOP: [&str; 2] =
    ["SELECT TOP 10 * FROM c ORDER BY c.n DESC", "SELECT TOP 10 * FROM c WHERE c.pk = @p ORDER BY c.n DESC"];
const COUNT: [&str; 2] =
    ["SELECT VALUE COUNT(1) FROM c WHERE c.n < ", "SELECT VALUE COUNT(1) FROM c WHERE c.pk = @p AND c.n < "];

/// How a query names its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// By the header, as SDKs do.
    Header,
    /// In the text, for servers that ignore the header.
    Text,
}

impl RestConnection {
    pub(super) fn connect(
        address: &str,
        trust: Option<&Trust>,
        set: &DataSet,
        dialect: Dialect,
    ) -> Result<RestConnection> {
        let now = date();
        Ok(RestConnection {
            http: Http::connect(address, trust)?,
            address: address.to_owned(),
            container: format!("dbs/db/colls/{}", set.name),
            shape: set.shape,
            dialect,
            request: String::new(),
            body: String::new(),
            link: String::new(),
            date: (Instant::now(), now.to_lowercase(), now),
            last: Operation::Tail,
            etag: String::new(),
        })
    }

    /// Signs and sends a request, and reads the answer. Without a path the link is the path.
    fn send(
        &mut self,
        method: &str,
        kind: &str,
        link: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<u16> {
        if self.date.0.elapsed() > Duration::from_secs(60) {
            let now = date();
            self.date = (Instant::now(), now.to_lowercase(), now);
        }
        let token = sign_link(method, kind, link, &self.date.1);
        let path = if path.is_empty() && link.is_empty() { "/dbs" } else { path };
        self.request.clear();
        let _ = write!(
            self.request,
            "{method} {}{path} HTTP/1.1\r\nhost: {}\r\nx-ms-date: {}\r\nx-ms-version: 2020-07-15\r\n\
             authorization: {token}\r\naccept: application/json\r\nconnection: keep-alive\r\n{headers}content-length: {}\r\n\r\n{body}",
            if path.is_empty() { format!("/{link}") } else { String::new() },
            self.address,
            self.date.2,
            body.len()
        );
        self.http.exchange(self.request.as_bytes())
    }

    /// Sends a request on the collection of documents.
    fn on_all(&mut self, headers: &str) -> Result<u16> {
        let (container, body) = (std::mem::take(&mut self.container), std::mem::take(&mut self.body));
        let path = format!("/{container}/docs");
        let status = self.send("POST", "docs", &container, &path, headers, &body);
        (self.container, self.body) = (container, body);
        status
    }

    /// Sends a request on one document.
    fn on_one(&mut self, method: &str, id: u64, headers: &str) -> Result<u16> {
        let (mut link, body) = (std::mem::take(&mut self.link), std::mem::take(&mut self.body));
        link.clear();
        let _ = write!(link, "{}/docs/{id}", self.container);
        let headers =
            format!("x-ms-documentdb-partitionkey: [\"{}\"]\r\n{headers}", self.shape.partition(id));
        let status = self.send(method, "docs", &link, "", &headers, &body);
        (self.link, self.body) = (link, body);
        status
    }

    fn document(&mut self, id: u64, version: u64, expires: bool) {
        self.body.clear();
        let mut fields = Fields::new(id, version, self.shape);
        fields.expires = expires;
        fields.json(&mut self.body);
    }

    fn insert(&mut self, id: u64, version: u64, expires: bool, more: &str) -> Result<u16> {
        self.document(id, version, expires);
        let headers = format!(
            "x-ms-documentdb-partitionkey: [\"{}\"]\r\ncontent-type: application/json\r\n{more}",
            self.shape.partition(id)
        );
        self.on_all(&headers)
    }

    fn query(&mut self, text: &str, parameters: &[(&str, &str)], place: &str) -> Result<u16> {
        self.body.clear();
        let _ = write!(self.body, "{{\"query\":\"{text}\",\"parameters\":[");
        for (at, (name, value)) in parameters.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(self.body, "{comma}{{\"name\":\"{name}\",\"value\":\"{value}\"}}");
        }
        self.body.push_str("]}");
        let headers =
            format!("{place}x-ms-documentdb-isquery: True\r\ncontent-type: application/query+json\r\n");
        self.on_all(&headers)
    }

    fn query_in(&mut self, pk: u64, texts: [&str; 2], parameters: &[(&str, &str)]) -> Result<u16> {
        let pk = pk.to_string();
        match self.dialect {
            Dialect::Header => {
                let place = format!("x-ms-documentdb-partitionkey: [\"{pk}\"]\r\n");
                self.query(texts[0], parameters, &place)
            }
            Dialect::Text => {
                let parameters = [parameters, &[("@p", &*pk)]].concat();
                self.query(texts[1], &parameters, EVERYWHERE)
            }
        }
    }

    /// Reads the change feed from where the last call on this connection ended; the first begins now.
    fn tail(&mut self) -> Result<u16> {
        let from = if self.etag.is_empty() { "*" } else { &self.etag };
        let headers = format!(
            "a-im: Incremental Feed\r\nif-none-match: {from}\r\nx-ms-documentdb-partitionkeyrangeid: 0\r\n\
             x-ms-max-item-count: 100\r\n"
        );
        let container = std::mem::take(&mut self.container);
        let path = format!("/{container}/docs");
        let status = self.send("GET", "docs", &container, &path, &headers, "");
        self.container = container;
        let status = status?;
        self.etag = self.http.header("etag").context("a feed without an etag")?.to_owned();
        Ok(if status == 304 { 200 } else { status })
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(self.http.body()).chars().take(300).collect()
    }
}

impl Connection for RestConnection {
    fn run(&mut self, operation: Operation) -> Result<()> {
        self.last = operation;
        let status = match operation {
            Operation::Insert(id) => self.insert(id, 0, false, "")?,
            Operation::InsertExpiring(id) => self.insert(id, 0, true, "")?,
            Operation::Upsert(id, version) => {
                self.insert(id, version, false, "x-ms-documentdb-is-upsert: True\r\n")?
            }
            Operation::Read(id) => {
                self.body.clear();
                self.on_one("GET", id, "")?
            }
            Operation::Replace(id, version) => {
                self.document(id, version, false);
                self.on_one("PUT", id, "content-type: application/json\r\n")?
            }
            Operation::Patch(id, version) => {
                self.body.clear();
                let _ = write!(
                    self.body,
                    "{{\"operations\":[{{\"op\":\"set\",\"path\":\"/price\",\"value\":{version}}}]}}"
                );
                self.on_one("PATCH", id, "content-type: application/json_patch+json\r\n")?
            }
            Operation::Query(group) => {
                self.query(TEN_BY_GROUP, &[("@g", &format!("g{group}"))], EVERYWHERE)?
            }
            Operation::Scoped(group) => {
                let pk = self.shape.partition_of_group(group);
                self.query_in(pk, SCOPED, &[("@g", &format!("g{group}"))])?
            }
            Operation::Top(pk) => self.query_in(pk, TOP, &[])?,
            Operation::Count(pk) => {
                let texts = COUNT.map(|text| format!("{text}{}", self.shape.middle()));
                self.query_in(pk, texts.each_ref().map(String::as_str), &[])?
            }
            Operation::Tail => self.tail()?,
        };
        let good = match operation {
            Operation::Insert(_) | Operation::InsertExpiring(_) => status == 201,
            Operation::Upsert(..) => matches!(status, 200 | 201),
            _ => status == 200,
        };
        if !good {
            bail!("{status} for {operation:?}: {}", self.shown());
        }
        Ok(())
    }

    fn rows(&self) -> Result<usize> {
        let body = self.http.body();
        match self.last {
            Operation::Query(_) | Operation::Scoped(_) | Operation::Top(_) => {
                Ok(occurrences(body, b"\"_etag\""))
            }
            Operation::Count(_) => {
                let at = find(body, b"\"Documents\":[").context("no documents")? + 13;
                let text = std::str::from_utf8(&body[at..])?;
                let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
                Ok(digits.parse()?)
            }
            _ => Ok(1),
        }
    }
}

pub(super) fn occurrences(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).filter(|window| *window == wanted).count()
}
