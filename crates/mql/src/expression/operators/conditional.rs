//! `$cond`, `$ifNull`, `$switch`: only the branch that is taken is evaluated.

use std::sync::Arc;

use bson::ValueRef;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::node::{Node, Special};
use crate::expression::operand::{Operand, type_name};
use crate::expression::parse::{Parser, named_fields};
use crate::expression::scope::Scope;
use crate::expression::table::{Group, Names, Refusal, optional, own, required};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[own("$cond", condition), own("$ifNull", if_null), own("$switch", switch)],
};

/// The first branch whose condition holds.
#[derive(Debug)]
struct Branches {
    branches: Vec<(Node, Node)>,
    otherwise: Option<Node>,
}

impl Special for Branches {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        for (condition, value) in &self.branches {
            if condition.is_true(scope, context)? {
                return value.evaluate(scope, context);
            }
        }
        match &self.otherwise {
            Some(value) => value.evaluate(scope, context),
            None => Err(Error::location(
                40066,
                "$switch could not find a matching branch for an input, and no default was specified.",
            )),
        }
    }
}

const CONDITION: Names = Names {
    parameters: &[
        required("if", 17080, "Missing 'if' parameter to $cond"),
        required("then", 17081, "Missing 'then' parameter to $cond"),
        required("else", 17082, "Missing 'else' parameter to $cond"),
    ],
    not_a_document: Refusal(16020, "Expression $cond takes exactly 3 arguments. 1 were passed in."),
    unknown: Refusal(17083, "Unrecognized parameter to $cond: {}"),
};

fn condition(parser: &mut Parser<'_>, name: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let [condition, then, otherwise] = if let ValueRef::Document(_) = argument {
        let fields = named_fields(&CONDITION, argument)?;
        let nodes: Vec<Node> =
            fields.into_iter().flatten().map(|field| parser.operand(field)).collect::<Result<_>>()?;
        nodes.try_into().map_err(|_| CONDITION.not_a_document.about(""))?
    } else {
        parser.exactly(name, argument)?
    };
    Ok(Node::Special(Arc::new(Branches { branches: vec![(condition, then)], otherwise: Some(otherwise) })))
}

const SWITCH: Names = Names {
    parameters: &[required("branches", 40068, "$switch requires at least one branch."), optional("default")],
    not_a_document: Refusal(40060, "$switch requires an object as an argument, found: {}"),
    unknown: Refusal(40067, "$switch found an unknown argument: {}"),
};

const BRANCH: Names = Names {
    parameters: &[
        required("case", 40064, "$switch requires each branch have a 'case' expression"),
        required("then", 40065, "$switch requires each branch have a 'then' expression."),
    ],
    not_a_document: Refusal(40062, "$switch expected each branch to be an object, found: {}"),
    unknown: Refusal(40063, "$switch found an unknown argument to a branch: {}"),
};

fn switch(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let fields = named_fields(&SWITCH, argument)?;
    let Some(ValueRef::Array(branches)) = fields[0] else {
        let found = type_name(fields[0]);
        return Err(Error::location(
            40061,
            format!("$switch expected an array for 'branches', found: {found}"),
        ));
    };
    let mut read = Vec::new();
    for branch in branches.iter() {
        let mut parts = parser.named(&BRANCH, branch)?.into_iter().flatten();
        if let (Some(case), Some(then)) = (parts.next(), parts.next()) {
            read.push((case, then));
        }
    }
    if read.is_empty() {
        return Err(Error::location(40068, "$switch requires at least one branch."));
    }
    let otherwise = fields[1].map(|value| parser.operand(value)).transpose()?;
    Ok(Node::Special(Arc::new(Branches { branches: read, otherwise })))
}

/// The first argument that is present, or the last.
#[derive(Debug)]
struct IfNull {
    arguments: Vec<Node>,
    last: Node,
}

fn if_null(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let mut arguments = parser.list(argument)?;
    let count = arguments.len();
    match arguments.pop() {
        Some(last) if count > 1 => Ok(Node::Special(Arc::new(IfNull { arguments, last }))),
        _ => {
            let message = format!("$ifNull needs at least two arguments, had: {count}");
            Err(Error::location(1_257_300, message))
        }
    }
}

impl Special for IfNull {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        for argument in &self.arguments {
            let value = argument.evaluate(scope, context)?;
            if !value.is_nullish() {
                return Ok(value);
            }
        }
        self.last.evaluate(scope, context)
    }
}
