//! Computes the partition keys that matching items can have, from the filter's conditions on the key's paths.
//!
//! Only equality narrows the set: keys are hashed, so a range of values is spread over all partitions. The result is
//! never too small; an expression that this module does not handle costs requests to more partitions, never rows.
//!
//! A set of keys is a list of patterns, one part per path of the key, where a part may be anything:
//!
//! ```text
//! paths /a /b      c.a = 1 AND c.b IN (2, 3)          [1, 2] [1, 3]
//!                  c.a = 1 OR (c.a = 2 AND c.b = 3)   [1, any] [2, 3]
//!                  c.b = 2                            [any, 2]
//! ```
//!
//! Each expression has two sets, where it is true and where it is false; `NOT` exchanges them. Together they need not
//! cover everything, because an expression may be undefined.

use std::cell::Cell;
use std::collections::BTreeSet;

use document::{KeyPart, PartitionKey, PartitionKeyDefinition, PartitionKeyKind, Value};

use crate::conditions::is_condition;
use crate::logical::{Comparison, Expression, Query, Rows, Segment};

/// The number of patterns beyond which the query goes to every partition.
const MAX_PATTERNS: usize = 8192;

/// The most pairs of patterns that one analysis compares: their number can grow with the square of the filter's
/// length.
const MAX_PAIRS: usize = 1 << 20;

/// One part per path; `None` is any.
type Pattern = Vec<Option<KeyPart>>;

/// The keys that can match: those of any of the patterns. Without a pattern nothing can.
type Patterns = BTreeSet<Pattern>;

/// Returns the keys, or beginnings of hierarchical keys, that matching items can have; `None` is any.
pub(super) fn keys(query: &Query, definition: &PartitionKeyDefinition) -> Option<Vec<PartitionKey>> {
    // The rows of a query over a query are no items, so only the query inside can know keys.
    let mut reader = query;
    while let Some(nested) = &reader.nested {
        reader = nested;
    }
    let patterns = Analysis::new(definition).query(reader);
    let keys = patterns.iter().map(|pattern| known_part(pattern, definition.kind)).collect::<Vec<_>>();
    if keys.iter().any(PartitionKey::is_empty) {
        return None;
    }
    // In order a prefix comes before the keys that begin with it, which are then redundant.
    let mut distinct: Vec<PartitionKey> = Vec::with_capacity(keys.len());
    for key in keys {
        if !distinct.last().is_some_and(|last| last.is_prefix_of(&key)) {
            distinct.push(key);
        }
    }
    Some(distinct)
}

/// Returns the part of a pattern that identifies partitions: all of it, or the beginning of a hierarchical key.
fn known_part(pattern: &Pattern, kind: PartitionKeyKind) -> PartitionKey {
    let known = pattern.iter().map_while(Clone::clone).collect::<Vec<_>>();
    match kind {
        PartitionKeyKind::Hash if known.len() < pattern.len() => PartitionKey::new(Vec::new()),
        PartitionKeyKind::Hash | PartitionKeyKind::MultiHash => PartitionKey::new(known),
    }
}

struct Analysis {
    /// The paths of the partition key as a query writes them.
    paths: Vec<Vec<Segment>>,
    /// Slots that stand for a place in the item, such as that of `FROM c.address`.
    places: Vec<(usize, Vec<Segment>)>,
    /// Pairs that may still be compared.
    pairs_left: Cell<usize>,
}

impl Analysis {
    fn new(definition: &PartitionKeyDefinition) -> Self {
        // A container without a real key keeps everything under the empty key, whatever its items hold.
        let paths = if definition.system_key { &[][..] } else { &definition.paths };
        let segments = |path: &document::Path| path.segments().iter().cloned().map(Segment::Name).collect();
        Self {
            paths: paths.iter().map(segments).collect(),
            places: vec![(0, Vec::new())],
            pairs_left: Cell::new(MAX_PAIRS),
        }
    }

    fn everything(&self) -> Patterns {
        BTreeSet::from([vec![None; self.paths.len()]])
    }

    fn query(&mut self, query: &Query) -> Patterns {
        let mut patterns = self.everything();
        for source in &query.sources {
            match &source.rows {
                // A subquery whose filter is not true has no rows, and then there are none at all; unless it counts
                // them.
                Rows::Subquery(inner) if !inner.is_grouped() => {
                    patterns = self.narrowed(patterns, inner.filter.as_ref());
                }
                Rows::Value(value) if !source.iterates => {
                    self.places.extend(self.path(value).map(|path| (source.slot, path)));
                }
                Rows::Subquery(_) | Rows::Value(_) => {}
            }
        }
        self.narrowed(patterns, query.filter.as_ref())
    }

    fn narrowed(&self, patterns: Patterns, filter: Option<&Expression>) -> Patterns {
        match filter {
            Some(filter) => self.intersection(patterns, self.patterns(filter, true)),
            None => patterns,
        }
    }

    /// Returns the path in the item that an expression is.
    fn path(&self, expression: &Expression) -> Option<Vec<Segment>> {
        let Expression::Path { slot, segments } = expression else { return None };
        let (_, place) = self.places.iter().find(|(known, _)| known == slot)?;
        Some([place.as_slice(), segments].concat())
    }

