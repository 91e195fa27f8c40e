//! Applying the operators to one document.
//!
//! Only the top-level fields that an operator names are unpacked; all others are copied from the old document into the new
//! one as bytes. Where a path ends at a missing field, it is created: documents only, since a number in a path is a
//! position only in an existing array.
//!
//! Operators may copy one operand to a million elements, so the bytes they add are counted meanwhile: a document that would
//! be too large is refused before it is built.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use bson::{Document, RawDocument, Value, ValueRef, Writer, limits};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::filter::{self, Filter};
use crate::update::document::{check_depth, check_id, dollar_prefixed, too_large};
use crate::update::operator::{Operand, Outcome, field_text};
use crate::update::path::Name;
use crate::update::tree::{Fields, Node, merge};

/// How many elements may be put between the end of an array and a new one.
const PADDING_MAX: usize = 1_500_000;
/// Up to so many names are searched one by one.
const FEW_NAMES: usize = 8;

/// The inputs of an application.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApplyContext<'a> {
    pub(super) context: &'a Context,
    pub(super) settings: &'a filter::Settings,
    pub(super) array_filters: &'a BTreeMap<String, Filter>,
    /// The filter that found the document, for `$`.
    pub(super) filter: Option<&'a Filter>,
    /// Whether the document is about to be inserted by an upsert.
    pub(super) inserting: bool,
}

