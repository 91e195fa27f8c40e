//! The clauses of a `SELECT`, in the order in which they must stand.

use document::Value;

use super::{Parser, TallQuery, Tree, number_value};
use crate::error::{CountClause, Error, Result};
use crate::syntax::ast::{
    Collection, Direction, Name, Node, NodeKind, OrderBy, PathStep, Query, Select, SelectItem, SortKey,
    Source,
};
use crate::syntax::lexer::Token;

/// Collects nodes and remembers the height of the highest.
struct Heights(usize);

impl Heights {
    fn note(&mut self, tree: Tree) -> Node {
        self.0 = self.0.max(tree.height);
        tree.node
    }
}

impl Parser<'_> {
    /// Parses a `SELECT` with its clauses.
    pub(super) fn query(&mut self) -> Result<TallQuery> {
        self.deeper(Self::clauses)
    }

    fn clauses(&mut self) -> Result<TallQuery> {
        let start = self.span.start;
        let mut heights = Heights(0);
        self.expect_keyword("SELECT")?;
        let distinct = self.accept_keyword("DISTINCT")?;
        let top = if self.accept_keyword("TOP")? { Some(self.count(CountClause::Top)?) } else { None };
        let select = self.select(&mut heights)?;
        let from = if self.accept_keyword("FROM")? { self.sources(&mut heights)? } else { Vec::new() };
        let filter =
            if self.accept_keyword("WHERE")? { Some(heights.note(self.expression()?)) } else { None };
        let group_by = self.group_by(&mut heights)?;
        let order_by = self.order_by(&mut heights)?;
        let window = self.window()?;
        let span = self.span_from(start);
        let query = Query { distinct, top, select, from, filter, group_by, order_by, window, span };
        Ok(TallQuery { query, height: heights.0 })
    }

    fn select(&mut self, heights: &mut Heights) -> Result<Select> {
        let span = self.span;
        if self.accept_symbol("*")? {
            return Ok(Select::Star(span));
        }
        if self.accept_keyword("VALUE")? {
            return Ok(Select::Value(heights.note(self.expression()?)));
        }
        let mut items = Vec::new();
        loop {
            let node = heights.note(self.expression()?);
            items.push(SelectItem { node, alias: self.alias()? });
            if !self.accept_symbol(",")? {
                return Ok(Select::List(items));
            }
        }
    }

    fn sources(&mut self, heights: &mut Heights) -> Result<Vec<Source>> {
        let mut sources = vec![self.source(heights)?];
        while self.accept_keyword("JOIN")? {
            sources.push(self.source(heights)?);
        }
        Ok(sources)
    }

    /// Parses `name IN collection` or `collection [[AS] name]`.
    fn source(&mut self, heights: &mut Heights) -> Result<Source> {
        if self.at_name() {
            let name = self.name()?;
            if self.accept_keyword("IN")? {
                let collection = self.collection(heights)?;
                return Ok(Source { iterates: true, collection, alias: Some(name) });
            }
            let collection = self.path_from(name)?;
            return Ok(Source { iterates: false, collection, alias: self.alias()? });
        }
        let collection = self.collection(heights)?;
        Ok(Source { iterates: false, collection, alias: self.alias()? })
    }

    fn collection(&mut self, heights: &mut Heights) -> Result<Collection> {
        if !self.accept_symbol("(")? {
            let root = self.name()?;
            return self.path_from(root);
        }
        let TallQuery { query, height } = self.query()?;
        self.expect_symbol(")")?;
        heights.0 = heights.0.max(height);
        Ok(Collection::Subquery(Box::new(query)))
    }

    /// Parses `{.name | ["name"] | [3]}` after the name of a source.
    fn path_from(&mut self, root: Name) -> Result<Collection> {
        let mut steps = Vec::new();
        loop {
            if self.accept_symbol(".")? {
                steps.push(PathStep::Dot(self.any_word()?.text));
            } else if self.accept_symbol("[")? {
                steps.push(self.constant_step()?);
                self.expect_symbol("]")?;
            } else {
                return Ok(Collection::Path { root, steps });
            }
        }
    }

    fn constant_step(&mut self) -> Result<PathStep> {
        let step = match &self.token {
            Token::Text(name) => PathStep::Bracket(name.clone()),
            Token::Number(digits) => match digits.parse() {
                Ok(index) => PathStep::Index(index),
                Err(_) => return self.unexpected(),
            },
            _ => return self.unexpected(),
        };
        self.advance()?;
        Ok(step)
    }

    fn group_by(&mut self, heights: &mut Heights) -> Result<Vec<Node>> {
        let mut keys = Vec::new();
        if self.accept_keyword("GROUP")? {
            self.expect_keyword("BY")?;
            keys.push(heights.note(self.expression()?));
            while self.accept_symbol(",")? {
                keys.push(heights.note(self.expression()?));
            }
        }
        Ok(keys)
    }

    fn order_by(&mut self, heights: &mut Heights) -> Result<Option<OrderBy>> {
        let start = self.span.start;
        if !self.accept_keyword("ORDER")? {
            return Ok(None);
        }
        self.expect_keyword("BY")?;
        let rank = self.at_rank()?;
        if rank {
            self.advance()?;
        }
        let mut keys = Vec::new();
        loop {
            let tree = if rank { self.score()? } else { self.expression()? };
            keys.push(SortKey { node: heights.note(tree), direction: self.direction()? });
            if !self.accept_symbol(",")? {
                return Ok(Some(OrderBy { rank, keys, span: self.span_from(start) }));
            }
        }
    }

    /// Returns whether `RANK` is the keyword: a name follows it. Everywhere else it is a name itself.
    fn at_rank(&self) -> Result<bool> {
        Ok(self.at_keyword("RANK") && matches!(self.peek()?, Token::Word(word) if !super::is_reserved(word)))
    }

    /// Parses a key of `ORDER BY RANK`: a call of a built-in function.
    fn score(&mut self) -> Result<Tree> {
        let name = self.name()?;
        if self.at_symbol("(") { self.call(name) } else { self.unexpected() }
    }

    fn direction(&mut self) -> Result<Option<Direction>> {
        Ok(if self.accept_keyword("ASC")? {
            Some(Direction::Ascending)
        } else if self.accept_keyword("DESC")? {
            Some(Direction::Descending)
        } else {
            None
        })
    }

    fn window(&mut self) -> Result<Option<(Node, Node)>> {
        if !self.accept_keyword("OFFSET")? {
            return Ok(None);
        }
        let offset = self.count(CountClause::Offset)?;
        self.expect_keyword("LIMIT")?;
        Ok(Some((offset, self.count(CountClause::Limit)?)))
    }

    /// Parses a number of rows, or a parameter for one. The service counts rows in 32 bits without a sign.
    fn count(&mut self, clause: CountClause) -> Result<Node> {
        let span = self.span;
        let kind = match self.token {
            Token::Parameter(name) => NodeKind::Parameter(name.to_owned()),
            Token::Number(digits) => match number_value(digits, false) {
                Some(Value::Int(count)) if u32::try_from(count).is_ok() => {
                    NodeKind::Literal(Value::Int(count))
                }
                _ => return Err(Error::InvalidCount { clause, start: span.start, end: span.end }),
            },
            _ => return self.unexpected(),
        };
        self.advance()?;
        Ok(Node { kind, span })
    }
}
