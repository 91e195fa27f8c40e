//! Why a query was refused, by what its author can do about it.
//!
//! Positions are offsets into the query text in UTF-16 code units, end exclusive: the client languages index
//! their strings that way, and the service reports locations the same way. The wire form (codes such as
//! SC1001) belongs to the protocol front end.

use thiserror::Error;

/// The result of parsing a query.
pub type Result<T> = std::result::Result<T, Error>;

/// A query that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// The text is not in the grammar.
    #[error("{}", syntax_message(near, *start))]
    Syntax {
        /// Where the offending token starts.
        start: usize,
        /// Where it ends.
        end: usize,
        /// The token's text, shortened; empty at the end of the query.
        near: String,
    },
    /// The text is good SQL of the service, but Bolide does not run this construct.
    #[error("{what} is not supported (at {start})")]
    NotSupported {
        /// The construct, as a noun: `JOIN`, `the operator '+'`, `the function 'CONTAINS'`.
        what: String,
        /// Where the construct starts.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// A name that is not the source of the query.
    #[error("identifier '{name}' could not be resolved (at {start})")]
    Unresolved {
        /// The name as written.
        name: String,
        /// Where it starts.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// A call of a function that the language does not have.
    #[error("'{name}' is not a recognized built-in function name (at {start})")]
    UnknownFunction {
        /// The name as written.
        name: String,
        /// Where the call starts.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// A call with too many or too few arguments.
    #[error("the function '{name}' takes {expected} argument(s), {given} given (at {start})")]
    ArgumentCount {
        /// The function.
        name: String,
        /// How many it takes.
        expected: usize,
        /// How many the query gives.
        given: usize,
        /// Where the call starts.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// The text uses a parameter that came without a value.
    #[error("the query uses the parameter '{name}', but no value for it was given (at {start})")]
    MissingParameter {
        /// The parameter with its `@`.
        name: String,
        /// Where it is used.
        start: usize,
        /// Where that use ends.
        end: usize,
    },
    /// Two values for one parameter.
    #[error("the parameter '{name}' was given more than once")]
    DuplicateParameter {
        /// The parameter with its `@`.
        name: String,
    },
    /// The text is longer than any query may be.
    #[error("the query text has {given} bytes, more than the {limit} allowed")]
    TooLong {
        /// The text's length.
        given: usize,
        /// The most allowed.
        limit: usize,
    },
    /// Expressions inside expressions beyond the limit.
    #[error("the query nests expressions deeper than {limit} levels (at {start})")]
    TooDeep {
        /// The most allowed.
        limit: usize,
        /// Where the limit was passed.
        start: usize,
        /// Where that token ends.
        end: usize,
    },
}

impl Error {
    /// Start and end of the offending text, where there is one.
    pub fn location(&self) -> Option<(usize, usize)> {
        match self {
            Self::Syntax { start, end, .. }
            | Self::NotSupported { start, end, .. }
            | Self::Unresolved { start, end, .. }
            | Self::UnknownFunction { start, end, .. }
            | Self::ArgumentCount { start, end, .. }
            | Self::MissingParameter { start, end, .. }
            | Self::TooDeep { start, end, .. } => Some((*start, *end)),
            Self::DuplicateParameter { .. } | Self::TooLong { .. } => None,
        }
    }

    /// Turns the byte offsets that lexer and parser count in into the UTF-16 offsets that callers see.
    pub(crate) fn with_positions_of(mut self, text: &str) -> Self {
        let units = |offset: &mut usize| {
            let bytes = text.get(..*offset).unwrap_or(text);
            *offset = bytes.chars().map(char::len_utf16).sum();
        };
        match &mut self {
            Self::Syntax { start, end, .. }
            | Self::NotSupported { start, end, .. }
            | Self::Unresolved { start, end, .. }
            | Self::UnknownFunction { start, end, .. }
            | Self::ArgumentCount { start, end, .. }
            | Self::MissingParameter { start, end, .. }
            | Self::TooDeep { start, end, .. } => {
                units(start);
                units(end);
            }
            Self::DuplicateParameter { .. } | Self::TooLong { .. } => {}
        }
        self
    }
}

fn syntax_message(near: &str, start: usize) -> String {
    if near.is_empty() {
        format!("syntax error, unexpected end of the query (at {start})")
    } else {
        format!("syntax error, incorrect syntax near '{near}' (at {start})")
    }
}
