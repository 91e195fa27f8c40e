//! What an index can answer of a query: a tree of places and the values that may stand there.
//!
//! The condition is a *superset* of the filter: an item outside of it cannot match, an item inside may or may not and
//! still has to be asked, unless [`Analysis::exact`] says that both are the same. Whatever is not understood makes it
//! wider, so a new kind of expression costs speed until it is taught here, never rows.
//!
//! ```text
//! c.a > 5 AND c.a <= 9 AND ARRAY_CONTAINS(c.tags, 'x')      =>  All[ /a in (5, 9], /tags/[] in {'x'} ]
//! NOT IS_DEFINED(c.a) OR c.a = null                         =>  /a in {null} or missing
//! JOIN t IN c.tags WHERE t.n = 1 AND UPPER(t.s) = 'S'       =>  All[ /tags an array, /tags/[]/n in {1} ]
//! ```
//!
//! Every expression has two conditions, one for where it is true and one for where it is *false*; `NOT` exchanges
//! them. They do not add up to everything, because in between lies undefined.

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
pub use interval::{Interval, Kinds, Standing};
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
    /// Those with such a value in a place.
    Leaf(Leaf),
    /// Those that are in every one of these sets.
    All(Vec<Condition>),
    /// Those that are in at least one of these sets.
    Any(Vec<Condition>),
}

/// The items with certain values in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The place. Behind a step into every element it is enough that one of the values fits.
    pub path: Vec<Step>,
    /// What may stand there. Behind a step into every element these are scalars only.
    pub standing: Standing,
}

impl Leaf {
    /// The items that have this scalar in a place.
    pub fn equal(path: Vec<Step>, value: ValueRef<'_>) -> Leaf {
        Leaf { path, standing: Standing::point(value) }
    }

    /// All items, by what they have in a place.
    pub fn any(path: Vec<Step>) -> Leaf {
        Leaf { path, standing: Standing::default().complement() }
    }

    /// The items that have no scalar in a place.
    pub fn no_scalar(path: Vec<Step>) -> Leaf {
        let kinds = Kinds { missing: true, array: true, object: true };
        Leaf { path, standing: Standing { scalars: Vec::new(), kinds } }
    }

    /// Whether an item has at most one value in this place.
    pub fn is_single(&self) -> bool {
        is_single(&self.path)
    }
}

/// Whether a path leads to at most one value.
fn is_single(path: &[Step]) -> bool {
    !path.contains(&Step::Each)
}

/// What can be said of a query before any item is read.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// Where every item with a row in the answer lies.
    pub condition: Condition,
    /// Whether an item lies there exactly if the filter is true for it.
    pub exact: bool,
    /// The ids, partition keys and write times that can match.
    pub access: Access,
    /// The properties that an answer depends on.
    pub references: References,
    /// The order of the answer.
    pub sorting: Sorting,
}

impl Query {
    /// Looks through the query for what can be found without reading every item of a container with this
    /// partition key.
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

    /// The ids, partition keys and write times that can match.
    pub fn access(&self, key: &PartitionKeyDefinition) -> Access {
        access::access(self, key)
    }
}
