//! What can be wrong with bytes or texts that claim to be BSON.

/// Why bytes are not BSON, or a text is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes break the rules of BSON.
    #[error("invalid BSON: {0}")]
    Malformed(String),
    /// Nesting past [`crate::limits::DEPTH_MAX`].
    #[error("BSON is nested more than {} levels deep", crate::limits::DEPTH_MAX)]
    TooDeep,
    /// A text that cannot be read as the value it should be.
    #[error("{0}")]
    Text(String),
    /// A value that can be read and is not among those that are supported, such as a locale without data.
    #[error("{0}")]
    Unsupported(String),
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn malformed(what: impl Into<String>) -> Error {
        Error::Malformed(what.into())
    }
}
