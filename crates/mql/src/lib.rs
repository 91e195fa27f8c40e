//! MongoDB's query language over BSON, without any I/O: filters, updates, projections, sorts, pipelines, index keys.
//!
//! The counterpart of `query` for the MongoDB API. Requests come in as BSON, are parsed once into validated types, and are
//! then evaluated against documents. Errors carry MongoDB's codes and messages.
//!
//! Nothing here knows of collections on disk, sessions, sockets or clocks: documents of other collections come in through
//! [`pipeline::Source`], time and randomness through [`Context`].
//!
//! Entry points: [`filter`], [`update`], [`projection`], [`sort`], [`expression`], [`pipeline`], [`index`].

mod context;
mod error;
pub mod expression;
pub mod filter;
mod geo_box;
pub mod index;
mod numbers;
pub mod path;
pub mod pipeline;
pub mod projection;
mod regex;
mod scratch;
mod size;
pub mod sort;
mod text;
pub mod update;

pub use context::{Context, STAGE_BYTES_MAX};
pub use error::{Code, Error, Result};
pub use path::FieldPath;
pub use scratch::{Scratch, ScratchFile};
