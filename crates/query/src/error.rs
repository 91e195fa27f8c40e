//! The errors of queries, grouped by what the author of the query can do about them.
//!
//! Positions are offsets into the query text in UTF-16 code units, end exclusive: the client languages index their
//! strings that way, and the service reports locations the same way. Inside this crate they are bytes until
//! [`Error::with_positions_of`] converts them on return.
//!
//! [`Error::reports`] is what a client sees: the service's numbers and wording where it has them. `Display` is for
//! logs.

use std::fmt;

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
    /// A piece of the text is not a token.
    #[error("syntax error, invalid {}'{token}' (at {start})", kind.described())]
    InvalidToken {
        /// The kind of token that it resembles.
        kind: TokenKind,
        /// Where it starts.
        start: usize,
        /// Where it ends, as far as it was read.
        end: usize,
        /// Its text, shortened.
        token: String,
    },
    /// The count of `TOP`, `OFFSET` or `LIMIT` is no 32-bit integer.
    #[error("the count of {clause} must be an integer from 0 to 4294967295 (at {start})")]
    InvalidCount {
        /// The clause.
        clause: CountClause,
        /// Where the count starts.
        start: usize,
        /// Where it ends.
        end: usize,
    },
    /// The text is in the grammar, but the query is invalid. Holds every reason that was found, at least one, in the
    /// wording that a client sees.
    #[error("{}", joined(.0))]
    Refused(Vec<Report>),
    /// Clients cannot combine the partial results of an aggregate, because the query computes with its value.
    #[error("Compositions of aggregates and other expressions are not allowed.")]
    ComposedAggregate,
    /// Two values for one parameter.
    #[error("the parameter '{name}' was given more than once")]
    DuplicateParameter {
        /// The parameter with its `@`.
        name: String,
    },
    /// The text is longer than any query may be.
    #[error("the query text exceeded the maximum limit of {limit} characters: it has {given}")]
    TooLong {
        /// The text's length in UTF-16 units.
        given: usize,
        /// The most allowed.
        limit: usize,
    },
    /// Expressions are nested beyond the limit.
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

/// The kind of token that a piece of text resembles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A character that begins no token.
    Other,
    /// A number, such as `12a`.
    Number,
    /// A string without its end, or with an unknown escape.
    Text,
}

impl TokenKind {
    fn described(self) -> &'static str {
        match self {
            Self::Other => "token ",
            Self::Number => "numeric value token ",
            Self::Text => "string literal token ",
        }
    }
}

/// The clauses that count rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountClause {
    /// `TOP`
    Top,
    /// `OFFSET`
    Offset,
    /// `LIMIT`
    Limit,
}

impl fmt::Display for CountClause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Top => "TOP",
            Self::Offset => "OFFSET",
            Self::Limit => "LIMIT",
        })
    }
}

/// One reason why a query was refused, in the service's wording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Start and end of the offending text, where there is one.
    pub location: Option<(usize, usize)>,
    /// The kind of reason.
    pub code: Code,
    /// The reason.
    pub message: String,
}

/// The service's code of a reason: mostly text, rarely a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// `"SC1001"`
    Text(&'static str),
    /// `2206`
    Number(u16),
}

impl Error {
    /// Returns the start and end of the offending text, if there is one.
    pub fn location(&self) -> Option<(usize, usize)> {
        match self {
            Self::Syntax { start, end, .. }
            | Self::InvalidToken { start, end, .. }
            | Self::InvalidCount { start, end, .. }
            | Self::TooDeep { start, end, .. } => Some((*start, *end)),
            Self::Refused(reports) => reports.first().and_then(|report| report.location),
            Self::TooLong { given, .. } => Some((0, *given)),
            Self::ComposedAggregate | Self::DuplicateParameter { .. } => None,
        }
    }

