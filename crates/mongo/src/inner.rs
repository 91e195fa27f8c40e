//! Commands that the server itself runs, without a connection. They pass the checks that everybody's pass.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use account::{Entry, Holder, Right};
use bson::{Document, RawDocument, ValueRef};
use bytes::Bytes;
use mql::Code;
use parking_lot::Mutex;

use crate::auth::{Identity, Who};
use crate::connection::{Client, Connection};
use crate::dispatch;
use crate::error::Error;
use crate::operations::Brake;
use crate::service::Service;
use crate::wire::{Form, Request, Style};

/// Why a command of the server's own did nothing, or not all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// MongoDB's number for it.
    pub code: i32,
    /// What clients would be told.
    pub message: String,
    /// Which of several statements it was.
    pub position: Option<usize>,
}

/// What a command of the server's own is answered with.
#[derive(Debug, Clone)]
pub struct Told {
    /// The whole answer, as a driver would get it.
    pub reply: RawDocument,
    /// What it cost.
    pub request_units: f64,
}

impl Service {
    /// Runs a command on a database as somebody whom nobody has asked who they are: for a front end that requires no
    /// authentication.
    pub async fn perform(self: &Arc<Service>, database: &str, command: Document) -> Result<(), Refusal> {
        let body = RawDocument::from_document(&command.with("$db", database));
        refusal(&self.answer_inside(None, body).await.reply).map_or(Ok(()), Err)
    }

    /// Runs a command with the rights of the account, for somebody who has shown its key elsewhere; `$db` in it names the
    /// database. The whole answer, or why the bytes are no command.
    pub async fn perform_as_account(self: &Arc<Service>, command: Bytes) -> Result<Bytes, String> {
        let body = RawDocument::parse(command).map_err(|error| error.to_string())?;
        let entries = self.settings.account.keys.entries();
        let holder = entries.into_iter().find(|entry| entry.kind.right() == Right::ReadWrite);
        let holder = holder.map(|Entry { kind, key, .. }| Holder { kind, key });
        let identity = holder.map(|holder| self.account(holder));
        Ok(self.answer_inside(identity, body).await.reply.into_bytes())
    }

    /// Runs a command on a database for whoever holds a key of the account: for a front end that has asked for it itself, as
    /// the explorer does. Only on a runtime of several threads.
    pub async fn command(self: &Arc<Service>, holder: &Holder, database: &str, command: Document) -> Told {
        let body = RawDocument::from_document(&command.with("$db", database));
        self.answer_inside(Some(self.account(holder.clone())), body).await
    }

    fn account(&self, holder: Holder) -> Identity {
        Identity::new(&self.settings.account.user, "admin", Who::Account(holder))
    }

    async fn answer_inside(self: &Arc<Service>, identity: Option<Identity>, body: RawDocument) -> Told {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let connection = Arc::new(Connection {
            id: self.next_connection(),
            peer: nowhere,
            local: nowhere,
            server_name: None,
            client: Mutex::new(Client { identity, ..Client::default() }),
        });
        let style = Style { form: Form::Message, compressor: None };
        let request = Request { id: 0, body, sequences: Vec::new(), style };
        let work = dispatch::answer(Arc::clone(self), Arc::clone(&connection), request, Brake::default());
        // A task of its own, so that a panic is this command's error.
        let reply = tokio::spawn(work).await.ok().and_then(|answer| answer.reply);
        let failed = || {
            let text = "the command failed; the server's log has the details";
            Error::new(Code::INTERNAL_ERROR, text).finish(&Document::new())
        };
        let charge = connection.client.lock().last_request.as_ref().map_or(0, |last| last.charge.0);
        Told { reply: reply.unwrap_or_else(failed), request_units: charge as f64 / 100.0 }
    }
}

fn refusal(reply: &RawDocument) -> Option<Refusal> {
    let failed = !matches!(reply.get("ok"), Some(ValueRef::Double(ok)) if ok > 0.0);
    let statement = reply.get("writeErrors").and_then(ValueRef::as_array).and_then(|errors| errors.get(0));
    let statement = statement.and_then(ValueRef::as_document);
    let error = if failed { reply.view() } else { statement? };
    let number = |name: &str| match error.get(name) {
        Some(ValueRef::Int32(number)) => Some(number),
        _ => None,
    };
    Some(Refusal {
        code: number("code").unwrap_or_default(),
        message: error.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default().to_owned(),
        position: number("index").and_then(|index| usize::try_from(index).ok()),
    })
}
