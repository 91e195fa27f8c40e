//! From the query as written to one that can be run: names, functions and parameters are looked up here.
//!
//! Constant arrays and objects become literals on the way, so that evaluation builds nothing per item and the
//! access analysis sees a constant for what it is.

use std::collections::BTreeSet;

use document::{Object, Value};

use crate::Query;
use crate::ast::{Node, NodeKind, Statement};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::function::{Lookup, look_up};
use crate::lexer::Span;

/// Members of one object literal; an object that is built per item must stay small.
const MAX_MEMBERS: usize = 1024;

/// Checks a statement against the parameters it came with.
pub(crate) fn resolve(statement: Statement, parameters: &[(String, Value)]) -> Result<Query> {
    let mut seen = BTreeSet::new();
    if let Some((name, _)) = parameters.iter().find(|(name, _)| !seen.insert(name)) {
        return Err(Error::DuplicateParameter { name: name.clone() });
    }
    let Statement { alias, filter } = statement;
    let scope = Scope { alias: &alias, parameters };
    let filter = filter.map(|node| scope.expression(node)).transpose()?;
    Ok(Query { alias, filter })
}

struct Scope<'a> {
    alias: &'a str,
    parameters: &'a [(String, Value)],
}

impl Scope<'_> {
    fn expression(&self, node: Node) -> Result<Expression> {
        let Span { start, end } = node.span;
        Ok(match node.kind {
            NodeKind::Literal(value) => Expression::Literal(value),
            NodeKind::Undefined => Expression::Undefined,
            NodeKind::Parameter(name) => match self.parameters.iter().find(|(given, _)| *given == name) {
                Some((_, value)) => Expression::Literal(value.clone()),
                None => return Err(Error::MissingParameter { name, start, end }),
            },
            NodeKind::Path { root, segments } if root == self.alias => Expression::Path(segments),
            NodeKind::Path { root: name, .. } => {
                let end = start + name.len();
                return Err(Error::Unresolved { name, start, end });
            }
            NodeKind::Array(items) => fold_array(self.all(items)?),
            NodeKind::Object(members) => self.object(members, node.span)?,
            NodeKind::Not(inner) => Expression::Not(self.boxed(*inner)?),
            NodeKind::And(parts) => Expression::And(self.all(parts)?),
            NodeKind::Or(parts) => Expression::Or(self.all(parts)?),
            NodeKind::Compare { operator, left, right } => {
                Expression::Compare { operator, left: self.boxed(*left)?, right: self.boxed(*right)? }
            }
            NodeKind::In { value, list } => {
                Expression::In { value: self.boxed(*value)?, list: self.all(list)? }
            }
            NodeKind::Between { value, low, high } => Expression::Between {
                value: self.boxed(*value)?,
                low: self.boxed(*low)?,
                high: self.boxed(*high)?,
            },
            NodeKind::Call { name, arguments } => self.call(name, arguments, node.span)?,
        })
    }

    fn boxed(&self, node: Node) -> Result<Box<Expression>> {
        self.expression(node).map(Box::new)
    }

    fn all(&self, nodes: Vec<Node>) -> Result<Vec<Expression>> {
        nodes.into_iter().map(|node| self.expression(node)).collect()
    }

    fn call(&self, name: String, arguments: Vec<Node>, span: Span) -> Result<Expression> {
        let Span { start, end } = span;
        match look_up(&name) {
            Lookup::Runs(function, expected) if arguments.len() == expected => {
                Ok(Expression::Call(function, self.all(arguments)?))
            }
            Lookup::Runs(_, expected) => {
                Err(Error::ArgumentCount { name, expected, given: arguments.len(), start, end })
            }
            Lookup::Known => Err(Error::NotSupported { what: format!("the function '{name}'"), start, end }),
            Lookup::Unknown => Err(Error::UnknownFunction { name, start, end }),
        }
    }

    fn object(&self, members: Vec<(String, Node)>, span: Span) -> Result<Expression> {
        let Span { start, end } = span;
        if members.len() > MAX_MEMBERS {
            let what = format!("an object with more than {MAX_MEMBERS} members");
            return Err(Error::NotSupported { what, start, end });
        }
        let mut names = BTreeSet::new();
        if let Some((near, member)) = members.iter().find(|(name, _)| !names.insert(name)) {
            let Span { start, end } = member.span;
            return Err(Error::Syntax { start, end, near: near.clone() });
        }
        let resolve = |(name, node)| Ok((name, self.expression(node)?));
        Ok(fold_object(members.into_iter().map(resolve).collect::<Result<_>>()?))
    }
}

fn fold_array(items: Vec<Expression>) -> Expression {
    if !items.iter().all(is_constant) {
        return Expression::Array(items);
    }
    Expression::Literal(Value::Array(items.into_iter().filter_map(constant).collect()))
}

fn fold_object(members: Vec<(String, Expression)>) -> Expression {
    if !members.iter().all(|(_, member)| is_constant(member)) {
        return Expression::Object(members);
    }
    let defined = members.into_iter().filter_map(|(name, member)| Some((name, constant(member)?)));
    Expression::Literal(Value::Object(defined.collect::<Object>()))
}

fn is_constant(expression: &Expression) -> bool {
    matches!(expression, Expression::Literal(_) | Expression::Undefined)
}

/// The value of a constant; `undefined` has none and leaves its array or object without a trace.
fn constant(expression: Expression) -> Option<Value> {
    if let Expression::Literal(value) = expression { Some(value) } else { None }
}
