//! The query text for each partition, and the client's work on the partitions' rows.
//!
//! A query that one partition can answer alone needs no rewriting. Otherwise the rows must carry what the client
//! merges by:
//!
//! ```text
//! ORDER BY k       c._rid, [{"item": k}] AS orderByItems, <row> AS payload     merged by orderByItems
//! GROUP BY k       [{"item": k}] AS groupByItems, <row> AS payload             groups of equal groupByItems joined
//! COUNT(e)         {"item": COUNT(e)}                                          partial results added up
//! AVG(e)           {"item": {"sum": SUM(e), "count": COUNT(e)}}
//! MIN(e)           {"item": MIN(e), "item2": {"min": MIN(e), "count": COUNT(e)}}
//! TOP, LIMIT       as they are, or not at all where the client still drops or joins rows
//! OFFSET o LIMIT l OFFSET 0 LIMIT o + l, at most 2147483647
//! ```
//!
//! Where `FROM` does not name the item, it is rewritten to ([`super::item`]): every ordered row has the item's `_rid`.
//!
//! `{"item": ...}` and not the bare value, because an undefined element of an array would be lost.

use super::build::{
    aliased, array, binary, call, distance, identifier, item, literal, member, name, object, placeholder,
};
use super::info::{Distinct, QueryInfo, SortOrder};
use super::item::with_item;
use crate::error::{Error, Result};
use crate::logical::AggregateKind;
use crate::resolve::{aggregate_kind, has_aggregate, natural_name};
use crate::syntax::ast::{Binary, Collection, Node, NodeKind, PathStep, Query, Select, SelectItem, Source};
use crate::syntax::print::{Layout, print_node, print_query};

/// The function whose order no index gives row by row.
const DISTANCE: &str = "VectorDistance";

/// The largest count in a plan: clients keep them in 32 bits with a sign.
pub(super) const COUNT_MAX: u64 = i32::MAX as u64;

/// The figures of `TOP` and `OFFSET LIMIT`, with parameters replaced.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    pub(super) top: Option<u64>,
    pub(super) offset_limit: Option<(u64, u64)>,
}

/// Returns the query to send and the client's work afterwards. `orders` are the directions of the query's sort keys.
pub(super) fn info(query: &Query, window: Window, orders: &[SortOrder]) -> Result<QueryInfo> {
    let mut info = QueryInfo {
        distinct: distinct(query),
        top: window.top,
        offset: window.offset_limit.map(|(offset, _)| offset),
        limit: window.offset_limit.map(|(_, limit)| limit),
        has_select_value: matches!(query.select, Select::Value(_)),
        ..QueryInfo::default()
    };
    let mut rewritten = query.clone();
    if let Some((offset, limit)) = window.offset_limit {
        rewritten.window = Some((literal(0), count(offset.saturating_add(limit).min(COUNT_MAX))));
    }
    let aggregated = has_aggregates(&query.select)?;
    let mut changed = query.window.is_some();
    if aggregated || !query.group_by.is_empty() {
        group(query, &mut info, &mut rewritten);
        changed = true;
    } else if query.order_by.is_some() {
        order(query, orders, &mut info, &mut rewritten);
        changed = true;
    }
    if aggregated || !query.group_by.is_empty() || query.distinct {
        // A partition's first rows may turn out to be all the same, or parts of the same group.
        changed |= query.top.is_some();
        rewritten.top = None;
        rewritten.window = None;
    }
    if changed {
        info.rewritten_query = print_query(&rewritten, Layout::Lines);
    }
    Ok(info)
}

/// Returns, for `SELECT COUNT(1) FROM (SELECT DISTINCT ...)`, the query inside and the name of the result, empty for none.
/// The client runs the query inside and counts.
pub(super) fn distinct_count(query: &Query) -> Option<(&Query, String)> {
    let [Source { iterates: false, collection: Collection::Subquery(inside), alias }] = query.from.as_slice()
    else {
        return None;
    };
    let (counted, name) = match &query.select {
        Select::Value(node) => (node, String::new()),
        Select::List(items) if items.len() == 1 => (&items[0].node, member_names(items).swap_remove(0)),
        Select::List(_) | Select::Star(_) => return None,
    };
    let (AggregateKind::Count, argument) = aggregate(counted)? else { return None };
    let every_row = match &argument.kind {
        NodeKind::Literal(_) => true,
        NodeKind::Name(name) => alias.as_ref().is_some_and(|alias| alias.text == *name),
        _ => false,
    };
    (is_bare(query) && every_row && inside.distinct && !inside.from.is_empty()).then_some((inside, name))
}

