//! Dotted paths, and the values they find in a document by the rules of filters.
//!
//! There is one type of path. Filters, expressions and stages enter arrays by different rules: those of filters are here, those
//! of expressions in `expression/path.rs`, those of stages that set and remove fields in `pipeline/path.rs`.
//!
//! Where a path meets an array with components still to go, the next component is tried in two ways: as a field of every
//! document in the array, and, if it is a number, as a position in it. An array directly within an array is only entered by
//! position. So one path may find many values, and none:
//!
//! ```text
//! a.b    of {a: [{b: 1}, {b: [2, 3]}, {c: 4}, 5]}    1, [2, 3], missing       nothing for the 5
//! a.1    of {a: [5, {1: 6}]}                         missing (no: 5 is no document), 6, {1: 6}
//! a.b    of {a: []}                                  nothing at all: neither a value nor "missing"
//! ```
//!
//! At the end of the path an array is either one value ([`Arrays::Whole`]) or all its items and then itself
//! ([`Arrays::Expand`]); items that are arrays are not opened further.

use std::fmt;

use bson::{ArrayRef, DocumentRef, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};

/// Most components of a path: deeper than any document.
const COMPONENTS_MAX: usize = 200;

/// A dotted path such as `a.0.b`. The empty path stands for the value itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FieldPath(Vec<Component>);

/// One part of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Component {
    name: String,
    index: Option<usize>,
}

impl Component {
    fn new(name: &str) -> Component {
        Component { name: name.to_owned(), index: array_index(name) }
    }

    /// Returns the name of a field.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the position in an array, if the name is a number as positions are written.
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

/// Returns the position that a name stands for: digits without a leading zero.
pub fn array_index(name: &str) -> Option<usize> {
    let canonical = name == "0" || !name.starts_with('0');
    let digits = !name.is_empty() && name.len() <= 9 && name.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { name.parse().ok() } else { None }
}

/// Returns `true` if a name is that of a field of a reference to another document (a `DBRef`): the only ones with a `$` in
/// front that paths may name.
pub(crate) fn is_reference_field(name: &str) -> bool {
    matches!(name, "$ref" | "$id" | "$db")
}

/// Refuses names that no field of a path may have: empty ones, and those with a `$` in front that is not a reference's.
pub(crate) fn check_field_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::location(15998, "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') && !is_reference_field(name) {
        let message = "FieldPath field names may not start with '$'. Consider using $getField or $setField.";
        return Err(Error::location(16410, message));
    }
    if name.contains('\0') {
        return Err(Error::location(16411, "FieldPath field names may not contain '\\0'."));
    }
    Ok(())
}

fn check_names(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(Error::location(40352, "FieldPath cannot be constructed with empty string"));
    }
    if text.ends_with('.') {
        return Err(Error::location(40353, "FieldPath must not end with a '.'."));
    }
    text.split('.').try_for_each(check_field_name)
}

/// How an array at the end of a path counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrays {
    /// All items, then the array itself.
    Expand,
    /// The array itself.
    Whole,
}

/// A value that a path found.
#[derive(Debug, Clone, Copy)]
pub struct Leaf<'a> {
    /// The value; `None` where it is missing.
    pub value: Option<ValueRef<'a>>,
    /// The position in the outermost array that the path entered without naming a position.
    pub position: Option<usize>,
}

/// A visitor of the values found; true ends the traversal.
type Visit<'v, 'a> = &'v mut dyn FnMut(Leaf<'a>) -> Result<bool>;

impl FieldPath {
    /// Reads a dotted path. Empty names are allowed; only the number of components is bounded.
    pub fn parse(text: &str) -> Result<FieldPath> {
        let components: Vec<Component> =
            text.split('.').take(COMPONENTS_MAX + 1).map(Component::new).collect();
        if components.len() > COMPONENTS_MAX {
            let message = format!("a path may have at most {COMPONENTS_MAX} components");
            return Err(Error::new(Code::OVERFLOW, message));
        }
        Ok(FieldPath(components))
    }

