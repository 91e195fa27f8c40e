//! The errors of this crate.

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine refused the operation or failed.
    #[error(transparent)]
    Engine(#[from] engine::Error),
    /// The query text is wrong.
    #[error(transparent)]
    Query(#[from] query::Error),
    /// A value does not serialize to JSON, or JSON does not deserialize to the requested type.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The JSON cannot be stored.
    #[error(transparent)]
    Document(#[from] document::Error),
}
