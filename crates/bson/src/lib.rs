//! BSON, without any I/O: values, their bytes, their order.
//!
//! The counterpart of `document` for the MongoDB API: a document arrives as BSON, is stored as the same BSON, and is
//! returned byte for byte. This crate knows nothing of filters, collections, time or sockets.
//!
//! Entry points:
//! - [`RawDocument`]: a whole document as bytes, validated once on entry; [`DocumentRef`] and [`ValueRef`] read it without
//!   unpacking and cannot fail.
//! - [`Document`], [`Value`]: the same as a tree, for code that builds and changes things; `view()` reads a tree through the
//!   same types as bytes, so that comparison, keys and text exist once.
//! - [`compare`], [`equal`]: the order of all values, across all types.
//! - [`Collation`]: the order of strings in a language.
//! - [`encode_key`]: bytes that sort as the values do.
//! - [`shell_text`], [`to_extended_json`], [`parse_extended_json`]: values as text, for people and for tests.

mod collation;
mod decimal;
mod error;
mod json;
mod key;
pub mod limits;
mod object_id;
mod order;
mod shell;
mod shorten;
mod value;

pub use collation::Collation;
pub use decimal::{Decimal128, Rounding};
pub use error::{Error, Result};
pub use json::{format_date, parse_date, parse_extended_json, to_extended_json};
pub use key::{
    Extent, KEY_BYTES_MAX, KEY_HASH_BYTES, class_byte, encode_key, encode_key_descending, encode_key_text,
};
pub use object_id::ObjectId;
pub use order::{compare, compare_by, equal};
pub use shell::shell_text;
pub use value::raw::RawDocument;
pub use value::view::{ArrayRef, BinaryRef, DocumentRef, Kind, RegexRef, ValueRef};
pub use value::write::Writer;
pub use value::{Binary, Document, Regex, Timestamp, Value};
