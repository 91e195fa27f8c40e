//! The condition of a query that an index can answer: a tree of paths and sets of values.
//!
//! The condition is a *superset* of the filter: an item outside of it cannot match; an item inside still has to be
//! checked by the filter, unless [`Analysis::exact`] is set, which means that both are equivalent. An expression that
//! this module does not handle makes the condition wider, so it costs speed, never rows.
//!
//! ```text
//! c.a > 5 AND c.a <= 9 AND ARRAY_CONTAINS(c.tags, 'x')      =>  All[ /a in (5, 9], /tags/[] in {'x'} ]
//! NOT IS_DEFINED(c.a) OR c.a = null                         =>  /a in {null} or missing
//! JOIN t IN c.tags WHERE t.n = 1 AND UPPER(t.s) = 'S'       =>  All[ /tags an array, /tags/[]/n in {1} ]
//! ```
//!
//! Every expression has two conditions, one for where it is true and one for where it is *false*; `NOT` exchanges
//! them. Together they do not cover all items, because an expression may be undefined.

mod access;
mod arrays;
mod combine;
mod filter;
mod interval;
mod order;
mod references;
#[cfg(test)]
mod tests;

use document::{PartitionKeyDefinition, ValueRef};

use crate::logical::Query;

pub use access::{Access, Stamps};
pub(crate) use filter::is_condition;
pub use interval::{Interval, Kinds, ValueSet};
pub use order::{SortPath, Sorting};
pub use references::References;

/// One step down from the root of an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Into a member of an object.
    Name(String),
    /// Into every element of an array.
    Each,
}

/// A set of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// All of them.
    Everything,
    /// None of them.
    Nothing,
    /// The items with a matching value at a path.
    Leaf(Leaf),
    /// The intersection of these sets.
    All(Vec<Condition>),
    /// The union of these sets.
    Any(Vec<Condition>),
}

/// The items with certain values at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The path. After a step into every element it is enough that one of the values matches.
    pub path: Vec<Step>,
    /// The matching values. After a step into every element these are only scalars.
    pub values: ValueSet,
}

impl Leaf {
    /// Returns the leaf of the items that have this scalar at a path.
    pub fn equal(path: Vec<Step>, value: ValueRef<'_>) -> Leaf {
        Leaf { path, values: ValueSet::point(value) }
    }

    /// Returns the leaf of all items, by their value at a path.
    pub fn any(path: Vec<Step>) -> Leaf {
        Leaf { path, values: ValueSet::default().complement() }
    }

    /// Returns the leaf of the items that have no scalar at a path.
    pub fn no_scalar(path: Vec<Step>) -> Leaf {
        let kinds = Kinds { missing: true, array: true, object: true };
        Leaf { path, values: ValueSet { scalars: Vec::new(), kinds } }
    }

    /// Returns `true` if an item has at most one value at this path.
    pub fn is_single(&self) -> bool {
        is_single(&self.path)
    }
}

/// Returns `true` if a path leads to at most one value.
fn is_single(path: &[Step]) -> bool {
    !path.contains(&Step::Each)
}

/// The analysis of a query before any item is read.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// A superset of the items with a row in the result.
    pub condition: Condition,
    /// Whether the condition is equivalent to the filter.
    pub exact: bool,
    /// The ids, partition keys and write times that can match.
    pub access: Access,
    /// The properties that the result depends on.
    pub references: References,
    /// The order of the result.
    pub sorting: Sorting,
}

impl Query {
    /// Analyses which items of a container with this partition key can match, without reading them.
    pub fn analyse(&self, key: &PartitionKeyDefinition) -> Analysis {
        let (condition, exact) = filter::of_query(self);
        Analysis {
            condition,
            exact,
            access: access::access(self, key),
            references: references::references(self),
            sorting: order::sorting(self),
        }
    }

    /// Returns the ids, partition keys and write times that can match.
    pub fn access(&self, key: &PartitionKeyDefinition) -> Access {
        access::access(self, key)
    }
}
