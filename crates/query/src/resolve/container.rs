//! Subqueries that read the container: `SELECT VALUE EXISTS(SELECT 1 FROM c WHERE c.n > 5)`, without a `FROM` outside.
//!
//! Such a subquery depends on no row around it, so it is run once, before the query that contains it, as a query in
//! `FROM` is. The outer query gets its rows as one array in slot 0, and the subquery is replaced by the same kind of
//! subquery over the elements:
//!
//! ```text
//! SELECT VALUE EXISTS(SELECT 1 FROM c)    =>    SELECT VALUE EXISTS(SELECT VALUE row FROM row IN rows)
//!                                               FROM (SELECT VALUE MAKELIST(s) FROM (SELECT TOP 1 1 FROM c) s) rows
//! ```
//!
//! There is one slot 0, so a query can have one such subquery. (The same subquery twice counts as one.)

use super::query::{reads_container, whole};
use super::{GROUP_SLOTS, Resolver};
use crate::logical::{Aggregate, AggregateKind, Expression, Projection, Query, Rows, Source, SubqueryKind};
use crate::syntax::ast;

impl Resolver<'_> {
    /// Returns `true` if a subquery here reads the container: no query around it has rows that it could read.
    pub(super) fn asks_container(&self, query: &ast::Query) -> bool {
        reads_container(query) && self.levels.iter().all(|level| level.sources().is_empty())
    }

    /// Returns a subquery over the container.
    pub(super) fn container_subquery(&mut self, kind: SubqueryKind, query: &ast::Query) -> Expression {
        let mut rows = self.statement(query);
        let most = match kind {
            SubqueryKind::Exists | SubqueryKind::First => Some(1),
            // The second is an error.
            SubqueryKind::Scalar => Some(2),
            SubqueryKind::Array | SubqueryKind::All | SubqueryKind::Last => None,
        };
        rows.take = [rows.take, most].into_iter().flatten().min();
        let list = Aggregate { kind: AggregateKind::MakeList, argument: whole(0) };
        let list = Query {
            nested: Some(Box::new(rows)),
            aggregates: vec![list],
            ..Query::over_items(Projection::Value(whole(GROUP_SLOTS)))
        };
        let first = self.levels.first_mut().expect("expressions stand inside of a query");
        match &first.container {
            Some(known) if **known != list => {
                let message = "A query without FROM can read the container in one subquery only.".to_owned();
                return self.report("SC9002", query.span, message);
            }
            _ => first.container = Some(Box::new(list)),
        }
        let slot = self.level().free;
        let element = Source { slot, iterates: true, rows: Rows::Value(whole(0)) };
        let elements = Query {
            reads_items: false,
            sources: vec![element],
            ..Query::over_items(Projection::Value(whole(slot)))
        };
        Expression::Subquery { kind, query: Box::new(elements) }
    }
}