    /// Parses the path of a field that may be shown, sorted by or set, by the rules of [`check_field_name`].
    pub fn parse_strict(text: &str) -> Result<FieldPath> {
        check_names(text)?;
        FieldPath::parse(text)
    }

    /// Parses the path of an expression or a stage, by the rules of [`check_field_name`].
    pub(crate) fn parse_aggregation(text: &str) -> Result<FieldPath> {
        check_names(text)?;
        FieldPath::parse(text).map_err(|error| Error::new(error.code, "FieldPath is too long"))
    }

    /// Returns a path of these names.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> FieldPath {
        FieldPath(names.into_iter().map(Component::new).collect())
    }

    /// Returns the parts, outermost first.
    pub fn components(&self) -> &[Component] {
        &self.0
    }

    /// Returns the names of the parts, outermost first.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator + Clone {
        self.0.iter().map(Component::name)
    }

    /// Returns the outermost name; empty for the empty path.
    pub fn first(&self) -> &str {
        self.0.first().map_or("", Component::name)
    }

    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if this is the path to the value itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if this path is the other one or leads to it.
    pub fn is_prefix_of(&self, other: &FieldPath) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns the path with one more name at its end.
    #[must_use]
    pub fn child(&self, name: &str) -> FieldPath {
        let mut components = self.0.clone();
        components.push(Component::new(name));
        FieldPath(components)
    }

    /// Visits the values that the path finds until `visit` returns true; returns whether it did.
    pub fn any<'a>(
        &self,
        document: DocumentRef<'a>,
        arrays: Arrays,
        context: &Context,
        visit: Visit<'_, 'a>,
    ) -> Result<bool> {
        self.any_in(ValueRef::Document(document), arrays, context, visit)
    }

    /// Visits the values that the path finds in any value: an array is entered as if it were a document whose names
    /// are the positions.
    pub(crate) fn any_in<'a>(
        &self,
        root: ValueRef<'a>,
        arrays: Arrays,
        context: &Context,
        visit: Visit<'_, 'a>,
    ) -> Result<bool> {
        let mut walk = PathTraversal { arrays, context, forks: 0 };
        let Some((first, rest)) = self.0.split_first() else {
            return leaf(root, arrays, None, visit);
        };
        match root {
            ValueRef::Document(document) => walk.document(document, &self.0, None, visit),
            ValueRef::Array(items) => {
                let value = first.index.and_then(|index| items.get(index));
                walk.field(value, rest, None, visit)
            }
            _ => visit(Leaf { value: None, position: None }),
        }
    }

    /// Returns the value found by names alone: arrays are entered by position only. For paths that name a single value.
    pub fn get<'a>(&self, document: DocumentRef<'a>) -> Option<ValueRef<'a>> {
        let mut value = ValueRef::Document(document);
        for component in &self.0 {
            value = match value {
                ValueRef::Document(document) => document.get(&component.name)?,
                ValueRef::Array(items) => items.get(component.index?)?,
                _ => return None,
            };
        }
        Some(value)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, component) in self.0.iter().enumerate() {
            let dot = if number == 0 { "" } else { "." };
            write!(out, "{dot}{}", component.name)?;
        }
        Ok(())
    }
}

/// Visits a value as the end of a path, until `visit` returns true.
pub fn any_leaf<'a>(value: ValueRef<'a>, arrays: Arrays, visit: Visit<'_, 'a>) -> Result<bool> {
    leaf(value, arrays, None, visit)
}

fn leaf<'a>(
    value: ValueRef<'a>,
    arrays: Arrays,
    position: Option<usize>,
    visit: Visit<'_, 'a>,
) -> Result<bool> {
    if let (ValueRef::Array(items), Arrays::Expand) = (value, arrays) {
        for (index, item) in items.iter().enumerate() {
            if visit(Leaf { value: Some(item), position: position.or(Some(index)) })? {
                return Ok(true);
            }
        }
    }
    visit(Leaf { value: Some(value), position })
}

