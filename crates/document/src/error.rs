//! The errors of this crate, grouped by what the caller can do about them.

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Why bytes, text or a value were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not acceptable JSON; the client must send other text.
    #[error("invalid JSON at line {line} column {column}: {message}")]
    Json {
        /// Line of the offending byte, from 1.
        line: usize,
        /// Column of the offending byte, from 1 (0 when the text is empty).
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The body is not acceptable binary JSON; the client must send other bytes.
    #[error("invalid binary JSON at byte {offset}: {message}")]
    Binary {
        /// Offset of the offending marker from the start of the body.
        offset: usize,
        /// What is wrong there.
        message: String,
    },
    /// Well-formed, but not allowed: an id, path, partition key or value that breaks a rule.
    #[error("{message}")]
    Invalid {
        /// Which rule was broken, naming the object.
        message: String,
    },
    /// Stored bytes are not in the form that this crate writes: the disk, or the code that wrote them, is at fault.
    #[error("corrupt stored bytes: {message}")]
    Corrupt {
        /// What was found.
        message: String,
    },
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::Invalid { message: message.into() }
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Error {
        Error::Corrupt { message: message.into() }
    }

    pub(crate) fn binary(offset: usize, message: impl Into<String>) -> Error {
        Error::Binary { offset, message: message.into() }
    }

    /// Returns `true` if stored bytes are at fault rather than the client's input.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Error::Corrupt { .. })
    }
}
