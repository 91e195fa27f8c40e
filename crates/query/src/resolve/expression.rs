//! Expressions: names, paths, operators.

use std::collections::BTreeSet;

use document::Value;

use super::query::{FromScope, whole};
use super::{MEMBERS_MAX, Resolver};
use crate::functions::like;
use crate::functions::list::weight;
use crate::logical::{Arithmetic, Comparison, Expression, Projection, Query, Segment};
use crate::syntax::ast::{self, Binary, Name, Node, NodeKind, Span, Step, SubqueryKind, Unary};

/// The placeholder that a client leaves in a rewritten query if it has no filter.
const FILTER_PLACEHOLDER: &str = "documentdb-formattableorderbyquery-filter";

impl Resolver<'_> {
    pub(super) fn expression(&mut self, node: &Node) -> Expression {
        let expression = match &node.kind {
            NodeKind::Literal(value) => return Expression::Literal(value.clone()),
            NodeKind::Undefined => return Expression::Undefined,
            NodeKind::Parameter(name) => return self.parameter(name, node.span),
            NodeKind::Name(name) => return self.name_of_source(name, node.span),
            NodeKind::Path { base, steps } => self.path(base, steps),
            NodeKind::Array(items) => Expression::Array(self.all(items)),
            NodeKind::Object(members) => self.object(members, node.span),
            NodeKind::Unary { operator, operand } => self.unary(*operator, operand),
            NodeKind::Chain { first, rest } => self.chain(first, rest),
            NodeKind::Conditional { condition, then, otherwise } => Expression::Conditional {
                condition: self.boxed(condition),
                then: self.boxed(then),
                otherwise: self.boxed(otherwise),
            },
            NodeKind::In { negated, value, list } => {
                let membership = Expression::In { value: self.boxed(value), list: self.all(list) };
                self.negate_if(*negated, membership)
            }
            NodeKind::Between { negated, value, low, high } => {
                let (value, low, high) = (self.boxed(value), self.boxed(low), self.boxed(high));
                self.negate_if(*negated, Expression::Between { value, low, high })
            }
            NodeKind::Like { negated, value, pattern, escape } => {
                let like = self.like(value, pattern, escape.as_ref());
                self.negate_if(*negated, like)
            }
            NodeKind::Call { name, udf, arguments } => self.call(name, *udf, arguments, node.span),
            NodeKind::Subquery { kind, query } => self.subquery(*kind, query),
            NodeKind::Placeholder(name) if name == FILTER_PLACEHOLDER => Expression::Literal(true.into()),
            NodeKind::Placeholder(_) => {
                let message = "Syntax error, incorrect syntax near '{'.".to_owned();
                self.report("SC1001", node.span, message)
            }
        };
        self.folder.fold(expression)
    }

    pub(super) fn boxed(&mut self, node: &Node) -> Box<Expression> {
        Box::new(self.expression(node))
    }

    pub(super) fn all(&mut self, nodes: &[Node]) -> Vec<Expression> {
        nodes.iter().map(|node| self.expression(node)).collect()
    }

    /// Returns the slot of the source of that name, in this query or in one around it.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.levels.iter().rev().find_map(|level| level.find(name)).map(|source| source.slot)
    }

    pub(super) fn unresolved(&mut self, name: &str, span: Span) -> Expression {
        let span = Span { start: span.start, end: span.start + name.len().min(span.end - span.start) };
        self.report("SC2001", span, format!("Identifier '{name}' could not be resolved."))
    }

    /// Returns one constant step further into a value.
    pub(super) fn step(&mut self, value: Expression, segment: Segment) -> Expression {
        match (value, segment) {
            // Computed properties belong to the item alone.
            (Expression::Path { slot: 0, segments }, Segment::Name(name))
                if segments.is_empty() && self.is_computed(&name) =>
            {
                self.computed(&name)
            }
            (Expression::Path { slot, mut segments }, segment) => {
                segments.push(segment);
                Expression::Path { slot, segments }
            }
            (Expression::Within { base, mut segments }, segment) => {
                segments.push(segment);
                Expression::Within { base, segments }
            }
            (base, segment) => Expression::Within { base: Box::new(base), segments: vec![segment] },
        }
    }

    fn name_of_source(&mut self, name: &str, span: Span) -> Expression {
        match self.find(name) {
            Some(slot) => whole(slot),
            None => self.unresolved(name, span),
        }
    }

    fn parameter(&mut self, name: &str, span: Span) -> Expression {
        if let Some(value) = self.parameters.get(name).copied() {
            let fits = self.count_use(weight(value.view()), Some(span));
            return if fits { Expression::Literal(value.clone()) } else { Expression::Undefined };
        }
        let message = format!("The query uses the parameter '{name}', but no value for it was given.");
        self.report("SC9002", span, message)
    }

    fn path(&mut self, base: &Node, steps: &[Step]) -> Expression {
        let mut value = self.expression(base);
        for step in steps {
            let index = match step {
                Step::Dot(name) => {
                    value = self.step(value, Segment::Name(name.text.clone()));
                    continue;
                }
                Step::Index(index) => self.expression(index),
            };
            value = if let Some(segment) = constant_segment(&index) {
                self.step(value, segment)
            } else {
                Expression::Index { base: Box::new(value), index: Box::new(index) }
            };
        }
        value
    }

    fn object(&mut self, members: &[(Name, Node)], span: Span) -> Expression {
        if members.len() > MEMBERS_MAX {
            let message = format!("The object has more than {MEMBERS_MAX} members.");
            return self.report("SC9002", span, message);
        }
        let mut names = BTreeSet::new();
        let mut resolved = Vec::with_capacity(members.len());
        for (name, member) in members {
            if !names.insert(name.text.as_str()) {
                let message =
                    format!("The property name '{}' is specified more than once in the object.", name.text);
                self.report("SC9002", name.span, message);
            }
            resolved.push((name.text.clone(), self.expression(member)));
        }
        Expression::Object(resolved)
    }

    fn unary(&mut self, operator: Unary, operand: &Node) -> Expression {
        let operand = self.boxed(operand);
        let times = |factor| (Arithmetic::Multiply, Expression::Literal(Value::Int(factor)));
        match operator {
            Unary::Not => Expression::Not(operand),
            Unary::BitNot => Expression::BitNot(operand),
            Unary::Minus => Expression::Arithmetic { first: operand, rest: vec![times(-1)] },
            Unary::Plus => Expression::Arithmetic { first: operand, rest: vec![times(1)] },
        }
    }

    fn negate_if(&mut self, negated: bool, condition: Expression) -> Expression {
        let condition = self.folder.fold(condition);
        if negated { Expression::Not(Box::new(condition)) } else { condition }
    }

    /// Resolves operators of one level of precedence, from left to right.
    fn chain(&mut self, first: &Node, rest: &[(Binary, Node)]) -> Expression {
        let first = self.expression(first);
        let rest: Vec<_> =
            rest.iter().map(|(operator, operand)| (*operator, self.expression(operand))).collect();
        let Some((operator, _)) = rest.first() else { return first };
        let connect: fn(Vec<Expression>) -> Expression = match operator {
            Binary::Coalesce => Expression::Coalesce,
            Binary::Or => Expression::Or,
            Binary::And => Expression::And,
            Binary::Concat => Expression::Concat,
            _ => return self.operators(first, rest),
        };
        connect(std::iter::once(first).chain(rest.into_iter().map(|(_, operand)| operand)).collect())
    }

    fn operators(&mut self, first: Expression, rest: Vec<(Binary, Expression)>) -> Expression {
        let arithmetic: Option<Vec<_>> =
            rest.iter().map(|(operator, operand)| Some((arithmetic(*operator)?, operand.clone()))).collect();
        if let Some(rest) = arithmetic {
            return Expression::Arithmetic { first: Box::new(first), rest };
        }
        let mut value = first;
        for (operator, operand) in rest {
            let Some(operator) = comparison(operator) else { continue };
            let (left, right) = (Box::new(value), Box::new(operand));
            value = self.folder.fold(Expression::Compare { operator, left, right });
        }
        value
    }

    fn like(&mut self, value: &Node, pattern: &Node, escape: Option<&Name>) -> Expression {
        let value = self.boxed(value);
        let pattern = self.expression(pattern);
        let mut characters = escape.map(|escape| escape.text.chars());
        let escape_character = characters.as_mut().and_then(Iterator::next);
        if let (Some(escape), Some(rest)) = (escape, characters)
            && (escape_character.is_none() || rest.as_str() != "")
        {
            let message = "The ESCAPE of a LIKE must be one character.".to_owned();
            return self.report("SC9002", escape.span, message);
        }
        match pattern {
            Expression::Undefined => Expression::Undefined,
            Expression::Literal(pattern) => {
                let compiled = pattern.as_str().and_then(|pattern| like::compile(pattern, escape_character));
                compiled.map_or(Expression::Undefined, |pattern| Expression::Like {
                    value,
                    pattern: Box::new(pattern),
                })
            }
            pattern => {
                Expression::LikeComputed { value, pattern: Box::new(pattern), escape: escape_character }
            }
        }
    }

    fn subquery(&mut self, kind: SubqueryKind, query: &ast::Query) -> Expression {
        if self.asks_container(query) {
            return self.container_subquery(kind, query);
        }
        let first = self.level().free;
        let query = self.query(query, FromScope::Sources, first);
        if kind == SubqueryKind::Scalar
            && is_bare(&query)
            && let Projection::Value(value) = query.select
        {
            return value;
        }
        Expression::Subquery { kind, query: Box::new(query) }
    }
}

