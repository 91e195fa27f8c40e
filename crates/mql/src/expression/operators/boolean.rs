//! `$and`, `$or`, `$not`. The first two stop at the first argument that decides.

use std::sync::Arc;

use bson::Value;

use crate::context::Context;
use crate::error::Result;
use crate::expression::node::{Node, Special};
use crate::expression::operand::{Operand, is_true};
use crate::expression::scope::Scope;
use crate::expression::table::{Arity, Call, Group, own, positional};

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        own("$and", |parser, _, argument| Ok(decide(parser.list(argument)?, false))),
        own("$or", |parser, _, argument| Ok(decide(parser.list(argument)?, true))),
        positional("$not", Arity::Exactly(1), not),
    ],
};

/// True or false as soon as one argument is; the opposite if none is.
#[derive(Debug)]
struct Decide {
    arguments: Vec<Node>,
    deciding: bool,
}

fn decide(arguments: Vec<Node>, deciding: bool) -> Node {
    Node::Special(Arc::new(Decide { arguments, deciding }))
}

impl Special for Decide {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        for argument in &self.arguments {
            if argument.is_true(scope, context)? == self.deciding {
                return Ok(Operand::Owned(Value::Bool(self.deciding)));
            }
        }
        Ok(Operand::Owned(Value::Bool(!self.deciding)))
    }
}

fn not(call: &Call<'_>) -> Result<Option<Value>> {
    Ok(Some(Value::Bool(!call.get(0).is_some_and(is_true))))
}
