//! One kept connection over which operations are signed requests.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::channel::Channel;
use crate::client::{date, sign_link};
use crate::documents::{DataSet, Fields, Shape};
use crate::peer::Connection;
use crate::peer::http::find;
use crate::workload::Operation;

pub(in crate::peer) struct RestConnection {
    http: Channel,
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
    /// The documents of all pages of the last scan.
    found: usize,
}

const EVERYWHERE: &str = "x-ms-documentdb-query-enablecrosspartition: True\r\n";
const TEN_BY_GROUP: &str = "SELECT * FROM c WHERE c.group = @g";
/// The queries of one partition, one for each dialect.
const SCOPED: [&str; 2] = [TEN_BY_GROUP, "SELECT * FROM c WHERE c.pk = @p AND c.group = @g"];
const TOP: [&str; 2] =
    ["SELECT TOP 10 * FROM c ORDER BY c.n DESC", "SELECT TOP 10 * FROM c WHERE c.pk = @p ORDER BY c.n DESC"];
const COUNT: [&str; 2] =
    ["SELECT VALUE COUNT(1) FROM c WHERE c.n < ", "SELECT VALUE COUNT(1) FROM c WHERE c.pk = @p AND c.n < "];

/// All documents whose name has an x: no index leads to them.
const CONTAINS: &str = "SELECT * FROM c WHERE CONTAINS(c.name, 'x')";

/// How a query names its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::peer) enum Dialect {
    /// By the header, as SDKs do.
    Header,
    /// In the text, for servers that ignore the header.
    Text,
}

impl RestConnection {
    pub(in crate::peer) fn connect(
        address: &str,
        channel: Channel,
        set: &DataSet,
        dialect: Dialect,
    ) -> Result<RestConnection> {
        let now = date();
        Ok(RestConnection {
            http: channel,
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
            found: 0,
        })
    }

    /// Signs and sends a request, and reads the answer. Without a path the link is the path.
    pub(super) fn send(
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
        self.http.exchange(&self.request)
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

    /// Reads all pages of a scan.
    fn contains(&mut self) -> Result<u16> {
        let mut headers = format!("{EVERYWHERE}x-ms-max-item-count: 1000\r\n");
        self.found = 0;
        loop {
            let status = self.query(CONTAINS, &[], &headers)?;
            self.found += occurrences(self.http.body(), b"\"_etag\"");
            match self.http.header("x-ms-continuation") {
                Some(token) if status == 200 => {
                    headers =
                        format!("{EVERYWHERE}x-ms-max-item-count: 1000\r\nx-ms-continuation: {token}\r\n");
                }
                _ => return Ok(status),
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

    pub(super) fn shown(&self) -> String {
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
            Operation::Contains => self.contains()?,
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
            Operation::Contains => Ok(self.found),
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

pub(in crate::peer) fn occurrences(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).filter(|window| *window == wanted).count()
}