/// Returns `true` if `(SELECT VALUE e)` is nothing but `e`.
fn is_bare(query: &Query) -> bool {
    query.sources.is_empty()
        && query.filter.is_none()
        && !query.is_grouped()
        && query.skip == 0
        && query.take.is_none()
        && matches!(query.select, Projection::Value(_))
}

/// Returns the step that a constant index stands for.
fn constant_segment(index: &Expression) -> Option<Segment> {
    let Expression::Literal(index) = index else { return None };
    match index {
        Value::String(name) => Some(Segment::Name(name.clone())),
        other => usize::try_from(other.as_i64()?).ok().map(Segment::Index),
    }
}

fn arithmetic(operator: Binary) -> Option<Arithmetic> {
    Some(match operator {
        Binary::Add => Arithmetic::Add,
        Binary::Subtract => Arithmetic::Subtract,
        Binary::Multiply => Arithmetic::Multiply,
        Binary::Divide => Arithmetic::Divide,
        Binary::Modulo => Arithmetic::Modulo,
        Binary::BitAnd => Arithmetic::BitAnd,
        Binary::BitOr => Arithmetic::BitOr,
        Binary::BitXor => Arithmetic::BitXor,
        Binary::ShiftLeft => Arithmetic::ShiftLeft,
        Binary::ShiftRight => Arithmetic::ShiftRight,
        Binary::ShiftRightZero => Arithmetic::ShiftRightZero,
        _ => return None,
    })
}

fn comparison(operator: Binary) -> Option<Comparison> {
    Some(match operator {
        Binary::Equal => Comparison::Equal,
        Binary::NotEqual => Comparison::NotEqual,
        Binary::Less => Comparison::Less,
        Binary::LessOrEqual => Comparison::LessOrEqual,
        Binary::Greater => Comparison::Greater,
        Binary::GreaterOrEqual => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
