//! Asking a parsed filter about documents. Plain comparisons read the document's bytes in place and allocate nothing.

use std::cmp::Ordering;

use bson::{DocumentRef, Kind, Value, ValueRef};

use super::Settings;
use super::node::{Comparison, Members, Node, Test};
use super::numbers::{is_nan, whole};
use crate::context::Context;
use crate::error::Result;
use crate::expression::Scope;
use crate::path::{Leaf, any_leaf};

/// What every question needs besides the value.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) context: &'a Context,
    pub(crate) settings: &'a Settings,
}

impl Node {
    /// Whether a document meets the condition.
    pub(super) fn matches(&self, document: DocumentRef<'_>, asking: Asking<'_>) -> Result<bool> {
        self.matches_within(ValueRef::Document(document), asking)
    }

    /// Whether the fields of a document, or the items of an array by their positions, meet the condition.
    fn matches_within(&self, root: ValueRef<'_>, asking: Asking<'_>) -> Result<bool> {
        let mut leaf = |node: &Node| match (node, root) {
            (Node::Field { path, test }, root) => {
                path.any_in(root, test.arrays(), asking.context, &mut |leaf| test.matches(leaf.value, asking))
            }
            (Node::Expr { expression, .. }, ValueRef::Document(document)) => {
                let scope = Scope::root(document)
                    .with_variables(&asking.settings.variables)
                    .with_collation(&asking.settings.collation);
                expression.is_true(&scope, asking.context)
            }
            (Node::Schema(schema), ValueRef::Document(document)) => schema.matches(document, asking),
            (Node::Text(search), ValueRef::Document(document)) => {
                Ok(search.score(document, asking.context)?.is_some())
            }
            _ => Ok(false),
        };
        self.decide(&mut leaf, asking)
    }

    /// Whether a value, as the only thing that the path finds, meets the condition.
    pub(super) fn matches_item(&self, value: ValueRef<'_>, asking: Asking<'_>) -> Result<bool> {
        self.decide(
            &mut |node| match node {
                Node::Field { test, .. } => test.matches(Some(value), asking),
                _ => Ok(true),
            },
            asking,
        )
    }

    /// Whether a value, as it would be at the end of a path, meets the condition.
    pub(super) fn matches_field(&self, value: ValueRef<'_>, asking: Asking<'_>) -> Result<bool> {
        self.decide(
            &mut |node| match node {
                Node::Field { test, .. } => {
                    any_leaf(value, test.arrays(), &mut |leaf| test.matches(leaf.value, asking))
                }
                _ => Ok(true),
            },
            asking,
        )
    }

