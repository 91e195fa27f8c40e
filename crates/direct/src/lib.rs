//! A small client of Cosmos DB's direct mode, for tests alone.
//!
//! The vendor's clients show that a server works; this one sends what they never do: requests in any order and number,
//! answers left unread, frames that are wrong, names that no client would send. It checks nothing and repairs nothing: it
//! sends what a test gives it, and returns what the server answers.
//!
//! ```text
//! Call        what is asked: types, tokens, payload
//! Session     calls to signed bytes, bytes to answers; no I/O
//! Client      a session over a stream, whose two halves can be used apart
//! Blocking    a client for tests without a runtime
//! ```

mod blocking;
mod call;
mod client;
mod session;
mod signature;
mod tls;

pub use blocking::Blocking;
pub use call::Call;
pub use client::{Client, Receiver, Sender};
pub use session::{Account, Answers, Greeting, Reply, Session};
pub use signature::sign_link;
pub use tls::{TlsClient, connector};
