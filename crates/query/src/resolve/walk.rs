//! Walks over resolved expressions.

use crate::logical::{Expression, Order, Projection, Query, Rows, ScoreKind};

/// Visits the expressions directly inside of one, those of its subqueries too.
pub(super) fn each_inside<'e>(expression: &'e mut Expression, visit: &mut dyn FnMut(&'e mut Expression)) {
    match expression {
        Expression::Literal(_) | Expression::Undefined | Expression::Path { .. } => {}
        Expression::Within { base: one, .. }
        | Expression::Not(one)
        | Expression::BitNot(one)
        | Expression::InConstants { value: one, .. }
        | Expression::Like { value: one, .. } => visit(one),
        Expression::LikeComputed { value, pattern, .. } => {
            visit(value);
            visit(pattern);
        }
        Expression::Index { base, index } => {
            visit(base);
            visit(index);
        }
        Expression::Array(all)
        | Expression::And(all)
        | Expression::Or(all)
        | Expression::Concat(all)
        | Expression::Coalesce(all)
        | Expression::Call(_, all) => all.iter_mut().for_each(visit),
        Expression::Object(members) => members.iter_mut().for_each(|(_, member)| visit(member)),
        Expression::Compare { left, right, .. } => {
            visit(left);
            visit(right);
        }
        Expression::Arithmetic { first, rest } => {
            visit(first);
            for (_, operand) in rest {
                visit(operand);
            }
        }
        Expression::Conditional { condition, then, otherwise } => {
            visit(condition);
            visit(then);
            visit(otherwise);
        }
        Expression::In { value, list } => {
            visit(value);
            list.iter_mut().for_each(visit);
        }
        Expression::Between { value, low, high } => {
            visit(value);
            visit(low);
            visit(high);
        }
        Expression::Subquery { query, .. } => each_of_query(query, visit),
    }
}

/// Visits the expressions of a query.
fn each_of_query<'e>(query: &'e mut Query, visit: &mut dyn FnMut(&'e mut Expression)) {
    if let Some(nested) = &mut query.nested {
        each_of_query(nested, visit);
    }
    for source in &mut query.sources {
        match &mut source.rows {
            Rows::Value(value) => visit(value),
            Rows::Subquery(query) => each_of_query(query, visit),
        }
    }
    query.filter.iter_mut().for_each(&mut *visit);
    query.group_by.iter_mut().for_each(&mut *visit);
    query.aggregates.iter_mut().for_each(|aggregate| visit(&mut aggregate.argument));
    each_of_projection(&mut query.select, visit);
    match &mut query.order {
        Order::None => {}
        Order::Keys(keys) => keys.iter_mut().for_each(|key| visit(&mut key.value)),
        Order::Rank(scores) => scores.iter_mut().for_each(|score| match &mut score.kind {
            ScoreKind::FullText { text, .. } => visit(text),
            ScoreKind::Vector { distance, .. } => visit(distance),
        }),
    }
}

/// Visits the expressions of a projection.
pub(super) fn each_of_projection<'e>(
    projection: &'e mut Projection,
    visit: &mut dyn FnMut(&'e mut Expression),
) {
    match projection {
        Projection::Value(value) => visit(value),
        Projection::Members(members) => members.iter_mut().for_each(|(_, member)| visit(member)),
    }
}