    fn decide(&self, field: &mut dyn FnMut(&Node) -> Result<bool>, asking: Asking<'_>) -> Result<bool> {
        asking.context.spend(1)?;
        match self {
            Node::And(nodes) => {
                for node in nodes {
                    if !node.decide(field, asking)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(nodes) => any_of(nodes, field, asking),
            Node::Nor(nodes) => Ok(!any_of(nodes, field, asking)?),
            Node::Not(node) => Ok(!node.decide(field, asking)?),
            Node::Field { .. } | Node::Expr { .. } | Node::Schema(_) | Node::Text(_) => field(self),
            Node::SampleRate(rate) => {
                Ok(((asking.context.random() >> 11) as f64) < rate * 9_007_199_254_740_992.0)
            }
            Node::True => Ok(true),
            Node::False => Ok(false),
        }
    }

    /// The position of the item by which the last condition over an array holds, as `$` means it. Of an `$or` it is the first
    /// branch that holds; negations say nothing.
    pub(super) fn position(&self, document: DocumentRef<'_>, asking: Asking<'_>) -> Result<Option<usize>> {
        match self {
            Node::And(nodes) => {
                let mut found = None;
                for node in nodes {
                    found = node.position(document, asking)?.or(found);
                }
                Ok(found)
            }
            Node::Or(nodes) => {
                for node in nodes {
                    if node.matches(document, asking)? {
                        return node.position(document, asking);
                    }
                }
                Ok(None)
            }
            Node::Field { path, test } => {
                let mut found = None;
                path.any(document, test.arrays(), asking.context, &mut |Leaf { value, position }| {
                    if test.is_element() {
                        found = test.first_element(value, asking)?;
                        return Ok(found.is_some());
                    }
                    let matches = test.matches(value, asking)?;
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

fn any_of(nodes: &[Node], field: &mut dyn FnMut(&Node) -> Result<bool>, asking: Asking<'_>) -> Result<bool> {
    for node in nodes {
        if node.decide(field, asking)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Test {
    /// Whether a value passes; `None` is one that is missing.
    pub(super) fn matches(&self, value: Option<ValueRef<'_>>, asking: Asking<'_>) -> Result<bool> {
        Ok(match self {
            Test::Compare(comparison, operand) => compares(value, *comparison, operand.view(), asking),
            Test::In(members) => return members.contain(value, asking),
            Test::Exists => value.is_some(),
            Test::Type(types) => value.is_some_and(|value| types.contains(value.kind())),
            Test::Pattern(pattern) => match value {
                Some(value) => return pattern.matches(value, asking.context),
                None => false,
            },
            Test::Mod(divisor, remainder) => value
                .and_then(whole)
                .is_some_and(|number| number.checked_rem(*divisor).unwrap_or(0) == *remainder),
            Test::Bits(bits) => value.is_some_and(|value| bits.matches(value)),
            Test::Geo(test) => match value {
                Some(value) => return test.matches(value, asking.context),
                None => false,
            },
            Test::Near(near) => match value {
                Some(value) => near.value_distance(value, asking.context)?.is_some(),
                None => false,
            },
            Test::Size(size) => {
                matches!(value, Some(ValueRef::Array(items)) if items.len() as i64 == *size)
            }
            Test::ElementFields(_) | Test::ElementValue(_) => {
                return Ok(self.first_element(value, asking)?.is_some());
            }
        })
    }

    /// The position of the first item of an array that meets the conditions of `$elemMatch`.
    pub(super) fn first_element(
        &self,
        array: Option<ValueRef<'_>>,
        asking: Asking<'_>,
    ) -> Result<Option<usize>> {
        let Some(ValueRef::Array(items)) = array else { return Ok(None) };
        for (position, item) in items.iter().enumerate() {
            let matches = match (self, item) {
                (Test::ElementFields(node), ValueRef::Document(_) | ValueRef::Array(_)) => {
                    node.matches_within(item, asking)?
                }
                (Test::ElementValue(node), item) => node.matches_item(item, asking)?,
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
    asking: Asking<'_>,
) -> bool {
    let Some(value) = value else { return missing_compares(comparison, operand.kind()) };
    let (kind, operand_kind) = (value.kind(), operand.kind());
    if kind.class() != operand_kind.class() && !matches!(operand_kind, Kind::MinKey | Kind::MaxKey) {
        return false;
    }
    if comparison != Comparison::Equal && (is_nan(value) || is_nan(operand)) {
        let or_equal = matches!(comparison, Comparison::LessOrEqual | Comparison::GreaterOrEqual);
        return match operand_kind {
            Kind::MinKey | Kind::MaxKey => comparison.holds(asking.compare(value, operand)),
            _ => or_equal && is_nan(value) && is_nan(operand),
        };
    }
    comparison.holds(asking.compare(value, operand))
}

/// A missing value counts as null, which stands between the two keys.
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

impl Asking<'_> {
    pub(super) fn compare(self, left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
        self.settings.compare(left, right)
    }
}

impl Members {
    fn contain(&self, value: Option<ValueRef<'_>>, asking: Asking<'_>) -> Result<bool> {
        let Some(value) = value else { return Ok(self.null) };
        let compare = |member: &Value| asking.compare(member.view(), value);
        let found = match self.values.len() {
            0..8 => self.values.iter().any(|member| compare(member).is_eq()),
            _ => self.values.binary_search_by(compare).is_ok(),
        };
        if found {
            return Ok(true);
        }
        for pattern in &self.patterns {
            if pattern.matches(value, asking.context)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
