//! From the query as written to one that can be run: names become slots, parameters values, calls functions.
//!
//! Errors are reported with their position and resolution continues, so that one response lists all errors of a query
//! as the service does. Constants are computed here, once.
//!
//! ```text
//! ast::Query --query.rs--> sources --expression.rs, call.rs--> filter, keys, select, order --grouping.rs--> Query
//!                             |              |      \--fold.rs: constants--/
//!                          level.rs      computed.rs, container.rs
//! ```

mod call;
mod computed;
mod container;
mod expression;
mod fold;
mod grouping;
mod level;
mod order;
mod query;
mod tree;
mod walk;

pub(crate) use call::aggregate_kind;
pub(crate) use query::is_blocking;
pub(crate) use tree::{has_aggregate, has_aggregate_or_subquery, natural_name};

use std::collections::BTreeMap;

use document::Value;

use crate::error::{Code, Error, Report, Result};
use crate::logical::{Dialect, Expression, Projection, Query};
use crate::surface::Surface;
use crate::syntax::ast::{self, Node, Span};

use computed::Computed;
use fold::Folder;
use level::Level;

/// The most reasons in one response; a hostile text could have one for each of its words.
const REPORTS_MAX: usize = 32;

/// Slots that can be bound at the same time, and subqueries inside subqueries. Both are levels of recursion.
const SLOTS_MAX: usize = 64;
const SUBQUERY_LEVELS_MAX: usize = 16;

/// The slots of subqueries inside of computed properties: behind all those of queries, so that such a property
/// means the same wherever it stands.
const COMPUTED_SLOTS: std::ops::Range<usize> = SLOTS_MAX..2 * SLOTS_MAX;

/// The distance between the slots of groups of one level and the next. Longer than any text has keys and aggregates.
const GROUP_SLOTS: usize = 1 << 20;

/// Keys and different aggregates of one query: each place that could be one of them is compared with all.
const GROUP_VALUES_MAX: usize = 256;

/// Members of one object or select list: a row's object is built member by member, each looked up by name.
const MEMBERS_MAX: usize = 1024;

/// Memory that the values of parameters and the expressions of computed properties may take, each use counted: a text
/// has room for tens of thousands of uses.
const USES_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Whether calls of user-defined functions are checked as any other call, or refused because they cannot be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The query will be run.
    Run,
    /// Only its form matters.
    Plan,
}

/// Checks a parsed query against the parameters that came with it and the container's definition.
pub(crate) fn resolve(
    text: &str,
    query: &ast::Query,
    parameters: &[(String, Value)],
    dialect: &Dialect,
    purpose: Purpose,
) -> Result<Query> {
    let mut resolver = Resolver::new(text, parameters, dialect, purpose)?;
    let query = resolver.statement(query);
    resolver.finish(query)
}

/// Checks the condition of a patch: `alias` is the item.
pub(crate) fn resolve_condition(
    text: &str,
    alias: &ast::Name,
    filter: &Node,
    parameters: &[(String, Value)],
    surface: Surface,
) -> Result<Query> {
    let dialect = Dialect { surface, ..Dialect::default() };
    let mut resolver = Resolver::new(text, parameters, &dialect, Purpose::Run)?;
    resolver.levels.push(Level::of_item(&alias.text));
    let filter = resolver.expression(filter);
    let query = Query { filter: Some(filter), ..Query::over_items(Projection::Value(query::whole(0))) };
    resolver.finish(query)
}

/// The state of the resolution of one query.
struct Resolver<'a> {
    text: &'a str,
    parameters: BTreeMap<&'a str, &'a Value>,
    dialect: &'a Dialect,
    purpose: Purpose,
    computed: Computed,
    /// The memory that parameters and computed properties take so far.
    uses_bytes: usize,
    /// The queries around the place where the walk is, the outermost first.
    levels: Vec<Level>,
    /// How many queries that read items are nested here.
    statements: usize,
    folder: Folder,
    reports: Vec<Report>,
}

impl<'a> Resolver<'a> {
    fn new(
        text: &'a str,
        parameters: &'a [(String, Value)],
        dialect: &'a Dialect,
        purpose: Purpose,
    ) -> Result<Resolver<'a>> {
        let mut known = BTreeMap::new();
        for (name, value) in parameters {
            if known.insert(name.as_str(), value).is_some() {
                return Err(Error::DuplicateParameter { name: name.clone() });
            }
        }
        Ok(Resolver {
            text,
            parameters: known,
            dialect,
            purpose,
            computed: Computed::default(),
            uses_bytes: 0,
            levels: Vec::new(),
            statements: 0,
            folder: Folder::default(),
            reports: Vec::new(),
        })
    }

    fn finish(mut self, query: Query) -> Result<Query> {
        self.reports.sort_by_key(|report| report.location);
        if self.reports.is_empty() { Ok(query) } else { Err(Error::Refused(self.reports)) }
    }

    /// Counts one more use of something of that size; returns false and reports an error if that exceeds the limit.
    fn count_use(&mut self, bytes: usize, location: Option<Span>) -> bool {
        self.uses_bytes = self.uses_bytes.saturating_add(bytes);
        let fits = self.uses_bytes <= USES_BYTES_MAX;
        if !fits {
            let message = format!(
                "The query uses its parameters and computed properties so often that they need more than \
                 {USES_BYTES_MAX} bytes of memory."
            );
            let location = location.map(|span| (span.start, span.end));
            self.report_as(Code::Text("SC9002"), location, message);
        }
        fits
    }

    /// Records an error. The returned expression is a placeholder.
    fn report(&mut self, code: &'static str, span: Span, message: String) -> Expression {
        self.report_as(Code::Text(code), Some((span.start, span.end)), message)
    }

    fn report_as(&mut self, code: Code, location: Option<(usize, usize)>, message: String) -> Expression {
        let report = Report { location, code, message };
        if self.reports.len() < REPORTS_MAX && !self.reports.contains(&report) {
            self.reports.push(report);
        }
        Expression::Undefined
    }

    /// Returns the level of the query that is being resolved.
    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("expressions stand inside of a query")
    }
}
