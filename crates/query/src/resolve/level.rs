//! The state of a query while it is being resolved: its names, its slots, its aggregates.

use crate::logical::{Aggregate, Query};

/// One query; subqueries inside of it have levels of their own.
#[derive(Debug)]
pub(super) struct Level {
    names: Vec<Source>,
    /// Whether slot 0 holds rows of a query inside `FROM` and not items.
    pub(super) reads_rows: bool,
    /// The first slot of this query's own; those before belong to the queries around it.
    pub(super) first: usize,
    /// The first slot that nothing is bound to at this place of the query.
    pub(super) free: usize,
    /// The meaning of an aggregate at this place.
    pub(super) aggregation: Aggregation,
    /// The aggregates found so far.
    pub(super) aggregates: Vec<Aggregate>,
    /// The list of the container's rows that a subquery asks for; only in the outermost query.
    pub(super) container: Option<Box<Query>>,
}

/// A source of `FROM` as expressions see it.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Its name; a source can have none.
    pub(super) name: Option<String>,
    pub(super) slot: usize,
}

/// The meaning of an aggregate at some place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aggregation {
    /// There are no groups here: `FROM`, `WHERE`, `GROUP BY`, and the sort keys of a query without groups.
    Refused,
    /// It is one of the query's; its result is found from this slot on.
    Collected { slot: usize },
}

impl Level {
    /// Creates a query before its sources are known, whose slots start at `first`.
    pub(super) fn new(first: usize) -> Level {
        Level {
            names: Vec::new(),
            reads_rows: false,
            first,
            free: first,
            aggregation: Aggregation::Refused,
            aggregates: Vec::new(),
            container: None,
        }
    }

    /// Returns a query whose only source is the item.
    pub(super) fn of_item(name: &str) -> Level {
        let mut level = Level::new(0);
        level.free = 1;
        level.add(Source { name: Some(name.to_owned()), slot: 0 });
        level
    }

    /// Makes a source visible to the following clauses.
    pub(super) fn add(&mut self, source: Source) {
        self.names.push(source);
    }

    /// Returns the source of that name. Later ones hide earlier ones.
    pub(super) fn find(&self, name: &str) -> Option<&Source> {
        self.names.iter().rev().find(|source| source.name.as_deref() == Some(name))
    }

    /// Returns all sources, in order.
    pub(super) fn sources(&self) -> &[Source] {
        &self.names
    }
}
