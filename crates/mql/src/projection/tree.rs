//! The tree behind every projection: which fields stay, which go, and which are computed.
//!
//! A path leads through arrays to all their items, at any depth of nesting. A value that is not a document, where the path
//! goes on, is dropped by an inclusion, kept by an exclusion, and replaced by a document if a field in it is to be
//! computed.

use std::collections::HashMap;

use bson::{Document, DocumentRef, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::{Expression, Scope, measure};
use crate::path::{Component, FieldPath};

/// What happens to fields that are not named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Named fields stay, all others go.
    Include,
    /// Named fields go, all others stay. Without named fields this only adds computed fields.
    Exclude,
}

/// Fields to keep or drop, and fields to compute.
#[derive(Debug, Clone)]
pub struct Tree {
    policy: Policy,
    root: Branch,
}

#[derive(Debug, Clone, Default)]
struct Branch {
    /// In the order in which they were named.
    entries: Vec<(String, Entry)>,
    places: HashMap<String, usize>,
    /// Whether a field is computed here or below.
    computes: bool,
}

#[derive(Debug, Clone)]
enum Entry {
    /// Kept or left out, depending on the policy.
    Named,
    Computed(Expression),
    Below(Branch),
}

impl Tree {
    /// Creates a tree that names nothing yet.
    pub fn new(policy: Policy) -> Tree {
        Tree { policy, root: Branch::default() }
    }

    /// Returns what happens to fields that are not named.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns `true` if nothing is named or computed.
    pub fn is_empty(&self) -> bool {
        self.root.entries.is_empty()
    }

    /// Returns `true` if a field is computed.
    pub fn computes(&self) -> bool {
        self.root.computes
    }

    /// Names a field to keep or drop.
    pub fn name(&mut self, path: &FieldPath) -> Result<()> {
        self.root.add(path.components(), path, Entry::Named)
    }

    /// Adds a computed field.
    pub fn compute(&mut self, path: &FieldPath, expression: Expression) -> Result<()> {
        self.root.add(path.components(), path, Entry::Computed(expression))
    }

    /// Returns the projected document. Expressions see the scope's document.
    pub fn apply(&self, document: DocumentRef<'_>, scope: &Scope<'_>, context: &Context) -> Result<Document> {
        let mut output = self.root.project(document, self.policy, context)?;
        if self.root.computes {
            let mut room = bson::limits::DOCUMENT_BYTES_MAX;
            self.root.evaluate(&mut output, &mut Evaluation { scope, context, room: &mut room })?;
        }
        Ok(output)
    }
}

impl Branch {
    fn add(&mut self, components: &[Component], path: &FieldPath, entry: Entry) -> Result<()> {
        self.computes |= matches!(entry, Entry::Computed(_));
        let Some((component, rest)) = components.split_first() else {
            return Err(Error::location(31250, format!("Path collision at {path}")));
        };
        let found = self.places.get(component.name()).copied();
        match (found.map(|place| &mut self.entries[place].1), rest.is_empty()) {
            (Some(Entry::Below(branch)), false) => branch.add(rest, path, entry),
            (Some(_), true) => Err(Error::location(31250, format!("Path collision at {path}"))),
            (Some(_), false) => {
                let remaining = FieldPath::of(rest.iter().map(Component::name));
                let message = format!("Path collision at {path} remaining portion {remaining}");
                Err(Error::location(31249, message))
            }
            (None, true) => {
                self.insert(component.name(), entry);
                Ok(())
            }
            (None, false) => {
                let mut branch = Branch::default();
                branch.add(rest, path, entry)?;
                self.insert(component.name(), Entry::Below(branch));
                Ok(())
            }
        }
    }

    fn insert(&mut self, name: &str, entry: Entry) {
        self.places.insert(name.to_owned(), self.entries.len());
        self.entries.push((name.to_owned(), entry));
    }

    fn get(&self, name: &str) -> Option<&Entry> {
        self.places.get(name).map(|place| &self.entries[*place].1)
    }

    fn project(&self, document: DocumentRef<'_>, policy: Policy, context: &Context) -> Result<Document> {
        let mut output = Document::new();
        for (name, value) in document.iter() {
            context.spend(1)?;
            let kept = match (self.get(name), policy) {
                (Some(Entry::Below(branch)), _) => branch.project_value(value, policy, context)?,
                // A computed value takes the position of the old one, if that stays.
                (Some(Entry::Named), Policy::Include)
                | (None | Some(Entry::Computed(_)), Policy::Exclude) => Some(value.to_value()),
                _ => None,
            };
            if let Some(value) = kept {
                output.push(name, value);
            }
        }
        Ok(output)
    }

    fn project_value(&self, value: ValueRef<'_>, policy: Policy, context: &Context) -> Result<Option<Value>> {
        Ok(match value {
            ValueRef::Document(document) => Some(Value::Document(self.project(document, policy, context)?)),
            ValueRef::Array(items) => {
                let mut kept = Vec::new();
                for item in items.iter() {
                    kept.extend(self.project_value(item, policy, context)?);
                }
                Some(Value::Array(kept))
            }
            // A document with the computed fields replaces it.
            _ if policy == Policy::Include => self.computes.then_some(Value::Null),
            value => Some(value.to_value()),
        })
    }

    fn evaluate(&self, output: &mut Document, evaluation: &mut Evaluation<'_>) -> Result<()> {
        for (name, entry) in &self.entries {
            match entry {
                Entry::Computed(expression) => match evaluation.value(expression)? {
                    Some(value) => output.insert(name.as_str(), value),
                    None => {
                        output.remove(name);
                    }
                },
                Entry::Below(branch) if branch.computes => {
                    if let Some(value) = output.get_mut(name) {
                        branch.evaluate_value(value, evaluation)?;
                    } else {
                        let mut value = Document::new();
                        branch.evaluate(&mut value, evaluation)?;
                        output.push(name.as_str(), value);
                    }
                }
                Entry::Below(_) | Entry::Named => {}
            }
        }
        Ok(())
    }

    fn evaluate_value(&self, value: &mut Value, evaluation: &mut Evaluation<'_>) -> Result<()> {
        evaluation.context.spend(1)?;
        match value {
            Value::Document(document) => self.evaluate(document, evaluation),
            Value::Array(items) => {
                for item in items {
                    self.evaluate_value(item, evaluation)?;
                }
                Ok(())
            }
            other => {
                let mut document = Document::new();
                self.evaluate(&mut document, evaluation)?;
                *other = Value::Document(document);
                Ok(())
            }
        }
    }
}

/// A projected document under construction. Values computed for every item of an array may be much larger together than any
/// single value, so the whole is bounded.
struct Evaluation<'e> {
    scope: &'e Scope<'e>,
    context: &'e Context,
    room: &'e mut usize,
}

impl Evaluation<'_> {
    fn value(&mut self, expression: &Expression) -> Result<Option<Value>> {
        let value = expression.evaluate(self.scope, self.context)?;
        if let Some(value) = &value {
            measure(value.view(), bson::limits::DEPTH_MAX, self.room)?;
        }
        Ok(value)
    }
}
