//! The MongoDB front end: the wire protocol that current drivers and shells speak, over an [`engine::Engine`].
//!
//! Protocol only: parse, translate, answer, map errors. No rule about items, time or expiry lives here, and nothing here
//! touches the disk. Documents and collections, in MongoDB's sense, live in this crate alone.
//!
//! The path of a command: `dispatch::listener` accepts and bounds connections; `transport` distinguishes TLS from plain text;
//! `dispatch::connection` reads a message (`wire`), runs it and writes the answer; `dispatch` does what all commands share:
//! authorization, sessions, time limits, errors, figures; `commands` is one table and one file per command, whose handlers get
//! a `service::call::Call`; `statements` are what reads and writes are made of; `rights` knows what roles allow;
//! `protocol::error` is the one place where an error becomes a code. The folders have an order, which `cargo xtask tidy` holds.

mod access;
mod auth;
mod change_stream;
mod commands;
mod diagnostics;
mod dispatch;
mod protocol;
mod rights;
mod service;
mod session;
mod statements;
mod wire;

/// The interface of scratch files, for implementations: see [`Settings::scratch`].
pub mod scratch {
    pub use mql::{Code, Error, Result, Scratch, ScratchFile};
}

pub use dispatch::internal::{CommandError, CommandReply};
pub use dispatch::listener::serve;
pub use protocol::limits;
pub use protocol::limits::Limits;
pub use protocol::settings::{Account, Authentication, Host, Profile, Settings};
pub use service::Service;
pub use transport::ServerConfig as TlsConfig;

/// Whether bytes are one message, of the length it says, that names a command and what goes with it. For fuzz targets
/// alone.
pub fn is_request(message: bytes::Bytes) -> bool {
    let announced = wire::MessageSize::announced(&message).ok().flatten();
    announced.is_some_and(|extent| extent.length == message.len()) && wire::read(message).is_ok()
}

/// Returns the user whom the first message of a SCRAM exchange names, if it is one, and whether the second one passes as a
/// proof for a user without a credential. For fuzz targets alone, as is the next one.
pub fn read_exchange(first: &[u8], last: &[u8]) -> Option<(String, bool)> {
    auth::read_exchange(first, last)
}

/// Returns a resume token's digits as the server would write them, if they are a token.
pub fn read_resume_token(digits: &str) -> Option<String> {
    change_stream::read_token(digits)
}
