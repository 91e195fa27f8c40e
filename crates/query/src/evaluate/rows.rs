//! Rows: the product of a query's sources, and the value of a subquery.
//!
//! A subquery is run for each outer row, on values that are already in memory: elements of an array, mostly few. So a
//! [`Collector`] runs it to the end.

use document::Value;

use super::{Collector, Environment, evaluate, truth};
use crate::functions::context::{Context, Fault};
use crate::logical::{Query, Rows, Source, SubqueryKind};
use crate::row::Operand;

/// Whether further rows are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Continue.
    More,
    /// Stop: no further row is needed, or the query has failed.
    Enough,
}

/// Visits the rows of the query's sources that fulfil its filter. `environment` holds the item, or is that of the
/// outer query; the visitor gets it with the slots of the sources, and the index of the row among all rows of the
/// sources, whether or not they pass the filter.
pub(crate) fn each_binding(
    query: &Query,
    environment: &Environment<'_>,
    context: &Context,
    visit: &mut dyn FnMut(&Environment<'_>, u32) -> Flow,
) -> Flow {
    let mut next = 0_u32;
    join(&query.sources, environment, context, &mut |environment| {
        if !context.spend(1) {
            return Flow::Enough;
        }
        let number = next;
        next = next.saturating_add(1);
        match &query.filter {
            Some(filter) if truth(filter, environment, context) != Some(true) => Flow::More,
            _ => visit(environment, number),
        }
    })
}

fn join(
    sources: &[Source],
    environment: &Environment<'_>,
    context: &Context,
    visit: &mut dyn FnMut(&Environment<'_>) -> Flow,
) -> Flow {
    let Some((source, rest)) = sources.split_first() else { return visit(environment) };
    let mut bind = |value: Operand<'_>| join(rest, &environment.with(source.slot, value), context, visit);
    match &source.rows {
        Rows::Value(value) => match evaluate(value, environment, context) {
            Some(value) => each_row(source, &value, context, &mut bind),
            None => Flow::More,
        },
        Rows::Subquery(query) => {
            for row in rows_of(query, environment, context) {
                if each_row(source, &Operand::Owned(row), context, &mut bind) == Flow::Enough {
                    return Flow::Enough;
                }
            }
            Flow::More
        }
    }
}

/// Visits the rows that a source makes of a value: the value itself, or the elements of an array.
fn each_row(
    source: &Source,
    value: &Operand<'_>,
    context: &Context,
    bind: &mut dyn FnMut(Operand<'_>) -> Flow,
) -> Flow {
    let view = value.view();
    if !source.iterates {
        return bind(Operand::Borrowed(view));
    }
    let Some(items) = view.as_array() else { return Flow::More };
    for item in items.iter() {
        if !context.spend(1) || bind(Operand::Borrowed(item)) == Flow::Enough {
            return Flow::Enough;
        }
    }
    Flow::More
}

/// Returns the value of a subquery in an expression.
pub(super) fn subquery<'a>(
    kind: SubqueryKind,
    query: &Query,
    environment: &Environment<'_>,
    context: &Context,
) -> Option<Operand<'a>> {
    if !context.spend(1) {
        return None;
    }
    let mut rows = match kind {
        SubqueryKind::Exists | SubqueryKind::First => first_rows(query, environment, context, 1),
        SubqueryKind::Scalar => first_rows(query, environment, context, 2),
        SubqueryKind::Array | SubqueryKind::All | SubqueryKind::Last => rows_of(query, environment, context),
    };
    let value = match kind {
        SubqueryKind::Exists => Value::Bool(!rows.is_empty()),
        SubqueryKind::All => Value::Bool(rows.iter().all(|row| row.as_bool() == Some(true))),
        SubqueryKind::Array => Value::Array(rows),
        SubqueryKind::First => rows.into_iter().next()?,
        SubqueryKind::Scalar if rows.len() > 1 => {
            let message = "The cardinality of a scalar subquery result set cannot be greater than one.";
            context.fail(Fault::Refused(message.to_owned()));
            return None;
        }
        SubqueryKind::Scalar | SubqueryKind::Last => rows.pop()?,
    };
    Some(Operand::Owned(value))
}

/// Returns all rows of a subquery.
pub(crate) fn rows_of(query: &Query, environment: &Environment<'_>, context: &Context) -> Vec<Value> {
    first_rows(query, environment, context, u64::MAX)
}

/// Returns the first rows of a subquery, at most `most`.
fn first_rows(query: &Query, environment: &Environment<'_>, context: &Context, most: u64) -> Vec<Value> {
    let mut collector = Collector::new(query, most);
    each_binding(query, environment, context, &mut |row, _| collector.push(row, context));
    collector.finish(environment, context)
}
