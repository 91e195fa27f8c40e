//! The scope of an evaluation: the document, the variables, and the collation.

use std::cmp::Ordering;
use std::collections::HashSet;

use bson::{Collation, Document, DocumentRef, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::operand::Operand;
use crate::regex::PatternBudget;

/// The names that an expression may use beside the system's own, those of `let`, and the budget of its regular
/// expressions.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    names: HashSet<String>,
    patterns: PatternBudget,
}

impl Variables {
    /// Creates a set without names besides the system's own.
    pub fn none() -> Variables {
        Variables::default()
    }

    /// Returns the names of the fields of a document, which later holds the values.
    pub fn of(values: &Document, patterns: &PatternBudget) -> Variables {
        let names = values.iter().map(|(name, _)| name.to_owned()).collect();
        Variables { names, patterns: patterns.clone() }
    }

    /// Adds a name.
    pub fn insert(&mut self, name: impl Into<String>) {
        self.names.insert(name.into());
    }

    /// Returns `true` if there is such a name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the budget of patterns that are known when an expression is parsed.
    pub(crate) fn patterns(&self) -> &PatternBudget {
        &self.patterns
    }
}

/// The document that an expression reads, with the values of all variables.
///
/// Scopes form a chain: `with` gives an inner scope that borrows the outer one.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    root: DocumentRef<'a>,
    current: Option<ValueRef<'a>>,
    frame: Frame<'a>,
    outer: Option<&'a Scope<'a>>,
    variables: Option<&'a Document>,
    meta: Option<&'a Document>,
    collation: Option<&'a Collation>,
}

/// What one scope adds to the one around it.
#[derive(Debug, Clone, Copy)]
enum Frame<'a> {
    Nothing,
    One(&'a str, Option<ValueRef<'a>>),
    Many(&'a [(&'a str, Operand<'a>)]),
}

impl<'a> Scope<'a> {
    /// Returns the outermost scope: `$$ROOT` and `$$CURRENT` are this document.
    pub fn root(document: DocumentRef<'a>) -> Scope<'a> {
        Scope {
            root: document,
            current: Some(ValueRef::Document(document)),
            frame: Frame::Nothing,
            outer: None,
            variables: None,
            meta: None,
            collation: None,
        }
    }

    /// Creates the same with the values of `let`. A known name whose value is undefined is missing.
    #[must_use]
    pub fn with_variables(self, variables: &'a Document) -> Scope<'a> {
        Scope { variables: Some(variables), ..self }
    }

    /// Creates the same with what `$meta` gives: one field for each keyword, such as `textScore`.
    #[must_use]
    pub fn with_meta(self, meta: &'a Document) -> Scope<'a> {
        Scope { meta: Some(meta), ..self }
    }

    /// Creates the same with a collation for all comparisons.
    #[must_use]
    pub fn with_collation(self, collation: &'a Collation) -> Scope<'a> {
        Scope { collation: (!collation.is_simple()).then_some(collation), ..self }
    }

    /// Returns an inner scope with one more variable. `CURRENT` moves the beginning of field paths.
    #[must_use]
    pub fn with<'b>(&'b self, name: &'b str, value: Option<ValueRef<'b>>) -> Scope<'b>
    where
        'a: 'b,
    {
        let current = if name == "CURRENT" { value } else { self.current };
        Scope { frame: Frame::One(name, value), outer: Some(self), current, ..*self }
    }

    /// Creates an inner scope with several more variables.
    pub(crate) fn with_all<'b>(&'b self, values: &'b [(&'b str, Operand<'b>)]) -> Scope<'b>
    where
        'a: 'b,
    {
        let current = values.iter().find(|(name, _)| *name == "CURRENT").map(|(_, value)| value.view());
        Scope {
            frame: Frame::Many(values),
            outer: Some(self),
            current: current.unwrap_or(self.current),
            ..*self
        }
    }

    /// Returns the document itself.
    pub fn document(&self) -> DocumentRef<'a> {
        self.root
    }

    /// Returns where field paths begin.
    pub(crate) fn current(&self) -> Option<ValueRef<'a>> {
        self.current
    }

    /// Returns the value of a variable that is not the system's own.
    pub(crate) fn variable(&'a self, name: &str, context: &Context) -> Result<Option<ValueRef<'a>>> {
        let mut scope = self;
        loop {
            match scope.frame {
                Frame::One(known, value) if known == name => return Ok(value),
                Frame::Many(values) => {
                    context.spend(values.len() as u64 / 8)?;
                    if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
                        return Ok(value.view());
                    }
                }
                Frame::One(..) | Frame::Nothing => {}
            }
            match scope.outer {
                Some(outer) => scope = outer,
                None => break,
            }
        }
        let value = self.variables.and_then(|variables| variables.get(name)).map(bson::Value::view);
        Ok(value.filter(|value| !matches!(value, ValueRef::Undefined)))
    }

    /// Returns what is known about the document beside its fields.
    pub(crate) fn meta(&self, keyword: &str) -> Option<ValueRef<'a>> {
        self.meta.and_then(|meta| meta.get(keyword)).map(bson::Value::view)
    }

    /// Compares two values; a missing one is where undefined is, below null.
    pub(crate) fn compare(&self, left: Option<ValueRef<'_>>, right: Option<ValueRef<'_>>) -> Ordering {
        let (left, right) = (left.unwrap_or(ValueRef::Undefined), right.unwrap_or(ValueRef::Undefined));
        match self.collation {
            Some(collation) => collation.compare_values(left, right),
            None => bson::compare(left, right),
        }
    }
}

/// Refuses names that may not be read.
pub(crate) fn check_readable(name: &str) -> Result<()> {
    check(name, "variable name", |first| first.is_ascii_alphabetic() || !first.is_ascii())
}

/// Refuses names that a request may not define: they begin with a small letter, but for `CURRENT`.
pub(crate) fn check_writable(name: &str) -> Result<()> {
    if name == "CURRENT" {
        return Ok(());
    }
    check(name, "user variable name", |first| first.is_ascii_lowercase() || !first.is_ascii())
}

fn check(name: &str, what: &str, may_begin: impl Fn(char) -> bool) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Error::failed_to_parse(format!("empty {what}s are not allowed")));
    };
    if !may_begin(first) {
        let message = format!("'{name}' starts with an invalid character for a {what}");
        return Err(Error::failed_to_parse(message));
    }
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii();
    match name.chars().find(|letter| !allowed(*letter)) {
        Some(letter) => Err(Error::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name: '{letter}'"
        ))),
        None => Ok(()),
    }
}
