//! Operators and their precedence.
//!
//! Loosest first: `? :`, `??`, `OR`, `AND`, `NOT`, the predicates `IN`, `BETWEEN` and `LIKE`, `|`, `^`, `&`, equality,
//! comparison, `||`, shifts, sums, products, signs. One function climbs over all of them: it reads an operand, and
//! as long as an operator follows that binds at least as tightly as its caller needs, makes the operand the left side
//! of it. A function per level would put fifteen frames on the stack for each pair of parentheses.
//!
//! Predicates do not associate: `a IN (b) IN (c)` is an error, and so is `a IN (b) = c`. Hence the *ceiling*: what was
//! built last may only become the left side of something looser.

use super::{Parser, Tree};
use crate::error::Result;
use crate::syntax::ast::{Binary, Name, Node, NodeKind, Unary};
use crate::syntax::lexer::Token;

/// How tightly an operator binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Coalesce,
    Or,
    And,
    Not,
    Predicate,
    BitOr,
    BitXor,
    BitAnd,
    Equality,
    Comparison,
    Concat,
    Shift,
    Sum,
    Product,
    Sign,
}

impl Level {
    /// Returns the next tighter one: what the right side of a left-associative operator is made of.
    fn tighter(self) -> Self {
        match self {
            Self::Coalesce => Self::Or,
            Self::Or => Self::And,
            Self::And => Self::Not,
            Self::Not => Self::Predicate,
            Self::Predicate => Self::BitOr,
            Self::BitOr => Self::BitXor,
            Self::BitXor => Self::BitAnd,
            Self::BitAnd => Self::Equality,
            Self::Equality => Self::Comparison,
            Self::Comparison => Self::Concat,
            Self::Concat => Self::Shift,
            Self::Shift => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Sign => Self::Sign,
        }
    }
}

/// Returns the level that an operator belongs to.
fn level_of(operator: Binary) -> Level {
    match operator {
        Binary::Coalesce => Level::Coalesce,
        Binary::Or => Level::Or,
        Binary::And => Level::And,
        Binary::BitOr => Level::BitOr,
        Binary::BitXor => Level::BitXor,
        Binary::BitAnd => Level::BitAnd,
        Binary::Equal | Binary::NotEqual => Level::Equality,
        Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual => Level::Comparison,
        Binary::Concat => Level::Concat,
        Binary::ShiftLeft | Binary::ShiftRight | Binary::ShiftRightZero => Level::Shift,
        Binary::Add | Binary::Subtract => Level::Sum,
        Binary::Multiply | Binary::Divide | Binary::Modulo => Level::Product,
    }
}

/// What may follow an operand.
enum Infix {
    Operator(Binary),
    Predicate,
}

