//! Every bound of this crate in one place, with its reason.

/// Nested arrays and objects a document may have: `[[…]]` with 128 brackets is accepted, 129 is refused.
///
/// Also the bound on recursion everywhere in this crate.
pub const NESTING_DEPTH: usize = 128;

/// Longest JSON or binary body this crate parses. The engine's own item limit is far lower; this one keeps every
/// length of the stored form inside 32 bits even if a caller forgets to check.
pub const DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// Longest string in one part of a partition key.
pub const KEY_PART_BYTES: usize = 2048;

/// Levels of a hierarchical partition key.
pub const KEY_PARTS: usize = 3;

/// Segments of a property path or tokens of a JSON pointer.
pub const PATH_SEGMENTS: usize = NESTING_DEPTH;

/// Longest text of a property path or a JSON pointer.
pub const PATH_BYTES: usize = 8 * 1024;

/// Longest id of a database or container, in characters.
pub const RESOURCE_ID_CHARS: usize = 255;

/// Longest id of an item, in UTF-8 bytes.
pub const ITEM_ID_BYTES: usize = 1023;

/// Longest effective partition key we read from a client: three hashed levels, or a version 1 key of one
/// string, with room for the `FF` of an upper bound.
pub const EFFECTIVE_KEY_BYTES: usize = 512;

/// The largest stored form of a binary JSON body.
///
/// A back reference or an array of empty arrays is a few bytes that stand for many, so without a bound a small
/// body could grow with the square of its size. An ordinary item of the largest size stays far below.
pub const EXPANDED_BYTES: usize = 16 * 1024 * 1024;
