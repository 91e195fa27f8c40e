//! The query language: text and items in, rows out. Pure: no I/O, no clock, no container.
//!
//! The life of a query:
//!
//! ```text
//!  text --syntax--> ast --resolve--> Query --run--> rows     (evaluate: expressions, aggregate: groups)
//!                             |          \--conditions--> what an index can answer
//!                   parameters, Dialect               \--plan--> how a client asks several partitions
//! ```
//!
//! Text comes from anybody: its length and nesting are bounded, and no text makes this crate panic. Items are
//! bounded too, but what a query makes of them is not: work and memory of a request are counted in its [`Context`].

mod aggregate;
mod conditions;
mod context;
mod error;
mod evaluate;
mod functions;
mod logical;
mod plan;
mod resolve;
mod resume;
mod row;
mod run;
mod syntax;

use document::Value;

pub use conditions::{
    Access, Analysis, Condition, Interval, Kinds, Leaf, References, SortPath, Sorting, Stamps, Standing, Step,
};
pub use context::{Context, DEFAULT_BUDGET, DEFAULT_MEMORY, Fault};
pub use error::{Code, CountClause, Error, Report, Result, TokenKind};
pub use functions::full_text::tokens;
pub use functions::vector::DistanceFunction;
pub use logical::{AggregateKind, Comparison, Dialect, Query, Segment, Surface};
pub use plan::{Distinct, HybridInfo, HybridRows, Plan, QueryInfo, QueryRange, SortOrder, Work, plan};
pub use row::{Operand, Row, walk};
pub use run::{Answer, Arrival, Flow, PageLimits, Ranking, Resume, Run, resume_key};

/// Parses a `SELECT`. Parameter names carry their `@`.
pub fn parse(text: &str, parameters: &[(String, Value)], dialect: &Dialect) -> Result<Query> {
    let parse = || {
        let tree = syntax::parse(text)?;
        let query = resolve::resolve(text, &tree, parameters, dialect, resolve::Purpose::Run)?;
        let resume_fingerprint = resume::fingerprint(&tree, &query, parameters, dialect);
        Ok(Query { resume_fingerprint, ..query })
    };
    parse().map_err(|error: Error| error.with_positions_of(text))
}

/// A query's text with a question mark for each literal, for logs. It need not be a query: what cannot be read is left out.
pub fn shape(text: &str) -> String {
    syntax::shape::shape(text)
}

/// A date, or a date and time, in the form that the language's functions read: milliseconds since 1970.
pub fn parse_date_time(text: &str) -> Option<i64> {
    functions::datetime::parse(text).map(|ticks| ticks.div_euclid(functions::calendar::TICKS_PER_MILLISECOND))
}

/// Parses `FROM c WHERE ...`, the form of a patch condition.
pub fn parse_filter(text: &str, parameters: &[(String, Value)], surface: Surface) -> Result<Query> {
    syntax::parse_condition(text)
        .and_then(|(alias, filter)| resolve::resolve_condition(text, &alias, &filter, parameters, surface))
        .map_err(|error| error.with_positions_of(text))
}
