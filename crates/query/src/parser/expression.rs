//! Expressions, loosest level first: `OR`, `AND`, `NOT`, comparison, operand, primary.
//!
//! Levels that the service has in between and Bolide does not run yet (arithmetic, string concatenation, bits,
//! `??`, `? :`) are met where they would stand and refused there.

use document::Value;

use super::Parser;
use crate::ast::{Comparison, Node, NodeKind, Segment};
use crate::error::Result;
use crate::lexer::{Span, Token};

/// Operators that bind tighter than a comparison; none of them runs yet.
const ARITHMETIC: [&str; 13] = ["+", "-", "*", "/", "%", "||", "|", "^", "&", "<<", ">>", ">>>", "~"];

impl<'t> Parser<'t> {
    /// Alternatives of conjunctions: the loosest two levels in one loop, which keeps the stack of a deeply
    /// nested expression half as deep.
    pub(super) fn expression(&mut self) -> Result<Node> {
        self.descend()?;
        let start = self.span;
        let mut alternatives = Vec::new();
        loop {
            let mut conditions = vec![self.negation()?];
            let start = conditions[0].span;
            while self.accept_keyword("AND")? {
                conditions.push(self.negation()?);
            }
            alternatives.push(combine(conditions, NodeKind::And, start.to(self.last)));
            if !self.accept_keyword("OR")? {
                break;
            }
        }
        self.depth -= 1;
        match self.token {
            Token::Symbol("?") => Self::not_supported("the conditional operator '? :'", self.span),
            Token::Symbol("??") => Self::not_supported("the operator '??'", self.span),
            _ => Ok(combine(alternatives, NodeKind::Or, start.to(self.last))),
        }
    }

    fn negation(&mut self) -> Result<Node> {
        let mut starts = Vec::new();
        while self.at_keyword("NOT") {
            self.descend()?;
            starts.push(self.span);
            self.advance()?;
        }
        let node = self.comparison()?;
        self.depth -= starts.len();
        Ok(starts.into_iter().rev().fold(node, negate))
    }

    fn comparison(&mut self) -> Result<Node> {
        let left = self.operand()?;
        self.relation(left)
    }

    /// What follows an operand, if anything does: a comparison, `IN` or `BETWEEN`.
    fn relation(&mut self, left: Node) -> Result<Node> {
        let start = left.span;
        if let Some(operator) = self.comparison_operator() {
            self.advance()?;
            let right = self.operand()?;
            let kind = NodeKind::Compare { operator, left: Box::new(left), right: Box::new(right) };
            return Ok(Node { kind, span: start.to(self.last) });
        }
        let negated = self.accept_keyword("NOT")?;
        let kind = if self.accept_keyword("IN")? {
            NodeKind::In { value: Box::new(left), list: self.list_in_parentheses()? }
        } else if self.accept_keyword("BETWEEN")? {
            let low = Box::new(self.operand()?);
            self.expect_keyword("AND")?;
            NodeKind::Between { value: Box::new(left), low, high: Box::new(self.operand()?) }
        } else if self.at_keyword("LIKE") {
            return Self::not_supported("LIKE", self.span);
        } else if negated {
            return self.unexpected();
        } else {
            return Ok(left);
        };
        let node = Node { kind, span: start.to(self.last) };
        Ok(if negated { negate(node, start) } else { node })
    }

