//! The changes of documents: update operators, replacements, pipelines as updates, and the documents of upserts.
//!
//! [`Update::parse`] checks everything once; [`Update::apply`] then makes the new document from an old one, or reports
//! that no byte changes, which is not a write (T9). [`upsert_document`] makes the document for a filter that found none,
//! [`prepare_insert`] readies one that a client sends. The results may be stored: they have an `_id` of a permitted
//! type, and are neither too large nor too deep.

mod arithmetic;
mod array_filters;
mod arrays;
mod change;
mod describe;
mod document;
mod operator;
mod operators;
mod path;
mod pipeline;
mod rename;
mod replacement;
mod tree;
mod upsert;

use bson::{DocumentRef, RawDocument, ValueRef};

pub use describe::describe_change;
pub use document::prepare_insert;
pub use upsert::upsert_document;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter::{self, Filter};
use array_filters::ArrayFilters;
use operators::Operators;
use pipeline::Stages;
use replacement::Replacement;

/// An update, ready to be applied.
#[derive(Debug)]
pub struct Update(Kind);

#[derive(Debug)]
enum Kind {
    Operators(Operators),
    Replacement(Replacement),
    Pipeline(Stages),
}

impl Update {
    /// Reads an update: a document of operators, a replacing document, or the stages of a pipeline.
    pub fn parse(
        update: ValueRef<'_>,
        array_filters: &[DocumentRef<'_>],
        settings: &filter::Settings,
    ) -> Result<Update> {
        match update {
            ValueRef::Document(document) => {
                let mut filters = ArrayFilters::parse(array_filters, settings)?;
                let is_operators = document.iter().next().is_some_and(|(name, _)| name.starts_with('$'));
                let kind = if is_operators {
                    Kind::Operators(Operators::parse(document, &mut filters, settings)?)
                } else {
                    Kind::Replacement(Replacement::parse(document)?)
                };
                filters.check_used(update)?;
                Ok(Update(kind))
            }
            ValueRef::Array(_) if !array_filters.is_empty() => {
                Err(Error::failed_to_parse("arrayFilters may not be specified for pipeline-syle updates"))
            }
            ValueRef::Array(stages) => Ok(Update(Kind::Pipeline(Stages::parse(stages, settings)?))),
            _ => Err(Error::failed_to_parse("Update argument must be either an object or an array")),
        }
    }

    /// Returns `true` if this replaces the whole document.
    pub fn is_replacement(&self) -> bool {
        matches!(self.0, Kind::Replacement(_))
    }

    /// Returns the document after the update; `None` if nothing changes. `filter` is the one that found the document, for
    /// `$` in paths. `inserting` says that the document is about to be inserted, which is when `$setOnInsert` applies.
    pub fn apply(
        &self,
        document: &RawDocument,
        filter: Option<&Filter>,
        inserting: bool,
        context: &Context,
    ) -> Result<Option<RawDocument>> {
        let after = match &self.0 {
            Kind::Operators(operators) => match operators.apply(document, filter, inserting, context)? {
                Some(after) => after,
                None => return Ok(None),
            },
            Kind::Replacement(replacement) => replacement.apply(document, context)?,
            Kind::Pipeline(stages) => stages.apply(document, context)?,
        };
        document::check_size(&after, inserting)?;
        Ok((after != *document).then_some(after))
    }
}
