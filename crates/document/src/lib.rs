//! Documents without any I/O: values, their stored bytes, JSON, ordered keys, paths, partition keys, ids.
//!
//! This crate has no disks, containers, time or protocols. Everything here is a pure function of its input,
//! and input from a client or from disk is never trusted: lengths and depths are bounded before use, and hostile
//! bytes give an [`Error`], never a panic.
//!
//! Entry points:
//! - [`Document`]: a whole document in its stored binary form; [`ValueRef`] reads it without unpacking.
//! - [`Value`]: the same as a tree, for code that changes things; `Value::view` gives the tree as a [`ValueRef`].
//! - [`parse_json`], [`write_json`]: the text form, exact both ways.
//! - [`encode_key`], [`decode_key`]: bytes that sort as the values do.
//! - [`PartitionKey`], [`EffectiveKey`]: the physical partition of an item.

mod effective;
mod error;
mod fingerprint;
mod ids;
mod key;
pub mod limits;
mod murmur;
mod order;
mod partition_key;
mod path;
mod pointer;
mod value;

pub use effective::{EffectiveKey, EffectiveRange};
pub use error::{Error, Result};
pub use fingerprint::fingerprint;
pub use ids::{
    ContainerRid, DatabaseRid, Etag, ItemNumber, ItemRid, OfferRid, PermissionRid, RangeRid, ScriptKind,
    ScriptRid, Sequence, UserRid, check_item_id, check_resource_id,
};
pub use key::{decode_key, decode_key_descending, encode_key, encode_key_descending};
pub use order::{compare, equal, total_order};
pub use partition_key::{HashVersion, KeyPart, PartitionKey, PartitionKeyDefinition, PartitionKeyKind};
pub use path::Path;
pub use pointer::{Pointer, Token};
pub use value::binary::Document;
pub use value::json::{parse_json, write_json};
pub use value::view::{ArrayRef, ObjectRef, ValueRef};
pub use value::{Object, Value};
