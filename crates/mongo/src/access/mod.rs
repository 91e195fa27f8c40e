//! How documents are found: which way a walk takes, what a pipeline reads through, and what rests in a cursor.
//!
//! `choose` picks a way, `walk` goes it, `library` is the door through which pipelines read and write collections,
//! `answers` is a running pipeline with everything that it needs between two requests.

mod answers;
mod choose;
mod library;
mod output;
mod request_scratch;
mod scans;
mod walk;

pub(crate) use answers::{Answers, Batch, Reads};
pub(crate) use choose::{Plan, Used, choose, named_id};
pub(crate) use output::{is_staged, remove_leftovers, unique_key};
pub(crate) use walk::{Examined, Way};

use mql::index::Hint;

use crate::error::Result;
use crate::fields::Fields;

/// The hint of a command or statement.
pub(crate) fn hint(fields: Fields<'_>) -> Result<Option<Hint>> {
    Ok(fields.value("hint").map(Hint::parse).transpose()?.flatten())
}