/// Returns `true` if a query does nothing but select.
pub(super) fn is_bare(query: &Query) -> bool {
    !query.distinct
        && query.top.is_none()
        && query.filter.is_none()
        && query.group_by.is_empty()
        && query.order_by.is_none()
        && query.window.is_none()
}

fn distinct(query: &Query) -> Distinct {
    match (&query.select, &query.order_by) {
        _ if !query.distinct => Distinct::None,
        // Sorted by nothing but themselves, equal rows follow each other.
        (Select::Value(value), Some(order_by))
            if order_by.keys.len() == 1 && text(&order_by.keys[0].node) == text(value) =>
        {
            Distinct::Ordered
        }
        _ => Distinct::Unordered,
    }
}

/// Rewrites aggregates, with or without groups.
fn group(query: &Query, info: &mut QueryInfo, rewritten: &mut Query) {
    info.group_by = query.group_by.iter().map(text).collect();
    let payload = match &query.select {
        Select::Value(node) => match aggregate(node) {
            Some((kind, argument)) => {
                info.aggregate = Some(kind);
                array(vec![partial(kind, node, argument)])
            }
            None => node.clone(),
        },
        Select::List(items) => {
            let members =
                member_names(items).into_iter().zip(items).map(|(name, SelectItem { node, .. })| {
                    let found = aggregate(node);
                    info.aliases.push((name.clone(), found.map(|(kind, _)| kind)));
                    (
                        name,
                        found.map_or_else(|| node.clone(), |(kind, argument)| partial(kind, node, argument)),
                    )
                });
            object(members.collect::<Vec<_>>())
        }
        Select::Star(_) => row(query),
    };
    rewritten.distinct = false;
    rewritten.select = match &query.select {
        Select::Value(_) if query.group_by.is_empty() => Select::Value(payload),
        _ if query.group_by.is_empty() => Select::List(vec![aliased(payload, "payload")]),
        _ => {
            let keys = query.group_by.iter().cloned().map(item).collect();
            // It may refer to the members that are in the payload now, and joined groups have no order.
            rewritten.order_by = None;
            Select::List(vec![aliased(array(keys), "groupByItems"), aliased(payload, "payload")])
        }
    };
}

/// Rewrites `ORDER BY`.
fn order(query: &Query, orders: &[SortOrder], info: &mut QueryInfo, rewritten: &mut Query) {
    let keys = query.order_by.iter().flat_map(|order_by| &order_by.keys).map(|key| &key.node);
    info.order_by = orders.iter().copied().zip(keys.clone().map(text)).collect();
    info.has_non_streaming_order_by = keys.clone().any(|key| calls(key, DISTANCE));
    rewritten.distinct = false;
    let merged = keys
        .zip(orders)
        .map(|(key, order)| if calls(key, DISTANCE) { distance(key.clone(), *order) } else { key.clone() });
    let (from, item) = with_item(&query.from);
    rewritten.from = from;
    rewritten.select = ordered_row(&item, merged.collect(), row(query));
    rewritten.filter = filter(query, Some(resume()));
}

/// Returns the row of a query whose rows are merged by keys, with the `_rid` of the item of that name.
pub(super) fn ordered_row(item: &str, keys: Vec<Node>, payload: Node) -> Select {
    let keys = keys.into_iter().map(self::item).collect();
    Select::List(vec![row_id(item), aliased(array(keys), "orderByItems"), aliased(payload, "payload")])
}

/// Returns `c._rid`, which distinguishes rows with equal keys.
pub(super) fn row_id(item: &str) -> SelectItem {
    SelectItem { node: member(item, "_rid"), alias: None }
}

/// Returns the filter; what a client may add to it; and, since an undefined value is no row but as a member would only be left
/// out, that there is a value.
pub(super) fn filter(query: &Query, resume: Option<Node>) -> Option<Node> {
    let defined = match &query.select {
        Select::Value(value) => Some(call("IS_DEFINED", vec![value.clone()])),
        Select::List(_) | Select::Star(_) => None,
    };
    let parts = [query.filter.clone(), resume, defined].into_iter().flatten();
    parts.reduce(|left, right| binary(left, Binary::And, right))
}