impl Parser<'_> {
    /// Parses an expression.
    pub(super) fn expression(&mut self) -> Result<Tree> {
        self.deeper(|parser| {
            let condition = parser.operators(Level::Coalesce)?;
            parser.conditional(condition)
        })
    }

    /// Parses the rest of an expression after its first operand.
    pub(super) fn expression_from(&mut self, operand: Tree) -> Result<Tree> {
        let condition = self.climb(operand, Level::Coalesce, None)?;
        self.conditional(condition)
    }

    /// Parses `a ? b : c` if a question mark follows, and only `a` if not.
    fn conditional(&mut self, condition: Tree) -> Result<Tree> {
        if !self.accept_symbol("?")? {
            return Ok(condition);
        }
        let then = self.expression()?;
        self.expect_symbol(":")?;
        let otherwise = self.expression()?;
        let height = condition.height.max(then.height).max(otherwise.height);
        let kind = NodeKind::Conditional {
            condition: Box::new(condition.node),
            then: Box::new(then.node),
            otherwise: Box::new(otherwise.node),
        };
        self.grow(kind, condition.start, height)
    }

    /// Parses operands and operators that bind at least as tightly as `least`.
    fn operators(&mut self, least: Level) -> Result<Tree> {
        if self.at_keyword("NOT") && least <= Level::Not {
            let negation = self.unary(Unary::Not, Level::Not)?;
            return self.climb(negation, least, Some(Level::Not));
        }
        let operand = self.signed()?;
        self.climb(operand, least, None)
    }

    /// Parses an operand with the operators before it. `NOT` binds this tightly only where it can do nothing else, as in
    /// `a = NOT b`.
    fn signed(&mut self) -> Result<Tree> {
        match self.token {
            Token::Symbol("~") => self.unary(Unary::BitNot, Level::Sign),
            Token::Symbol(sign @ ("+" | "-")) => {
                if self.lexer.number_follows() {
                    return self.signed_number(sign == "-");
                }
                self.unary(if sign == "-" { Unary::Minus } else { Unary::Plus }, Level::Sign)
            }
            _ if self.at_keyword("NOT") => self.unary(Unary::Not, Level::Sign),
            _ => self.operand(),
        }
    }

    /// Parses an operator before its operand; the operator is the current token.
    fn unary(&mut self, operator: Unary, level: Level) -> Result<Tree> {
        let start = self.span.start;
        self.advance()?;
        let operand = self.deeper(|parser| parser.operators(level))?;
        let kind = NodeKind::Unary { operator, operand: Box::new(operand.node) };
        self.grow(kind, start, operand.height)
    }

    /// Makes `left` the left side of every operator that follows, binds at least as tightly as `least`, and more
    /// loosely than the ceiling.
    fn climb(&mut self, mut left: Tree, least: Level, mut ceiling: Option<Level>) -> Result<Tree> {
        while let Some(infix) = self.infix() {
            let level = match infix {
                Infix::Operator(operator) => level_of(operator),
                Infix::Predicate => Level::Predicate,
            };
            if level < least || ceiling.is_some_and(|ceiling| level >= ceiling) {
                break;
            }
            left = match infix {
                Infix::Operator(_) => self.chain(left, level)?,
                Infix::Predicate => self.predicate(left)?,
            };
            ceiling = Some(level);
        }
        Ok(left)
    }

    fn infix(&self) -> Option<Infix> {
        let operator = match self.token {
            Token::Symbol(symbol) => operator_of(symbol)?,
            Token::Word(word) => match word.len() {
                2 if word.eq_ignore_ascii_case("OR") => Binary::Or,
                3 if word.eq_ignore_ascii_case("AND") => Binary::And,
                2 if word.eq_ignore_ascii_case("IN") => return Some(Infix::Predicate),
                3 | 4 | 7 if ["NOT", "LIKE", "BETWEEN"].iter().any(|word| self.at_keyword(word)) => {
                    return Some(Infix::Predicate);
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Infix::Operator(operator))
    }

    /// Parses all the operators of one level that follow, with their right sides.
    fn chain(&mut self, left: Tree, level: Level) -> Result<Tree> {
        // Comparisons are computed one inside the other: each is a level. All other chains are flat.
        let nests = matches!(level, Level::Equality | Level::Comparison);
        let mut height = left.height;
        let (first, mut rest) = match left.node.kind {
            // A chain of this level in parentheses at the very left is the beginning of this one.
            NodeKind::Chain { first, rest }
                if rest.first().is_some_and(|(operator, _)| level_of(*operator) == level) =>
            {
                height -= usize::from(!nests);
                (first, rest)
            }
            kind => (Box::new(Node { kind, span: left.node.span }), Vec::new()),
        };
        while let Some(Infix::Operator(operator)) = self.infix()
            && level_of(operator) == level
        {
            self.advance()?;
            let right = self.deeper(|parser| parser.operators(level.tighter()))?;
            height = height.max(right.height) + usize::from(nests);
            rest.push((operator, right.node));
        }
        self.grow(NodeKind::Chain { first, rest }, left.start, height - usize::from(nests))
    }

    /// Parses `[NOT] IN (...)`, `[NOT] BETWEEN a AND b` or `[NOT] LIKE a [ESCAPE 'b']` after an operand.
    fn predicate(&mut self, value: Tree) -> Result<Tree> {
        let negated = self.accept_keyword("NOT")?;
        let (start, mut height) = (value.start, value.height);
        let value = Box::new(value.node);
        let kind = if self.accept_keyword("IN")? {
            self.expect_symbol("(")?;
            let (list, highest) = self.list()?;
            self.expect_symbol(")")?;
            height = height.max(highest);
            NodeKind::In { negated, value, list }
        } else if self.accept_keyword("BETWEEN")? {
            let low = self.limb()?;
            self.expect_keyword("AND")?;
            let high = self.limb()?;
            height = height.max(low.height).max(high.height);
            NodeKind::Between { negated, value, low: Box::new(low.node), high: Box::new(high.node) }
        } else if self.accept_keyword("LIKE")? {
            let pattern = self.limb()?;
            height = height.max(pattern.height);
            NodeKind::Like { negated, value, pattern: Box::new(pattern.node), escape: self.escape()? }
        } else {
            return self.unexpected();
        };
        self.grow(kind, start, height)
    }

    /// Parses the operand to the right of a predicate's keyword.
    fn limb(&mut self) -> Result<Tree> {
        self.deeper(|parser| parser.operators(Level::BitOr))
    }

    fn escape(&mut self) -> Result<Option<Name>> {
        if !self.accept_keyword("ESCAPE")? {
            return Ok(None);
        }
        let Token::Text(text) = &self.token else { return self.unexpected() };
        let name = Name { text: text.clone(), span: self.span };
        self.advance()?;
        Ok(Some(name))
    }
}

fn operator_of(symbol: &str) -> Option<Binary> {
    Some(match symbol {
        "??" => Binary::Coalesce,
        "|" => Binary::BitOr,
        "^" => Binary::BitXor,
        "&" => Binary::BitAnd,
        "=" => Binary::Equal,
        "!=" | "<>" => Binary::NotEqual,
        "<" => Binary::Less,
        "<=" => Binary::LessOrEqual,
        ">" => Binary::Greater,
        ">=" => Binary::GreaterOrEqual,
        "||" => Binary::Concat,
        "<<" => Binary::ShiftLeft,
        ">>" => Binary::ShiftRight,
        ">>>" => Binary::ShiftRightZero,
        "+" => Binary::Add,
        "-" => Binary::Subtract,
        "*" => Binary::Multiply,
        "/" => Binary::Divide,
        "%" => Binary::Modulo,
        _ => return None,
    })
}