/// One application of some operators to one document.
pub(super) struct Change<'a> {
    setting: ApplyContext<'a>,
    before: &'a RawDocument,
    /// The renamed values, taken from the document before anything changes.
    renamed: Vec<Option<Value>>,
    /// The current path.
    path: Vec<Name>,
    /// The first path that was written since this was last cleared.
    written: Option<String>,
    /// Bytes added so far, roughly.
    grown: usize,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        setting: ApplyContext<'a>,
        before: &'a RawDocument,
        renamed: Vec<Option<Value>>,
    ) -> Change<'a> {
        Change { setting, before, renamed, path: Vec::new(), written: None, grown: 0 }
    }

    pub(super) fn context(&self) -> &'a Context {
        self.setting.context
    }

    pub(super) fn inserting(&self) -> bool {
        self.setting.inserting
    }

    pub(super) fn compare(&self, one: ValueRef<'_>, other: ValueRef<'_>) -> std::cmp::Ordering {
        self.setting.settings.compare(one, other)
    }

    /// Returns the document's `_id` for a message.
    pub(super) fn id_text(&self) -> String {
        id_text(self.before)
    }

    /// Returns the current path.
    pub(super) fn path_text(&self) -> String {
        let mut text = String::new();
        for name in &self.path {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(name.as_str());
        }
        text
    }

    /// Returns the last name of that path.
    pub(super) fn last_name(&self) -> &str {
        self.path.last().map_or("", Name::as_str)
    }

    /// Returns `true` if the rename of that number has a value to move.
    pub(super) fn is_renamed(&self, number: usize) -> bool {
        self.renamed.get(number).is_some_and(Option::is_some)
    }

    /// Returns the value that the rename of that number moves.
    pub(super) fn renamed(&self, number: usize) -> Option<Value> {
        self.renamed.get(number).cloned().flatten()
    }

    /// Returns a copy of an operand, as long as the document can still take it.
    pub(super) fn take(&mut self, operand: &Operand) -> Result<Value> {
        self.grow(operand.bytes)?;
        Ok(operand.value.clone())
    }

    /// Counts bytes that are added to the document.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.grown = self.grown.saturating_add(bytes);
        if self.grown > limits::DOCUMENT_BYTES_MAX { Err(too_large(self.setting.inserting)) } else { Ok(()) }
    }

    /// Applies all operators. `None`: nothing was written.
    pub(super) fn run(mut self, operators: &BTreeMap<Name, Node>) -> Result<Option<RawDocument>> {
        let fields: Vec<(&str, ValueRef<'a>)> = self.before.view().iter().collect();
        self.context().spend(fields.len() as u64)?;
        let places = positions(fields.iter().map(|(name, _)| *name), operators);
        let mut changed: Vec<Option<FieldOutcome>> = fields.iter().map(|_| None).collect();
        let mut added = Vec::new();
        for ((name, node), place) in operators.iter().zip(places) {
            match place {
                Some(place) => changed[place] = self.top_level(name, node, Some(fields[place].1))?,
                None => added.extend(self.top_level(name, node, None)?.map(|after| (name, after))),
            }
        }
        if added.is_empty() && changed.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut writer = Writer::default();
        for ((name, before), after) in fields.into_iter().zip(&changed) {
            match after {
                None => writer.field(name, before),
                Some(FieldOutcome(Some(after))) => writer.field(name, after),
                Some(FieldOutcome(None)) => {}
            }
        }
        for (name, FieldOutcome(value)) in &added {
            if let Some(value) = value {
                writer.field(name.as_str(), value);
            }
        }
        Ok(Some(writer.finish()))
    }

    /// Applies the operators below one field of the document; `None` if nothing was written.
    fn top_level(
        &mut self,
        name: &Name,
        node: &Node,
        before: Option<ValueRef<'_>>,
    ) -> Result<Option<FieldOutcome>> {
        self.written = None;
        let after = match before {
            Some(before) => {
                let mut value = before.to_value();
                let outcome = self.below(name, |change| change.visit(node, &mut value))?;
                (outcome != Outcome::Removed).then_some(value)
            }
            None => self.create_below(name, node)?,
        };
        let Some(path) = self.written.take() else { return Ok(None) };
        check_field(name.as_str(), &path, before, after.as_ref())?;
        Ok(Some(FieldOutcome(after)))
    }

    fn visit(&mut self, node: &Node, value: &mut Value) -> Result<Outcome> {
        self.context().spend(1)?;
        match node {
            Node::Leaf(operator) => {
                let outcome = operator.apply(value, self)?;
                if outcome != Outcome::Untouched {
                    self.note_written();
                }
                return Ok(outcome);
            }
            Node::Fields(fields) => {
                let named = self.named(fields)?;
                self.fields(&named, value)?;
            }
            Node::Elements(elements) => self.elements(elements, value)?,
        }
        Ok(Outcome::Untouched)
    }

    /// Returns the operators by name, with those at `$` at the position that the filter found.
    fn named<'n>(&self, fields: &'n Fields) -> Result<Cow<'n, BTreeMap<Name, Node>>> {
        if fields.matched.is_none() {
            return Ok(Cow::Borrowed(&fields.named));
        }
        let found = match self.setting.filter {
            Some(filter) => filter.position(self.before.view(), self.context())?,
            None => None,
        };
        let position = found.map(Name::of_index).ok_or_else(|| {
            Error::bad_value("The positional operator did not find the match needed from the query.")
        })?;
        fields.with_matched(position, &self.path_text(), self.context()).map(Cow::Owned)
    }

    fn fields(&mut self, nodes: &BTreeMap<Name, Node>, value: &mut Value) -> Result<()> {
        match value {
            Value::Document(document) => self.document(nodes, document),
            Value::Array(_) => nodes.iter().try_for_each(|(name, node)| self.item(name, node, value)),
            scalar => nodes.iter().try_for_each(|(name, node)| self.no_way(name, node, scalar.view())),
        }
    }

    /// Handles a path through a value without fields: nothing can be created below it, and for some operators that is
    /// an error.
    fn no_way(&mut self, name: &Name, node: &Node, value: ValueRef<'_>) -> Result<()> {
        let element = field_text(self.last_name(), value);
        if self.create_below(name, node)?.is_some() {
            let message = format!("Cannot create field '{name}' in element {{{element}}}");
            return Err(Error::new(Code::PATH_NOT_VIABLE, message));
        }
        let Some(rest) = node.needs_way() else { return Ok(()) };
        let (part, path) = (self.last_name(), self.path_text());
        let rest: String = rest.iter().rev().flat_map(|name| [".", name.as_str()]).collect();
        let message = format!(
            "Cannot use the part ({part} of {path}.{name}{rest}) to traverse the element ({{{element}}})"
        );
        Err(Error::new(Code::PATH_NOT_VIABLE, message))
    }

    fn document(&mut self, nodes: &BTreeMap<Name, Node>, document: &mut Document) -> Result<()> {
        self.context().spend(document.len() as u64)?;
        let places = positions(document.iter().map(|(name, _)| name), nodes);
        let mut removed = Vec::new();
        for ((name, node), place) in nodes.iter().zip(places) {
            match place.and_then(|place| Some((place, document.fields_mut().get_mut(place)?))) {
                Some((place, (_, value))) => {
                    if self.below(name, |change| change.visit(node, value))? == Outcome::Removed {
                        removed.push(place);
                    }
                }
                None => {
                    if let Some(created) = self.create_below(name, node)? {
                        document.push(name.as_str(), created);
                    }
                }
            }
        }
        removed.sort_unstable();
        if !removed.is_empty() {
            let mut place = 0;
            document.fields_mut().retain(|_| {
                place += 1;
                removed.binary_search(&(place - 1)).is_err()
            });
        }
        Ok(())
    }

    /// Applies operators to an element by its position; beyond the end it is created, with nulls in between.
    fn item(&mut self, name: &Name, node: &Node, array: &mut Value) -> Result<()> {
        let (Value::Array(items), Some(index)) = (&mut *array, name.index()) else {
            return self.no_way(name, node, array.view());
        };
        if let Some(item) = items.get_mut(index) {
            if self.below(name, |change| change.visit(node, item))? == Outcome::Removed {
                *item = Value::Null;
            }
            return Ok(());
        }
        let Some(created) = self.create_below(name, node)? else { return Ok(()) };
        let padding = index - items.len();
        if padding > PADDING_MAX {
            let message = format!("can't backfill more than {PADDING_MAX} elements");
            return Err(Error::new(Code::CANNOT_BACKFILL_ARRAY, message));
        }
        self.context().spend(padding as u64)?;
        self.grow(padding * 3)?;
        items.resize(index, Value::Null);
        items.push(created);
        Ok(())
    }

    fn elements(&mut self, nodes: &BTreeMap<String, Node>, value: &mut Value) -> Result<()> {
        let Value::Array(items) = value else {
            let element = field_text(self.last_name(), value.view());
            return Err(Error::bad_value(format!(
                "Cannot apply array updates to non-array element {element}"
            )));
        };
        for (index, item) in items.iter_mut().enumerate() {
            self.context().spend(1)?;
            let mut passed = Vec::new();
            for (identifier, node) in nodes {
                if self.passes(identifier, item)? {
                    passed.push(node);
                }
            }
            let Some((first, others)) = passed.split_first() else { continue };
            let name = Name::of_index(index);
            let outcome = self.below(&name, |change| {
                let [other, rest @ ..] = others else { return change.visit(first, item) };
                let place = change.path_text();
                let mut merged = merge(first, other, &place, change.context())?;
                for node in rest {
                    merged = merge(&merged, node, &place, change.context())?;
                }
                change.visit(&merged, item)
            })?;
            if outcome == Outcome::Removed {
                *item = Value::Null;
            }
        }
        Ok(())
    }

    /// Returns whether an element passes the array filter of that name.
    fn passes(&self, identifier: &str, item: &mut Value) -> Result<bool> {
        let Some(filter) = self.setting.array_filters.get(identifier) else { return Ok(true) };
        // The element moves into the document that the filter matches, and back.
        let mut wrapped = Document::new().with(identifier, std::mem::replace(item, Value::Null));
        let passes = filter.matches(wrapped.view(), self.context());
        *item = wrapped.remove(identifier).unwrap_or(Value::Null);
        passes
    }

    /// Returns the value that the operators create at a missing field; `None` if they create none.
    fn create(&mut self, node: &Node) -> Result<Option<Value>> {
        self.context().spend(1)?;
        match node {
            Node::Leaf(operator) => operator.create(self),
            Node::Elements(_) => Err(Error::bad_value(format!(
                "The path '{}' must exist in the document in order to apply array updates.",
                self.path_text()
            ))),
            Node::Fields(fields) => {
                let named = self.named(fields)?;
                self.create_document(&named)
            }
        }
    }

    fn create_document(&mut self, nodes: &BTreeMap<Name, Node>) -> Result<Option<Value>> {
        let mut document = Document::new();
        for (name, node) in nodes {
            if let Some(created) = self.below(name, |change| change.create(node))? {
                self.grow(name.as_str().len() + 7)?;
                document.push(name.as_str(), created);
            }
        }
        Ok((!document.is_empty()).then_some(Value::Document(document)))
    }

    /// Creates the value of a name that is missing at the current path.
    fn create_below(&mut self, name: &Name, node: &Node) -> Result<Option<Value>> {
        self.below(name, |change| {
            let created = change.create(node)?;
            if created.is_some() {
                change.note_written();
            }
            Ok(created)
        })
    }

    fn below<T>(&mut self, name: &Name, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.path.push(name.clone());
        let result = run(self);
        self.path.pop();
        result
    }

    fn note_written(&mut self) {
        if self.written.is_none() {
            self.written = Some(self.path_text());
        }
    }
}

