//! What the explorer gets from the server: how a request came, and the way to the MongoDB front end.

use std::future::Future;
use std::pin::Pin;

use account::Holder;
use bson::{Document, RawDocument};

/// How a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In plain text.
    Plain,
    /// Through TLS: its cookie never goes another way.
    Tls,
}

/// What a MongoDB command is answered with.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The whole answer, as a driver would get it.
    pub document: RawDocument,
    /// What it cost.
    pub request_units: f64,
}

/// The MongoDB front end. Commands run with the rights of a key.
pub trait Shell: Send + Sync {
    /// Runs a command.
    fn run<'a>(
        &'a self,
        holder: &'a Holder,
        database: &'a str,
        command: &'a Document,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send + 'a>>;
}
