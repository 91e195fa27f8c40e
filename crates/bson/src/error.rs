//! The errors of this crate.

/// The reason why bytes or a text were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes break the rules of BSON.
    #[error("invalid BSON: {0}")]
    Malformed(String),
    /// Nesting past [`crate::limits::DEPTH_MAX`].
    #[error("BSON is nested more than {} levels deep", crate::limits::DEPTH_MAX)]
    TooDeep,
    /// A text that does not parse as the expected value.
    #[error("{0}")]
    Text(String),
    /// A well-formed value that is not supported, such as a locale without data.
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
