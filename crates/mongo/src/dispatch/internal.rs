//! Commands that the server itself runs, without a connection. They pass the same checks as those of clients.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use account::AuthenticatedKey;
use bson::{Document, RawDocument, ValueRef};
use bytes::Bytes;
use engine::Engine;
use parking_lot::Mutex;

use crate::auth::{Identity, Principal};
use crate::commands;
use crate::dispatch;
use crate::protocol::cancellation::Cancellation;
use crate::protocol::error::Error;
use crate::protocol::settings::Settings;
use crate::service::Service;
use crate::service::connection::{Client, Connection};
use crate::wire::{Form, Request, Style};

/// Why a command of the server itself did nothing, or not all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    /// MongoDB's number for it.
    pub code: i32,
    /// The message that clients would get.
    pub message: String,
    /// The position of the failed statement, if there are several.
    pub position: Option<usize>,
}

/// The answer of a command of the server itself.
#[derive(Debug, Clone)]
pub struct CommandReply {
    /// The whole answer, as a driver would get it.
    pub reply: RawDocument,
    /// What it cost.
    pub request_units: f64,
}

impl Service {
    /// Makes a front end over that engine. Its figures are on the registry's page from now on.
    pub fn new(engine: Arc<Engine>, settings: Settings) -> Arc<Service> {
        Service::with_commands(engine, settings, commands::all().iter().map(|command| command.name))
    }

    /// Runs a command on a database as a client that has not authenticated: for a front end that requires no authentication.
    pub async fn perform(self: &Arc<Service>, database: &str, command: Document) -> Result<(), CommandError> {
        let body = RawDocument::from_document(&command.with("$db", database));
        command_error(&self.answer_inside(None, body).await.reply).map_or(Ok(()), Err)
    }

    /// Runs a command for the holder of an account key who has shown it elsewhere; `$db` in it names the database. Returns
    /// the whole answer, or why the bytes are no command.
    pub async fn perform_as_account(
        self: &Arc<Service>,
        holder: &AuthenticatedKey,
        command: Bytes,
    ) -> Result<Bytes, String> {
        let body = RawDocument::parse(command).map_err(|error| error.to_string())?;
        Ok(self.answer_inside(Some(self.account(holder.clone())), body).await.reply.into_bytes())
    }

    /// Runs a command on a database for the holder of an account key: for a front end that has checked the key itself, as
    /// the explorer does. Only on a runtime of several threads.
    pub async fn command(
        self: &Arc<Service>,
        holder: &AuthenticatedKey,
        database: &str,
        command: Document,
    ) -> CommandReply {
        let body = RawDocument::from_document(&command.with("$db", database));
        self.answer_inside(Some(self.account(holder.clone())), body).await
    }

    fn account(&self, holder: AuthenticatedKey) -> Identity {
        Identity::new(&self.settings.account.user, "admin", Principal::Account(holder))
    }

    async fn answer_inside(
        self: &Arc<Service>,
        identity: Option<Identity>,
        body: RawDocument,
    ) -> CommandReply {
        let connection = self.inner_connection(identity);
        let style = Style { form: Form::Message, compressor: None };
        let request = Request { id: 0, body, sequences: Vec::new(), style };
        let work =
            dispatch::answer(Arc::clone(self), Arc::clone(&connection), request, Cancellation::default());
        // A task of its own, so that a panic is this command's error.
        let reply = tokio::spawn(work).await.ok().and_then(|answer| answer.reply);
        let failed = || Error::panicked().finish(&Document::new());
        let charge = connection.client.lock().last_request.as_ref().map_or(0, |last| last.charge.0);
        CommandReply { reply: reply.unwrap_or_else(failed), request_units: charge as f64 / 100.0 }
    }

    /// Returns a connection without a client at its other end.
    pub(super) fn inner_connection(&self, identity: Option<Identity>) -> Arc<Connection> {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Arc::new(Connection {
            id: self.next_connection(),
            peer: nowhere,
            local: nowhere,
            server_name: None,
            client: Mutex::new(Client { identity, ..Client::default() }),
        })
    }
}

fn command_error(reply: &RawDocument) -> Option<CommandError> {
    let failed = !matches!(reply.get("ok"), Some(ValueRef::Double(ok)) if ok > 0.0);
    let statement = reply.get("writeErrors").and_then(ValueRef::as_array).and_then(|errors| errors.get(0));
    let statement = statement.and_then(ValueRef::as_document);
    let error = if failed { reply.view() } else { statement? };
    let number = |name: &str| match error.get(name) {
        Some(ValueRef::Int32(number)) => Some(number),
        _ => None,
    };
    Some(CommandError {
        code: number("code").unwrap_or_default(),
        message: error.get("errmsg").and_then(ValueRef::as_str).unwrap_or_default().to_owned(),
        position: number("index").and_then(|index| usize::try_from(index).ok()),
    })
}