/// Checks a field of the document that was written.
fn check_field(name: &str, path: &str, before: Option<ValueRef<'_>>, after: Option<&Value>) -> Result<()> {
    if name == "_id" {
        if let Some(before) = before
            && !after.is_some_and(|after| bson::equal(before, after.view()))
        {
            return Err(Error::new(
                Code::IMMUTABLE_FIELD,
                format!("Performing an update on the path '{path}' would modify the immutable field '_id'"),
            ));
        }
        after.map_or(Ok(()), |after| check_id(after.view()))?;
    }
    let Some(after) = after else { return Ok(()) };
    if name.starts_with('$') {
        return Err(dollar_prefixed(name));
    }
    check_depth(after.view())
}

/// The value of a field after the operators; `None` if it was removed.
struct FieldOutcome(Option<Value>);

/// Returns the positions of the document's fields that the operators name: the first of each name.
fn positions<'n>(fields: impl Iterator<Item = &'n str>, nodes: &BTreeMap<Name, Node>) -> Vec<Option<usize>> {
    let mut found = vec![None; nodes.len()];
    let mut note = |wanted: usize, place| {
        found[wanted] = found[wanted].or(Some(place));
    };
    if nodes.len() <= FEW_NAMES {
        for (place, field) in fields.enumerate() {
            let wanted = nodes.keys().position(|name| name.as_str() == field);
            if let Some(wanted) = wanted {
                note(wanted, place);
            }
        }
    } else {
        let names: HashMap<&str, usize> = nodes.keys().map(Name::as_str).zip(0..).collect();
        for (place, field) in fields.enumerate() {
            if let Some(wanted) = names.get(field) {
                note(*wanted, place);
            }
        }
    }
    found
}

/// Returns a document's `_id` as messages show it.
pub(super) fn id_text(document: &RawDocument) -> String {
    document.get("_id").map_or_else(|| "no id".to_owned(), |id| field_text("_id", id))
}
