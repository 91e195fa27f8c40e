//! Item operations of the NoSQL API over its two protocols, HTTP and direct mode: one request, one answer.

use anyhow::Result;
use bolide_bench::client::{Answer, Client};
use direct::{Account, Blocking, Call};
use rntbd::OperationType;

use crate::process::Server;

/// An operation on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
    Read,
}

/// A request about an item.
#[derive(Clone, Copy, Debug)]
pub struct ItemRequest<'a> {
    pub act: Act,
    pub container: &'a str,
    pub pk: &'a str,
    pub id: &'a str,
    /// The etag that the item must have.
    pub if_match: Option<&'a str>,
    /// Empty if there is none.
    pub body: &'a str,
}

/// A connection with one request after the other. An error says that the connection is lost.
pub trait ItemClient {
    fn item(&mut self, request: &ItemRequest<'_>) -> Result<Answer>;

    /// Sends a JSON array of operations that happen together.
    fn batch(&mut self, container: &str, pk: &str, operations: &str) -> Result<Answer>;
}

impl ItemClient for Client {
    fn item(&mut self, request: &ItemRequest<'_>) -> Result<Answer> {
        let ItemRequest { act, container, pk, id, if_match, body } = *request;
        let mut headers = format!("x-ms-documentdb-partitionkey: [\"{pk}\"]\r\n");
        if let Some(etag) = if_match {
            headers += &format!("if-match: {etag}\r\n");
        }
        if act == Act::Upsert {
            headers += "x-ms-documentdb-is-upsert: True\r\n";
        }
        let items = format!("/dbs/db/colls/{container}/docs");
        let item = format!("{items}/{id}");
        match act {
            Act::Create | Act::Upsert => self.request("POST", &items, &headers, body),
            Act::Replace => self.request("PUT", &item, &headers, body),
            Act::Patch => self.request("PATCH", &item, &headers, body),
            Act::Delete => self.request("DELETE", &item, &headers, ""),
            Act::Read => self.request("GET", &item, &headers, ""),
        }
    }

    fn batch(&mut self, container: &str, pk: &str, operations: &str) -> Result<Answer> {
        let headers = format!(
            "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n\
             x-ms-documentdb-partitionkey: [\"{pk}\"]\r\n"
        );
        self.request("POST", &format!("/dbs/db/colls/{container}/docs"), &headers, operations)
    }
}

/// A connection in direct mode.
pub struct DirectClient(Blocking);

impl DirectClient {
    pub fn connect(server: &Server) -> Result<DirectClient> {
        let root = server.root_certificate()?;
        Ok(DirectClient(Blocking::connect(server.address.parse()?, &root, account())?))
    }

    fn ask(&mut self, call: Call<'_>, pk: &str, body: &str) -> Result<Answer> {
        let key = format!("[\"{pk}\"]");
        let mut call = call.key(&key);
        if !body.is_empty() {
            call = call.payload(body);
        }
        let reply = self.0.call(&call)?;
        let tokens = reply.tokens();
        Ok(Answer {
            status: u16::try_from(reply.status)?,
            charge: tokens.request_charge.unwrap_or_default(),
            etag: tokens.etag.unwrap_or_default().to_owned(),
            index_progress: None,
            retry_after_ms: None,
            body: reply.text(),
        })
    }
}

impl ItemClient for DirectClient {
    fn item(&mut self, request: &ItemRequest<'_>) -> Result<Answer> {
        let ItemRequest { act, container, pk, id, if_match, body } = *request;
        let items = format!("dbs/db/colls/{container}/docs");
        let item = format!("{items}/{id}");
        let call = match act {
            Act::Create => Call::new(OperationType::Create, &items),
            Act::Upsert => Call::new(OperationType::Upsert, &items),
            Act::Replace => Call::new(OperationType::Replace, &item),
            Act::Patch => Call::new(OperationType::Patch, &item),
            Act::Delete => Call::new(OperationType::Delete, &item),
            Act::Read => Call::new(OperationType::Read, &item),
        };
        self.ask(call.with(|tokens| tokens.match_etag = if_match), pk, body)
    }

    fn batch(&mut self, container: &str, pk: &str, operations: &str) -> Result<Answer> {
        let items = format!("dbs/db/colls/{container}/docs");
        let batch =
            Call::new(OperationType::Batch, &items).with(|tokens| tokens.is_batch_atomic = Some(true));
        self.ask(batch, pk, operations)
    }
}

/// Returns the account that signs requests in direct mode now.
pub fn account() -> Account {
    Account { key: bolide_bench::client::KEY.to_owned(), date: bolide_bench::client::date() }
}
