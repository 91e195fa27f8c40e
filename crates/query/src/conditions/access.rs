//! The lookups by id, partition key and write time that a filter allows.
//!
//! Every container keeps entries for these, whatever its indexing policy. The result is a bounding box of the
//! matching items, never smaller than them.
//!
//! ```text
//! (c.id = 'a' AND c.pk = 1) OR (c.id = 'b' AND c.pk = 2)
//!      ids {a} x keys {1}   +      ids {b} x keys {2}      =>   ids {a, b} x keys {1, 2}
//! ```

use std::collections::BTreeSet;

use document::{KeyPart, PartitionKey, PartitionKeyDefinition, Value};

use super::Step;
use super::arrays;
use super::filter::{Scope, is_condition};
use crate::evaluate::compare;
use crate::logical::{Comparison, Expression, Query, Segment};

/// The number of partition keys beyond which a scan is no worse than a lookup of each.
const MAX_KEYS: usize = 4096;

/// A bounding box of all items that can match.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The ids that can match, sorted; `None` means any.
    pub ids: Option<Vec<String>>,
    /// The partition keys that can match, each once; `None` means any. They may be prefixes of a hierarchical key,
    /// all of one length.
    pub keys: Option<Vec<PartitionKey>>,
    /// The range of write times of matching items.
    pub stamps: Stamps,
}

/// A range of `_ts`, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// The first second, `None` if unbounded.
    pub from: Option<u64>,
    /// The last second, `None` if unbounded.
    pub to: Option<u64>,
}

impl Access {
    /// Returns `true` if nothing can match.
    pub fn is_nothing(&self) -> bool {
        self.ids.as_ref().is_some_and(Vec::is_empty) || self.keys.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns `true` if an item lies inside the box.
    pub fn contains(&self, id: &str, key: &PartitionKey, stamp: u64) -> bool {
        self.ids.as_ref().is_none_or(|ids| ids.binary_search_by(|known| known.as_str().cmp(id)).is_ok())
            && self.keys.as_ref().is_none_or(|keys| keys.iter().any(|known| known.is_prefix_of(key)))
            && self.stamps.from.is_none_or(|from| from <= stamp)
            && self.stamps.to.is_none_or(|to| stamp <= to)
    }
}

/// Returns the bounding box of the items that a query can match in a container with this partition key.
pub(super) fn access(query: &Query, key: &PartitionKeyDefinition) -> Access {
    if let Some(inner) = &query.nested {
        return access(inner, key);
    }
    let analysis = Analysis::new(query, key);
    let bounds = query
        .filter
        .as_ref()
        .map_or_else(|| Some(analysis.everything()), |filter| analysis.bounds(filter, true));
    let Some(bounds) = bounds else {
        return Access { ids: Some(Vec::new()), keys: Some(Vec::new()), stamps: Stamps::default() };
    };
    Access {
        ids: bounds.ids.map(|ids| ids.into_iter().collect()),
        keys: keys(&bounds.parts),
        stamps: Stamps {
            from: (bounds.stamps.0 > 0).then_some(bounds.stamps.0),
            to: (bounds.stamps.1 < u64::MAX).then_some(bounds.stamps.1),
        },
    }
}

/// The parts of a partition key that can match at one level.
type Parts = BTreeSet<KeyPart>;

/// The box while it is being computed; `None` of `Option<Bounds>` is the empty box.
#[derive(Debug, Clone)]
struct Bounds {
    ids: Option<BTreeSet<String>>,
    /// One entry per path of the partition key; no level is ever empty.
    parts: Vec<Option<Parts>>,
    stamps: (u64, u64),
}

struct Analysis {
    /// The names that `FROM` gives.
    scope: Scope,
    /// The paths of the partition key.
    key_paths: Vec<Vec<Step>>,
}

impl Analysis {
    fn new(query: &Query, key: &PartitionKeyDefinition) -> Self {
        let mut scope = Scope::new();
        arrays::enter(&mut scope, &query.sources);
        // A container without a real key keeps everything under the empty key, whatever its items hold.
        let paths = if key.system_key { &[][..] } else { &key.paths };
        let steps = |path: &document::Path| path.segments().iter().cloned().map(Step::Name).collect();
        Self { scope, key_paths: paths.iter().map(steps).collect() }
    }

    fn everything(&self) -> Bounds {
        Bounds { ids: None, parts: vec![None; self.key_paths.len()], stamps: (0, u64::MAX) }
    }