    /// Returns the keys of the items for which the expression is exactly `wanted`.
    fn patterns(&self, expression: &Expression, wanted: bool) -> Patterns {
        match expression {
            Expression::Not(inner) => self.patterns(inner, !wanted),
            Expression::And(parts) if wanted => self.all(parts, wanted),
            Expression::Or(parts) if !wanted => self.all(parts, wanted),
            Expression::And(parts) | Expression::Or(parts) => {
                self.any(parts.iter().map(|part| self.patterns(part, wanted)))
            }
            Expression::Compare { operator, left, right } => {
                let operator = if wanted { *operator } else { operator.negated() };
                self.comparison(operator, left, right)
            }
            Expression::In { value, list } if wanted => {
                self.any(list.iter().map(|item| self.comparison(Comparison::Equal, value, item)))
            }
            Expression::InConstants { value, list } if wanted => {
                self.any(list.iter().map(|item| self.equality(value, item)))
            }
            Expression::Like { value, pattern } if wanted => match pattern.only() {
                Some(text) => self.equality(value, &text.into()),
                None => self.everything(),
            },
            Expression::Call(entry, arguments) => match (entry.name, arguments.as_slice()) {
                ("IS_DEFINED", [argument]) if !wanted => match self.path(argument) {
                    Some(path) => self.with_part(&path, &KeyPart::Undefined),
                    None => self.everything(),
                },
                ("IS_NULL", [argument]) if wanted => self.equality(argument, &Value::Null),
                _ => self.everything(),
            },
            Expression::Literal(Value::Bool(constant)) if *constant == wanted => self.everything(),
            Expression::Literal(_) | Expression::Undefined => Patterns::new(),
            Expression::Path { .. } => self.equality(expression, &Value::Bool(wanted)),
            _ => self.everything(),
        }
    }

    fn all(&self, parts: &[Expression], wanted: bool) -> Patterns {
        parts.iter().fold(self.everything(), |patterns, part| {
            self.intersection(patterns, self.patterns(part, wanted))
        })
    }

    fn any(&self, sets: impl Iterator<Item = Patterns>) -> Patterns {
        let mut union = Patterns::new();
        for set in sets {
            union.extend(set);
            if union.len() > MAX_PATTERNS {
                return self.everything();
            }
        }
        union
    }

    fn intersection(&self, one: Patterns, other: Patterns) -> Patterns {
        let pairs = one.len().saturating_mul(other.len());
        if pairs > MAX_PATTERNS.min(self.pairs_left.get()) {
            // Either alone is a superset of what is in both.
            return if one.len() < other.len() { one } else { other };
        }
        self.pairs_left.update(|left| left - pairs);
        let pairs = one.iter().flat_map(|one| other.iter().map(move |other| (one, other)));
        pairs.filter_map(|(one, other)| both(one, other)).collect()
    }

    /// Returns where `left operator right` is true.
    fn comparison(&self, operator: Comparison, left: &Expression, right: &Expression) -> Patterns {
        match (operator, left, right) {
            (_, Expression::Undefined, _) | (_, _, Expression::Undefined) => Patterns::new(),
            (Comparison::Equal, value, Expression::Literal(constant))
            | (Comparison::Equal, Expression::Literal(constant), value) => self.equality(value, constant),
            (Comparison::NotEqual, condition, Expression::Literal(Value::Bool(constant)))
            | (Comparison::NotEqual, Expression::Literal(Value::Bool(constant)), condition)
                if is_condition(condition) =>
            {
                self.patterns(condition, !*constant)
            }
            _ => self.everything(),
        }
    }

    /// Returns where an expression is equal to a constant.
    fn equality(&self, value: &Expression, constant: &Value) -> Patterns {
        if let Some(path) = self.path(value) {
            return match KeyPart::from_view(Some(constant.view())) {
                Ok(part) => self.with_part(&path, &part),
                // An array or object is no key part; items that have one there lie under the undefined key.
                Err(_) => self.everything(),
            };
        }
        match constant {
            Value::Bool(constant) if is_condition(value) => self.patterns(value, *constant),
            _ => self.everything(),
        }
    }

    /// Returns the items that have this part wherever `path` is a path of the partition key.
    fn with_part(&self, path: &[Segment], part: &KeyPart) -> Patterns {
        let pattern = self.paths.iter().map(|own| (own == path).then(|| part.clone())).collect();
        BTreeSet::from([pattern])
    }
}

/// Returns the keys that fit both patterns.
fn both(one: &Pattern, other: &Pattern) -> Option<Pattern> {
    one.iter()
        .zip(other)
        .map(|parts| match parts {
            (Some(one), Some(other)) => (one == other).then(|| Some(one.clone())),
            (part, None) | (None, part) => Some(part.clone()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::Dialect;

    fn count(filter: &str) -> Option<usize> {
        let definition = document::parse_json(br#"{"paths":["/a","/b"],"kind":"MultiHash","version":2}"#)
            .and_then(|json| PartitionKeyDefinition::from_value(&json))
            .unwrap();
        let query =
            crate::parse(&format!("SELECT * FROM c WHERE {filter}"), &[], &Dialect::default()).unwrap();
        keys(&query, &definition).map(|keys| keys.len())
    }

    fn list(length: usize) -> String {
        (0..length).map(|number| number.to_string()).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn many_keys_are_looked_up_and_too_many_are_everything() {
        assert_eq!(count(&format!("c.a IN ({})", list(8000))), Some(8000));
        assert_eq!(count(&format!("c.a IN ({})", list(9000))), None);
        assert_eq!(count(&format!("c.a IN ({0}) AND c.b IN ({0})", list(90))), Some(8100));
        // The product is too large, its first level is not.
        assert_eq!(count(&format!("c.a IN ({0}) AND c.b IN ({0}, 'x')", list(99))), Some(99));
    }

    #[test]
    fn a_filter_that_repeats_itself_ends_soon() {
        let repeated = "c.a = 1 AND ".repeat(15_000);
        assert_eq!(count(&format!("{repeated} c.b IN ({})", list(8000))), Some(8000));
        assert_eq!(count(&format!("c.b IN ({}) AND {repeated} true", list(8000))), Some(1));
    }
}
