//! The projection of `find`: which parts of a document are shown.
//!
//! An inclusion or an exclusion, with computed fields, and three things that only `find` has: `$slice`, `$elemMatch` and
//! the positional `a.$`. Slices and positions are cut from the fields that the tree keeps; the others are computed fields.
//! The tree itself ([`Tree`]) also serves the stages of pipelines.

mod parse;
mod tree;

use std::sync::Arc;

use bson::{Collation, Document, DocumentRef, Value};

pub(crate) use parse::unknown_expression;
pub use tree::{Policy, Tree};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Scope;
use crate::filter::{ElementFilter, Filter, Settings};
use crate::path::{Component, FieldPath};

/// A projection, ready to be applied.
#[derive(Debug, Clone)]
pub struct Projection {
    tree: Tree,
    slices: Vec<(FieldPath, Slice)>,
    elements: Vec<(String, ElementFilter)>,
    positional: Option<FieldPath>,
    variables: Arc<Document>,
    collation: Collation,
}

/// Which items of an array stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    /// Where to begin; from the end if negative.
    skip: i64,
    limit: i64,
}

/// The known facts about a document beside its fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// The filter by which it was found, for `a.$`.
    pub filter: Option<&'a Filter>,
    /// The values of `$meta`: one field for each keyword, such as `textScore`.
    pub meta: Option<&'a Document>,
}

impl Projection {
    /// Reads a projection. An empty one shows everything.
    pub fn parse(projection: DocumentRef<'_>, settings: &Settings) -> Result<Projection> {
        parse::projection(projection, settings)
    }

    /// Returns `true` if documents are shown as they are.
    pub fn is_everything(&self) -> bool {
        self.tree.policy() == Policy::Exclude
            && self.tree.is_empty()
            && self.slices.is_empty()
            && self.elements.is_empty()
            && self.positional.is_none()
    }

    /// Returns the projected document.
    pub fn apply(
        &self,
        document: DocumentRef<'_>,
        beside: Beside<'_>,
        context: &Context,
    ) -> Result<Document> {
        let mut scope = Scope::root(document).with_variables(&self.variables).with_collation(&self.collation);
        if let Some(meta) = beside.meta {
            scope = scope.with_meta(meta);
        }
        let mut output = self.tree.apply(document, &scope, context)?;
        for (name, filter) in &self.elements {
            let item = match document.get(name).and_then(bson::ValueRef::as_array) {
                Some(items) => filter.first(items, context)?.and_then(|position| items.get(position)),
                None => None,
            };
            match item {
                Some(item) => output.insert(name.as_str(), vec![item.to_value()]),
                None => {
                    output.remove(name);
                }
            }
        }
        for (path, slice) in &self.slices {
            slice.apply(&mut output, path.components(), context)?;
        }
        if let Some(path) = &self.positional {
            let position = match beside.filter {
                Some(filter) => filter.position(document, context)?,
                None => None,
            };
            keep_position(&mut output, path.components(), position)?;
        }
        Ok(output)
    }
}

impl Slice {
    fn apply(self, document: &mut Document, components: &[Component], context: &Context) -> Result<()> {
        context.spend(1)?;
        let Some((component, rest)) = components.split_first() else { return Ok(()) };
        match (document.get_mut(component.name()), rest.is_empty()) {
            (Some(Value::Array(items)), true) => self.cut(items),
            (Some(Value::Document(document)), false) => self.apply(document, rest, context)?,
            (Some(Value::Array(items)), false) => {
                for item in items {
                    if let Value::Document(document) = item {
                        self.apply(document, rest, context)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn cut(self, items: &mut Vec<Value>) {
        let length = items.len() as i64;
        let start = if self.skip < 0 { (length + self.skip).max(0) } else { self.skip.min(length) };
        let end = start.saturating_add(self.limit).min(length);
        items.truncate(end as usize);
        items.drain(..start as usize);
    }
}

/// Leaves one item of the first array on the path.
fn keep_position(document: &mut Document, components: &[Component], position: Option<usize>) -> Result<()> {
    let Some((component, rest)) = components.split_first() else { return Ok(()) };
    match document.get_mut(component.name()) {
        Some(Value::Document(document)) => keep_position(document, rest, position),
        Some(Value::Array(items)) => {
            let missing = "Executor error during find command :: caused by :: positional operator '.$' couldn't find a \
                           matching element in the array";
            let position = position.ok_or_else(|| Error::location(51246, missing))?;
            if position >= items.len() {
                let mismatch = "Executor error during find command :: caused by :: positional operator '.$' element \
                                mismatch";
                return Err(Error::location(51247, mismatch));
            }
            items.truncate(position + 1);
            items.drain(..position);
            Ok(())
        }
        _ => Ok(()),
    }
}
