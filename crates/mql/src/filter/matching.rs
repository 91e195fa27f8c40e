//! Evaluation of parsed filters on documents. Plain comparisons read the document's bytes in place and allocate
//! nothing.

use std::cmp::Ordering;

use bson::{DocumentRef, Kind, Value, ValueRef};

use super::Settings;
use super::node::{Comparison, Members, Node, Test};
use crate::context::Context;
use crate::error::Result;
use crate::expression::Scope;
use crate::numbers::{is_nan, whole};
use crate::path::{Leaf, any_leaf};

/// The context of a match.
#[derive(Clone, Copy)]
pub(crate) struct MatchContext<'a> {
    pub(crate) context: &'a Context,
    pub(crate) settings: &'a Settings,
}

impl Node {
    /// Returns whether a document meets the condition.
    pub(super) fn matches(&self, document: DocumentRef<'_>, matching: MatchContext<'_>) -> Result<bool> {
        self.matches_within(ValueRef::Document(document), matching)
    }

    /// Returns whether the fields of a document, or the items of an array by their positions, meet the condition.
    fn matches_within(&self, root: ValueRef<'_>, matching: MatchContext<'_>) -> Result<bool> {
        let mut leaf = |node: &Node| match (node, root) {
            (Node::Field { path, test }, root) => {
                path.any_in(root, test.arrays(), matching.context, &mut |leaf| {
                    test.matches(leaf.value, matching)
                })
            }
            (Node::Expr { expression, .. }, ValueRef::Document(document)) => {
                let scope = Scope::root(document)
                    .with_variables(&matching.settings.variables)
                    .with_collation(&matching.settings.collation);
                expression.is_true(&scope, matching.context)
            }
            (Node::Schema(schema), ValueRef::Document(document)) => schema.matches(document, matching),
            (Node::Text(search), ValueRef::Document(document)) => {
                Ok(search.score(document, matching.context)?.is_some())
            }
            _ => Ok(false),
        };
        self.decide(&mut leaf, matching)
    }

    /// Returns whether a value, as the only one that the path finds, meets the condition.
    pub(super) fn matches_item(&self, value: ValueRef<'_>, matching: MatchContext<'_>) -> Result<bool> {
        self.decide(
            &mut |node| match node {
                Node::Field { test, .. } => test.matches(Some(value), matching),
                _ => Ok(true),
            },
            matching,
        )
    }

    /// Returns whether a value, as it would be at the end of a path, meets the condition.
    pub(super) fn matches_field(&self, value: ValueRef<'_>, matching: MatchContext<'_>) -> Result<bool> {
        self.decide(
            &mut |node| match node {
                Node::Field { test, .. } => {
                    any_leaf(value, test.arrays(), &mut |leaf| test.matches(leaf.value, matching))
                }
                _ => Ok(true),
            },
            matching,
        )
    }

