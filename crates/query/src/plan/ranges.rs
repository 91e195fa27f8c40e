//! The ranges of the hash space that a query's items can lie in: whole keys are points, prefixes of hierarchical keys
//! are ranges.
//!
//! A range has two forms. Gateways give clients hashes in hex; the service internally, and its records, write ranges
//! by the keys themselves, `[[1.0],[1.0]]` or `[[],"Infinity")`.

use std::fmt;

use document::{
    EffectiveKey, KeyPart, PartitionKey, PartitionKeyDefinition, PartitionKeyKind, Value, ValueRef,
};

/// A part of the hash space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryRange {
    /// The first key inside.
    pub min: EffectiveKey,
    /// The last key inside, or the first above it.
    pub max: EffectiveKey,
    /// Whether `max` lies inside: the range is a point.
    pub is_point: bool,
    key: Option<PartitionKey>,
}

impl QueryRange {
    /// Returns the whole hash space.
    pub fn all() -> QueryRange {
        QueryRange { min: EffectiveKey::min(), max: EffectiveKey::max(), is_point: false, key: None }
    }

    /// Returns the start of the hash space. A client must query some partition even if none has rows, and the first always
    /// exists.
    pub fn first() -> QueryRange {
        let start = EffectiveKey::min();
        QueryRange {
            min: start.clone(),
            max: start,
            is_point: true,
            key: Some(PartitionKey::new(Vec::new())),
        }
    }

    /// Returns `true` if a key lies inside.
    pub fn contains(&self, key: &EffectiveKey) -> bool {
        self.min <= *key && if self.is_point { *key <= self.max } else { *key < self.max }
    }

    fn of(key: PartitionKey, definition: &PartitionKeyDefinition) -> QueryRange {
        let min = key.effective(definition);
        let is_prefix = definition.kind == PartitionKeyKind::MultiHash && key.len() < definition.paths.len();
        let max = if is_prefix { key.effective_range(definition).max } else { min.clone() };
        QueryRange { min, max, is_point: !is_prefix, key: Some(key) }
    }
}

/// Returns the ranges of some keys, or of any, in the order of the line and apart from each other.
pub(super) fn ranges(
    keys: Option<Vec<PartitionKey>>,
    definition: &PartitionKeyDefinition,
) -> Vec<QueryRange> {
    let Some(keys) = keys else { return vec![QueryRange::all()] };
    if keys.is_empty() {
        return vec![QueryRange::first()];
    }
    let mut ranges = keys.into_iter().map(|key| QueryRange::of(key, definition)).collect::<Vec<_>>();
    ranges.sort_by(|one, other| one.min.cmp(&other.min));
    // Two keys with one hash are in one range.
    ranges.dedup_by(|one, other| one.min == other.min);
    ranges
}

/// The form in terms of keys.
impl fmt::Display for QueryRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(key) = &self.key else { return f.write_str("[[],\"Infinity\")") };
        let parts = key.parts().iter().map(part_text).collect::<Vec<_>>().join(",");
        if self.is_point {
            write!(f, "[[{parts}],[{parts}]]")
        } else {
            write!(f, "[[{parts}],[{parts},\"Infinity\"])")
        }
    }
}

fn part_text(part: &KeyPart) -> String {
    part.view().map_or_else(|| "{}".to_owned(), ValueRef::to_json)
}

impl QueryRange {
    /// Returns the form that gateways give: `{"min":"...","max":"FF","isMinInclusive":true,"isMaxInclusive":false}`.
    pub(super) fn to_value(&self) -> Value {
        let members: document::Object = [
            ("min", Value::from(self.min.to_string())),
            ("max", self.max.to_string().into()),
            ("isMinInclusive", true.into()),
            ("isMaxInclusive", self.is_point.into()),
        ]
        .into_iter()
        .collect();
        members.into()
    }
}
