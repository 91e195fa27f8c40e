//! The tables of operators, and the lookup by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use bson::{Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::node::Node;
use crate::expression::operand::Operand;
use crate::expression::operators;
use crate::expression::parse::Parser;
use crate::expression::scope::Scope;

/// A group of operators.
pub(crate) struct Group {
    /// Whether an operator over constants may be evaluated when it is parsed: not if the result depends on the collation, on
    /// randomness or on the document.
    pub(crate) foldable: bool,
    pub(crate) operators: &'static [Operator],
}

/// One operator.
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
}

/// The syntax of an operator.
pub(crate) enum Form {
    /// Arguments by position: a list, or the one argument itself.
    Positional(Arity, Function),
    /// Arguments by name, in a document.
    Named(&'static Names, Function),
    /// The operator reads its argument itself.
    Own(fn(&mut Parser<'_>, &'static str, ValueRef<'_>) -> Result<Node>),
}

/// An operator over evaluated arguments.
pub(crate) type Function = fn(&Call<'_>) -> Result<Option<Value>>;

/// How many arguments there are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arity {
    Exactly(usize),
    /// Exactly one, with the message of conversions.
    Single,
    Between(usize, usize),
    Any,
}

/// The named arguments of an operator, and the codes of their errors.
pub(crate) struct Names {
    pub(crate) parameters: &'static [Parameter],
    pub(crate) not_a_document: Refusal,
    pub(crate) unknown: Refusal,
}

/// One argument with a name.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// The error for a missing argument, if it is required.
    pub(crate) required: Option<Refusal>,
}

/// An error: its code, and its message with `{}` for the wrong name or type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal(pub(crate) i32, pub(crate) &'static str);

impl Refusal {
    /// Returns the error about something.
    pub(crate) fn about(self, what: &str) -> Error {
        Error::location(self.0, self.1.replacen("{}", what, 1))
    }
}

/// Returns a named argument that must be there.
pub(crate) const fn required(name: &'static str, code: i32, words: &'static str) -> Parameter {
    Parameter { name, required: Some(Refusal(code, words)) }
}

/// Returns a named argument that may be there.
pub(crate) const fn optional(name: &'static str) -> Parameter {
    Parameter { name, required: None }
}

/// Returns an operator with arguments by position.
pub(crate) const fn positional(name: &'static str, arity: Arity, function: Function) -> Operator {
    Operator { name, form: Form::Positional(arity, function) }
}

/// Returns an operator with arguments by name.
pub(crate) const fn named(name: &'static str, names: &'static Names, function: Function) -> Operator {
    Operator { name, form: Form::Named(names, function) }
}

/// Returns an operator that reads its own argument.
pub(crate) const fn own(
    name: &'static str,
    parse: fn(&mut Parser<'_>, &'static str, ValueRef<'_>) -> Result<Node>,
) -> Operator {
    Operator { name, form: Form::Own(parse) }
}

/// One call of an operator: its evaluated arguments and the context.
pub(crate) struct Call<'a> {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'a [Option<Operand<'a>>],
    pub(crate) scope: &'a Scope<'a>,
    pub(crate) context: &'a Context,
}

impl<'a> Call<'a> {
    /// Returns the value of an argument; absent and missing are the same.
    pub(crate) fn get(&self, position: usize) -> Option<ValueRef<'a>> {
        self.arguments.get(position)?.as_ref()?.view()
    }

    /// Returns `true` if an argument was given at all.
    pub(crate) fn is_given(&self, position: usize) -> bool {
        matches!(self.arguments.get(position), Some(Some(_)))
    }

    /// Returns the values of all arguments that were given.
    pub(crate) fn values(&self) -> impl Iterator<Item = Option<ValueRef<'a>>> + Clone {
        self.arguments.iter().flatten().map(Operand::view)
    }
}

/// Returns the operator of a name, and whether it may be folded.
pub(crate) fn find(name: &str) -> Option<(&'static Operator, bool)> {
    static ALL: LazyLock<HashMap<&'static str, (&'static Operator, bool)>> = LazyLock::new(|| {
        let rows = operators::GROUPS.iter();
        rows.flat_map(|group| group.operators.iter().map(|row| (row.name, (row, group.foldable)))).collect()
    });
    ALL.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_one_row() {
        let mut names: Vec<&str> =
            operators::GROUPS.iter().flat_map(|group| group.operators.iter().map(|row| row.name)).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.iter().all(|name| name.starts_with('$')));
    }
}
