//! The clauses of a `SELECT`, in the order in which they see each other's names.

use std::collections::BTreeSet;

use document::Value;

use super::level::{Aggregation, Level, Source};
use super::tree::{has_aggregate, natural_name};
use super::{
    COMPUTED_SLOTS, GROUP_SLOTS, GROUP_VALUES_MAX, MEMBERS_MAX, Resolver, SLOTS_MAX, SUBQUERY_LEVELS_MAX,
};
use crate::error::{CountClause, Error};
use crate::logical::{self, Expression, Order, Projection, Query, Rows, Segment};
use crate::syntax::ast::{self, Collection, Name, Node, PathStep, Select, Span};

/// What a name in `FROM` can refer to besides the sources of outer queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FromScope {
    /// Nothing else.
    Sources,
    /// The container: the query reads the items.
    Container,
    /// The item in slot 0, which the query around this one reads.
    Item,
}

impl Query {
    /// Returns the query of all items, in the given form.
    pub(super) fn over_items(select: Projection) -> Query {
        Query {
            reads_items: true,
            nested: None,
            sources: Vec::new(),
            filter: None,
            group_by: Vec::new(),
            aggregates: Vec::new(),
            group_slot: GROUP_SLOTS,
            select,
            distinct: false,
            order: Order::None,
            skip: 0,
            take: None,
            resume_fingerprint: 0,
        }
    }
}

