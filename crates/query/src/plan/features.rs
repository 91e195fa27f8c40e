//! The features that a client needs to follow a plan, by the names that clients announce.
//!
//! `Aggregate` is enough for all of COUNT, SUM, AVG, MIN and MAX: some clients also announce `CompositeAggregate`, others
//! (.NET) join averages and extremes without it.
//!
//! Two features exist in no client, and their names are Bolide's own: sorting merged groups ([`ORDERED_GROUPS`]), and
//! merging the rows of several partitions inside of a query over a query ([`NESTED_ROWS`]). Plans that need one of them
//! are correct for one partition only.

use super::hybrid::HybridInfo;
use super::info::{Distinct, QueryInfo};
use crate::logical::{AggregateKind, Order, Query};

const ORDERED_GROUPS: &str = "OrderedGroups";
const NESTED_ROWS: &str = "NestedRows";

/// Returns the features that following the plan takes, each once, in the order of their names. `query` is the one whose rows
/// are merged.
pub(super) fn of_query(info: &QueryInfo, query: &Query) -> Vec<&'static str> {
    let named = info.aliases.iter().filter_map(|(_, kind)| *kind);
    let aggregates = info.aggregate.into_iter().chain(named).collect::<Vec<_>>();
    let has = |kinds: &[AggregateKind]| aggregates.iter().any(|kind| kinds.contains(kind));
    let collecting = [AggregateKind::MakeList, AggregateKind::MakeSet];
    let needs = [
        ("Aggregate", !aggregates.is_empty()),
        ("CountIf", has(&[AggregateKind::CountIf])),
        ("DCount", info.distinct_count_alias.is_some()),
        ("Distinct", info.distinct != Distinct::None),
        ("GroupBy", !info.group_by.is_empty()),
        ("ListAndSetAggregate", has(&collecting)),
        ("MultipleAggregates", aggregates.len() > 1),
        ("MultipleOrderBy", info.order_by.len() > 1),
        (NESTED_ROWS, query.nested.is_some()),
        ("NonStreamingOrderBy", info.has_non_streaming_order_by),
        ("NonValueAggregate", info.has_named_aggregates()),
        ("OffsetAndLimit", info.limit.is_some()),
        ("OrderBy", !info.order_by.is_empty()),
        (ORDERED_GROUPS, !query.group_by.is_empty() && query.order != Order::None),
        ("Top", info.top.is_some()),
    ];
    needs.into_iter().filter_map(|(name, needed)| needed.then_some(name)).collect()
}

/// Returns the same for a fused rank.
pub(super) fn of_hybrid(info: &HybridInfo) -> Vec<&'static str> {
    let weighted = (!info.weights.is_empty()).then_some("WeightedRankFusion");
    std::iter::once("HybridSearch").chain(weighted).collect()
}