    /// Returns the bounding box of the items for which the expression is exactly `wanted`.
    fn bounds(&self, expression: &Expression, wanted: bool) -> Option<Bounds> {
        match expression {
            Expression::Not(inner) => self.bounds(inner, !wanted),
            Expression::And(parts) if wanted => self.all(parts, wanted),
            Expression::Or(parts) if !wanted => self.all(parts, wanted),
            Expression::And(parts) | Expression::Or(parts) => {
                parts.iter().map(|part| self.bounds(part, wanted)).fold(None, union)
            }
            Expression::Compare { operator, left, right } => {
                let operator = if wanted { *operator } else { operator.negated() };
                self.comparison(operator, left, right)
            }
            Expression::In { value, list } if wanted => {
                list.iter().map(|item| self.comparison(Comparison::Equal, value, item)).fold(None, union)
            }
            Expression::InConstants { value, list } if wanted => self.is_any_of(value, list),
            Expression::Between { value, low, high } if wanted => intersection(
                self.comparison(Comparison::GreaterOrEqual, value, low),
                self.comparison(Comparison::LessOrEqual, value, high),
            ),
            Expression::Between { value, low, high } => union(
                self.comparison(Comparison::Less, value, low),
                self.comparison(Comparison::Greater, value, high),
            ),
            Expression::Call(entry, arguments) => self.call(entry.name, arguments, wanted),
            Expression::Literal(value) => (value.as_bool() == Some(wanted)).then(|| self.everything()),
            Expression::Undefined => None,
            Expression::Path { slot, segments } => {
                self.path(Comparison::Equal, *slot, segments, &Value::Bool(wanted))
            }
            _ => Some(self.everything()),
        }
    }

    fn call(&self, name: &str, arguments: &[Expression], wanted: bool) -> Option<Bounds> {
        match (name, arguments, wanted) {
            ("IS_DEFINED", [Expression::Path { slot, segments }], false) => {
                Some(self.with_key_part(*slot, segments, &KeyPart::Undefined))
            }
            ("IS_NULL", [argument], true) => {
                self.comparison(Comparison::Equal, argument, &Expression::Literal(Value::Null))
            }
            ("STRINGEQUALS", [one, other], true) => self.comparison(Comparison::Equal, one, other),
            ("ARRAY_CONTAINS", [Expression::Literal(Value::Array(list)), value], true) => {
                self.is_any_of(value, list)
            }
            _ => Some(self.everything()),
        }
    }

    fn is_any_of(&self, value: &Expression, list: &[Value]) -> Option<Bounds> {
        let Expression::Path { slot, segments } = value else { return Some(self.everything()) };
        list.iter().map(|item| self.path(Comparison::Equal, *slot, segments, item)).fold(None, union)
    }

    fn all(&self, parts: &[Expression], wanted: bool) -> Option<Bounds> {
        let mut bounds = Some(self.everything());
        for part in parts {
            bounds = intersection(bounds, self.bounds(part, wanted));
        }
        bounds
    }

    /// Returns where `left operator right` is true.
    fn comparison(&self, operator: Comparison, left: &Expression, right: &Expression) -> Option<Bounds> {
        match (left, right) {
            (Expression::Undefined, _) | (_, Expression::Undefined) => None,
            (Expression::Literal(left), Expression::Literal(right)) => {
                (compare(operator, left.view(), right.view()) == Some(true)).then(|| self.everything())
            }
            (Expression::Path { slot, segments }, Expression::Literal(value)) => {
                self.path(operator, *slot, segments, value)
            }
            (Expression::Literal(value), Expression::Path { slot, segments }) => {
                self.path(operator.mirrored(), *slot, segments, value)
            }
            (condition, Expression::Literal(Value::Bool(truth)))
            | (Expression::Literal(Value::Bool(truth)), condition)
                if is_condition(condition) =>
            {
                match operator {
                    Comparison::Equal => self.bounds(condition, *truth),
                    Comparison::NotEqual => self.bounds(condition, !*truth),
                    _ => Some(self.everything()),
                }
            }
            _ => Some(self.everything()),
        }
    }

    /// Returns where the property at `path` stands in this relation to a constant.
    fn path(&self, operator: Comparison, slot: usize, segments: &[Segment], value: &Value) -> Option<Bounds> {
        let mut bounds = self.everything();
        let place = self.scope.item_path(slot, segments);
        if let Some([Step::Name(name)]) = place.as_ref().map(|place| place.path.as_slice()) {
            match (name.as_str(), operator, value) {
                ("id", Comparison::Equal, Value::String(id)) => {
                    bounds.ids = Some(BTreeSet::from([id.clone()]));
                }
                // Ids are strings and write times are whole seconds: no other value is ever equal to them.
                ("id", Comparison::Equal, _) => return None,
                ("_ts", ..) => bounds.stamps = stamps(operator, value)?,
                _ => {}
            }
        }
        match KeyPart::from_view(Some(value.view())) {
            Ok(part) if operator == Comparison::Equal => {
                intersection(Some(bounds), Some(self.with_key_part(slot, segments, &part)))
            }
            // An array or object is no key part; items that have one there lie under the undefined key.
            _ => Some(bounds),
        }
    }

