//! MongoDB's query language over BSON, without any I/O: filters, updates, projections, sorts, pipelines, index keys.
//!
//! The sister of `query` for the MongoDB API. Texts come in as BSON, are parsed once into types that cannot be wrong, and are
//! then evaluated against documents as often as wanted. Errors carry the code and the words that clients know.
//!
//! Nothing here knows of collections on disk, sessions, sockets or clocks: documents of other collections come in through
//! [`pipeline::Source`], time and chance through [`Context`].
//!
//! Entry points: [`filter`], [`update`], [`projection`], [`sort`], [`expression`], [`pipeline`], [`index`].

mod context;
mod error;
pub mod expression;
pub mod filter;
pub mod index;
pub mod path;
pub mod pipeline;
pub mod projection;
mod scratch;
mod size;
pub mod sort;
pub mod update;

pub use context::{Context, STAGE_BYTES_MAX};
pub use error::{Code, Error, Result};
pub use path::FieldPath;
pub use scratch::{Scratch, ScratchFile};
