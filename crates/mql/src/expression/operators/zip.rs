//! `$zip`: rows of several arrays become columns.

use std::sync::Arc;

use bson::{ArrayRef, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::node::{Node, Special};
use crate::expression::operand::{Budget, Operand, text, type_name};
use crate::expression::parse::{Parser, named_fields};
use crate::expression::scope::Scope;
use crate::expression::table::{Group, Names, Refusal, optional, own};

pub(crate) const GROUP: Group = Group { foldable: false, operators: &[own("$zip", parse)] };

const NAMES: Names = Names {
    parameters: &[optional("inputs"), optional("defaults"), optional("useLongestLength")],
    not_a_document: Refusal(34460, "$zip only supports an object as an argument, found {}"),
    unknown: Refusal(34464, "$zip found an unknown argument: {}"),
};

#[derive(Debug)]
struct Zip {
    inputs: Vec<Node>,
    defaults: Vec<Node>,
    longest: bool,
}

fn parse(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let fields = named_fields(&NAMES, argument)?;
    let mut list = |field: Option<ValueRef<'_>>, refusal: Refusal| match field {
        None => Ok(Vec::new()),
        Some(list @ ValueRef::Array(_)) => parser.list(list),
        other => Err(refusal.about(type_name(other))),
    };
    let inputs = list(fields[0], Refusal(34461, "inputs must be an array of expressions, found {}"))?;
    let defaults = list(fields[1], Refusal(34462, "defaults must be an array of expressions, found {}"))?;
    let longest = match fields[2] {
        None => false,
        Some(ValueRef::Bool(longest)) => longest,
        other => {
            return Err(Refusal(34463, "useLongestLength must be a bool, found {}").about(type_name(other)));
        }
    };
    if inputs.is_empty() {
        return Err(Error::location(34465, "$zip requires at least one input array"));
    }
    if !longest && !defaults.is_empty() {
        return Err(Error::location(34466, "cannot specify defaults unless useLongestLength is true"));
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return Err(Error::location(34467, "defaults and inputs must have the same length"));
    }
    Ok(Node::Special(Arc::new(Zip { inputs, defaults, longest })))
}

impl Special for Zip {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let mut inputs = Vec::new();
        for input in &self.inputs {
            inputs.push(input.evaluate(scope, context)?);
        }
        let mut columns: Vec<ArrayRef<'_>> = Vec::new();
        for input in &inputs {
            match input.view() {
                Some(ValueRef::Array(items)) => columns.push(items),
                _ if input.is_nullish() => return Ok(Operand::Owned(Value::Null)),
                other => {
                    let message = format!("$zip found a non-array expression in input: {}", text(other));
                    return Err(Error::location(34468, message));
                }
            }
        }
        let mut defaults = Vec::new();
        for default in &self.defaults {
            defaults.push(default.evaluate(scope, context)?);
        }
        let lengths = columns.iter().map(|column| column.len());
        let rows = if self.longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
        let mut columns: Vec<_> = columns.into_iter().map(ArrayRef::iter).collect();
        let mut zipped = Vec::new();
        let mut budget = Budget::new(context);
        for _ in 0..rows {
            context.spend(columns.len() as u64)?;
            budget.bytes(8)?;
            let mut row = Vec::new();
            for (position, column) in columns.iter_mut().enumerate() {
                let item = column.next().or_else(|| defaults.get(position).and_then(Operand::view));
                let item = item.unwrap_or(ValueRef::Null);
                budget.item(item)?;
                row.push(item.to_value());
            }
            zipped.push(Value::Array(row));
        }
        Ok(Operand::Owned(Value::Array(zipped)))
    }
}
