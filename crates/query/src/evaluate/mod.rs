//! Expressions over the slots of an environment, in the three-valued logic of the language.
//!
//! `None` is *undefined*: the value of a property that is not there, and of everything computed from one.
//!
//! | | |
//! |---|---|
//! | `=`, `!=` | undefined operand: undefined; different types: different; numbers by value, `1 = 1.0` |
//! | `<`, `<=`, `>`, `>=` | undefined unless both are of one scalar type |
//! | `AND` | false wins over undefined, undefined over true |
//! | `OR` | true wins over undefined, undefined over false |
//! | `NOT` | undefined stays undefined |
//! | non-boolean in `AND`, `OR`, `NOT` | counts as undefined |
//! | `+ - * / %`, `& \| ^ ~ << >> >>>` | undefined unless all are numbers, and where the result is no finite number |
//! | `\|\|` | undefined unless all are strings |
//! | `a ?? b` | `b` only where `a` is undefined; null is a value |
//! | `a ? b : c` | `b` only where `a` is true |
//!
//! Evaluation cannot fail. A value that exceeds a limit or makes the query impossible to answer is recorded as a fault in
//! the [`Context`], which the loop over rows checks after each row. Values are borrowed from the row where possible:
//! comparing a stored property with a constant builds nothing.

pub(crate) mod aggregate;
mod arithmetic;
mod build;
mod collect;
mod environment;
mod logic;
mod relate;
mod rows;

use document::ValueRef;

pub(crate) use build::{MemoryBudget, project};
pub(crate) use collect::Collector;
pub(crate) use environment::Environment;
pub(crate) use logic::{compare, truth};
pub(crate) use rows::{Flow, each_binding};

use crate::functions::context::Context;
use crate::functions::{Arg, Entry, number};
use crate::logical::{Expression, Query, Segment};
use crate::row::{Operand, Row};

impl Query {
    /// Returns `true` if the sources and the filter yield a row for the item.
    pub fn matches(&self, item: &dyn Row, context: &Context) -> bool {
        let mut found = false;
        each_binding(self, &Environment::of_item(item), context, &mut |_, _| {
            found = true;
            Flow::Enough
        });
        found
    }
}

/// Returns the value of an expression, `None` if undefined.
pub(crate) fn evaluate<'a>(
    expression: &'a Expression,
    environment: &'a Environment<'a>,
    context: &Context,
) -> Option<Operand<'a>> {
    match expression {
        Expression::Literal(value) => Some(Operand::Borrowed(value.view())),
        Expression::Undefined => None,
        Expression::Path { slot, segments } => environment.get(*slot, segments, context),
        Expression::Within { base, segments } => evaluate(base, environment, context)?.step_into(segments),
        Expression::Index { base, index } => {
            let segment = segment(evaluate(index, environment, context)?.view())?;
            evaluate(base, environment, context)?.step_into(&[segment])
        }
        Expression::Array(items) => build::array(items, environment, context),
        Expression::Object(members) => build::object(members, environment, context),
        Expression::Concat(parts) => build::concat(parts, environment, context),
        Expression::Arithmetic { first, rest } => {
            let mut result = evaluate(first, environment, context)?.view().as_f64()?;
            context.spend(rest.len() as u64).then_some(())?;
            for (operator, operand) in rest {
                let operand = evaluate(operand, environment, context)?.view().as_f64()?;
                result = arithmetic::apply(*operator, result, operand)?;
            }
            number(result).map(Operand::Owned)
        }
        Expression::BitNot(operand) => {
            let operand = evaluate(operand, environment, context)?.view().as_f64()?;
            arithmetic::bit_not(operand).and_then(number).map(Operand::Owned)
        }
        Expression::Coalesce(parts) => {
            context.spend(parts.len() as u64).then_some(())?;
            parts.iter().find_map(|part| evaluate(part, environment, context))
        }
        Expression::Conditional { condition, then, otherwise } => {
            let holds = truth(condition, environment, context) == Some(true);
            evaluate(if holds { then } else { otherwise }, environment, context)
        }
        Expression::Call(entry, arguments) => call(entry, arguments, environment, context),
        Expression::Subquery { kind, query } => rows::subquery(*kind, query, environment, context),
        Expression::Not(_)
        | Expression::And(_)
        | Expression::Or(_)
        | Expression::Compare { .. }
        | Expression::In { .. }
        | Expression::InConstants { .. }
        | Expression::Between { .. }
        | Expression::Like { .. }
        | Expression::LikeComputed { .. } => truth(expression, environment, context).map(Operand::from),
    }
}

/// Returns the step that a computed index stands for: a name, or a whole number that is not negative.
fn segment(index: ValueRef<'_>) -> Option<Segment> {
    match index {
        ValueRef::String(name) => Some(Segment::Name(name.to_owned())),
        other => usize::try_from(other.as_i64()?).ok().map(Segment::Index),
    }
}

/// Calls a function. Most take few arguments, which then stay on the stack.
fn call<'a>(
    entry: &Entry,
    arguments: &'a [Expression],
    environment: &'a Environment<'a>,
    context: &Context,
) -> Option<Operand<'a>> {
    if !context.spend(1) {
        return None;
    }
    let value = |argument| evaluate(argument, environment, context);
    let result = match arguments {
        [one] => {
            let one = value(one);
            (entry.run)(&[one.as_ref().map(Operand::view)], context)
        }
        [one, two] => {
            let (one, two) = (value(one), value(two));
            (entry.run)(&[one.as_ref().map(Operand::view), two.as_ref().map(Operand::view)], context)
        }
        all => {
            let all: Vec<_> = all.iter().map(value).collect();
            let views: Vec<Arg<'_>> = all.iter().map(|one| one.as_ref().map(Operand::view)).collect();
            (entry.run)(&views, context)
        }
    };
    result.map(Operand::Owned)
}
