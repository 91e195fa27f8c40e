//! How commands reach documents: where a command reads and writes, what that costs, and what pipelines read from.
//!
//! Plans and scans are the engine's (`engine::find`). This folder has what belongs to requests: `executor` is the database or
//! transaction that a command works in, `meter` its charge, and `permit` its permit; `pipeline_source` is the source of a pipeline, `output` its
//! target, `pipeline_cursor` a running pipeline with everything that it needs between two requests; `catalog` has names and
//! views.

pub(crate) mod catalog;
pub(crate) mod executor;
pub(crate) mod meter;
pub(crate) mod permit;
pub(crate) mod provisional;

mod output;
mod pipeline_cursor;
mod pipeline_source;
mod request_scratch;
mod validator;

pub(crate) use output::{is_staged, remove_leftovers, unique_key};
pub(crate) use pipeline_cursor::{Batch, PipelineCursor, PipelineInputs};
pub(crate) use validator::Validator;

use mql::index::Hint;

use crate::protocol::error::Result;
use crate::protocol::fields::Fields;

/// Returns the hint of a command or statement.
pub(crate) fn hint(fields: Fields<'_>) -> Result<Option<Hint>> {
    Ok(fields.value("hint").map(Hint::parse).transpose()?.flatten())
}
