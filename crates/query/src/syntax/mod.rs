//! The text of a query: lexer, parser, tree, and the tree as text again.
//!
//! This room knows the grammar of the service's SQL and nothing else: whether a name exists, a function takes three
//! arguments or a parameter has a value is asked later, in `resolve`. Whatever leaves here is bounded: the text in
//! length, the tree in height, so that every walk over it may recurse.

pub(crate) mod ast;
mod lexer;
mod parser;
pub(crate) mod print;

use ast::{Name, Node, Query};
use parser::Parser;

use crate::error::{Error, Result};

/// Longest query text, in UTF-16 units as the service counts.
pub(crate) const MAX_TEXT_UNITS: usize = 256 * 1024;

/// Parses a whole `SELECT`. Places in errors are bytes of the text, like the spans of the tree.
pub(crate) fn parse(text: &str) -> Result<Query> {
    check_length(text)?;
    Parser::new(text)?.statement()
}

/// Parses `FROM c WHERE ...`, the condition of a patch, into the name of the item and what it must fulfil.
pub(crate) fn parse_condition(text: &str) -> Result<(Name, Node)> {
    check_length(text)?;
    Parser::new(text)?.condition()
}

fn check_length(text: &str) -> Result<()> {
    // A text of few bytes has few units, so that most are not counted.
    if text.len() <= MAX_TEXT_UNITS || text.chars().map(char::len_utf16).sum::<usize>() <= MAX_TEXT_UNITS {
        return Ok(());
    }
    Err(Error::TooLong { given: text.len(), limit: MAX_TEXT_UNITS })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{CountClause, TokenKind};

    #[test]
    fn errors_stand_at_the_offending_token() {
        for (text, start, near) in [
            ("SELECT TOP -1 c.name FROM c", 11, "-"),
            ("selectttt * FROM c", 0, "selectttt"),
            ("SELECT a, b, FROM c", 13, "FROM"),
            ("SELECT a AS Value FROM c", 12, "Value"),
            ("SELECT * FROM @c", 14, "@c"),
            ("/* x */ SELECT 1", 0, "/"),
            ("SELECT * FROM c WHERE c.id = 'it's'", 33, "s"),
            ("SELECT * WHERE true, true", 19, ","),
            ("SELECT VALUE 1, 2", 14, ","),
            ("SELECT 1 IN (1) IN (2)", 16, "IN"),
            ("SELECT 1 ORDER BY RANK 1", 23, "1"),
            ("SELECT", 6, ""),
            ("SELECT VALUE ABS(1", 18, ""),
            ("", 0, ""),
        ] {
            let expected = Error::Syntax { start, end: start + near.len(), near: near.to_owned() };
            assert_eq!(parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn counts_are_integers_of_32_bits() {
        for good in ["0", "10", "2147483648", "4294967295", "@p"] {
            assert!(parse(&format!("SELECT TOP {good} * OFFSET {good} LIMIT {good}")).is_ok(), "{good}");
        }
        for bad in ["4294967296", "1.5", "99999999999999999999", "1e10"] {
            let fails = |before: &str, after: &str, clause| {
                let (start, end) = (before.len(), before.len() + bad.len());
                let expected = Error::InvalidCount { clause, start, end };
                assert_eq!(parse(&format!("{before}{bad}{after}")), Err(expected), "{bad}");
            };
            fails("SELECT TOP ", " *", CountClause::Top);
            fails("SELECT * OFFSET ", " LIMIT 1", CountClause::Offset);
            fails("SELECT * OFFSET 1 LIMIT ", "", CountClause::Limit);
        }
    }

    #[test]
    fn numbers_beyond_all_numbers_are_no_tokens() {
        let text = "SELECT -1e400";
        let expected =
            Error::InvalidToken { kind: TokenKind::Number, start: 8, end: 13, token: "1e400".into() };
        assert_eq!(parse(text), Err(expected));
    }

    #[test]
    fn a_condition_is_one_container_and_a_filter() {
        let (alias, filter) = parse_condition("from items AS c where c.a = 1").unwrap();
        assert_eq!((alias.text.as_str(), filter.span.start), ("c", 22));
        for bad in
            ["FROM c", "c.a = 1", "FROM c.d WHERE true", "FROM c WHERE true ORDER BY c.a", "FROM c WHERE"]
        {
            assert!(matches!(parse_condition(bad), Err(Error::Syntax { .. })), "{bad}");
        }
    }

    #[test]
    fn length_is_not_nesting() {
        let fits = |text: String| assert!(parse(&text).is_ok(), "{}", &text[..60]);
        for operator in ["OR", "AND", "+", "||", "??", "=", "<<", "|"] {
            fits(format!("SELECT VALUE 1{}", format!(" {operator} 1").repeat(20_000)));
        }
        fits(format!("SELECT VALUE 1 IN ({}1)", "1,".repeat(100_000)));
        fits(format!("SELECT VALUE [{}1]", "1,".repeat(100_000)));
        fits(format!("SELECT VALUE c{}", ".a".repeat(100_000)));
        fits(format!("SELECT {}1", "1,".repeat(100_000)));
        fits(format!("SELECT 1 FROM c{}", " JOIN x IN c.y".repeat(10_000)));
        // What query builders write: every further operand puts all before it in parentheses.
        fits(format!("SELECT VALUE {}1{}", "(".repeat(20_000), " OR 1)".repeat(20_000)));
        fits(format!("SELECT VALUE {}1{}", "(".repeat(100_000), ")".repeat(100_000)));
    }

    #[test]
    fn nesting_is_bounded() {
        for (open, close) in [
            ("(1+", ")"),
            ("[", "]"),
            ("NOT ", ""),
            ("- ", ""),
            ("{a:", "}"),
            ("ABS(", ")"),
            ("c[", "]"),
            ("1 ? 1 : ", ""),
            ("1 ? ", " : 1"),
            ("1 IN (", ")"),
            ("(SELECT VALUE ", ")"),
            ("EXISTS(SELECT VALUE ", ")"),
            ("(SELECT VALUE 1 FROM (SELECT VALUE ", "))"),
            ("1 | 2 ^ 3 & 4 = 5 < 6 || 7 << 8 + 9 * (", ")"),
        ] {
            let deep =
                |levels| parse(&format!("SELECT VALUE {}1{}", open.repeat(levels), close.repeat(levels)));
            assert!(deep(5).is_ok(), "{open}");
            assert!(matches!(deep(6_000), Err(Error::TooDeep { limit: 128, .. })), "{open}");
        }
        // These grow the tree from below, without nesting in the parser.
        for step in [" + 1) * 1)", " ? 1 : 1)", " IN (1))", "[0] + 1)"] {
            let opening = step.matches(')').count() - step.matches('(').count();
            let grown = |steps| {
                parse(&format!("SELECT VALUE {}1{}", "(".repeat(steps * opening), step.repeat(steps)))
            };
            assert!(grown(5).is_ok(), "{step}");
            assert!(matches!(grown(6_000), Err(Error::TooDeep { limit: 128, .. })), "{step}");
        }
    }

    #[test]
    fn hostile_texts_are_refused_at_once() {
        for text in ["(", "[", "SELECT ", "'", "--", "{documentdb-formattable", "SELECT VALUE "] {
            assert!(matches!(parse(&text.repeat(1_000_000)), Err(Error::TooLong { .. })), "{text}");
            assert!(parse(&text.repeat(MAX_TEXT_UNITS / text.len())).is_err(), "{text}");
        }
        let open = format!("SELECT VALUE {}", "(".repeat(200_000));
        assert!(matches!(parse(&open), Err(Error::Syntax { start: 200_013, .. })));
    }

    #[test]
    fn length_is_counted_in_utf16_units() {
        let text = |chars| format!("SELECT '{}'", "é".repeat(chars));
        assert!(parse(&text(MAX_TEXT_UNITS - 9)).is_ok());
        assert!(matches!(parse(&text(MAX_TEXT_UNITS - 8)), Err(Error::TooLong { .. })));
    }
}
