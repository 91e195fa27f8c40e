//! The query language: text in, a filter over items out. Pure: no I/O, no clock, no container.
//!
//! The life of a query:
//!
//! ```text
//!  text --lexer--> tokens --parser--> ast --resolve--> Query --evaluate--> does this item match?
//!                                             |           \--access----> which items are worth asking?
//!                                        parameters
//! ```
//!
//! Today's language is `SELECT * FROM c WHERE ...` and its bare filter form `FROM c WHERE ...`, with
//! comparisons, `AND`, `OR`, `NOT`, `IN`, `BETWEEN`, `IS_DEFINED` and `IS_NULL`. The rest of the service's SQL is
//! recognized and refused by name ([`Error::NotSupported`]); what is not SQL is [`Error::Syntax`].
//!
//! Text comes from anybody: its length and nesting are bounded, and no text makes this crate panic.

mod access;
#[allow(dead_code, reason = "used once the whole language is resolved")]
mod aggregate;
mod ast;
#[allow(dead_code, unused_imports, unreachable_pub, reason = "used once the whole language is resolved")]
mod conditions;
#[allow(dead_code, reason = "used once the whole language is resolved")]
mod context;
mod error;
#[allow(dead_code, unused_imports, reason = "used once the whole language is resolved")]
mod evaluate;
mod expression;
mod function;
#[allow(dead_code, reason = "called once the whole language is resolved")]
mod functions;
mod lexer;
#[allow(dead_code, unreachable_pub, reason = "used once the whole language is resolved")]
mod logical;
mod matching;
mod parser;
mod resolve;
mod row;
#[allow(dead_code, reason = "used once the whole language is resolved")]
mod run;
#[allow(dead_code, reason = "called once the whole language is resolved")]
mod syntax;

use document::Value;

pub use access::{Access, Stamps, access};
pub use context::{Context, DEFAULT_BUDGET, Fault};
pub use error::{Code, CountClause, Error, Report, Result, TokenKind};
pub use expression::Expression;
pub use function::Function;
pub use functions::full_text::tokens;
pub use functions::vector::DistanceFunction;
pub use logical::{Comparison, Dialect, Segment};
pub use row::{Operand, Row, walk};
pub use run::{Answer, Arrival, Flow, PageLimits, Ranking, Resume, Run, resume_key};

/// Longest query text.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;

/// A query that can be run on any number of items.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The name that the text gives the items.
    pub alias: String,
    /// What an item must fulfil; every item will do if there is none.
    pub filter: Option<Expression>,
}

/// Parses `SELECT * FROM c [WHERE ...]`. Parameter names carry their `@`.
pub fn parse(text: &str, parameters: &[(String, Value)]) -> Result<Query> {
    run(text, parameters, parser::parse_statement)
}

/// Parses `FROM c WHERE ...`, the form of a patch condition.
pub fn parse_filter(text: &str, parameters: &[(String, Value)]) -> Result<Query> {
    run(text, parameters, parser::parse_condition)
}

fn run(
    text: &str,
    parameters: &[(String, Value)],
    parse: fn(&str) -> Result<ast::Statement>,
) -> Result<Query> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(Error::TooLong { given: text.len(), limit: MAX_TEXT_BYTES });
    }
    parse(text)
        .and_then(|statement| resolve::resolve(statement, parameters))
        .map_err(|error| error.with_positions_of(text))
}