impl Resolver<'_> {
    /// Returns a query that reads items: the whole one, or one inside of its `FROM`.
    pub(super) fn statement(&mut self, query: &ast::Query) -> Query {
        let around = std::mem::take(&mut self.levels);
        self.statements += 1;
        let query = if self.statements > SUBQUERY_LEVELS_MAX {
            self.too_deep(query.span)
        } else {
            self.query(query, FromScope::Container, 0)
        };
        self.statements -= 1;
        self.levels = around;
        query
    }

    /// Returns a query whose slots start at `first`.
    pub(super) fn query(&mut self, query: &ast::Query, reach: FromScope, first: usize) -> Query {
        if self.levels.len() >= SUBQUERY_LEVELS_MAX {
            return self.too_deep(query.span);
        }
        self.levels.push(Level::new(first));
        let mut resolved = Query::over_items(Projection::Value(Expression::Undefined));
        self.from(query, reach, &mut resolved);
        resolved.filter = query.filter.as_ref().map(|filter| self.expression(filter));
        resolved.group_by = self.group_keys(&query.group_by);
        // Far from all sources, so that a subquery has the same slots as a key and in the select list.
        resolved.group_slot = self.group_slot();
        let grouped = !query.group_by.is_empty() || selected_nodes(&query.select).any(has_aggregate);
        if grouped {
            let slot = resolved.group_slot + resolved.group_by.len();
            self.level().aggregation = Aggregation::Collected { slot };
        }
        resolved.select = self.select(query);
        resolved.order = self.order(query, &resolved, reach);
        resolved.aggregates = std::mem::take(&mut self.level().aggregates);
        if grouped {
            self.regroup(query, &mut resolved);
        }
        self.level().aggregation = Aggregation::Refused;
        self.window(query, &mut resolved);
        resolved.distinct = query.distinct;
        if let Some(rows) = self.level().container.take() {
            resolved.reads_items = true;
            resolved.nested = Some(rows);
        }
        self.levels.pop();
        resolved
    }

    fn group_keys(&mut self, keys: &[Node]) -> Vec<Expression> {
        if let Some(key) = keys.get(GROUP_VALUES_MAX) {
            let message = format!("The GROUP BY clause has more than {GROUP_VALUES_MAX} expressions.");
            self.report("SC9002", key.span, message);
            return Vec::new();
        }
        self.all(keys)
    }

    fn group_slot(&self) -> usize {
        let around = if self.computed.is_busy() { SUBQUERY_LEVELS_MAX } else { 0 };
        (around + self.levels.len()) * GROUP_SLOTS
    }

    fn too_deep(&mut self, span: Span) -> Query {
        let message = format!("The query nests subqueries deeper than {SUBQUERY_LEVELS_MAX} levels.");
        Query::over_items(Projection::Value(self.report("SC9002", span, message)))
    }

    fn from(&mut self, query: &ast::Query, reach: FromScope, resolved: &mut Query) {
        resolved.reads_items = reach == FromScope::Container && reads_container(query);
        if reach == FromScope::Container {
            // The item's slot, or that of the rows which a subquery asks the container for.
            self.level().free = 1;
        }
        for (index, source) in query.from.iter().enumerate() {
            let reach = if index == 0 { reach } else { FromScope::Sources };
            self.source(source, reach, resolved);
        }
    }

    fn source(&mut self, source: &ast::Source, reach: FromScope, resolved: &mut Query) {
        match &source.collection {
            Collection::Path { root, steps } => self.path_source(source, root, steps, reach, resolved),
            Collection::Subquery(inner) if reach == FromScope::Container && reads_container(inner) => {
                self.outermost_subquery(source, inner, resolved);
            }
            Collection::Subquery(inner) => {
                let reach = if reach == FromScope::Item { FromScope::Item } else { FromScope::Sources };
                let first = self.level().free;
                let rows = Rows::Subquery(Box::new(self.query(inner, reach, first)));
                self.bind(source, rows, inner.span, resolved);
            }
        }
    }

    /// Resolves `FROM (SELECT ... FROM c)`. If each of its rows comes from one item, it is run for each item like any other
    /// subquery; if not, it is run before this query.
    fn outermost_subquery(&mut self, source: &ast::Source, inner: &ast::Query, resolved: &mut Query) {
        if !is_blocking(inner) {
            let rows = Rows::Subquery(Box::new(self.query(inner, FromScope::Item, 1)));
            return self.bind(source, rows, inner.span, resolved);
        }
        resolved.nested = Some(Box::new(self.statement(inner)));
        self.level().reads_rows = true;
        if source.iterates {
            return self.bind(source, Rows::Value(whole(0)), inner.span, resolved);
        }
        self.name(source, 0);
    }

    fn path_source(
        &mut self,
        source: &ast::Source,
        root: &Name,
        steps: &[PathStep],
        reach: FromScope,
        resolved: &mut Query,
    ) {
        let slot = match reach {
            FromScope::Container | FromScope::Item => Some(0),
            FromScope::Sources => self.find(&root.text),
        };
        let Some(slot) = slot else {
            self.unresolved(&root.text, root.span);
            return self.name(source, 0);
        };
        if steps.is_empty() && !source.iterates {
            return self.name(source, slot);
        }
        let segments = steps.iter().map(|step| match step {
            PathStep::Dot(name) | PathStep::Bracket(name) => Segment::Name(name.clone()),
            PathStep::Index(index) => Segment::Index(usize::try_from(*index).unwrap_or(usize::MAX)),
        });
        let value = segments.fold(whole(slot), |value, segment| self.step(value, segment));
        self.bind(source, Rows::Value(value), root.span, resolved);
    }

    /// Gives a source a slot of its own.
    fn bind(&mut self, source: &ast::Source, rows: Rows, span: Span, resolved: &mut Query) {
        let slot = self.level().free;
        if slot >= if self.computed.is_busy() { COMPUTED_SLOTS.end } else { SLOTS_MAX } {
            self.report("SC9002", span, format!("The query has more than {SLOTS_MAX} sources."));
            return;
        }
        self.level().free += 1;
        resolved.sources.push(logical::Source { slot, iterates: source.iterates, rows });
        self.name(source, slot);
    }

    /// Makes a source known under its alias, or under the last part of its path.
    fn name(&mut self, source: &ast::Source, slot: usize) {
        let natural = || match &source.collection {
            Collection::Path { root, steps } => match steps.last() {
                None => Some(root.text.clone()),
                Some(PathStep::Dot(name) | PathStep::Bracket(name)) => Some(name.clone()),
                Some(PathStep::Index(_)) => None,
            },
            Collection::Subquery(_) => None,
        };
        let name = source.alias.as_ref().map(|alias| alias.text.clone()).or_else(natural);
        if let Some(name) = &name
            && self.level().find(name).is_some()
        {
            let span = match (&source.alias, &source.collection) {
                (Some(alias), _) => alias.span,
                (None, Collection::Path { root, .. }) => root.span,
                (None, Collection::Subquery(query)) => query.span,
            };
            let message = format!("The input alias '{name}' is specified more than once in the FROM clause.");
            self.report("SC9002", span, message);
        }
        self.level().add(Source { name, slot });
    }

    fn select(&mut self, query: &ast::Query) -> Projection {
        match &query.select {
            Select::Star(span) => self.star(query, *span),
            Select::Value(node) => Projection::Value(self.expression(node)),
            Select::List(items) => self.select_list(items),
        }
    }

    fn star(&mut self, query: &ast::Query, span: Span) -> Projection {
        let refused = if !query.group_by.is_empty() {
            Some(("SC2041", "'SELECT *' is not allowed with GROUP BY."))
        } else if query.from.is_empty() {
            Some(("SC9002", "'SELECT *' is not valid if FROM clause is omitted."))
        } else if query.from.len() > 1 {
            Some(("SC9002", "'SELECT *' is only valid with a single input set."))
        } else {
            None
        };
        if let Some((code, message)) = refused {
            return Projection::Value(self.report(code, span, message.to_owned()));
        }
        let slot = self.level().sources().first().map_or(0, |source| source.slot);
        Projection::Value(whole(slot))
    }

    fn select_list(&mut self, items: &[ast::SelectItem]) -> Projection {
        if let Some(item) = items.get(MEMBERS_MAX) {
            let message = format!("The select list has more than {MEMBERS_MAX} members.");
            self.report("SC9002", item.node.span, message);
            return Projection::Members(Vec::new());
        }
        let mut nameless = 0;
        let mut names = BTreeSet::new();
        let mut members = Vec::with_capacity(items.len());
        for item in items {
            let (name, span) = match (&item.alias, natural_name(&item.node)) {
                (Some(alias), _) => (alias.text.clone(), alias.span),
                (None, Some(name)) => (name.to_owned(), item.node.span),
                (None, None) => {
                    nameless += 1;
                    (format!("${nameless}"), item.node.span)
                }
            };
            let value = self.expression(&item.node);
            if !names.insert(name.clone()) {
                let message =
                    format!("The property name '{name}' is specified more than once in the select list.");
                self.report("SC9002", span, message);
            }
            members.push((name, value));
        }
        Projection::Members(members)
    }

    fn window(&mut self, query: &ast::Query, resolved: &mut Query) {
        let top = query.top.as_ref().and_then(|count| self.count(count, CountClause::Top));
        let window = query.window.as_ref();
        let offset = window.and_then(|(offset, _)| self.count(offset, CountClause::Offset));
        let limit = window.and_then(|(_, limit)| self.count(limit, CountClause::Limit));
        resolved.skip = offset.unwrap_or(0);
        resolved.take = match (top, limit) {
            (Some(top), Some(limit)) => Some(top.min(limit)),
            (top, limit) => top.or(limit),
        };
    }

    /// Returns the count of a clause. The parser accepts only integers and parameters there.
    fn count(&mut self, node: &Node, clause: CountClause) -> Option<u64> {
        let Expression::Literal(value) = self.expression(node) else { return None };
        let count = match value {
            Value::Int(_) | Value::Double(_) => value.as_i64().and_then(|count| u32::try_from(count).ok()),
            _ => None,
        };
        if count.is_none() {
            let error = Error::InvalidCount { clause, start: node.span.start, end: node.span.end };
            for report in error.reports() {
                self.report_as(report.code, report.location, report.message);
            }
        }
        count.map(u64::from)
    }
}

