//! Wildcard indexes: one key for every path of a document and its value.
//!
//! ```text
//! {a: {b: 1}, c: [2, {d: 3}], e: [], f: {}}      a.b 1, c 2, c.d 3, e undefined, f {}
//! ```
//!
//! A path names fields alone: positions in arrays are left out. Documents that have fields are entered and have no key of
//! their own, arrays directly within arrays are not entered and are keys as a whole.

use bson::{ArrayRef, Document, DocumentRef, ValueRef};

use super::pattern::{Part, PartKind};
use super::{as_double, cannot_create};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::path::FieldPath;

/// The indexed paths.
#[derive(Debug, Clone)]
pub(super) struct WildcardRules {
    /// Everything below this path is indexed; empty for the whole document.
    root: FieldPath,
    projection: Option<Projection>,
}

#[derive(Debug, Clone)]
struct Projection {
    given: Document,
    paths: Vec<FieldPath>,
    /// Whether the paths are those that are indexed, or those that are not.
    includes: bool,
    /// The rule for `_id`, if there is one.
    id: Option<bool>,
}

impl WildcardRules {
    pub(super) fn parse(spec: DocumentRef<'_>, parts: &[Part]) -> Result<Option<WildcardRules>> {
        let given = spec.get("wildcardProjection");
        let Some(part) = parts.iter().find(|part| part.kind == PartKind::Wildcard) else {
            return match given {
                None => Ok(None),
                Some(_) => Err(Error::bad_value(
                    "The field 'wildcardProjection' is only allowed in an 'wildcard' index",
                )),
            };
        };
        let projection = match given {
            None => None,
            Some(ValueRef::Document(_)) if !part.path.is_empty() => {
                return Err(Error::failed_to_parse(
                    "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}",
                ));
            }
            Some(ValueRef::Document(given)) => Some(Projection::parse(given)?),
            Some(other) => {
                let kind = other.kind().alias();
                let message =
                    format!("The field 'wildcardProjection' must be a non-empty object, but got {kind}");
                return Err(Error::type_mismatch(message));
            }
        };
        Ok(Some(WildcardRules { root: part.path.clone(), projection }))
    }

    pub(super) fn projection(&self) -> Option<&Document> {
        self.projection.as_ref().map(|projection| &projection.given)
    }

    /// Returns `true` if everything at a path and below it is indexed.
    pub(super) fn includes(&self, path: &FieldPath) -> bool {
        if !self.root.is_prefix_of(path) {
            return false;
        }
        let Some(projection) = &self.projection else {
            return !self.root.is_empty() || path.first() != "_id";
        };
        if path.first() == "_id" && path.len() == 1 {
            return projection.id.unwrap_or(false);
        }
        let named = projection.paths.iter().any(|known| known.is_prefix_of(path));
        let within = projection.paths.iter().any(|known| path.is_prefix_of(known));
        match (projection.includes, path.first() == "_id") {
            (_, true) if projection.id == Some(true) => true,
            (true, _) => named,
            (false, true) => false,
            (false, false) => !named && !within,
        }
    }

    /// Calls `found` with every indexed path of a document and its value.
    pub(super) fn visit<'d>(
        &self,
        document: DocumentRef<'d>,
        context: &Context,
        found: &mut dyn FnMut(&str, ValueRef<'d>) -> Result<()>,
    ) -> Result<()> {
        let mut walk = WildcardTraversal {
            rules: self,
            context,
            path: String::new(),
            names: FieldPath::default(),
            found,
        };
        walk.fields(document)
    }

    /// Returns `true` if a leaf at this path is indexed.
    fn takes(&self, path: &FieldPath) -> bool {
        let leads = self.root.is_prefix_of(path);
        let Some(projection) = &self.projection else {
            return leads && (!self.root.is_empty() || path.first() != "_id");
        };
        if path.first() == "_id"
            && projection.id != Some(true)
            && !projection.paths.iter().any(|known| known.first() == "_id")
        {
            return false;
        }
        if path.first() == "_id" && projection.id == Some(true) {
            return true;
        }
        projection.paths.iter().any(|known| known.is_prefix_of(path)) == projection.includes
    }

    /// Returns `true` if something below this path may be indexed.
    fn enters(&self, path: &FieldPath) -> bool {
        self.root.is_prefix_of(path) || path.is_prefix_of(&self.root)
    }
}

impl Projection {
    fn parse(given: DocumentRef<'_>) -> Result<Projection> {
        if given.is_empty() {
            return Err(Error::failed_to_parse("The 'wildcardProjection' field can't be an empty object"));
        }
        let mut projection =
            Projection { given: given.to_document(), paths: Vec::new(), includes: false, id: None };
        let mut includes = None;
        for (name, value) in given.iter() {
            let switch = match value {
                ValueRef::Bool(value) => value,
                other => as_double(&other.to_value()).map(|number| number != 0.0).ok_or_else(|| {
                    cannot_create(format!(
                        "the 'wildcardProjection' of '{name}' must be a number or a boolean"
                    ))
                })?,
            };
            if name == "_id" {
                projection.id = Some(switch);
                continue;
            }
            if includes.is_some_and(|known| known != switch) {
                let (this, that, code) = if switch {
                    ("inclusion", "exclusion", 31253)
                } else {
                    ("exclusion", "inclusion", 31254)
                };
                let message = format!("Cannot do {this} on field {name} in {that} projection");
                return Err(Error::location(code, message));
            }
            includes = Some(switch);
            projection.paths.push(FieldPath::parse(name)?);
        }
        // `{_id: 1}` alone includes nothing else, `{_id: 0}` alone excludes nothing else.
        projection.includes = includes.unwrap_or(projection.id == Some(true));
        Ok(projection)
    }
}

struct WildcardTraversal<'w, 'd> {
    rules: &'w WildcardRules,
    context: &'w Context,
    path: String,
    names: FieldPath,
    found: &'w mut dyn FnMut(&str, ValueRef<'d>) -> Result<()>,
}

impl<'d> WildcardTraversal<'_, 'd> {
    fn fields(&mut self, document: DocumentRef<'d>) -> Result<()> {
        for (name, value) in document.iter() {
            self.context.spend(1)?;
            let (length, outer) = (self.path.len(), self.names.clone());
            if !outer.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
            self.names = outer.child(name);
            if self.rules.enters(&self.names) {
                self.value(value)?;
            }
            self.path.truncate(length);
            self.names = outer;
        }
        Ok(())
    }

    fn value(&mut self, value: ValueRef<'d>) -> Result<()> {
        match value {
            ValueRef::Document(document) if !document.is_empty() => self.fields(document),
            ValueRef::Array(items) => self.items(items),
            leaf => self.leaf(leaf),
        }
    }

    fn items(&mut self, items: ArrayRef<'d>) -> Result<()> {
        if items.is_empty() {
            return self.leaf(ValueRef::Undefined);
        }
        for item in items.iter() {
            self.context.spend(1)?;
            match item {
                ValueRef::Document(document) if !document.is_empty() => self.fields(document)?,
                leaf => self.leaf(leaf)?,
            }
        }
        Ok(())
    }

    fn leaf(&mut self, value: ValueRef<'d>) -> Result<()> {
        if self.rules.takes(&self.names) { (self.found)(&self.path, value) } else { Ok(()) }
    }
}