/// Returns the placeholder for the key from which a client resumes.
pub(super) fn resume() -> Node {
    placeholder("formattableorderbyquery-filter")
}

/// Returns a row of the answer as one expression.
pub(super) fn row(query: &Query) -> Node {
    match &query.select {
        Select::Star(_) => identifier(query.from.first().map_or("", source_name)),
        Select::Value(value) => value.clone(),
        Select::List(items) => {
            object(member_names(items).into_iter().zip(items.iter().map(|item| item.node.clone())))
        }
    }
}

/// Returns the part of an aggregate that a partition computes.
fn partial(kind: AggregateKind, whole: &Node, argument: &Node) -> Node {
    let over = |function: &str| call(function, vec![argument.clone()]);
    let with_count = |name: &'static str| {
        let pair = object([(name, whole.clone()), ("count", over("COUNT"))]);
        object([("item", whole.clone()), ("item2", pair)])
    };
    match kind {
        AggregateKind::Average => item(object([("sum", over("SUM")), ("count", over("COUNT"))])),
        AggregateKind::Min => with_count("min"),
        AggregateKind::Max => with_count("max"),
        AggregateKind::Count
        | AggregateKind::CountIf
        | AggregateKind::MakeList
        | AggregateKind::MakeSet
        | AggregateKind::Sum => item(whole.clone()),
    }
}

/// Returns whether the select list has aggregates. Clients can only join those that stand alone.
fn has_aggregates(select: &Select) -> Result<bool> {
    let nodes = match select {
        Select::Star(_) => return Ok(false),
        Select::Value(node) => vec![node],
        Select::List(items) => items.iter().map(|item| &item.node).collect(),
    };
    let alone = nodes.iter().any(|node| aggregate(node).is_some());
    if nodes.iter().any(|node| aggregate(node).is_none() && has_aggregate(node)) {
        return Err(Error::ComposedAggregate);
    }
    Ok(alone)
}

/// Returns the aggregate that an expression is, and what it is over.
fn aggregate(node: &Node) -> Option<(AggregateKind, &Node)> {
    match &node.kind {
        NodeKind::Call { name, udf: false, arguments } => aggregate_kind(&name.text).zip(arguments.first()),
        _ => None,
    }
}

/// Returns `true` if the expression is a call of the function.
pub(super) fn calls(node: &Node, function: &str) -> bool {
    matches!(&node.kind, NodeKind::Call { name, udf: false, .. } if name.text.eq_ignore_ascii_case(function))
}

/// Returns the name of a source's rows in the query.
pub(super) fn source_name(source: &Source) -> &str {
    match (&source.alias, &source.collection) {
        (Some(alias), _) => &alias.text,
        (None, Collection::Path { root, steps }) => match steps.last() {
            Some(PathStep::Dot(name) | PathStep::Bracket(name)) => name,
            Some(PathStep::Index(_)) => "",
            None => &root.text,
        },
        (None, Collection::Subquery(_)) => "",
    }
}

/// Returns the query with a name for its source if it has none, as `FROM c.t[0]`: a row of `*` that is made into something else has
/// to name it. No expression of such a query names a source, so any name is free.
pub(super) fn with_named_source(query: &Query) -> Query {
    let mut named = query.clone();
    if let (Select::Star(_), [source]) = (&named.select, named.from.as_mut_slice())
        && source_name(source).is_empty()
    {
        source.alias = Some(name("s"));
    }
    named
}

/// Returns the members' names: the alias, else the last part of a path, else `$1`, `$2` and so on.
pub(super) fn member_names(items: &[SelectItem]) -> Vec<String> {
    let mut unnamed = 0;
    let mut next = || {
        unnamed += 1;
        format!("${unnamed}")
    };
    let name = |item: &SelectItem| match &item.alias {
        Some(alias) => Some(alias.text.clone()),
        None => natural_name(&item.node).map(str::to_owned),
    };
    items.iter().map(|item| name(item).unwrap_or_else(&mut next)).collect()
}

/// Returns a count as a literal.
pub(super) fn count(number: u64) -> Node {
    literal(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(super) fn query_text(query: &Query) -> String {
    print_query(query, Layout::Lines)
}

pub(super) fn text(node: &Node) -> String {
    print_node(node, Layout::Lines)
}