/// Returns the value of a slot.
pub(super) fn whole(slot: usize) -> Expression {
    Expression::Path { slot, segments: Vec::new() }
}

/// Returns the expressions of a select clause.
pub(super) fn selected_nodes(select: &Select) -> Box<dyn Iterator<Item = &Node> + '_> {
    match select {
        Select::Star(_) => Box::new(std::iter::empty()),
        Select::Value(node) => Box::new(std::iter::once(node)),
        Select::List(items) => Box::new(items.iter().map(|item| &item.node)),
    }
}

/// Returns `true` if the first source is the container, directly or inside of a subquery.
pub(super) fn reads_container(query: &ast::Query) -> bool {
    query.from.first().is_some_and(|source| match &source.collection {
        Collection::Path { .. } => true,
        Collection::Subquery(inner) => reads_container(inner),
    })
}

/// Returns `true` if the rows depend on more than one item.
pub(crate) fn is_blocking(query: &ast::Query) -> bool {
    let inside = query.from.first().is_some_and(
        |source| matches!(&source.collection, Collection::Subquery(inner) if is_blocking(inner)),
    );
    inside
        || query.distinct
        || query.top.is_some()
        || query.window.is_some()
        || query.order_by.is_some()
        || !query.group_by.is_empty()
        || selected_nodes(&query.select).any(has_aggregate)
}
