//! `$match`, and the parts of it that can be checked earlier than they are written.

use std::sync::Arc;

use bson::{Document, DocumentRef, Value, ValueRef};

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::pipeline::chain::{Each, EachRow, ExecutionContext, Step};
use crate::pipeline::row::Row;
use crate::pipeline::settings::PipelineContext;

/// A `$match` as parsed.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) document: Document,
    pub(crate) filter: Arc<Filter>,
}

impl Match {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Match> {
        let ValueRef::Document(document) = argument else {
            return Err(Error::location(15959, "the match filter must be an expression in an object"));
        };
        if asks_for_distance(document) {
            let message = "$geoNear, $near, and $nearSphere are not allowed in this context, as these operators \
                           require sorting geospatial data. If you do not need sort, consider using $geoWithin instead.";
            return Err(Error::location(5_626_500, message));
        }
        Match::of(document.to_document(), around)
    }

    pub(crate) fn of(document: Document, around: &PipelineContext) -> Result<Match> {
        let filter = Arc::new(around.filter(document.view())?);
        Ok(Match { document, filter })
    }

    /// Returns `true` if this is a text search, which only the collection itself can answer.
    pub(crate) fn searches_text(&self) -> bool {
        searches_text(self.document.view())
    }

    pub(crate) fn start(&self) -> Box<dyn Step> {
        EachRow::step(MatchStep(Arc::clone(&self.filter)))
    }
}

struct MatchStep(Arc<Filter>);

impl Each for MatchStep {
    fn apply(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        Ok(self.0.matches(row.view(), execution.context)?.then_some(row))
    }
}

/// Returns all conditions as one.
pub(crate) fn all_of(mut conditions: Vec<Document>) -> Document {
    match conditions.len() {
        0 => Document::new(),
        1 => conditions.remove(0),
        _ => Document::new().with("$and", conditions.into_iter().map(Value::Document).collect::<Vec<_>>()),
    }
}

/// Returns the conditions of a filter that must all hold, one by one.
pub(crate) fn conjuncts(filter: &Document) -> Vec<Document> {
    let mut found = Vec::new();
    for (name, value) in filter.iter() {
        match (name, value) {
            ("$and", Value::Array(items)) => {
                for item in items.iter().filter_map(Value::as_document) {
                    found.extend(conjuncts(item));
                }
            }
            _ => found.push(Document::new().with(name, value.clone())),
        }
    }
    found
}

/// Returns the outermost names of the fields in a filter; none if they are not known.
pub(crate) fn fields_asked(filter: DocumentRef<'_>) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    for (name, value) in filter.iter() {
        match (name, value) {
            ("$and" | "$or" | "$nor", ValueRef::Array(items)) => {
                for item in items.iter() {
                    found.extend(fields_asked(item.as_document()?)?);
                }
            }
            ("$comment", _) => {}
            (operator, _) if operator.starts_with('$') => return None,
            (path, _) => found.extend(path.split('.').next()),
        }
    }
    Some(found)
}

fn searches_text(filter: DocumentRef<'_>) -> bool {
    filter.iter().any(|(name, value)| match (name, value) {
        ("$text", _) => true,
        ("$and" | "$or" | "$nor", ValueRef::Array(items)) => {
            items.iter().filter_map(ValueRef::as_document).any(searches_text)
        }
        _ => false,
    })
}

fn asks_for_distance(filter: DocumentRef<'_>) -> bool {
    filter.iter().any(|(name, value)| match (name, value) {
        ("$and" | "$or" | "$nor", ValueRef::Array(items)) => {
            items.iter().filter_map(ValueRef::as_document).any(asks_for_distance)
        }
        (path, ValueRef::Document(test)) if !path.starts_with('$') => {
            test.iter().any(|(name, _)| matches!(name, "$near" | "$nearSphere" | "$geoNear"))
        }
        _ => false,
    })
}
