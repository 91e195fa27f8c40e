//! `$map`, `$filter`, `$reduce`: an expression for each item of an array.

use std::sync::Arc;

use bson::{ArrayRef, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::node::{Node, Special};
use crate::expression::number::Number;
use crate::expression::operand::{Budget, Operand, array, is_nullish, text};
use crate::expression::parse::{Parser, named_fields};
use crate::expression::scope::{self, Scope};
use crate::expression::table::{Group, Names, Refusal, optional, own, required};

pub(crate) const GROUP: Group =
    Group { foldable: false, operators: &[own("$map", map), own("$filter", filter), own("$reduce", reduce)] };

const MAP: Names = Names {
    parameters: &[
        required("input", 16880, "Missing 'input' parameter to $map"),
        optional("as"),
        required("in", 16882, "Missing 'in' parameter to $map"),
    ],
    not_a_document: Refusal(16878, "$map only supports an object as its argument"),
    unknown: Refusal(16879, "Unrecognized parameter to $map: {}"),
};

#[derive(Debug)]
struct Map {
    input: Node,
    name: String,
    body: Node,
}

fn map(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let (input, name, body, _) = parse(parser, &MAP, argument)?;
    Ok(Node::Special(Arc::new(Map { input, name, body })))
}

/// Reads the common parts of `$map` and `$filter`: the input, the name of an item, the expression for it, and the rest.
fn parse<'v>(
    parser: &mut Parser<'_>,
    names: &Names,
    argument: ValueRef<'v>,
) -> Result<(Node, String, Node, Option<ValueRef<'v>>)> {
    let fields = named_fields(names, argument)?;
    let input = parser.operand(fields[0].unwrap_or(ValueRef::Null))?;
    let name = match fields[1] {
        None => "this",
        Some(name) => name.as_str().unwrap_or_default(),
    };
    scope::check_writable(name)?;
    let body = fields[2].unwrap_or(ValueRef::Null);
    let body = parser.with_names(&[name], |parser| parser.operand(body))?;
    Ok((input, name.to_owned(), body, fields.get(3).copied().flatten()))
}

/// Returns the items of an input, or `None` for null.
fn items<'a>(input: &'a Operand<'_>, refusal: Refusal) -> Result<Option<ArrayRef<'a>>> {
    if input.is_nullish() { Ok(None) } else { array(input.view(), refusal).map(Some) }
}

impl Special for Map {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let input = self.input.evaluate(scope, context)?;
        let Some(items) = items(&input, Refusal(16883, "input to $map must be an array not {}"))? else {
            return Ok(Operand::Owned(Value::Null));
        };
        let mut mapped = Vec::new();
        let mut budget = Budget::new(context);
        for item in items.iter() {
            let inner = scope.with(&self.name, Some(item));
            let value = self.body.evaluate(&inner, context)?.keep(context)?.unwrap_or(Value::Null);
            budget.item(value.view())?;
            mapped.push(value);
        }
        Ok(Operand::Owned(Value::Array(mapped)))
    }
}

const FILTER: Names = Names {
    parameters: &[
        required("input", 28648, "Missing 'input' parameter to $filter"),
        optional("as"),
        required("cond", 28650, "Missing 'cond' parameter to $filter"),
        optional("limit"),
    ],
    not_a_document: Refusal(28646, "$filter only supports an object as its argument"),
    unknown: Refusal(28647, "Unrecognized parameter to $filter: {}"),
};

#[derive(Debug)]
struct Filter {
    input: Node,
    name: String,
    condition: Node,
    limit: Option<Node>,
}

fn filter(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let (input, name, condition, limit) = parse(parser, &FILTER, argument)?;
    let limit = limit.map(|limit| parser.operand(limit)).transpose()?;
    Ok(Node::Special(Arc::new(Filter { input, name, condition, limit })))
}

impl Filter {
    fn limit(&self, scope: &Scope<'_>, context: &Context) -> Result<usize> {
        let Some(limit) = &self.limit else { return Ok(usize::MAX) };
        let limit = limit.evaluate(scope, context)?;
        if limit.is_nullish() {
            return Ok(usize::MAX);
        }
        let written = || text(limit.view());
        let Some(count) = limit.view().and_then(Number::of).and_then(Number::exact_i32) else {
            let message =
                format!("$filter: limit must be represented as a 32-bit integral value: {}", written());
            return Err(Error::location(327_391, message));
        };
        match usize::try_from(count) {
            Ok(count) if count > 0 => Ok(count),
            _ => {
                Err(Error::location(327_392, format!("$filter: limit must be greater than 0: {}", written())))
            }
        }
    }
}

impl Special for Filter {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let input = self.input.evaluate(scope, context)?;
        let Some(items) = items(&input, Refusal(28651, "input to $filter must be an array not {}"))? else {
            return Ok(Operand::Owned(Value::Null));
        };
        let limit = self.limit(scope, context)?;
        let mut kept = Vec::new();
        let mut budget = Budget::new(context);
        for item in items.iter() {
            if self.condition.is_true(&scope.with(&self.name, Some(item)), context)? {
                budget.item(item)?;
                kept.push(item.to_value());
                if kept.len() == limit {
                    break;
                }
            }
        }
        Ok(Operand::Owned(Value::Array(kept)))
    }
}

const REDUCE: Names = Names {
    parameters: &[
        required("input", 40077, "$reduce requires 'input' to be specified"),
        required("initialValue", 40078, "$reduce requires 'initialValue' to be specified"),
        required("in", 40079, "$reduce requires 'in' to be specified"),
    ],
    not_a_document: Refusal(40075, "$reduce requires an object as an argument, found: {}"),
    unknown: Refusal(40076, "$reduce found an unknown argument: {}"),
};

#[derive(Debug)]
struct Reduce {
    input: Node,
    initial: Node,
    body: Node,
}

fn reduce(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let fields = named_fields(&REDUCE, argument)?;
    let field = |at: usize| fields[at].unwrap_or(ValueRef::Null);
    let input = parser.operand(field(0))?;
    let initial = parser.operand(field(1))?;
    let body = parser.with_names(&["this", "value"], |parser| parser.operand(field(2)))?;
    Ok(Node::Special(Arc::new(Reduce { input, initial, body })))
}

impl Special for Reduce {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let input = self.input.evaluate(scope, context)?;
        if is_nullish(input.view()) {
            return Ok(Operand::Owned(Value::Null));
        }
        let Some(ValueRef::Array(items)) = input.view() else {
            let found = text(input.view());
            let message = format!("$reduce requires that 'input' be an array, found: {found}");
            return Err(Error::location(40080, message));
        };
        let mut total = self.initial.evaluate(scope, context)?.keep(context)?;
        for item in items.iter() {
            let names = [("this", Operand::Borrowed(item)), ("value", total.into())];
            total = self.body.evaluate(&scope.with_all(&names), context)?.keep(context)?;
        }
        Ok(total.into())
    }
}
