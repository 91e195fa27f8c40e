//! The properties that a result depends on: if an index entry has all of them, no item need be loaded.

use std::collections::BTreeSet;

use crate::logical::{Expression, Order, Projection, Query, Rows, ScoreKind, Segment};

/// The properties of an item that a query reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct References {
    /// Whether it reads the item as a whole.
    pub whole: bool,
    /// The paths it reads.
    pub paths: BTreeSet<Vec<Segment>>,
}

/// Returns the properties that a query reads of slot 0.
pub(super) fn references(query: &Query) -> References {
    let mut found = References::default();
    found.query(query);
    found
}

impl References {
    fn query(&mut self, query: &Query) {
        if let Some(inner) = &query.nested {
            // Slot 0 stands for the rows of the query inside.
            return self.query(inner);
        }
        for source in &query.sources {
            match &source.rows {
                Rows::Value(value) => self.expression(value),
                Rows::Subquery(query) => self.query(query),
            }
        }
        self.list(&query.group_by);
        query.filter.iter().for_each(|filter| self.expression(filter));
        query.aggregates.iter().for_each(|aggregate| self.expression(&aggregate.argument));
        match &query.select {
            Projection::Value(value) => self.expression(value),
            Projection::Members(members) => members.iter().for_each(|(_, member)| self.expression(member)),
        }
        match &query.order {
            Order::None => {}
            Order::Keys(keys) => keys.iter().for_each(|key| self.expression(&key.value)),
            Order::Rank(scores) => {
                for score in scores {
                    match &score.kind {
                        ScoreKind::FullText { text, .. } => self.expression(text),
                        ScoreKind::Vector { distance, .. } => self.expression(distance),
                    }
                }
            }
        }
    }

    fn list(&mut self, expressions: &[Expression]) {
        for expression in expressions {
            self.expression(expression);
        }
    }

    fn expression(&mut self, expression: &Expression) {
        match expression {
            Expression::Path { slot: 0, segments } if segments.is_empty() => self.whole = true,
            Expression::Path { slot: 0, segments } => {
                self.paths.insert(segments.clone());
            }
            // Other slots stand for what the sources read.
            Expression::Path { .. } | Expression::Literal(_) | Expression::Undefined => {}
            Expression::Within { base: inner, .. } | Expression::Not(inner) | Expression::BitNot(inner) => {
                self.expression(inner);
            }
            Expression::Index { base: one, index: other }
            | Expression::Compare { left: one, right: other, .. }
            | Expression::LikeComputed { value: one, pattern: other, .. } => {
                self.expression(one);
                self.expression(other);
            }
            Expression::Arithmetic { first, rest } => {
                self.expression(first);
                for (_, operand) in rest {
                    self.expression(operand);
                }
            }
            Expression::Array(parts)
            | Expression::And(parts)
            | Expression::Or(parts)
            | Expression::Concat(parts)
            | Expression::Coalesce(parts)
            | Expression::Call(_, parts) => self.list(parts),
            Expression::Object(members) => members.iter().for_each(|(_, member)| self.expression(member)),
            Expression::Conditional { condition: one, then: two, otherwise: three }
            | Expression::Between { value: one, low: two, high: three } => {
                self.expression(one);
                self.expression(two);
                self.expression(three);
            }
            Expression::In { value, list } => {
                self.expression(value);
                self.list(list);
            }
            Expression::InConstants { value, .. } | Expression::Like { value, .. } => self.expression(value),
            Expression::Subquery { query, .. } => self.query(query),
        }
    }
}
