//! Commands that the server itself runs, without a connection. They pass the checks that everybody's pass.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use account::{Entry, Holder, Right};
use bson::{Document, RawDocument, ValueRef};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::auth::{Identity, Who};
use crate::connection::{Client, Connection};
use crate::dispatch;
use crate::operations::Brake;
use crate::service::Service;
use crate::settings::Account;
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

impl Service {
    /// Runs a command on a database as somebody whom nobody has asked who they are: for a front end that requires no
    /// authentication.
    pub async fn perform(self: &Arc<Service>, database: &str, command: Document) -> Result<(), Refusal> {
        let body = RawDocument::from_document(&command.with("$db", database));
        let reply = self.answer_inside(None, body).await;
        reply.as_ref().and_then(refusal).map_or(Ok(()), Err)
    }

    /// Runs a command with the rights of the account, for somebody who has shown its key elsewhere; `$db` in it names the
    /// database. The whole answer, or why the bytes are no command.
    pub async fn perform_as_account(self: &Arc<Service>, command: Bytes) -> Result<Bytes, String> {
        let body = RawDocument::parse(command).map_err(|error| error.to_string())?;
        let Account { user, keys } = &self.settings.account;
        let holder = keys.entries().into_iter().find(|entry| entry.kind.right() == Right::ReadWrite);
        let holder = holder.map(|Entry { kind, key, .. }| Holder { kind, key });
        let identity = holder.map(|holder| Identity::new(user, "admin", Who::Account(holder)));
        let reply = self.answer_inside(identity, body).await;
        reply.map(RawDocument::into_bytes).ok_or_else(|| "the command has no answer".to_owned())
    }

    async fn answer_inside(
        self: &Arc<Service>,
        identity: Option<Identity>,
        body: RawDocument,
    ) -> Option<RawDocument> {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let connection = Connection {
            id: self.next_connection(),
            peer: nowhere,
            local: nowhere,
            server_name: None,
            client: Mutex::new(Client { identity, ..Client::default() }),
        };
        let style = Style { form: Form::Message, compressor: None };
        let request = Request { id: 0, body, sequences: Vec::new(), style };
        dispatch::answer(Arc::clone(self), Arc::new(connection), request, Brake::default()).await.reply
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
