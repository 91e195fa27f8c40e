//! What the server lends the admin API beyond the engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

/// All of it; nothing unless the server says otherwise.
#[derive(Default)]
pub struct Doors {
    /// Whether the store may be emptied.
    pub reset: Reset,
    /// The MongoDB API, unless it is off.
    pub commands: Option<Arc<dyn Commands>>,
}

/// Whoever runs commands of the MongoDB API. Nothing is known here about them: bytes go in, bytes come out.
pub trait Commands: Send + Sync {
    /// Runs a command with the rights of the account; `$db` in it names the database. Its answer, or why the bytes are none.
    fn run(&self, command: Bytes) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + '_>>;
}

/// Whether the store may be emptied.
#[derive(Default)]
pub enum Reset {
    /// It may not.
    #[default]
    Refused,
    /// It may, and then something is made again, if the server starts with something.
    Allowed {
        /// Whoever makes it.
        again: Option<Arc<dyn Again>>,
    },
}

/// Whoever makes what an empty server starts with.
pub trait Again: Send + Sync {
    /// Makes it: what was made, or why it could not be.
    fn make(&self) -> Pin<Box<dyn Future<Output = Result<Made, String>> + Send + '_>>;
}

/// What was made.
#[derive(Debug, Default)]
pub struct Made {
    /// Databases, containers and collections, as `database 'a'`.
    pub names: Vec<String>,
    /// How many items.
    pub items: usize,
}
