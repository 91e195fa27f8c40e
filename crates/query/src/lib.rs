//! The query language: text and items in, rows out. Pure: no I/O, no clock, no container.
//!
//! The stages of a query:
//!
//! ```text
//!  text --syntax--> ast --resolve--> Query --run--> rows     (evaluate: expressions, aggregate: groups)
//!                             |          \--conditions--> what an index can answer
//!                   parameters, Dialect               \--plan--> how a client asks several partitions
//! ```
//!
//! Text comes from untrusted clients: its length and nesting are bounded, and no text makes this crate panic. Items
//! are bounded too, but the values that a query computes from them are not: a [`Context`] counts the work and the memory
//! of each request.

mod conditions;
mod error;
mod evaluate;
mod functions;
mod logical;
mod plan;
mod resolve;
mod resume;
mod row;
mod run;
mod surface;
mod syntax;

use document::Value;

pub use conditions::{
    Access, Analysis, Condition, Interval, Kinds, Leaf, References, SortPath, Sorting, Stamps, Step, ValueSet,
};
pub use error::{Code, CountClause, Error, Report, Result, TokenKind};
pub use functions::context::{Context, DEFAULT_BUDGET, DEFAULT_MEMORY, Fault};
pub use functions::full_text::tokens;
pub use functions::vector::DistanceFunction;
pub use logical::{AggregateKind, Comparison, Dialect, Query, Segment};
pub use plan::{Distinct, HybridInfo, HybridRows, Plan, QueryInfo, QueryRange, SortOrder, Work, plan};
pub use row::{Operand, Row, walk};
pub use run::{Answer, Arrival, Flow, PageLimits, Ranking, Resume, Run, resume_key};
pub use surface::Surface;

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

/// Returns a query's text with a question mark for each literal, for logs. The text need not be a query: the part that does
/// not parse is left out.
pub fn shape(text: &str) -> String {
    syntax::shape::shape(text)
}

/// Returns a date, or a date and time, in the form that the language's functions read: milliseconds since 1970.
pub fn parse_date_time(text: &str) -> Option<i64> {
    functions::datetime::parse(text).map(|ticks| ticks.div_euclid(functions::calendar::TICKS_PER_MILLISECOND))
}

/// Parses `FROM c WHERE ...`, the form of a patch condition.
pub fn parse_filter(text: &str, parameters: &[(String, Value)], surface: Surface) -> Result<Query> {
    syntax::parse_condition(text)
        .and_then(|(alias, filter)| resolve::resolve_condition(text, &alias, &filter, parameters, surface))
        .map_err(|error| error.with_positions_of(text))
}
