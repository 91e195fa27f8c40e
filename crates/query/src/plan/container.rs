//! Queries without `FROM` that ask about the container in a subquery: `SELECT VALUE EXISTS(SELECT 1 FROM c)`.
//!
//! Each range computes the result for its own items. If an aggregate that clients know combines these results, the plan
//! names it; if not, clients cannot follow the plan.
//!
//! ```text
//! EXISTS(...)              the largest boolean         {"item": e, "item2": {"max": e, "count": 1}}
//! NOT EXISTS(...), ALL     the smallest
//! (SELECT COUNT(1) ...)    what the query inside gives
//! ARRAY(SELECT e ...)      MAKELIST(e), or MAKESET(e) of DISTINCT
//! ```

use document::Value;

use super::build::{aliased, array, call, literal, object};
use super::info::QueryInfo;
use super::rewrite::{self, Window, is_bare, member_names, query_text, row};
use crate::error::Result;
use crate::logical::{AggregateKind, Query};
use crate::resolve::has_aggregate_or_subquery;
use crate::syntax::ast::{self, Node, NodeKind, Select, SubqueryKind, Unary};

/// Returns the plan, and the query whose rows the client joins.
pub(super) fn merge<'q>(
    tree: &ast::Query,
    query: &'q Query,
    parameters: &[(String, Value)],
) -> Result<(QueryInfo, &'q Query)> {
    let has_select_value = matches!(tree.select, Select::Value(_));
    let unjoined = QueryInfo { has_select_value, ..QueryInfo::default() };
    let inside = query.nested.as_deref().and_then(|list| list.nested.as_deref());
    let (Some(inside), true) = (inside, is_bare(tree)) else { return Ok((unjoined, query)) };
    if let Some(info) = truth(tree, inside) {
        return Ok((info, inside));
    }
    let Select::Value(Node { kind: NodeKind::Subquery { kind, query: asked }, .. }) = &tree.select else {
        return Ok((unjoined, query));
    };
    let windowed = asked.top.is_some() || asked.window.is_some();
    match kind {
        _ if asked.from.is_empty() => Ok((unjoined, query)),
        SubqueryKind::Scalar if is_total(inside) && !asked.distinct && !windowed => {
            // Clients cannot merge an aggregate inside of a larger expression.
            Ok(super::merge(asked, inside, parameters).unwrap_or((unjoined, query)))
        }
        SubqueryKind::Array if !inside.is_grouped() && asked.order_by.is_none() && !windowed => {
            let asked = rewrite::with_named_source(asked);
            let row = row(&asked);
            if has_aggregate_or_subquery(&row) {
                return Ok((unjoined, query));
            }
            let function = if asked.distinct { "MAKESET" } else { "MAKELIST" };
            let select = Select::Value(call(function, vec![row]));
            let listed = ast::Query { select, distinct: false, ..asked };
            Ok((rewrite::info(&listed, Window::default(), &[])?, inside))
        }
        _ => Ok((unjoined, query)),
    }
}

/// Returns `true` if a query has one row, an aggregate over all.
fn is_total(query: &Query) -> bool {
    query.is_grouped() && query.group_by.is_empty()
}

/// Returns the plan of a query whose result is one boolean.
fn truth(tree: &ast::Query, inside: &Query) -> Option<QueryInfo> {
    let node = match &tree.select {
        Select::Value(node) => node,
        Select::List(items) if items.len() == 1 => &items[0].node,
        Select::List(_) | Select::Star(_) => return None,
    };
    let (kind, name) = match aggregate(node)? {
        // A row in one range is a row in all; this does not hold for skipped rows or rows made of all rows.
        _ if inside.skip > 0 || inside.nested.is_some() || !inside.aggregates.is_empty() => return None,
        AggregateKind::Max => (AggregateKind::Max, "max"),
        other => (other, "min"),
    };
    let pair = object([(name, node.clone()), ("count", literal(1))]);
    let partial = object([("item", node.clone()), ("item2", pair)]);
    let mut info = QueryInfo::default();
    let select = if let Select::List(items) = &tree.select {
        let alias = member_names(items).swap_remove(0);
        info.aliases = vec![(alias.clone(), Some(kind))];
        Select::List(vec![aliased(object([(alias, partial)]), "payload")])
    } else {
        info.aggregate = Some(kind);
        info.has_select_value = true;
        Select::Value(array(vec![partial]))
    };
    info.rewritten_query = query_text(&ast::Query { select, ..tree.clone() });
    Some(info)
}

/// Returns the aggregate that combines several booleans: any of them, or all. Only a subquery that reads the container by
/// its own `FROM` has one.
fn aggregate(node: &Node) -> Option<AggregateKind> {
    match &node.kind {
        NodeKind::Subquery { query, .. } if query.from.is_empty() => None,
        NodeKind::Subquery { kind: SubqueryKind::Exists, .. } => Some(AggregateKind::Max),
        NodeKind::Subquery { kind: SubqueryKind::All, query }
            if query.top.is_none() && query.window.is_none() =>
        {
            Some(AggregateKind::Min)
        }
        NodeKind::Unary { operator: Unary::Not, operand } => {
            (aggregate(operand)? == AggregateKind::Max).then_some(AggregateKind::Min)
        }
        _ => None,
    }
}
