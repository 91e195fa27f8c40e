//! Tokens into an [`ast`](super::ast), by recursive descent: clauses in `query`, operators in `operators`, what they
//! stand between in `operand`.
//!
//! Two things are bounded by [`MAX_DEPTH`], and neither implies the other. The *depth* of the parser's own recursion
//! keeps its stack small. The *height* of each tree bounds the stack of later walks: `((a+1)*2+1)*2` is read without
//! recursion, because its parentheses open before anything else, and still grows a level with each. So every finished
//! piece comes with its height, as a [`Tree`]. What is flat in the tree and nested when it is run, as `a = b = c` and
//! `a[b][c]` are, counts as nested.
//!
//! Chains of operators, lists and redundant parentheses are as long as they like; `((a OR b) OR c) OR d`, which query
//! builders write, becomes a flat chain.

mod operand;
mod operators;
mod query;

use document::Value;

use super::ast::{Name, Node, NodeKind, Query, Span};
use super::lexer::{Lexer, Token};
use crate::error::{Error, Result};
use crate::functions::whole;

/// How deep expressions and queries may stand inside one another.
pub(super) const MAX_DEPTH: usize = 128;

/// Words that cannot name a source, a column or a function. After a dot any word is a property, although the
/// service wants brackets around these.
const RESERVED: [&str; 25] = [
    "AND", "ARRAY", "AS", "ASC", "BETWEEN", "BY", "DESC", "DISTINCT", "ESCAPE", "EXISTS", "FROM", "GROUP",
    "IN", "JOIN", "LIKE", "LIMIT", "NOT", "OFFSET", "OR", "ORDER", "SELECT", "TOP", "UDF", "VALUE", "WHERE",
];

/// A finished expression.
struct Tree {
    node: Node,
    /// The number of nodes on the longest way down, itself included, as the evaluator sees them.
    height: usize,
    /// Where its text begins, parentheses around it included.
    start: usize,
}

/// A finished `SELECT` and the height of its highest expression.
struct TallQuery {
    query: Query,
    height: usize,
}

/// The parser of one text.
pub(super) struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The token to be taken next, and its place.
    token: Token<'t>,
    span: Span,
    /// Where the last token taken ended: the end of whatever was just parsed.
    last_end: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let (token, span) = lexer.next()?;
        Ok(Self { lexer, token, span, last_end: 0, depth: 0 })
    }

    /// Parses a whole text that is one `SELECT`.
    pub(super) fn statement(mut self) -> Result<Query> {
        let tall = self.query()?;
        self.end()?;
        Ok(tall.query)
    }

    /// Parses a whole text that is `FROM c WHERE ...`.
    pub(super) fn condition(mut self) -> Result<(Name, Node)> {
        self.expect_keyword("FROM")?;
        let container = self.name()?;
        let alias = self.alias()?.unwrap_or(container);
        self.expect_keyword("WHERE")?;
        let filter = self.expression()?.node;
        self.end()?;
        Ok((alias, filter))
    }

    fn end(&self) -> Result<()> {
        if self.token == Token::End { Ok(()) } else { self.unexpected() }
    }

    fn advance(&mut self) -> Result<Token<'t>> {
        let (token, span) = self.lexer.next()?;
        self.last_end = self.span.end;
        self.span = span;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// Returns the token after the current one.
    fn peek(&self) -> Result<Token<'t>> {
        Ok(self.lexer.clone().next()?.0)
    }

    fn unexpected<T>(&self) -> Result<T> {
        Err(self.lexer.unexpected(self.span))
    }

    /// Returns the span from a start to the end of the last token taken.
    fn span_from(&self, start: usize) -> Span {
        Span { start, end: self.last_end }
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

    /// Returns `true` if the current token may name something.
    fn at_name(&self) -> bool {
        matches!(self.token, Token::Word(word) if !is_reserved(word))
    }

    fn name(&mut self) -> Result<Name> {
        if self.at_name() { self.any_word() } else { self.unexpected() }
    }

    /// Takes a name at a position where even a reserved word can only be a name.
    fn any_word(&mut self) -> Result<Name> {
        let Token::Word(word) = self.token else { return self.unexpected() };
        let span = self.span;
        self.advance()?;
        Ok(Name { text: word.to_owned(), span })
    }

    /// Parses `[AS] name`, if there is one.
    fn alias(&mut self) -> Result<Option<Name>> {
        if self.accept_keyword("AS")? || self.at_name() { self.name().map(Some) } else { Ok(None) }
    }

    /// Runs a parser one level further down.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn too_deep(&self) -> Error {
        Error::TooDeep { limit: MAX_DEPTH, start: self.span.start, end: self.span.end }
    }

    /// Returns a tree over parts of at most the given height, from `start` to what was taken last.
    fn grow(&self, kind: NodeKind, start: usize, height_of_parts: usize) -> Result<Tree> {
        if height_of_parts >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        let node = Node { kind, span: self.span_from(start) };
        Ok(Tree { node, height: height_of_parts + 1, start })
    }

    /// Returns a tree without parts.
    fn leaf(&self, kind: NodeKind, start: usize) -> Tree {
        Tree { node: Node { kind, span: self.span_from(start) }, height: 1, start }
    }
}

/// Returns the value of a number; `None` if it is out of range.
fn number_value(digits: &str, negative: bool) -> Option<Value> {
    // Sign and digits are read together: the smallest integer has no positive counterpart.
    let text = if negative { format!("-{digits}") } else { digits.to_owned() };
    if let Ok(int) = text.parse::<i64>() {
        return Some(Value::Int(int));
    }
    let double = text.parse::<f64>().ok().filter(|double| double.is_finite())?;
    Some(whole(double).map_or(Value::Double(double), Value::Int))
}

fn is_reserved(word: &str) -> bool {
    // The literals are lower case only: `True` is an ordinary name.
    matches!(word, "true" | "false" | "null" | "undefined")
        || RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}