struct PathTraversal<'c> {
    arrays: Arrays,
    context: &'c Context,
    /// The number of arrays on the way that were entered both by name and by position.
    forks: u32,
}

impl PathTraversal<'_> {
    fn document<'a>(
        &mut self,
        document: DocumentRef<'a>,
        components: &[Component],
        position: Option<usize>,
        visit: Visit<'_, 'a>,
    ) -> Result<bool> {
        let Some((component, rest)) = components.split_first() else {
            return leaf(ValueRef::Document(document), self.arrays, position, visit);
        };
        self.field(document.get(&component.name), rest, position, visit)
    }

    /// Visits the values at the rest of the path from what a component has found; returns whether `visit` has ended the
    /// search.
    fn field<'a>(
        &mut self,
        value: Option<ValueRef<'a>>,
        rest: &[Component],
        position: Option<usize>,
        visit: Visit<'_, 'a>,
    ) -> Result<bool> {
        match value {
            Some(value) if rest.is_empty() => leaf(value, self.arrays, position, visit),
            Some(ValueRef::Document(document)) => self.document(document, rest, position, visit),
            Some(ValueRef::Array(items)) => self.array(items, rest, position, visit),
            _ => visit(Leaf { value: None, position }),
        }
    }

    /// Enters an array. Each level may double the number of branches, so the charge of a branch doubles too: this
    /// bounds documents that are crafted to fork.
    fn array<'a>(
        &mut self,
        items: ArrayRef<'a>,
        components: &[Component],
        position: Option<usize>,
        visit: Visit<'_, 'a>,
    ) -> Result<bool> {
        let index = components.first().and_then(|component| component.index);
        if index.is_some() {
            self.context.spend(1 << (2 * self.forks).min(40))?;
            self.forks += 1;
        }
        for (number, item) in items.iter().enumerate() {
            let here = position.or(Some(number));
            if let ValueRef::Document(document) = item
                && self.document(document, components, here, visit)?
            {
                return Ok(true);
            }
            if index == Some(number) {
                let rest = &components[1..];
                let position = if rest.is_empty() { here } else { position };
                if self.item(item, rest, position, visit)? {
                    return Ok(true);
                }
            }
        }
        if index.is_some() {
            self.forks -= 1;
        }
        Ok(false)
    }

    /// Returns an item at a position that the path names.
    fn item<'a>(
        &mut self,
        item: ValueRef<'a>,
        rest: &[Component],
        position: Option<usize>,
        visit: Visit<'_, 'a>,
    ) -> Result<bool> {
        if rest.is_empty() {
            return visit(Leaf { value: Some(item), position });
        }
        match item {
            ValueRef::Document(document) => self.document(document, rest, position, visit),
            ValueRef::Array(items) => self.array(items, rest, position, visit),
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{Document, Value};

    use super::*;

    fn text(value: Option<ValueRef<'_>>) -> String {
        match value {
            None => "missing".into(),
            Some(ValueRef::Int32(number)) => number.to_string(),
            Some(ValueRef::Array(items)) => {
                format!("[{}]", items.iter().map(|item| text(Some(item))).collect::<Vec<_>>().join(","))
            }
            Some(ValueRef::Document(fields)) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}:{}", text(Some(value)))).collect();
                format!("{{{}}}", fields.join(","))
            }
            Some(other) => format!("{other:?}"),
        }
    }

    fn found(document: &Document, path: &str, arrays: Arrays) -> Vec<String> {
        let mut found = Vec::new();
        let ended =
            FieldPath::parse(path).unwrap().any(document.view(), arrays, &Context::at(0), &mut |leaf| {
                found.push(match leaf.position {
                    Some(position) => format!("{}@{position}", text(leaf.value)),
                    None => text(leaf.value),
                });
                Ok(false)
            });
        assert_eq!(ended, Ok(false));
        found
    }

    fn array(items: impl IntoIterator<Item = impl Into<Value>>) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }

    #[test]
    fn fields_in_documents_and_in_arrays_of_documents() {
        let field = |name: &str, value: Value| Value::Document(Document::new().with(name, value));
        let document = Document::new().with(
            "a",
            Value::Array(vec![
                field("b", 5.into()),
                3.into(),
                field("c", 1.into()),
                field("b", array([9, 11])),
                field("b", 7.into()),
            ]),
        );
        let whole = ["5@0", "missing@2", "[9,11]@3", "7@4"];
        assert_eq!(found(&document, "a.b", Arrays::Whole), whole);
        let expanded = ["5@0", "missing@2", "9@3", "11@3", "[9,11]@3", "7@4"];
        assert_eq!(found(&document, "a.b", Arrays::Expand), expanded);
        assert_eq!(found(&document, "x", Arrays::Expand), ["missing"]);
        assert_eq!(found(&document, "a.b.c", Arrays::Expand), ["missing@0", "missing@2", "missing@4"]);
        let scalar = Document::new().with("a", 4).with("e", array(Vec::<i32>::new()));
        assert_eq!(found(&scalar, "a.b", Arrays::Expand), ["missing"]);
        assert!(found(&scalar, "e.b", Arrays::Expand).is_empty());
        assert_eq!(found(&scalar, "e", Arrays::Expand), ["[]"]);
    }

    #[test]
    fn numbers_are_positions_and_names() {
        let document = Document::new().with("a", array([5, 7, 3]));
        assert_eq!(found(&document, "a.1", Arrays::Expand), ["7@1"]);
        assert!(found(&document, "a.01", Arrays::Expand).is_empty());
        assert!(found(&document, "a.9", Arrays::Expand).is_empty());
        let nested = Document::new().with("a", Value::Array(vec![5.into(), array([2, 4]), 3.into()]));
        assert_eq!(found(&nested, "a.1", Arrays::Expand), ["[2,4]@1"], "not opened further");
        assert_eq!(found(&nested, "a.1.0", Arrays::Expand), ["2@0"]);
        let named = Document::new()
            .with("a", Value::Array(vec![5.into(), Value::Document(Document::new().with("1", 4)), 3.into()]));
        assert_eq!(found(&named, "a.1", Arrays::Expand), ["4@1", "{1:4}@1"]);
        let b = |value: Value| Value::Document(Document::new().with("b", value));
        let both = Document::new().with("a", Value::Array(vec![b(array([2, 3])), b(array([4, 5]))]));
        let expected = ["missing@0", "2@0", "3@1", "[2,3]", "missing@1"];
        assert_eq!(found(&both, "a.0.b", Arrays::Expand), expected);
    }

    #[test]
    fn a_document_made_to_fork_at_every_level_ends_soon() {
        let mut value = Value::Int32(1);
        for _ in 0..50 {
            value = Value::Array(vec![Value::Document(Document::new().with("0", value))]);
        }
        let document = Document::new().with("0", value);
        let path = FieldPath::of(std::iter::repeat_n("0", 120));
        assert!(path.any(document.view(), Arrays::Whole, &Context::at(0), &mut |_| Ok(false)).is_err());
        assert!(FieldPath::parse(&"a.".repeat(200)).is_err());
    }

    #[test]
    fn one_place_by_names_and_positions() {
        let document = Document::new().with("a", Value::Array(vec![Document::new().with("b", 1).into()]));
        let get =
            |path: &str| FieldPath::parse(path).unwrap().get(document.view()).map(|value| text(Some(value)));
        assert_eq!(get("a.0.b").as_deref(), Some("1"));
        assert_eq!(get("a.b"), None);
        assert_eq!(FieldPath::parse("a.0.b").unwrap().to_string(), "a.0.b");
        assert!(FieldPath::parse("a").unwrap().is_prefix_of(&FieldPath::parse("a.0").unwrap()));
        assert!(!FieldPath::parse("a").unwrap().is_prefix_of(&FieldPath::parse("ab").unwrap()));
    }
}
