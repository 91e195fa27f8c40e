//! Operands: literals, names, calls, constructors, subqueries and parentheses, and the paths that lead into them.

use document::Value;

use super::{Parser, TallQuery, Tree, number_value};
use crate::error::{Result, TokenKind};
use crate::syntax::ast::{Name, Node, NodeKind, Step, SubqueryKind};
use crate::syntax::lexer::Token;

impl Parser<'_> {
    /// Parses an operand with its path.
    pub(super) fn operand(&mut self) -> Result<Tree> {
        if self.at_symbol("(") {
            return self.parenthesized();
        }
        let base = self.primary()?;
        self.path(base)
    }

    /// Parses everything that begins with parentheses. All those that open here are read at once and closed one by one,
    /// so that no number of them needs a stack.
    fn parenthesized(&mut self) -> Result<Tree> {
        let mut open = Vec::new();
        while self.at_symbol("(") {
            open.push(self.span.start);
            self.advance()?;
        }
        let mut is_query = self.at_keyword("SELECT");
        let mut tree = if is_query { self.subquery(SubqueryKind::Scalar)? } else { self.expression()? };
        while let Some(start) = open.pop() {
            self.expect_symbol(")")?;
            tree.start = start;
            if std::mem::take(&mut is_query) {
                tree.node.span = self.span_from(start);
            }
            tree = self.path(tree)?;
            if !open.is_empty() {
                tree = self.expression_from(tree)?;
            }
        }
        Ok(tree)
    }

    /// Parses a `SELECT` as an operand, without the parentheses around it.
    fn subquery(&mut self, kind: SubqueryKind) -> Result<Tree> {
        let start = self.span.start;
        let TallQuery { query, height } = self.query()?;
        self.grow(NodeKind::Subquery { kind, query: Box::new(query) }, start, height)
    }

    fn primary(&mut self) -> Result<Tree> {
        let start = self.span.start;
        match &self.token {
            Token::Word(word) => {
                let word = *word;
                self.word(word)
            }
            Token::Number(_) => self.number(start, false),
            Token::Text(_) => {
                let Token::Text(text) = self.advance()? else { return self.unexpected() };
                Ok(self.leaf(NodeKind::Literal(Value::String(text)), start))
            }
            Token::Parameter(name) => {
                let kind = NodeKind::Parameter((*name).to_owned());
                self.advance()?;
                Ok(self.leaf(kind, start))
            }
            Token::Placeholder(name) => {
                let kind = NodeKind::Placeholder((*name).to_owned());
                self.advance()?;
                Ok(self.leaf(kind, start))
            }
            Token::Symbol("[") => {
                self.advance()?;
                let (items, height) = if self.at_symbol("]") { (Vec::new(), 0) } else { self.list()? };
                self.expect_symbol("]")?;
                self.grow(NodeKind::Array(items), start, height)
            }
            Token::Symbol("{") => self.object(),
            Token::Symbol(_) | Token::End => self.unexpected(),
        }
    }

    /// Parses a number directly after its sign; the sign is the current token.
    pub(super) fn signed_number(&mut self, negative: bool) -> Result<Tree> {
        let start = self.span.start;
        self.advance()?;
        let number = self.number(start, negative)?;
        self.path(number)
    }

    /// Parses a number; its digits are the current token.
    fn number(&mut self, start: usize, negative: bool) -> Result<Tree> {
        let Token::Number(digits) = self.token else { return self.unexpected() };
        let Some(value) = number_value(digits, negative) else {
            return Err(self.lexer.invalid(TokenKind::Number, self.span.start));
        };
        self.advance()?;
        Ok(self.leaf(NodeKind::Literal(value), start))
    }

    /// Parses a literal, a call, a name, or a construct that a word introduces.
    fn word(&mut self, word: &str) -> Result<Tree> {
        let start = self.span.start;
        let literal = match word {
            "true" => Some(NodeKind::Literal(Value::Bool(true))),
            "false" => Some(NodeKind::Literal(Value::Bool(false))),
            "null" => Some(NodeKind::Literal(Value::Null)),
            "undefined" => Some(NodeKind::Undefined),
            _ => None,
        };
        if let Some(kind) = literal {
            self.advance()?;
            return Ok(self.leaf(kind, start));
        }
        for (keyword, kind) in [("EXISTS", SubqueryKind::Exists), ("ARRAY", SubqueryKind::Array)] {
            if self.accept_keyword(keyword)? {
                self.expect_symbol("(")?;
                return self.quantified(kind, start);
            }
        }
        if self.accept_keyword("UDF")? {
            self.expect_symbol(".")?;
            let name = self.any_word()?;
            self.expect_symbol("(")?;
            return self.arguments(name, true, start);
        }
        let name = self.name()?;
        if self.at_symbol("(") {
            return self.call(name);
        }
        Ok(self.leaf(NodeKind::Name(name.text), start))
    }

    /// Parses `( SELECT ... )` after a word that defines the use of the rows; the parenthesis is taken.
    fn quantified(&mut self, kind: SubqueryKind, start: usize) -> Result<Tree> {
        let mut tree = self.subquery(kind)?;
        self.expect_symbol(")")?;
        tree.start = start;
        tree.node.span = self.span_from(start);
        Ok(tree)
    }

    /// Parses a call of a built-in function, or a quantifier, which looks like one until its `SELECT`.
    pub(super) fn call(&mut self, name: Name) -> Result<Tree> {
        let start = name.span.start;
        self.expect_symbol("(")?;
        if self.at_keyword("SELECT") {
            let quantifiers =
                [("ALL", SubqueryKind::All), ("FIRST", SubqueryKind::First), ("LAST", SubqueryKind::Last)];
            let found = quantifiers.iter().find(|(word, _)| name.text.eq_ignore_ascii_case(word));
            return match found {
                Some((_, kind)) => self.quantified(*kind, start),
                None => self.unexpected(),
            };
        }
        self.arguments(name, false, start)
    }

    /// Parses the arguments of a call; the opening parenthesis is taken.
    fn arguments(&mut self, name: Name, udf: bool, start: usize) -> Result<Tree> {
        let (arguments, height) = if self.at_symbol(")") { (Vec::new(), 0) } else { self.list()? };
        self.expect_symbol(")")?;
        self.grow(NodeKind::Call { name, udf, arguments }, start, height)
    }

    /// Parses `e {, e}`; returns the expressions and the height of the highest.
    pub(super) fn list(&mut self) -> Result<(Vec<Node>, usize)> {
        let mut nodes = Vec::new();
        let mut height = 0;
        loop {
            let tree = self.expression()?;
            height = height.max(tree.height);
            nodes.push(tree.node);
            if !self.accept_symbol(",")? {
                return Ok((nodes, height));
            }
        }
    }

    fn object(&mut self) -> Result<Tree> {
        let start = self.span.start;
        self.expect_symbol("{")?;
        let mut members = Vec::new();
        let mut height = 0;
        while !self.at_symbol("}") {
            if !members.is_empty() {
                self.expect_symbol(",")?;
            }
            let name = self.member_name()?;
            self.expect_symbol(":")?;
            let tree = self.expression()?;
            height = height.max(tree.height);
            members.push((name, tree.node));
        }
        self.expect_symbol("}")?;
        self.grow(NodeKind::Object(members), start, height)
    }

    fn member_name(&mut self) -> Result<Name> {
        let Token::Text(text) = &self.token else { return self.any_word() };
        let name = Name { text: text.clone(), span: self.span };
        self.advance()?;
        Ok(name)
    }

    /// Parses `{.name | [e]}` after an operand. The path of a path in parentheses is one path. Constant steps are taken
    /// together; each computed one is a level, and so is what follows it.
    fn path(&mut self, base: Tree) -> Result<Tree> {
        if !self.at_symbol(".") && !self.at_symbol("[") {
            return Ok(base);
        }
        let start = base.start;
        let mut height = base.height;
        let (base, mut steps) = match base.node.kind {
            NodeKind::Path { base, steps } => {
                height -= 1;
                (base, steps)
            }
            kind => (Box::new(Node { kind, span: base.node.span }), Vec::new()),
        };
        loop {
            let after_computed = steps.last().is_some_and(is_computed);
            if self.accept_symbol(".")? {
                steps.push(Step::Dot(self.any_word()?));
            } else if self.accept_symbol("[")? {
                let index = self.expression()?;
                self.expect_symbol("]")?;
                height = height.max(index.height);
                steps.push(Step::Index(index.node));
            } else {
                return self.grow(NodeKind::Path { base, steps }, start, height);
            }
            height += usize::from(after_computed || steps.last().is_some_and(is_computed));
        }
    }
}

/// Returns `true` if a step is known only when the query runs, or is no step at all.
fn is_computed(step: &Step) -> bool {
    match step {
        Step::Dot(_) => false,
        Step::Index(Node { kind: NodeKind::Literal(index), .. }) => {
            !matches!(index, Value::String(_) | Value::Int(0..))
        }
        Step::Index(_) => true,
    }
}
