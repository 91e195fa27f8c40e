//! Limits of the wire protocol.

/// The deepest nesting of documents and arrays in bytes from a peer or from disk.
pub const DEPTH_MAX: usize = 200;
/// The largest document that is stored.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The largest document that is read: a command or a reply carries a stored document and some words around it.
pub const MESSAGE_DOCUMENT_BYTES_MAX: usize = 48_000_000;
