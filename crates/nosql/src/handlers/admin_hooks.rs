//! The functions that the server provides to the admin API beyond the engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use account::AuthenticatedKey;
use bytes::Bytes;

/// All hooks; none by default.
#[derive(Default)]
pub struct AdminHooks {
    /// Whether the store may be emptied.
    pub reset: Reset,
    /// The MongoDB API, unless it is off.
    pub commands: Option<Arc<dyn Commands>>,
}

/// Runs commands of the MongoDB API, as opaque bytes.
pub trait Commands: Send + Sync {
    /// Runs a command for the holder of a key of the account; `$db` in it names the database. Returns the answer, or why
    /// the bytes are not a command.
    fn run<'a>(
        &'a self,
        holder: &'a AuthenticatedKey,
        command: Bytes,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + 'a>>;
}

/// Whether the store may be emptied.
#[derive(Default)]
pub enum Reset {
    /// Resets are refused.
    #[default]
    Refused,
    /// Resets are allowed, and then create the initial data, if there is any.
    Allowed {
        /// The initial data.
        initial_data: Option<Arc<dyn InitialData>>,
    },
}

/// The data that an empty server starts with.
pub trait InitialData: Send + Sync {
    /// Creates the data. Returns what was created, or an error text.
    fn make(&self) -> Pin<Box<dyn Future<Output = Result<CreatedData, String>> + Send + '_>>;
}

/// The data that was created.
#[derive(Debug, Default)]
pub struct CreatedData {
    /// Databases, containers and collections, as `database 'a'`.
    pub names: Vec<String>,
    /// The number of items.
    pub items: usize,
}
