//! `$sortArray`: an array in the order of its items, or of fields in them.

use std::cmp::Ordering;
use std::sync::Arc;

use bson::{DocumentRef, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::node::{Node, Special};
use crate::expression::number::Number;
use crate::expression::operand::{Operand, array, is_nullish};
use crate::expression::parse::{Parser, named_fields};
use crate::expression::scope::Scope;
use crate::expression::table::{Group, Names, Refusal, own, required};
use crate::path::FieldPath;

pub(crate) const GROUP: Group = Group { foldable: false, operators: &[own("$sortArray", parse)] };

const NAMES: Names = Names {
    parameters: &[
        required("input", 2_942_502, "$sortArray requires 'input' to be specified"),
        required("sortBy", 2_942_503, "$sortArray requires 'sortBy' to be specified"),
    ],
    not_a_document: Refusal(2_942_500, "$sortArray requires an object as an argument, found: {}"),
    unknown: Refusal(2_942_501, "$sortArray found an unknown argument: {}"),
};

#[derive(Debug)]
struct SortArray {
    input: Node,
    /// Paths and whether each descends; no path at all is the item itself.
    fields: Vec<(Option<FieldPath>, bool)>,
}

fn parse(parser: &mut Parser<'_>, _: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let arguments = named_fields(&NAMES, argument)?;
    let input = parser.operand(arguments[0].unwrap_or(ValueRef::Null))?;
    let fields = match arguments[1] {
        Some(ValueRef::Document(document)) => by_fields(document)?,
        Some(number) if number.is_number() => {
            let wrong = || Error::location(2_942_506, "The $sort element value must be either 1 or -1");
            vec![(None, descends(number).ok_or_else(wrong)?)]
        }
        _ => {
            let message = "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort \
                           embedded fields";
            return Err(Error::location(2_942_507, message));
        }
    };
    Ok(Node::Special(Arc::new(SortArray { input, fields })))
}

fn descends(direction: ValueRef<'_>) -> Option<bool> {
    match Number::of(direction)?.exact_i32()? {
        1 => Some(false),
        -1 => Some(true),
        _ => None,
    }
}

fn by_fields(document: DocumentRef<'_>) -> Result<Vec<(Option<FieldPath>, bool)>> {
    if document.is_empty() {
        return Err(Error::location(
            2_942_505,
            "The $sort pattern is empty when it should be a set of fields.",
        ));
    }
    let mut fields = Vec::new();
    for (name, direction) in document.iter() {
        let descends = descends(direction)
            .ok_or_else(|| Error::location(2_942_505, "The $sort element value must be either 1 or -1"))?;
        fields.push((Some(FieldPath::parse_aggregation(name)?), descends));
    }
    Ok(fields)
}

impl Special for SortArray {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let input = self.input.evaluate(scope, context)?;
        if input.is_nullish() {
            return Ok(Operand::Owned(Value::Null));
        }
        let words = "The input argument to $sortArray must be an array, but was of type: {}";
        let mut items: Vec<ValueRef<'_>> = array(input.view(), Refusal(2_942_504, words))?.iter().collect();
        let levels = u64::from(usize::BITS - items.len().leading_zeros());
        context.spend((items.len() * self.fields.len()) as u64 * levels)?;
        items.sort_by(|left, right| self.compare(scope, *left, *right));
        Ok(Operand::Owned(Value::Array(items.into_iter().map(ValueRef::to_value).collect())))
    }
}

impl SortArray {
    fn compare(&self, scope: &Scope<'_>, left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
        for (path, descends) in &self.fields {
            let order = match path {
                None => scope.compare(Some(left), Some(right)),
                Some(path) => scope.compare(Some(field(left, path)), Some(field(right, path))),
            };
            if order.is_ne() {
                return if *descends { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }
}

/// Returns the field of an item: a missing one is null, and an array on the way is only entered by a position.
fn field<'a>(item: ValueRef<'a>, path: &FieldPath) -> ValueRef<'a> {
    let mut at = Some(item);
    for name in path.names() {
        at = match at {
            Some(ValueRef::Document(document)) => document.get(name),
            Some(ValueRef::Array(items)) => name.parse().ok().and_then(|position| items.get(position)),
            _ => None,
        };
    }
    if is_nullish(at) { ValueRef::Null } else { at.unwrap_or(ValueRef::Null) }
}
