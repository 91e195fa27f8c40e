//! What can go wrong.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine refused or could not do it.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The query text is wrong.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// A value does not become JSON, or JSON does not become the type that was asked for.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The JSON is not one that can be stored.
    #[error(transparent)]
    Document(#[from] document::Error),
}
