//! Groups: the expressions that a select list may have over them.
//!
//! Select list and sort keys are resolved as if they saw rows, with each aggregate already a slot. Then whatever in
//! them equals a key of `GROUP BY`, or lies inside of one, is replaced by the key's slot. A path into a source
//! that is left after that has no one value for the group, and is refused.

use super::Resolver;
use super::query::selected_nodes;
use super::tree::{each_child, is_aggregate};
use super::walk::{each_inside, each_of_projection};
use crate::logical::{Expression, Order, Query};
use crate::syntax::ast::{self, Node, NodeKind};

/// The keys of a query's groups and where its own rows are.
struct Grouping<'q> {
    keys: &'q [Expression],
    /// The slot of the first key.
    first: usize,
    /// The slots of the query's sources.
    own: std::ops::Range<usize>,
}

impl Resolver<'_> {
    /// Makes the output of a query refer to its groups, or reports expressions that cannot.
    pub(super) fn regroup(&mut self, query: &ast::Query, resolved: &mut Query) {
        let grouping = Grouping {
            keys: &resolved.group_by,
            first: resolved.group_slot,
            own: self.level().first..self.level().free,
        };
        let mut complete = true;
        each_of_projection(&mut resolved.select, &mut |value| complete &= grouping.replace(value));
        if !complete {
            for node in selected_nodes(&query.select) {
                self.report_ungrouped(node, &grouping, "select list");
            }
        }
        let Order::Keys(sorts) = &mut resolved.order else { return };
        if grouping.keys.is_empty() {
            // All rows are one group, and one row needs no order. The service accepts any path here.
            resolved.order = Order::None;
            return;
        }
        let mut complete = true;
        for sort in sorts {
            complete &= grouping.replace(&mut sort.value);
        }
        if !complete {
            for key in query.order_by.iter().flat_map(|order| &order.keys) {
                self.report_ungrouped(&key.node, &grouping, "ORDER BY clause");
            }
        }
    }

    /// Reports every path in an expression that is neither grouped nor aggregated.
    fn report_ungrouped(&mut self, node: &Node, grouping: &Grouping<'_>, place: &str) {
        if is_aggregate(node) {
            return;
        }
        let known = self.reports.len();
        let mut resolved = self.expression(node);
        if self.reports.len() > known {
            return;
        }
        if grouping.replace(&mut resolved) {
            return;
        }
        // A subquery is named as a whole: which of its paths is meant would take another walk.
        if matches!(node.kind, NodeKind::Name(_) | NodeKind::Path { .. } | NodeKind::Subquery { .. }) {
            let text = self.text.get(node.span.start..node.span.end).unwrap_or_default();
            let message = format!(
                "Property reference '{text}' is invalid in the {place} because it is not contained in either an \
                 aggregate function or the GROUP BY clause."
            );
            self.report("SC2102", node.span, message);
            return;
        }
        let mut children = Vec::new();
        each_child(node, &mut |child| children.push(child));
        for child in children {
            self.report_ungrouped(child, grouping, place);
        }
    }
}

impl Grouping<'_> {
    /// Replaces the expressions that are keys; returns false if a value of the rows is left.
    fn replace(&self, expression: &mut Expression) -> bool {
        if let Some(replaced) = self.known(expression) {
            *expression = replaced;
            return true;
        }
        if let Expression::Path { slot, .. } = expression {
            return !self.own.contains(slot);
        }
        let mut complete = true;
        each_inside(expression, &mut |inside| complete &= self.replace(inside));
        complete
    }

    fn known(&self, expression: &Expression) -> Option<Expression> {
        self.keys.iter().enumerate().find_map(|(number, key)| {
            let slot = self.first + number;
            if key == expression {
                return Some(Expression::Path { slot, segments: Vec::new() });
            }
            match (key, expression) {
                (
                    Expression::Path { slot: one, segments: prefix },
                    Expression::Path { slot: other, segments },
                ) if one == other && segments.starts_with(prefix) => {
                    Some(Expression::Path { slot, segments: segments[prefix.len()..].to_vec() })
                }
                _ => None,
            }
        })
    }
}
