//! What can be wrong with a frame, by what the reader can do about it.

use std::fmt;

use crate::kinds::Kind;

/// Why a set of tokens cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The connection must be closed.
    Broken(Broken),
    /// The request is answered with 400, and the connection goes on.
    Refused(Refused),
}

/// A frame behind which the next one cannot be found: the connection must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// A frame is shorter than its own head.
    FrameTooShort {
        /// The length that the frame gives itself.
        bytes: u32,
    },
    /// A frame is longer than the reader allows.
    FrameTooLong {
        /// The length that the frame gives itself.
        bytes: u32,
        /// The greatest length allowed.
        limit: usize,
    },
    /// A payload is longer than the reader allows.
    PayloadTooLong {
        /// The length that the payload gives itself.
        bytes: u32,
        /// The greatest length allowed.
        limit: usize,
    },
    /// The frame ends inside of a token.
    Truncated {
        /// Where the token begins, from the first byte of the first token.
        offset: usize,
    },
    /// A token has a type that the protocol does not have, so that its length is unknown.
    UnknownKind {
        /// The token's id.
        id: u16,
        /// The number of the type.
        number: u8,
        /// Where the token begins, from the first byte of the first token.
        offset: usize,
    },
    /// No token, or none without ambiguity, says whether a payload follows.
    PayloadUnknown,
}

/// A well-formed request that cannot be carried out, with what its answer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The reason, which is also the message for the client.
    pub refusal: Refusal,
    /// The number of the request, to be echoed. The client cannot match an answer without it.
    pub transport_request_id: Option<u32>,
    /// Whether a payload follows, to be skipped.
    pub has_payload: bool,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A resource type that no server here has.
    UnknownResourceType {
        /// Its number.
        number: u16,
    },
    /// An operation type that no server here has.
    UnknownOperationType {
        /// Its number.
        number: u16,
    },
    /// A token has another type than the table gives it.
    WrongKind {
        /// The token's id.
        id: u16,
        /// The token's name.
        name: &'static str,
        /// The type in the table.
        expected: Kind,
        /// The type in the frame.
        found: Kind,
    },
    /// A token is given twice: the reader does not guess which one the client means.
    Twice {
        /// The token's id.
        id: u16,
        /// The token's name.
        name: &'static str,
    },
    /// A text is not UTF-8.
    NotUtf8 {
        /// The token's id.
        id: u16,
        /// The token's name.
        name: &'static str,
    },
    /// A number is none of those that the token may have.
    UnknownValue {
        /// The token's id.
        id: u16,
        /// The token's name.
        name: &'static str,
        /// The number.
        number: u8,
    },
}

/// A value or a payload does not fit into the length that its type has room for, and the frame cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong {
    /// The token's name, or `payload`, or `frame`.
    pub name: &'static str,
    /// The length.
    pub bytes: usize,
    /// The greatest length possible.
    pub limit: usize,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(broken) => broken.fmt(out),
            Self::Refused(refused) => refused.refusal.fmt(out),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrameTooShort { bytes } => {
                write!(out, "the frame gives its length as {bytes} bytes, and its head alone has 24")
            }
            Self::FrameTooLong { bytes, limit } => {
                write!(out, "the frame gives its length as {bytes} bytes, and at most {limit} are allowed")
            }
            Self::PayloadTooLong { bytes, limit } => {
                write!(out, "the payload gives its length as {bytes} bytes, and at most {limit} are allowed")
            }
            Self::Truncated { offset } => {
                write!(out, "the frame ends inside of the token that begins at byte {offset} of its tokens")
            }
            Self::UnknownKind { id, number, offset } => write!(
                out,
                "the token {id:04x} at byte {offset} of the frame's tokens has the unknown type {number:02x}"
            ),
            Self::PayloadUnknown => out.write_str("the frame does not say whether a payload follows"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownResourceType { number } => {
                write!(out, "the resource type {number:04x} is not supported")
            }
            Self::UnknownOperationType { number } => {
                write!(out, "the operation type {number:04x} is not supported")
            }
            Self::WrongKind { id, name, expected, found } => {
                write!(out, "the token {id:04x} ({name}) has the type {found}, where {expected} is expected")
            }
            Self::Twice { id, name } => write!(out, "the token {id:04x} ({name}) is given twice"),
            Self::NotUtf8 { id, name } => write!(out, "the token {id:04x} ({name}) is not UTF-8"),
            Self::UnknownValue { id, name, number } => {
                write!(out, "the token {id:04x} ({name}) has the unknown value {number}")
            }
        }
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bytes, limit } = self;
        write!(out, "{name} has {bytes} bytes, and at most {limit} can be sent")
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Broken {}
impl std::error::Error for Refusal {}
impl std::error::Error for TooLong {}

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}
