//! The sort order of a query, as far as an index could serve it.

use super::filter::Scope;
use super::{Step, arrays};
use crate::logical::{Expression, Order, Query};

/// The order that a query asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sorting {
    /// None.
    Unsorted,
    /// By properties of the item, first one first.
    Paths(Vec<SortPath>),
    /// By a value that no index has.
    Computed,
}

/// One property to sort by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortPath {
    /// The names from the root on.
    pub path: Vec<String>,
    /// Largest first.
    pub descending: bool,
}

pub(super) fn sorting(query: &Query) -> Sorting {
    let keys = match &query.order {
        Order::None => return Sorting::Unsorted,
        Order::Keys(keys) if query.nested.is_none() && !query.is_grouped() => keys,
        Order::Keys(_) | Order::Rank(_) => return Sorting::Computed,
    };
    let mut scope = Scope::new();
    arrays::enter(&mut scope, &query.sources);
    let path = |value: &Expression| {
        let Expression::Path { slot, segments } = value else { return None };
        let name = |step: Step| match step {
            Step::Name(name) => Some(name),
            Step::Each => None,
        };
        let path =
            scope.item_path(*slot, segments)?.path.into_iter().map(name).collect::<Option<Vec<_>>>()?;
        (!path.is_empty()).then_some(path)
    };
    let paths = keys.iter().map(|key| Some(SortPath { path: path(&key.value)?, descending: key.descending }));
    paths.collect::<Option<Vec<_>>>().map_or(Sorting::Computed, Sorting::Paths)
}
