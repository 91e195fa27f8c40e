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
#[allow(dead_code, reason = "the engine's choice of an index follows")]
mod conditions;
mod context;
mod error;
mod evaluate;
mod functions;
mod logical;
mod plan;
mod resolve;
mod row;
mod run;
mod syntax;

use document::Value;

pub use conditions::{
    Access, Analysis, Condition, Interval, Kinds, Leaf, References, SortPath, Sorting, Stamps, Standing, Step,
};
pub use context::{Context, DEFAULT_BUDGET, Fault};
pub use error::{Code, CountClause, Error, Report, Result, TokenKind};
pub use functions::full_text::tokens;
pub use functions::vector::DistanceFunction;
pub use logical::{AggregateKind, Comparison, Dialect, Query, Segment};
pub use plan::{Distinct, HybridInfo, HybridRows, Plan, QueryInfo, QueryRange, SortOrder, Work, plan};
pub use row::{Operand, Row, walk};
pub use run::{Answer, Arrival, Flow, PageLimits, Ranking, Resume, Run, resume_key};

/// Parses a `SELECT`. Parameter names carry their `@`.
pub fn parse(text: &str, parameters: &[(String, Value)], dialect: &Dialect) -> Result<Query> {
    syntax::parse(text)
        .and_then(|query| resolve::resolve(text, &query, parameters, dialect, resolve::Purpose::Run))
        .map_err(|error| error.with_positions_of(text))
}

/// Parses `FROM c WHERE ...`, the form of a patch condition.
pub fn parse_filter(text: &str, parameters: &[(String, Value)]) -> Result<Query> {
    syntax::parse_condition(text)
        .and_then(|(alias, filter)| resolve::resolve_condition(text, &alias, &filter, parameters))
        .map_err(|error| error.with_positions_of(text))
}