    fn comparison_operator(&self) -> Option<Comparison> {
        let Token::Symbol(symbol) = self.token else { return None };
        Some(match symbol {
            "=" => Comparison::Equal,
            "!=" | "<>" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }

    /// `( e {, e} )`; an empty list is not in the grammar.
    fn list_in_parentheses(&mut self) -> Result<Vec<Node>> {
        self.expect_symbol("(")?;
        if self.at_keyword("SELECT") {
            return Self::not_supported("a subquery", self.span);
        }
        let mut list = vec![self.expression()?];
        while self.accept_symbol(",")? {
            list.push(self.expression()?);
        }
        self.expect_symbol(")")?;
        Ok(list)
    }

    /// What stands on either side of a comparison. A sign belongs to the number that follows it.
    fn operand(&mut self) -> Result<Node> {
        let start = self.span;
        let node = match self.token {
            Token::Symbol(sign @ ("-" | "+")) => {
                self.advance()?;
                let Token::Number(digits) = self.token else {
                    return Self::not_supported(format!("the unary operator '{sign}'"), start);
                };
                self.number(digits, sign == "-", start)?
            }
            Token::Symbol("~") => return Self::not_supported("the unary operator '~'", start),
            _ => self.primary()?,
        };
        match self.token {
            Token::Symbol(operator) if ARITHMETIC.contains(&operator) => {
                Self::not_supported(format!("the operator '{operator}'"), self.span)
            }
            Token::Symbol("." | "[") => Self::not_supported("member access on an expression", self.span),
            _ => Ok(node),
        }
    }

    fn primary(&mut self) -> Result<Node> {
        let start = self.span;
        let kind = match &self.token {
            Token::Word(word) => {
                let word = *word;
                return self.word(word);
            }
            Token::Number(digits) => {
                let digits = *digits;
                return self.number(digits, false, start);
            }
            Token::Text(_) => match self.advance()? {
                Token::Text(text) => NodeKind::Literal(Value::String(text)),
                _ => return self.unexpected(),
            },
            Token::Parameter(name) => {
                let name = (*name).to_owned();
                self.advance()?;
                NodeKind::Parameter(name)
            }
            Token::Symbol("(") => return self.parenthesized(),
            Token::Symbol("[") => self.array()?,
            Token::Symbol("{") => self.object()?,
            Token::Symbol(_) | Token::End => return self.unexpected(),
        };
        Ok(Node { kind, span: start.to(self.last) })
    }

    /// A number; the digits are the current token.
    fn number(&mut self, digits: &str, negative: bool, start: Span) -> Result<Node> {
        // Sign and digits are read together: the smallest integer has no positive counterpart.
        let text = if negative { format!("-{digits}") } else { digits.to_owned() };
        let whole = digits.bytes().all(|b| b.is_ascii_digit());
        let value = match text.parse::<i64>() {
            Ok(int) if whole => Value::Int(int),
            _ => match text.parse::<f64>() {
                Ok(double) if double.is_finite() => Value::Double(double),
                _ => return self.unexpected(),
            },
        };
        self.advance()?;
        Ok(Node { kind: NodeKind::Literal(value), span: start.to(self.last) })
    }

    /// A literal, a call, a path, or a construct that a word introduces.
    fn word(&mut self, word: &'t str) -> Result<Node> {
        let start = self.span;
        let literal = match word {
            "true" => Some(NodeKind::Literal(Value::Bool(true))),
            "false" => Some(NodeKind::Literal(Value::Bool(false))),
            "null" => Some(NodeKind::Literal(Value::Null)),
            "undefined" => Some(NodeKind::Undefined),
            _ => None,
        };
        if let Some(kind) = literal {
            self.advance()?;
            return Ok(Node { kind, span: start });
        }
        for keyword in ["EXISTS", "ARRAY"] {
            if self.accept_keyword(keyword)? {
                return if self.at_symbol("(") {
                    Self::not_supported(keyword, start)
                } else {
                    self.unexpected()
                };
            }
        }
        if self.accept_keyword("UDF")? {
            self.expect_symbol(".")?;
            let Token::Word(name) = self.token else { return self.unexpected() };
            return Self::not_supported(
                format!("the user-defined function 'udf.{name}'"),
                start.to(self.span),
            );
        }
        let name = self.name()?;
        if self.at_symbol("(") {
            return self.call(name, start);
        }
        let segments = self.segments()?;
        Ok(Node { kind: NodeKind::Path { root: name.to_owned(), segments }, span: start.to(self.last) })
    }

    fn call(&mut self, name: &str, start: Span) -> Result<Node> {
        self.expect_symbol("(")?;
        if self.at_keyword("SELECT") {
            return Self::not_supported("a subquery", start.to(self.span));
        }
        let mut arguments = Vec::new();
        if !self.at_symbol(")") {
            arguments.push(self.expression()?);
            while self.accept_symbol(",")? {
                arguments.push(self.expression()?);
            }
        }
        self.expect_symbol(")")?;
        Ok(Node { kind: NodeKind::Call { name: name.to_owned(), arguments }, span: start.to(self.last) })
    }

    /// `{.name | ["name"] | [3]}`. The service refuses reserved words after a dot; we need not.
    fn segments(&mut self) -> Result<Vec<Segment>> {
        let mut segments = Vec::new();
        loop {
            if self.accept_symbol(".")? {
                let Token::Word(name) = self.token else { return self.unexpected() };
                self.advance()?;
                segments.push(Segment::Name(name.to_owned()));
            } else if self.accept_symbol("[")? {
                let inside = self.span;
                let segment = match self.expression()?.kind {
                    NodeKind::Literal(Value::String(name)) => Segment::Name(name),
                    NodeKind::Literal(Value::Int(index)) if index >= 0 => Segment::Index(index as usize),
                    NodeKind::Literal(_) => return Err(self.lexer.syntax(inside)),
                    _ => return Self::not_supported("a computed member access", inside.to(self.last)),
                };
                self.expect_symbol("]")?;
                segments.push(segment);
            } else {
                return Ok(segments);
            }
        }
    }

    fn parenthesized(&mut self) -> Result<Node> {
        let start = self.span;
        self.expect_symbol("(")?;
        if self.at_keyword("SELECT") {
            return Self::not_supported("a subquery", start.to(self.span));
        }
        let inner = self.expression()?;
        self.expect_symbol(")")?;
        Ok(Node { kind: inner.kind, span: start.to(self.last) })
    }

    fn array(&mut self) -> Result<NodeKind> {
        self.expect_symbol("[")?;
        let mut items = Vec::new();
        if !self.at_symbol("]") {
            items.push(self.expression()?);
            while self.accept_symbol(",")? {
                items.push(self.expression()?);
            }
        }
        self.expect_symbol("]")?;
        Ok(NodeKind::Array(items))
    }

    fn object(&mut self) -> Result<NodeKind> {
        self.expect_symbol("{")?;
        let mut members: Vec<(String, Node)> = Vec::new();
        while !self.at_symbol("}") {
            if !members.is_empty() {
                self.expect_symbol(",")?;
            }
            let name = match &self.token {
                Token::Text(text) => text.clone(),
                Token::Word(word) => (*word).to_owned(),
                _ => return self.unexpected(),
            };
            self.advance()?;
            self.expect_symbol(":")?;
            members.push((name, self.expression()?));
        }
        self.expect_symbol("}")?;
        Ok(NodeKind::Object(members))
    }
}

/// One node for all of them, or the only one itself.
fn combine(mut nodes: Vec<Node>, kind: fn(Vec<Node>) -> NodeKind, span: Span) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        last => {
            nodes.extend(last);
            Node { kind: kind(nodes), span }
        }
    }
}

fn negate(node: Node, start: Span) -> Node {
    Node { span: start.to(node.span), kind: NodeKind::Not(Box::new(node)) }
}