    fn decide(
        &self,
        field: &mut dyn FnMut(&Node) -> Result<bool>,
        matching: MatchContext<'_>,
    ) -> Result<bool> {
        matching.context.spend(1)?;
        match self {
            Node::And(nodes) => {
                for node in nodes {
                    if !node.decide(field, matching)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(nodes) => any_of(nodes, field, matching),
            Node::Nor(nodes) => Ok(!any_of(nodes, field, matching)?),
            Node::Not(node) => Ok(!node.decide(field, matching)?),
            Node::Field { .. } | Node::Expr { .. } | Node::Schema(_) | Node::Text(_) => field(self),
            Node::SampleRate(rate) => {
                Ok(((matching.context.random() >> 11) as f64) < rate * 9_007_199_254_740_992.0)
            }
            Node::True => Ok(true),
            Node::False => Ok(false),
        }
    }

    /// Returns the position of the item by which the last condition over an array holds, for `$`. Of an `$or` it is the
    /// first branch that holds; negations have no position.
    pub(super) fn position(
        &self,
        document: DocumentRef<'_>,
        matching: MatchContext<'_>,
    ) -> Result<Option<usize>> {
        match self {
            Node::And(nodes) => {
                let mut found = None;
                for node in nodes {
                    found = node.position(document, matching)?.or(found);
                }
                Ok(found)
            }
            Node::Or(nodes) => {
                for node in nodes {
                    if node.matches(document, matching)? {
                        return node.position(document, matching);
                    }
                }
                Ok(None)
            }
            Node::Field { path, test } => {
                let mut found = None;
                path.any(document, test.arrays(), matching.context, &mut |Leaf { value, position }| {
                    if test.is_element() {
                        found = test.first_element(value, matching)?;
                        return Ok(found.is_some());
                    }
                    let matches = test.matches(value, matching)?;
                    if matches {
                        found = position;
                    }
                    Ok(matches)
                })?;
                Ok(found)
            }
            _ => Ok(None),
        }
    }
}

fn any_of(
    nodes: &[Node],
    field: &mut dyn FnMut(&Node) -> Result<bool>,
    matching: MatchContext<'_>,
) -> Result<bool> {
    for node in nodes {
        if node.decide(field, matching)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Test {
    /// Returns whether a value passes; `None` is one that is missing.
    pub(super) fn matches(&self, value: Option<ValueRef<'_>>, matching: MatchContext<'_>) -> Result<bool> {
        Ok(match self {
            Test::Compare(comparison, operand) => compares(value, *comparison, operand.view(), matching),
            Test::In(members) => return members.contain(value, matching),
            Test::Exists => value.is_some(),
            Test::Type(types) => value.is_some_and(|value| types.contains(value.kind())),
            Test::Pattern(pattern) => match value {
                Some(value) => return pattern.matches(value, matching.context),
                None => false,
            },
            Test::Mod(divisor, remainder) => value
                .and_then(whole)
                .is_some_and(|number| number.checked_rem(*divisor).unwrap_or(0) == *remainder),
            Test::Bits(bits) => value.is_some_and(|value| bits.matches(value)),
            Test::Geo(test) => match value {
                Some(value) => return test.matches(value, matching.context),
                None => false,
            },
            Test::Near(near) => match value {
                Some(value) => near.value_distance(value, matching.context)?.is_some(),
                None => false,
            },
            Test::Size(size) => {
                matches!(value, Some(ValueRef::Array(items)) if items.len() as i64 == *size)
            }
            Test::ElementFields(_) | Test::ElementValue(_) => {
                return Ok(self.first_element(value, matching)?.is_some());
            }
        })
    }

    /// Returns the position of the first item of an array that meets the conditions of `$elemMatch`.
    pub(super) fn first_element(
        &self,
        array: Option<ValueRef<'_>>,
        matching: MatchContext<'_>,
    ) -> Result<Option<usize>> {
        let Some(ValueRef::Array(items)) = array else { return Ok(None) };
        for (position, item) in items.iter().enumerate() {
            let matches = match (self, item) {
                (Test::ElementFields(node), ValueRef::Document(_) | ValueRef::Array(_)) => {
                    node.matches_within(item, matching)?
                }
                (Test::ElementValue(node), item) => node.matches_item(item, matching)?,
                _ => false,
            };
            if matches {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }
}

fn compares(
    value: Option<ValueRef<'_>>,
    comparison: Comparison,
    operand: ValueRef<'_>,
    matching: MatchContext<'_>,
) -> bool {
    let Some(value) = value else { return missing_compares(comparison, operand.kind()) };
    let (kind, operand_kind) = (value.kind(), operand.kind());
    if kind.class() != operand_kind.class() && !matches!(operand_kind, Kind::MinKey | Kind::MaxKey) {
        return false;
    }
    if comparison != Comparison::Equal && (is_nan(value) || is_nan(operand)) {
        let or_equal = matches!(comparison, Comparison::LessOrEqual | Comparison::GreaterOrEqual);
        return match operand_kind {
            Kind::MinKey | Kind::MaxKey => comparison.holds(matching.compare(value, operand)),
            _ => or_equal && is_nan(value) && is_nan(operand),
        };
    }
    comparison.holds(matching.compare(value, operand))
}

/// Compares a missing value, which counts as null: between `MinKey` and `MaxKey`.
fn missing_compares(comparison: Comparison, operand: Kind) -> bool {
    match operand {
        Kind::Null => comparison.holds(Ordering::Equal),
        Kind::MinKey => comparison.holds(Ordering::Greater),
        Kind::MaxKey => comparison.holds(Ordering::Less),
        _ => false,
    }
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl MatchContext<'_> {
    pub(super) fn compare(self, left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
        self.settings.compare(left, right)
    }
}

impl Members {
    fn contain(&self, value: Option<ValueRef<'_>>, matching: MatchContext<'_>) -> Result<bool> {
        let Some(value) = value else { return Ok(self.null) };
        let compare = |member: &Value| matching.compare(member.view(), value);
        let found = match self.values.len() {
            0..8 => self.values.iter().any(|member| compare(member).is_eq()),
            _ => self.values.binary_search_by(compare).is_ok(),
        };
        if found {
            return Ok(true);
        }
        for pattern in &self.patterns {
            if pattern.matches(value, matching.context)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
