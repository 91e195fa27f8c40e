//! Computed properties: names that the container's definition gives to expressions over the item.
//!
//! A property `lower` with the query `SELECT VALUE LOWER(c.name) FROM c` makes `x.lower` mean `LOWER(x.name)`
//! wherever `x` is the item. They do not see each other, and are no part of the item as a whole.

use std::collections::BTreeMap;

use super::level::Level;
use super::walk::each_inside;
use super::{COMPUTED_SLOTS, Resolver};
use crate::error::{Code, Error, Report, Result};
use crate::functions::list::weight;
use crate::logical::Expression;
use crate::syntax::ast::{Collection, Query, Select};
use crate::syntax::parse;

/// The computed properties that a query uses.
#[derive(Debug, Default)]
pub(super) struct Computed {
    /// Each with the memory that one use of it takes.
    resolved: BTreeMap<String, (Expression, usize)>,
    /// Set while one is being resolved.
    busy: bool,
}

impl Computed {
    /// Returns `true` if one of them is being resolved.
    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }
}

impl Resolver<'_> {
    /// Returns `true` if a member of the item is a computed property.
    pub(super) fn is_computed(&self, name: &str) -> bool {
        let reads_rows = self.levels.first().is_some_and(|level| level.reads_rows);
        !reads_rows && !self.computed.busy && self.dialect.computed.iter().any(|(known, _)| known == name)
    }

    /// Returns the expression of a computed property.
    pub(super) fn computed(&mut self, name: &str) -> Expression {
        if let Some((expression, bytes)) = self.computed.resolved.get(name).cloned() {
            return if self.count_use(bytes, None) { expression } else { Expression::Undefined };
        }
        let dialect = self.dialect;
        let text = dialect.computed.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text);
        let mut expression = match self.resolve_computed(text) {
            Ok(expression) => expression,
            Err(error) => {
                let message = format!("The computed property '{name}' cannot be used: {error}");
                self.report_as(Code::Text("SC9002"), None, message)
            }
        };
        // Most of an expression is in proportion to its text; what it computes from constants is not.
        let bytes = text.len() * size_of::<Expression>() + constant_bytes(&mut expression);
        self.computed.resolved.insert(name.to_owned(), (expression.clone(), bytes));
        expression
    }

    fn resolve_computed(&mut self, text: &str) -> Result<Expression> {
        let query = parse(text)?;
        let (Some(alias), Select::Value(node)) = (alias(&query), &query.select) else {
            let message = "It must have the form 'SELECT VALUE <expression> FROM <name>'.".to_owned();
            let report = Report { location: None, code: Code::Text("SC9002"), message };
            return Err(Error::Refused(vec![report]));
        };
        let mut level = Level::of_item(alias);
        level.free = COMPUTED_SLOTS.start;
        let levels = std::mem::replace(&mut self.levels, vec![level]);
        let reports = std::mem::take(&mut self.reports);
        self.computed.busy = true;
        let expression = self.expression(node);
        self.computed.busy = false;
        self.levels = levels;
        let found = std::mem::replace(&mut self.reports, reports);
        if found.is_empty() { Ok(expression) } else { Err(Error::Refused(found)) }
    }
}

/// Returns what the constants of an expression take.
fn constant_bytes(expression: &mut Expression) -> usize {
    let mut bytes = match expression {
        Expression::Literal(value) => weight(value.view()),
        Expression::InConstants { list, .. } => list.iter().map(|value| weight(value.view())).sum(),
        _ => 0,
    };
    each_inside(expression, &mut |inner| bytes += constant_bytes(inner));
    bytes
}

/// Returns what the query calls the item, if it does nothing but select from it.
fn alias(query: &Query) -> Option<&str> {
    let plain = !query.distinct
        && query.top.is_none()
        && query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by.is_none()
        && query.window.is_none();
    let [source] = query.from.as_slice() else { return None };
    match &source.collection {
        Collection::Path { root, steps } if plain && steps.is_empty() && !source.iterates => {
            Some(source.alias.as_ref().map_or(&root.text, |alias| &alias.text))
        }
        _ => None,
    }
}
