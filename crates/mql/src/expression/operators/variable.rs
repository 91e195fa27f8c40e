//! `$let`, `$literal`, `$meta`, `$rand`, `$expr`: values that are not fields.

use std::sync::Arc;

use bson::{Value, ValueRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::node::{Node, Special};
use crate::expression::operand::Operand;
use crate::expression::parse::{Parser, named_fields};
use crate::expression::scope::{self, Scope};
use crate::expression::table::{Group, Names, Refusal, own, required};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[
        own("$let", parse_let),
        own("$literal", literal),
        own("$const", literal),
        own("$meta", meta),
        own("$rand", rand),
        own("$expr", parenthesis),
    ],
};

fn literal(_: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    Ok(Node::Constant(Some(argument.to_value())))
}

/// Parses `{$expr: ..}`, which stands for its argument.
fn parenthesis(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    parser.operand(argument)
}

const LET: Names = Names {
    parameters: &[
        required("vars", 16876, "Missing 'vars' parameter to $let"),
        required("in", 16877, "Missing 'in' parameter to $let"),
    ],
    not_a_document: Refusal(16874, "$let only supports an object as its argument"),
    unknown: Refusal(16875, "Unrecognized parameter to $let: {}"),
};

#[derive(Debug)]
struct Let {
    variables: Vec<(String, Node)>,
    body: Node,
}

fn parse_let(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let fields = named_fields(&LET, argument)?;
    let (Some(ValueRef::Document(vars)), Some(body)) = (fields[0], fields[1]) else {
        return Err(Error::location(10065, "invalid parameter: expected an object (vars)"));
    };
    let mut variables = Vec::new();
    for (name, value) in vars.iter() {
        scope::check_writable(name)?;
        variables.push((name.to_owned(), parser.operand(value)?));
    }
    let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
    let body = parser.with_names(&names, |parser| parser.operand(body))?;
    Ok(Node::Special(Arc::new(Let { variables, body })))
}

impl Special for Let {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let mut values = Vec::with_capacity(self.variables.len());
        for (name, node) in &self.variables {
            values.push((name.as_str(), node.evaluate(scope, context)?));
        }
        Ok(self.body.evaluate(&scope.with_all(&values), context)?.keep(context)?.into())
    }
}

/// The metadata of a document.
#[derive(Debug)]
struct Meta(&'static str);

/// The keywords of `$meta`.
const KEYWORDS: [&str; 10] = [
    "indexKey",
    "sortKey",
    "textScore",
    "randVal",
    "geoNearDistance",
    "geoNearPoint",
    "searchScore",
    "searchHighlights",
    "searchScoreDetails",
    "vectorSearchScore",
];

/// The keyword of metadata that documents do not have here.
const UNKNOWN_HERE: &str = "recordId";

fn meta(_: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let ValueRef::String(keyword) = argument else {
        return Err(Error::location(17307, "$meta only supports string arguments"));
    };
    if keyword == UNKNOWN_HERE {
        let message = format!("$meta with '{keyword}' is not supported");
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
    }
    match KEYWORDS.iter().find(|known| **known == keyword) {
        Some(known) => Ok(Node::Special(Arc::new(Meta(known)))),
        None => Err(Error::location(17308, format!("Unsupported argument to $meta: {keyword}"))),
    }
}

impl Special for Meta {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, _: &Context) -> Result<Operand<'a>> {
        Ok(Operand::borrowed(scope.meta(self.0)))
    }
}

#[derive(Debug)]
struct Rand;

fn rand(_: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let empty = match argument {
        ValueRef::Document(document) => document.is_empty(),
        ValueRef::Array(items) => items.is_empty(),
        _ => false,
    };
    if empty {
        Ok(Node::Special(Arc::new(Rand)))
    } else {
        Err(Error::location(3_040_501, "$rand does not currently accept arguments"))
    }
}

impl Special for Rand {
    fn evaluate<'a>(&'a self, _: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        // The 53 bits that a double between 0 and 1 can hold.
        Ok(Operand::Owned(Value::Double((context.random() >> 11) as f64 / (1_u64 << 53) as f64)))
    }
}
