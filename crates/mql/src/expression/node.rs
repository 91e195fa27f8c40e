//! The parsed tree and its evaluation.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::context::Context;
use crate::error::Result;
use crate::expression::operand::{Budget, Operand, bounded};
use crate::expression::scope::Scope;
use crate::expression::table::{Call, Function};
use crate::path::FieldPath;

/// A node of the expression tree. Operators other than comparisons are calls or [`Special`].
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A value, or the missing value.
    Constant(Option<Value>),
    /// `$a.b`
    Field(FieldPath),
    /// `$$name.a.b`
    Variable(Variable, Option<FieldPath>),
    /// A document whose fields are expressions; missing ones are left out.
    Document(Vec<(String, Node)>),
    /// An array whose items are expressions; missing ones are null.
    Array(Vec<Node>),
    /// `$eq` and its like.
    Compare(Comparison, Box<[Node; 2]>),
    /// An operator over evaluated arguments. An absent argument is `None`.
    Call { name: &'static str, function: Function, arguments: Vec<Option<Node>> },
    /// Everything that evaluates its arguments in its own way.
    Special(Arc<dyn Special>),
}

/// An operator that evaluates its arguments itself: some of them, many times, or with variables.
pub(crate) trait Special: fmt::Debug + Send + Sync {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>>;
}

/// A variable: the name after `$$`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    Root,
    Current,
    Now,
    ClusterTime,
    User(String),
}

impl Variable {
    /// Returns the name behind `$$`.
    pub(crate) fn name(&self) -> &str {
        match self {
            Variable::Root => "ROOT",
            Variable::Current => "CURRENT",
            Variable::Now => "NOW",
            Variable::ClusterTime => "CLUSTER_TIME",
            Variable::User(name) => name,
        }
    }
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    /// -1, 0 or 1.
    Order,
}

impl Comparison {
    fn answer(self, order: Ordering) -> Value {
        Value::Bool(match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Order => return Value::Int32(order as i32),
        })
    }
}

impl Node {
    /// Returns `true` if the value depends on nothing but variables for which `is_known` returns true.
    pub(crate) fn is_given(&self, is_known: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Node::Constant(_) => true,
            Node::Variable(Variable::User(name), _) => is_known(name),
            Node::Document(fields) => fields.iter().all(|(_, node)| node.is_given(is_known)),
            Node::Array(items) => items.iter().all(|node| node.is_given(is_known)),
            Node::Compare(_, sides) => sides.iter().all(|node| node.is_given(is_known)),
            // Time and randomness are not calls.
            Node::Call { arguments, .. } => arguments.iter().flatten().all(|node| node.is_given(is_known)),
            Node::Field(_) | Node::Variable(..) | Node::Special(_) => false,
        }
    }

    /// Returns the value in a scope.
    pub(crate) fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        context.spend(1)?;
        match self {
            Node::Constant(value) => Ok(Operand::borrowed(value.as_ref().map(Value::view))),
            Node::Field(path) => path.evaluate(scope.current(), context),
            Node::Variable(variable, path) => evaluate_variable(variable, path.as_ref(), scope, context),
            Node::Document(fields) => {
                let mut document = Document::new();
                let mut budget = Budget::new(context);
                for (name, node) in fields {
                    if let Some(value) = node.evaluate(scope, context)?.keep(context)? {
                        budget.bytes(name.len())?;
                        budget.item(value.view())?;
                        document.push(name.as_str(), value);
                    }
                }
                Ok(Operand::Owned(Value::Document(document)))
            }
            Node::Array(nodes) => {
                let mut items = Vec::with_capacity(nodes.len());
                let mut budget = Budget::new(context);
                for node in nodes {
                    let item = node.evaluate(scope, context)?.keep(context)?.unwrap_or(Value::Null);
                    budget.item(item.view())?;
                    items.push(item);
                }
                Ok(Operand::Owned(Value::Array(items)))
            }
            Node::Compare(comparison, sides) => {
                let left = sides[0].evaluate(scope, context)?;
                let right = sides[1].evaluate(scope, context)?;
                context.spend(comparison_work(left.view(), right.view()))?;
                Ok(Operand::Owned(comparison.answer(scope.compare(left.view(), right.view()))))
            }
            Node::Call { name, function, arguments } => {
                let values = evaluate_all(arguments, scope, context)?;
                let value = function(&Call { name, arguments: &values, scope, context })?;
                value.map(|value| bounded(value, context)).transpose().map(Operand::from)
            }
            Node::Special(special) => special.evaluate(scope, context),
        }
    }

    /// Returns whether the value counts as true.
    pub(crate) fn is_true(&self, scope: &Scope<'_>, context: &Context) -> Result<bool> {
        Ok(self.evaluate(scope, context)?.is_true())
    }

    /// Returns `true` if this is always the same.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Node::Constant(_))
    }
}

/// Returns the charge of a comparison in steps: most take one, long texts more, documents and arrays most.
fn comparison_work(left: Option<ValueRef<'_>>, right: Option<ValueRef<'_>>) -> u64 {
    match (left, right) {
        (Some(ValueRef::String(left)), Some(ValueRef::String(right))) => {
            left.len().min(right.len()) as u64 / 64
        }
        (Some(ValueRef::Document(_)), Some(ValueRef::Document(_)))
        | (Some(ValueRef::Array(_)), Some(ValueRef::Array(_))) => 64,
        _ => 0,
    }
}

/// Returns the values of arguments; an absent one stays absent.
pub(crate) fn evaluate_all<'a>(
    arguments: &'a [Option<Node>],
    scope: &'a Scope<'a>,
    context: &Context,
) -> Result<Vec<Option<Operand<'a>>>> {
    let evaluate =
        |argument: &'a Option<Node>| argument.as_ref().map(|node| node.evaluate(scope, context)).transpose();
    arguments.iter().map(evaluate).collect()
}

fn evaluate_variable<'a>(
    variable: &Variable,
    path: Option<&FieldPath>,
    scope: &'a Scope<'a>,
    context: &Context,
) -> Result<Operand<'a>> {
    let value = match variable {
        Variable::Root => Some(ValueRef::Document(scope.document())),
        Variable::Current => scope.current(),
        Variable::Now => Some(ValueRef::DateTime(context.now_millis)),
        Variable::ClusterTime => Some(ValueRef::Timestamp(context.timestamp)),
        Variable::User(name) => scope.variable(name, context)?,
    };
    match path {
        Some(path) => path.evaluate(value, context),
        None => Ok(Operand::borrowed(value)),
    }
}