    /// Returns the reasons in the service's wording; at least one.
    pub fn reports(&self) -> Vec<Report> {
        let (code, message) = match self {
            Self::Refused(reports) => return reports.clone(),
            Self::Syntax { near, .. } if near.is_empty() => {
                ("SC1002", "Syntax error, unexpected end-of-file.".to_owned())
            }
            Self::Syntax { near, .. } => ("SC1001", format!("Syntax error, incorrect syntax near '{near}'.")),
            Self::InvalidToken { kind, token, .. } => (
                match kind {
                    TokenKind::Other => "SC1010",
                    TokenKind::Number => "SC1011",
                    TokenKind::Text => "SC1012",
                },
                format!("Syntax error, invalid {}'{token}'.", kind.described()),
            ),
            Self::InvalidCount { clause, .. } => (
                match clause {
                    CountClause::Top => "SC2060",
                    CountClause::Limit => "SC2061",
                    CountClause::Offset => "SC2062",
                },
                format!(
                    "The count value provided for {} {clause} clause must be an integer.",
                    if *clause == CountClause::Offset { "an" } else { "a" }
                ),
            ),
            Self::TooLong { limit, .. } => {
                ("SC3020", format!("The SQL query text exceeded the maximum limit of {limit} characters."))
            }
            Self::ComposedAggregate | Self::DuplicateParameter { .. } | Self::TooDeep { .. } => {
                ("SC9002", self.to_string())
            }
        };
        vec![Report { location: self.location(), code: Code::Text(code), message }]
    }

    /// Converts the byte offsets of lexer and parser into the UTF-16 offsets that callers see.
    pub(crate) fn with_positions_of(mut self, text: &str) -> Self {
        let units = |offset: &mut usize| {
            let bytes = text.get(..*offset).unwrap_or(text);
            *offset = bytes.chars().map(char::len_utf16).sum();
        };
        match &mut self {
            Self::Syntax { start, end, .. }
            | Self::InvalidToken { start, end, .. }
            | Self::InvalidCount { start, end, .. }
            | Self::TooDeep { start, end, .. } => {
                units(start);
                units(end);
            }
            Self::Refused(reports) => {
                for (start, end) in reports.iter_mut().filter_map(|report| report.location.as_mut()) {
                    units(start);
                    units(end);
                }
            }
            Self::ComposedAggregate | Self::DuplicateParameter { .. } | Self::TooLong { .. } => {}
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

fn joined(reports: &[Report]) -> String {
    reports.iter().map(|report| report.message.as_str()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_the_numbers_and_words_of_the_service() {
        let token = |kind| Error::InvalidToken { kind, start: 3, end: 4, token: "x".to_owned() };
        let count = |clause| Error::InvalidCount { clause, start: 3, end: 4 };
        for (error, code, message) in [
            (
                Error::Syntax { start: 3, end: 4, near: "-".to_owned() },
                "SC1001",
                "Syntax error, incorrect syntax near '-'.",
            ),
            (
                Error::Syntax { start: 3, end: 4, near: String::new() },
                "SC1002",
                "Syntax error, unexpected end-of-file.",
            ),
            (token(TokenKind::Other), "SC1010", "Syntax error, invalid token 'x'."),
            (token(TokenKind::Number), "SC1011", "Syntax error, invalid numeric value token 'x'."),
            (token(TokenKind::Text), "SC1012", "Syntax error, invalid string literal token 'x'."),
            (
                count(CountClause::Top),
                "SC2060",
                "The count value provided for a TOP clause must be an integer.",
            ),
            (
                count(CountClause::Limit),
                "SC2061",
                "The count value provided for a LIMIT clause must be an integer.",
            ),
            (
                count(CountClause::Offset),
                "SC2062",
                "The count value provided for an OFFSET clause must be an integer.",
            ),
        ] {
            let report =
                Report { location: Some((3, 4)), code: Code::Text(code), message: message.to_owned() };
            assert_eq!(error.reports(), [report]);
        }
    }

    #[test]
    fn every_location_is_turned_into_utf16_units() {
        let at = |location| Report { location, code: Code::Number(2206), message: String::new() };
        let error = Error::Refused(vec![at(Some((4, 6))), at(None), at(Some((0, 4)))]);
        let turned = Error::Refused(vec![at(Some((2, 3))), at(None), at(Some((0, 2)))]);
        assert_eq!(error.with_positions_of("😀é!"), turned);
    }
}