    /// Returns the items that have this part wherever the place is a path of the partition key.
    fn with_key_part(&self, slot: usize, segments: &[Segment], part: &KeyPart) -> Bounds {
        let mut bounds = self.everything();
        let place = self.scope.item_path(slot, segments);
        for (level, key_path) in self.key_paths.iter().enumerate() {
            if place.as_ref().is_some_and(|place| place.path == *key_path) {
                bounds.parts[level] = Some(Parts::from([part.clone()]));
            }
        }
        bounds
    }
}

/// Returns the seconds that stand in this relation to a constant.
fn stamps(operator: Comparison, value: &Value) -> Option<(u64, u64)> {
    // Wide enough for every bound next to an i64, and `as` saturates for the doubles far outside.
    let (floor, ceiling) = match value {
        Value::Int(i) => (i128::from(*i), i128::from(*i)),
        Value::Double(d) => (d.floor() as i128, d.ceil() as i128),
        _ if operator == Comparison::NotEqual => return Some((0, u64::MAX)),
        _ => return None,
    };
    let (low, high) = match operator {
        Comparison::Equal if floor == ceiling => (floor, floor),
        Comparison::Equal => return None,
        Comparison::NotEqual => (0, i128::MAX),
        Comparison::Less => (0, ceiling.saturating_sub(1)),
        Comparison::LessOrEqual => (0, floor),
        Comparison::Greater => (floor.saturating_add(1), i128::MAX),
        Comparison::GreaterOrEqual => (ceiling, i128::MAX),
    };
    let low = u64::try_from(low.max(0)).ok()?;
    let high = u64::try_from(high.min(u64::MAX.into())).ok()?;
    (low <= high).then_some((low, high))
}

fn union(one: Option<Bounds>, other: Option<Bounds>) -> Option<Bounds> {
    let (mut one, other) = match (one, other) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    match (&mut one.ids, other.ids) {
        (Some(ids), Some(others)) => ids.extend(others),
        (ids, _) => *ids = None,
    }
    for (parts, others) in one.parts.iter_mut().zip(other.parts) {
        match (parts.as_mut(), others) {
            (Some(parts), Some(others)) => parts.extend(others),
            _ => *parts = None,
        }
    }
    one.stamps = (one.stamps.0.min(other.stamps.0), one.stamps.1.max(other.stamps.1));
    Some(one)
}

fn intersection(one: Option<Bounds>, other: Option<Bounds>) -> Option<Bounds> {
    let (mut one, other) = (one?, other?);
    match (&mut one.ids, other.ids) {
        (Some(ids), Some(others)) => ids.retain(|id| others.contains(id)),
        (ids @ None, others) => *ids = others,
        (Some(_), None) => {}
    }
    for (parts, others) in one.parts.iter_mut().zip(other.parts) {
        match (parts.as_mut(), others) {
            (Some(parts), Some(others)) => parts.retain(|part| others.contains(part)),
            (None, others) => *parts = others,
            (Some(_), None) => {}
        }
    }
    one.stamps = (one.stamps.0.max(other.stamps.0), one.stamps.1.min(other.stamps.1));
    let empty = one.ids.as_ref().is_some_and(BTreeSet::is_empty)
        || one.parts.iter().flatten().any(Parts::is_empty)
        || one.stamps.0 > one.stamps.1;
    (!empty).then_some(one)
}

/// Returns all combinations of the known parts, down to the first level that is not known.
fn keys(parts: &[Option<Parts>]) -> Option<Vec<PartitionKey>> {
    let mut keys: Vec<Vec<KeyPart>> = vec![Vec::new()];
    for parts in parts.iter().map_while(Option::as_ref) {
        if keys.len().saturating_mul(parts.len()) > MAX_KEYS {
            break;
        }
        let longer =
            |key: &Vec<KeyPart>, part: &KeyPart| [key.as_slice(), std::slice::from_ref(part)].concat();
        keys = keys.iter().flat_map(|key| parts.iter().map(move |part| longer(key, part))).collect();
    }
    let known = keys.first().is_some_and(|key| !key.is_empty());
    known.then(|| keys.into_iter().map(PartitionKey::new).collect())
}
