//! Plans by which clients query several partitions and join their rows.
//!
//! Clients that query each partition themselves request a *plan* first: the partitions that can have rows
//! ([`ranges`]), the query for each of them ([`rewrite`], [`item`], [`container`], [`hybrid`]), and the client's work on
//! the rows. The planner refuses a query that cannot be split over partitions, even if a single partition
//! could answer it.
//!
//! ```text
//!            ast --+--> rewrite, hybrid --> QueryInfo | HybridInfo --+
//!                  |        (directions, scores)                    +--> Plan --json--> the client
//! resolved query --+--> keys --> ranges ----------------------------+
//! ```
//!
//! This module runs no query and does not depend on the number of partitions. A server that answers queries over all
//! partitions itself returns [`Plan::pass_through`].

mod build;
mod container;
mod features;
mod hybrid;
mod info;
mod item;
mod json;
mod keys;
mod ranges;
mod rewrite;

use document::{PartitionKeyDefinition, Value};

use crate::error::Result;
use crate::logical::{Dialect, Order, Query};
use crate::resolve::{self, Purpose};
use crate::syntax::ast::{Node, NodeKind};
use crate::syntax::{self, ast};

pub use hybrid::{HybridInfo, HybridRows};
pub use info::{Distinct, QueryInfo, SortOrder};
pub use ranges::QueryRange;
use rewrite::Window;

/// The plan of a query over several partitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The queries to send, and the work on their rows.
    pub work: Work,
    /// The ranges that can have rows, in ascending order of hashes; at least one range.
    pub ranges: Vec<QueryRange>,
    /// The features that a client must support, by the names that clients announce.
    pub features: Vec<&'static str>,
}

/// The work of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// One query to each partition, and the rows merged.
    Merge(Box<QueryInfo>),
    /// Several queries to each partition, and the ranks fused.
    Fuse(Box<HybridInfo>),
}

impl Plan {
    /// Returns `true` if all items are in one logical partition, so that a single range has the whole result.
    pub fn is_within_one_key(&self) -> bool {
        matches!(self.ranges.as_slice(), [range] if range.is_point)
    }

    /// Returns `true` if the client has to join aggregates that are members of rows.
    pub fn has_named_aggregates(&self) -> bool {
        matches!(&self.work, Work::Merge(info) if info.has_named_aggregates())
    }

    /// Returns the plan by which the client sends the query unchanged to each range, and has no further work. It gives the right
    /// answer if there is one partition, or if any of them answers for all. It still has the flag for rows that are bare
    /// values, which some clients (Java's) need to unwrap them.
    #[must_use]
    pub fn pass_through(self) -> Plan {
        let info = match &self.work {
            Work::Merge(info) => Some(info.as_ref()),
            Work::Fuse(info) => info.components.first(),
        };
        let has_select_value = info.is_some_and(|info| info.has_select_value);
        let work = Work::Merge(Box::new(QueryInfo { has_select_value, ..QueryInfo::default() }));
        Plan { work, ranges: self.ranges, features: Vec::new() }
    }
}

/// Plans a query over a container with this partition key.
pub fn plan(
    text: &str,
    parameters: &[(String, Value)],
    key: &PartitionKeyDefinition,
    dialect: &Dialect,
    rows: HybridRows,
) -> Result<Plan> {
    let resolved = syntax::parse(text).and_then(|tree| {
        let query = resolve::resolve(text, &tree, parameters, dialect, Purpose::Plan)?;
        Ok((tree, query))
    });
    let (tree, query) = resolved.map_err(|error| error.with_positions_of(text))?;
    let ranges = if query.reads_items {
        ranges::ranges(keys::keys(&query, key), key)
    } else {
        vec![QueryRange::first()]
    };
    let tree = rewrite::with_named_source(&tree);
    if let Order::Rank(scores) = &query.order {
        let info = hybrid::hybrid(&tree, scores, window(&tree, parameters), rows);
        let features = features::of_hybrid(&info);
        return Ok(Plan { work: Work::Fuse(Box::new(info)), ranges, features });
    }
    let (info, merged) = merge(&tree, &query, parameters)?;
    let features = features::of_query(&info, merged);
    Ok(Plan { work: Work::Merge(Box::new(info)), ranges, features })
}

/// Returns the client's work, and the query whose rows it is for: this one, or one inside of it.
fn merge<'q>(
    tree: &ast::Query,
    query: &'q Query,
    parameters: &[(String, Value)],
) -> Result<(QueryInfo, &'q Query)> {
    if !query.reads_items {
        // The query reads no partition's data: any of them gives the whole answer.
        let has_select_value = matches!(tree.select, ast::Select::Value(_));
        return Ok((QueryInfo { has_select_value, ..QueryInfo::default() }, query));
    }
    if tree.from.is_empty() {
        return container::merge(tree, query, parameters);
    }
    if let (Some((inside, alias)), Some(nested)) = (rewrite::distinct_count(tree), &query.nested) {
        let (mut info, merged) = merge(inside, nested, parameters)?;
        if info.rewritten_query.is_empty() {
            info.rewritten_query = rewrite::query_text(inside);
        }
        info.distinct_count_alias = Some(alias);
        return Ok((info, merged));
    }
    Ok((rewrite::info(tree, window(tree, parameters), &orders(&query.order))?, query))
}

fn orders(order: &Order) -> Vec<SortOrder> {
    let Order::Keys(keys) = order else { return Vec::new() };
    keys.iter().map(|key| if key.descending { SortOrder::Descending } else { SortOrder::Ascending }).collect()
}

/// Returns the counts of the query, which resolving found to be counts.
fn window(query: &ast::Query, parameters: &[(String, Value)]) -> Window {
    let count = |node: &Node| {
        let value = match &node.kind {
            NodeKind::Literal(value) => Some(value),
            NodeKind::Parameter(name) => {
                parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value)
            }
            _ => None,
        };
        let count = value.and_then(Value::as_i64).and_then(|count| u64::try_from(count).ok());
        count.map(|count| count.min(rewrite::COUNT_MAX))
    };
    Window {
        top: query.top.as_ref().and_then(count),
        offset_limit: query.window.as_ref().and_then(|(offset, limit)| count(offset).zip(count(limit))),
    }
}
