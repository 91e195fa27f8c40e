//! Tokens into an [`ast`](crate::ast), by recursive descent, one function per level of the grammar.
//!
//! The parser knows the whole language of the service and accepts a part of it. Text outside the language is a
//! syntax error; text inside it that Bolide cannot run yet is refused by name, so that nobody hunts for a typo
//! that is not there. Names, functions and parameters are looked up later, in `resolve`.
//!
//! One token of lookahead is enough. Recursion is bounded by [`MAX_DEPTH`].

mod expression;

use crate::ast::Statement;
use crate::error::{Error, Result};
use crate::lexer::{Lexer, Span, Token};

/// How deep expressions may stand inside one another.
pub(crate) const MAX_DEPTH: usize = 128;

/// Words that cannot name a source. After a dot any word is a property.
const RESERVED: [&str; 29] = [
    "AND",
    "ARRAY",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "DESC",
    "DISTINCT",
    "ESCAPE",
    "EXISTS",
    "FROM",
    "GROUP",
    "IN",
    "JOIN",
    "LIKE",
    "LIMIT",
    "NOT",
    "OFFSET",
    "OR",
    "ORDER",
    "SELECT",
    "TOP",
    "UDF",
    "VALUE",
    "WHERE",
    "false",
    "null",
    "true",
    "undefined",
];

/// Parses `SELECT ...`.
pub(crate) fn parse_statement(text: &str) -> Result<Statement> {
    let mut parser = Parser::new(text)?;
    parser.select()?;
    let alias = parser.source()?;
    let filter = if parser.accept_keyword("WHERE")? { Some(parser.expression()?) } else { None };
    parser.end()?;
    Ok(Statement { alias, filter })
}

/// Parses `FROM c WHERE ...`, the condition form of a patch.
pub(crate) fn parse_condition(text: &str) -> Result<Statement> {
    let mut parser = Parser::new(text)?;
    let alias = parser.source()?;
    parser.expect_keyword("WHERE")?;
    let filter = Some(parser.expression()?);
    parser.end()?;
    Ok(Statement { alias, filter })
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The token to be taken next, and its place.
    token: Token<'t>,
    span: Span,
    /// Where the last token taken ended: the end of whatever was just parsed.
    last: Span,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let (token, span) = lexer.next()?;
        Ok(Self { lexer, token, span, last: span, depth: 0 })
    }

    fn advance(&mut self) -> Result<Token<'t>> {
        let (token, span) = self.lexer.next()?;
        self.last = std::mem::replace(&mut self.span, span);
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn unexpected<T>(&self) -> Result<T> {
        Err(self.lexer.syntax(self.span))
    }

    fn not_supported<T>(what: impl Into<String>, span: Span) -> Result<T> {
        Err(Error::NotSupported { what: what.into(), start: span.start, end: span.end })
    }

    fn at_keyword(&self, keyword: &str) -> bool {
        matches!(self.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn accept_keyword(&mut self, keyword: &str) -> Result<bool> {
        let found = self.at_keyword(keyword);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_keyword(&mut self, keyword: &str) -> Result<()> {
        if self.accept_keyword(keyword)? { Ok(()) } else { self.unexpected() }
    }

    fn at_symbol(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(found) if found == symbol)
    }

    fn accept_symbol(&mut self, symbol: &str) -> Result<bool> {
        let found = self.at_symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.accept_symbol(symbol)? { Ok(()) } else { self.unexpected() }
    }

    /// A word that may name something.
    fn name(&mut self) -> Result<&'t str> {
        match self.token {
            Token::Word(word) if !is_reserved(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => self.unexpected(),
        }
    }

    fn select(&mut self) -> Result<()> {
        self.expect_keyword("SELECT")?;
        for (keyword, what) in [("DISTINCT", "DISTINCT"), ("TOP", "TOP"), ("VALUE", "SELECT VALUE")] {
            if self.at_keyword(keyword) {
                return Self::not_supported(what, self.span);
            }
        }
        if self.accept_symbol("*")? {
            return Ok(());
        }
        // Parsed for its errors: what is no expression is a typo and not a missing feature.
        let item = self.expression()?;
        Self::not_supported("a select list other than '*'", item.span)
    }

    /// `FROM name [[AS] alias]`; gives the name that the rest of the query knows the items by.
    fn source(&mut self) -> Result<String> {
        self.expect_keyword("FROM")?;
        if self.at_symbol("(") {
            return Self::not_supported("a subquery in FROM", self.span);
        }
        let start = self.span;
        let mut alias = self.name()?;
        if self.at_symbol(".") || self.at_symbol("[") {
            return Self::not_supported("a path in FROM", start.to(self.span));
        }
        if self.at_keyword("IN") {
            return Self::not_supported("IN in FROM", start.to(self.span));
        }
        let renamed = self.accept_keyword("AS")?;
        if renamed || matches!(self.token, Token::Word(word) if !is_reserved(word)) {
            alias = self.name()?;
        }
        if self.at_keyword("JOIN") {
            return Self::not_supported("JOIN", self.span);
        }
        Ok(alias.to_owned())
    }

    /// Nothing more, or one of the clauses that may follow a filter.
    fn end(&mut self) -> Result<()> {
        let start = self.span;
        for (first, second) in [("GROUP", "BY"), ("ORDER", "BY"), ("OFFSET", "LIMIT")] {
            if !self.accept_keyword(first)? {
                continue;
            }
            if second == "LIMIT" {
                return Self::not_supported("OFFSET LIMIT", start);
            }
            let span = start.to(self.span);
            self.expect_keyword(second)?;
            return Self::not_supported(format!("{first} {second}"), span);
        }
        if self.token == Token::End { Ok(()) } else { self.unexpected() }
    }

    /// One level further down; whoever calls this steps up again when done.
    fn descend(&mut self) -> Result<()> {
        if self.depth == MAX_DEPTH {
            return Err(Error::TooDeep { limit: MAX_DEPTH, start: self.span.start, end: self.span.end });
        }
        self.depth += 1;
        Ok(())
    }
}

fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| match reserved.as_bytes()[0] {
        // The literals are lower case only: `True` is an ordinary name.
        b'a'..=b'z' => *reserved == word,
        _ => reserved.eq_ignore_ascii_case(word),
    })
}
