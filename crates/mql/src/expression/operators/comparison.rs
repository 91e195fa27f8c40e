//! Comparison: the order of all values, across all types. Unlike in filters, types are not kept apart.

use bson::ValueRef;

use crate::error::Result;
use crate::expression::node::{Comparison, Node};
use crate::expression::parse::Parser;
use crate::expression::table::{Group, own};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[
        own("$eq", |parser, name, argument| compare(parser, name, argument, Comparison::Equal)),
        own("$ne", |parser, name, argument| compare(parser, name, argument, Comparison::NotEqual)),
        own("$gt", |parser, name, argument| compare(parser, name, argument, Comparison::Greater)),
        own("$gte", |parser, name, argument| compare(parser, name, argument, Comparison::GreaterOrEqual)),
        own("$lt", |parser, name, argument| compare(parser, name, argument, Comparison::Less)),
        own("$lte", |parser, name, argument| compare(parser, name, argument, Comparison::LessOrEqual)),
        own("$cmp", |parser, name, argument| compare(parser, name, argument, Comparison::Order)),
    ],
};

fn compare(
    parser: &mut Parser<'_>,
    name: &str,
    argument: ValueRef<'_>,
    comparison: Comparison,
) -> Result<Node> {
    Ok(Node::Compare(comparison, Box::new(parser.exactly(name, argument)?)))
}
