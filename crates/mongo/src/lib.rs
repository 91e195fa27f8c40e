//! The MongoDB front end: the wire protocol that current drivers and shells speak, over an [`engine::Engine`].
//!
//! Protocol only: parse, translate, answer, map errors. No rule about items, time or expiry lives here, and nothing here
//! touches the disk. Documents and collections, in MongoDB's sense, live in this crate alone.
//!
//! The life of a command: `listener` accepts and bounds connections; `transport` tells TLS from plain text; `connection` reads a
//! message (`wire`), runs it and writes the answer; `dispatch` does what all commands share: who may do it, sessions, time
//! limits, errors, figures; `rights` knows what roles allow and what commands need; `commands` is one table and one file per command; `error` is the one place where an error becomes a
//! code.

mod access;
mod api;
mod aside;
mod audit;
mod auth;
mod call;
mod catalog;
mod change_stream;
mod clock;
mod commands;
mod connection;
mod cursor_reply;
mod cursors;
mod describe;
mod dispatch;
mod error;
mod explanation;
mod fail_points;
mod fields;
mod filling;
mod index_uses;
mod inner;
mod journal;
pub mod limits;
mod listener;
mod matching;
mod meter;
mod operation_time;
mod operations;
mod parameters;
mod provisional;
mod random;
mod record;
mod reply;
mod rights;
mod room;
mod service;
mod session;
mod settings;
mod shares;
mod statements;
mod statistics;
mod sweep;
mod transactions;
mod turn;
mod usage;
mod wire;
mod write_concern;
mod write_errors;

/// The interface to scratch files, for who implements it: see [`Settings::scratch`].
pub mod scratch {
    pub use mql::{Code, Error, Result, Scratch, ScratchFile};
}

pub use inner::{Refusal, Told};
pub use limits::Limits;
pub use listener::serve;
pub use service::Service;
pub use settings::{Account, Authentication, Host, Profile, Settings};
pub use transport::ServerConfig as TlsConfig;

/// Whether bytes are one message, of the length it says, that names a command and what goes with it. The door for fuzz targets:
/// nothing else asks.
pub fn is_request(message: bytes::Bytes) -> bool {
    let announced = wire::Extent::announced(&message).ok().flatten();
    announced.is_some_and(|extent| extent.length == message.len()) && wire::read(message).is_ok()
}

/// The user whom the first message of a SCRAM exchange names, if it is one, and whether the second one proves anything where
/// nothing can be proved. The door for fuzz targets, as is the next one.
pub fn read_exchange(first: &[u8], last: &[u8]) -> Option<(String, bool)> {
    auth::read_exchange(first, last)
}

/// A resume token's digits as we would write them, if they are one.
pub fn read_resume_token(digits: &str) -> Option<String> {
    change_stream::read_token(digits)
}
