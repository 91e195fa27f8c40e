//! Accumulators as expressions: over the items of one array, or over several arguments.
//!
//! Numeric accumulators ignore values that are not numbers; `$min` and `$max` ignore null and missing values.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use bson::{Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::node::{Node, Special};
use crate::expression::number::{Number, Sum};
use crate::expression::operand::{Operand, is_nullish, text};
use crate::expression::parse::{Parser, named_fields};
use crate::expression::scope::Scope;
use crate::expression::table::{Arity, Call, Group, Names, Refusal, own, positional, required};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[
        positional("$sum", Arity::Any, sum),
        positional("$avg", Arity::Any, average),
        positional("$min", Arity::Any, |call| extreme(call, Ordering::Less)),
        positional("$max", Arity::Any, |call| extreme(call, Ordering::Greater)),
        positional("$stdDevPop", Arity::Any, |call| deviation(call, 0)),
        positional("$stdDevSamp", Arity::Any, |call| deviation(call, 1)),
        own("$median", median),
        own("$percentile", percentile),
    ],
};

/// Returns the values to count: a single array stands for its items.
fn values<'a>(call: &Call<'a>) -> impl Iterator<Item = Option<ValueRef<'a>>> {
    let single = match (call.arguments.len(), call.get(0)) {
        (1, Some(ValueRef::Array(items))) => Some(items),
        _ => None,
    };
    let given = call.values().filter(move |_| single.is_none());
    given.chain(single.into_iter().flat_map(|items| items.iter().map(Some)))
}

fn numbers(call: &Call<'_>) -> impl Iterator<Item = Number> {
    values(call).flatten().filter_map(Number::of)
}

fn sum(call: &Call<'_>) -> Result<Option<Value>> {
    let mut sum = Sum::default();
    let mut count = 0;
    for number in numbers(call) {
        sum.add(number);
        count += 1;
    }
    call.context.spend(count / 8)?;
    Ok(Some(sum.total().into()))
}

fn average(call: &Call<'_>) -> Result<Option<Value>> {
    let (mut sum, mut count) = (Sum::default(), 0);
    for number in numbers(call) {
        sum.add(number);
        count += 1;
    }
    call.context.spend(count / 8)?;
    Ok(Some(if count == 0 { Value::Null } else { sum.average(count).into() }))
}

fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<Option<Value>> {
    let mut kept: Option<ValueRef<'_>> = None;
    for value in values(call).filter(|value| !is_nullish(*value)) {
        call.context.spend(1)?;
        if kept.is_none() || call.scope.compare(value, kept) == wanted {
            kept = value;
        }
    }
    Ok(Some(kept.map_or(Value::Null, ValueRef::to_value)))
}

fn deviation(call: &Call<'_>, fewer: u64) -> Result<Option<Value>> {
    // Welford's algorithm: it does not subtract large squares.
    let (mut count, mut mean, mut squares) = (0_u64, 0.0, 0.0);
    for number in numbers(call) {
        let number = number.to_f64();
        count += 1;
        let distance = number - mean;
        mean += distance / count as f64;
        squares += distance * (number - mean);
    }
    call.context.spend(count / 8)?;
    Ok(Some(match count.checked_sub(fewer) {
        None | Some(0) => Value::Null,
        Some(divisor) => Value::Double((squares / divisor as f64).sqrt()),
    }))
}

const MEDIAN: Names = Names {
    parameters: &[
        required("input", 40414, "BSON field '$median.input' is missing but a required field"),
        required("method", 40414, "BSON field '$median.method' is missing but a required field"),
    ],
    not_a_document: Refusal(7_436_201, "specification must be an object; found $median: {}"),
    unknown: Refusal(40415, "BSON field '$median.{}' is an unknown field."),
};

const PERCENTILE: Names = Names {
    parameters: &[
        required("input", 40414, "BSON field '$percentile.input' is missing but a required field"),
        required("method", 40414, "BSON field '$percentile.method' is missing but a required field"),
        required("p", 40414, "BSON field '$percentile.p' is missing but a required field"),
    ],
    not_a_document: Refusal(7_436_200, "specification must be an object; found $percentile: {}"),
    unknown: Refusal(40415, "BSON field '$percentile.{}' is an unknown field."),
};

/// The values below which given shares of an array's numbers lie.
#[derive(Debug)]
struct Percentiles {
    input: Node,
    shares: Shares,
    /// Returns one value instead of a list.
    single: bool,
}

/// The shares that the request names.
#[derive(Debug)]
enum Shares {
    Fixed(Vec<f64>),
    /// By variables of the request.
    Given(Node),
}

fn median(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let fields = named_fields(&MEDIAN, argument)?;
    check_method(fields[1])?;
    let input = parser.operand(fields[0].unwrap_or(ValueRef::Null))?;
    Ok(Node::Special(Arc::new(Percentiles { input, shares: Shares::Fixed(vec![0.5]), single: true })))
}

fn percentile(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let fields = named_fields(&PERCENTILE, argument)?;
    check_method(fields[1])?;
    let input = parser.operand(fields[0].unwrap_or(ValueRef::Null))?;
    let written = fields[2].unwrap_or(ValueRef::Null);
    let shares = match parser.operand(written)? {
        Node::Constant(shares) => Shares::Fixed(shares_of(shares.as_ref().map(Value::view))?),
        node if parser.is_given(&node) => Shares::Given(node),
        _ => {
            let message = format!(
                "The $percentile 'p' field must be an array of constant values, but found value: {}.",
                text(Some(written))
            );
            return Err(Error::location(7_750_300, message));
        }
    };
    Ok(Node::Special(Arc::new(Percentiles { input, shares, single: false })))
}

fn check_method(method: Option<ValueRef<'_>>) -> Result<()> {
    match method {
        Some(ValueRef::String("approximate")) => Ok(()),
        _ => Err(Error::bad_value("Currently only 'approximate' can be used as percentile 'method'.")),
    }
}

fn shares_of(value: Option<ValueRef<'_>>) -> Result<Vec<f64>> {
    let wrong = |code: i32, found: String| {
        let words = "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: ";
        Error::location(code, format!("{words}{found}"))
    };
    let items = match value {
        Some(ValueRef::Array(items)) if !items.is_empty() => items,
        other => return Err(wrong(7_750_301, text(other))),
    };
    let share = |item: ValueRef<'_>| {
        let number = Number::of(item).ok_or_else(|| wrong(7_750_302, text(Some(item))))?;
        let share = number.to_f64();
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(wrong(7_750_303, number.to_string())) }
    };
    items.iter().map(share).collect()
}

impl Special for Percentiles {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let input = self.input.evaluate(scope, context)?;
        let mut samples: Vec<f64> = match input.view() {
            Some(ValueRef::Array(items)) => items.iter().filter_map(Number::of).map(Number::to_f64).collect(),
            Some(value) => Number::of(value).map(Number::to_f64).into_iter().collect(),
            None => Vec::new(),
        };
        let shares = match &self.shares {
            Shares::Fixed(shares) => Cow::Borrowed(shares),
            Shares::Given(node) => Cow::Owned(shares_of(node.evaluate(scope, context)?.view())?),
        };
        context.spend(samples.len() as u64 + shares.len() as u64)?;
        samples.sort_by(f64::total_cmp);
        let at = |share: &f64| {
            let rank = (share * samples.len() as f64).ceil() as usize;
            samples.get(rank.saturating_sub(1)).map_or(Value::Null, |value| Value::Double(*value))
        };
        Ok(Operand::Owned(if self.single { at(&0.5) } else { Value::Array(shares.iter().map(at).collect()) }))
    }
}
