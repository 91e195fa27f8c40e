//! Constant folding: expressions without variable inputs are computed once, before the first item.

use document::{Value, total_order};

use crate::evaluate::{Environment, MemoryBudget, evaluate};
use crate::functions::context::{Context, Fault};
use crate::logical::Expression;
use crate::row::Operand;

/// The work that all constants of a query may cost while it is being resolved. Further constants are computed by the run.
const BUDGET: u64 = 2_000_000;

/// The memory that all of them may take, intermediate results included. A short text can hold many calls that each make
/// megabytes.
const CONSTANT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Computes constants.
#[derive(Debug)]
pub(super) struct Folder {
    context: Context,
    memory: MemoryBudget,
    failures: u32,
}

/// The number of failures after which folding stops.
const FAILURES_MAX: u32 = 8;

impl Default for Folder {
    fn default() -> Folder {
        let memory = MemoryBudget::new("the constants", CONSTANT_BYTES_MAX);
        Folder { context: Context::new(0, 1).with_budget(BUDGET), memory, failures: 0 }
    }
}

impl Folder {
    /// Returns the expression, or the constant that it stands for.
    pub(super) fn fold(&mut self, expression: Expression) -> Expression {
        if self.failures >= FAILURES_MAX || !all_inside_constant(&expression) {
            return simplify(expression);
        }
        let left = self.context.left();
        let environment = Environment::empty();
        let value = evaluate(&expression, &environment, &self.context).map(Operand::into_value);
        if let Some(value) = &value {
            self.memory.add_value(value.view(), &self.context);
        }
        let Some(fault) = self.context.fault() else {
            return value.map_or(Expression::Undefined, Expression::Literal);
        };
        // The run will fail as well, but only if it evaluates this expression.
        self.failures = if fault == Fault::OutOfBudget { FAILURES_MAX } else { self.failures + 1 };
        self.context = Context::new(0, 1).with_budget(left / 2);
        expression
    }
}

/// Returns `true` if the value is known.
pub(super) fn is_constant(expression: &Expression) -> bool {
    matches!(expression, Expression::Literal(_) | Expression::Undefined)
}

/// Returns `true` if everything that the expression is computed from is constant, and so is what it does with that.
fn all_inside_constant(expression: &Expression) -> bool {
    match expression {
        // A subquery sees slots of its own; the few that are constant are not worth a special walk.
        Expression::Literal(_)
        | Expression::Undefined
        | Expression::Path { .. }
        | Expression::Subquery { .. } => false,
        Expression::Call(entry, arguments) => !is_volatile(entry.name) && arguments.iter().all(is_constant),
        Expression::Within { base: one, .. }
        | Expression::Not(one)
        | Expression::BitNot(one)
        | Expression::InConstants { value: one, .. }
        | Expression::Like { value: one, .. } => is_constant(one),
        Expression::LikeComputed { value, pattern, .. } => is_constant(value) && is_constant(pattern),
        Expression::Index { base, index } => is_constant(base) && is_constant(index),
        Expression::Array(all)
        | Expression::And(all)
        | Expression::Or(all)
        | Expression::Concat(all)
        | Expression::Coalesce(all) => all.iter().all(is_constant),
        Expression::Object(members) => members.iter().all(|(_, member)| is_constant(member)),
        Expression::Compare { left, right, .. } => is_constant(left) && is_constant(right),
        Expression::Arithmetic { first, rest } => {
            is_constant(first) && rest.iter().all(|(_, operand)| is_constant(operand))
        }
        Expression::Conditional { condition, then, otherwise } => {
            [condition, then, otherwise].into_iter().all(|part| is_constant(part))
        }
        Expression::In { value, list } => is_constant(value) && list.iter().all(is_constant),
        Expression::Between { value, low, high } => {
            [value, low, high].into_iter().all(|part| is_constant(part))
        }
    }
}

/// Returns `true` if a function gives different results for the same arguments, or depends on the time of the request.
fn is_volatile(name: &str) -> bool {
    matches!(name, "RAND" | "NOW" | "AGO") || name.starts_with("GETCURRENT")
}

/// Returns an expression with some constant parts in a simpler form.
fn simplify(expression: Expression) -> Expression {
    match expression {
        Expression::And(parts) => connect(parts, false),
        Expression::Or(parts) => connect(parts, true),
        Expression::Conditional { condition, then, otherwise } if is_constant(&condition) => {
            if *condition == Expression::Literal(Value::Bool(true)) { *then } else { *otherwise }
        }
        Expression::Compare { left, right, .. }
            if *left == Expression::Undefined || *right == Expression::Undefined =>
        {
            Expression::Undefined
        }
        Expression::In { value, list } if list.iter().all(|item| matches!(item, Expression::Literal(_))) => {
            Expression::InConstants { value, list: sorted(list) }
        }
        other => other,
    }
}

/// Returns a chain of `AND` (decided by false) or `OR` (decided by true), flat and without what does not matter in it.
fn connect(parts: Vec<Expression>, deciding: bool) -> Expression {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expression::Literal(Value::Bool(value)) if value == deciding => {
                return Expression::Literal(deciding.into());
            }
            Expression::Literal(Value::Bool(_)) => {}
            Expression::And(inner) if !deciding => kept.extend(inner),
            Expression::Or(inner) if deciding => kept.extend(inner),
            other => kept.push(other),
        }
    }
    // One part alone is not the same as that part: the chain is undefined where the part is no boolean.
    if deciding { Expression::Or(kept) } else { Expression::And(kept) }
}

fn sorted(list: Vec<Expression>) -> Vec<Value> {
    let value = |item| if let Expression::Literal(value) = item { Some(value) } else { None };
    let mut list: Vec<Value> = list.into_iter().filter_map(value).collect();
    let order = |one: &Value, other: &Value| total_order(Some(one.view()), Some(other.view()));
    list.sort_by(order);
    list.dedup_by(|one, other| order(one, other).is_eq());
    list
}
