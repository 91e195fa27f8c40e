//! Documents: their fields by name, as pairs, and merged.

use std::collections::HashMap;
use std::sync::Arc;

use bson::{Document, RawDocument, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::node::{Node, Special, Variable};
use crate::expression::operand::{Budget, Operand, array, bounded, is_nullish, text, type_name};
use crate::expression::parse::{Parser, named_fields};
use crate::expression::scope::Scope;
use crate::expression::table::{Arity, Call, Group, Names, Refusal, own, positional, required};
use crate::path::FieldPath;

pub(crate) const GROUP: Group = Group {
    foldable: true,
    operators: &[
        positional("$mergeObjects", Arity::Any, merge_objects),
        positional("$objectToArray", Arity::Exactly(1), object_to_array),
        positional("$arrayToObject", Arity::Exactly(1), array_to_object),
        own("$getField", get_field),
        own("$setField", set_field),
        own("$unsetField", unset_field),
        positional("$bsonSize", Arity::Exactly(1), bson_size),
        positional("$binarySize", Arity::Exactly(1), binary_size),
    ],
};

const NULL: Result<Option<Value>> = Ok(Some(Value::Null));

/// Fields that are set by name, each at the position where it was set first.
#[derive(Debug)]
struct Fields<'a> {
    document: Document,
    places: HashMap<String, usize>,
    budget: Budget<'a>,
}

impl Fields<'_> {
    fn new(context: &Context) -> Fields<'_> {
        Fields { document: Document::new(), places: HashMap::new(), budget: Budget::new(context) }
    }

    fn set(&mut self, name: &str, value: ValueRef<'_>) -> Result<()> {
        self.budget.bytes(name.len())?;
        self.budget.item(value)?;
        if let Some(place) = self.places.get(name) {
            self.document.fields_mut()[*place].1 = value.to_value();
        } else {
            self.places.insert(name.to_owned(), self.document.len());
            self.document.push(name, value.to_value());
        }
        Ok(())
    }
}

fn merge_objects(call: &Call<'_>) -> Result<Option<Value>> {
    let mut fields = Fields::new(call.context);
    // A single array stands for its items.
    let single = match (call.arguments.len(), call.get(0)) {
        (1, Some(ValueRef::Array(items))) => Some(items),
        _ => None,
    };
    let given = call.values().filter(|_| single.is_none());
    for value in given.chain(single.into_iter().flat_map(|items| items.iter().map(Some))) {
        match value {
            Some(ValueRef::Document(document)) => {
                for (name, value) in document.iter() {
                    fields.set(name, value)?;
                }
            }
            value if is_nullish(value) => {}
            value => {
                let found = type_name(value);
                let message = format!(
                    "$mergeObjects requires object inputs, but input {} is of type {found}",
                    text(value)
                );
                return Err(Error::location(40400, message));
            }
        }
    }
    Ok(Some(Value::Document(fields.document)))
}

fn object_to_array(call: &Call<'_>) -> Result<Option<Value>> {
    match call.get(0) {
        Some(ValueRef::Document(document)) => {
            let pair = |(name, value): (&str, ValueRef<'_>)| {
                Value::Document(Document::new().with("k", name).with("v", value.to_value()))
            };
            Ok(Some(Value::Array(document.iter().map(pair).collect())))
        }
        value if is_nullish(value) => NULL,
        value => {
            let refusal = Refusal(40390, "$objectToArray requires a document input, found: {}");
            Err(refusal.about(type_name(value)))
        }
    }
}

fn array_to_object(call: &Call<'_>) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) {
        return NULL;
    }
    let items = array(call.get(0), Refusal(40386, "$arrayToObject requires an array input, found: {}"))?;
    let pairs = match items.get(0) {
        None => return Ok(Some(Value::Document(Document::new()))),
        Some(ValueRef::Array(_)) => true,
        Some(ValueRef::Document(_)) => false,
        other => {
            let refusal = Refusal(40398, "Unrecognised input type format for $arrayToObject: {}");
            return Err(refusal.about(type_name(other)));
        }
    };
    let mut fields = Fields::new(call.context);
    for item in items.iter() {
        let (key, value, code) = if pairs { pair_of_array(item)? } else { pair_of_document(item)? };
        if key.contains('\0') {
            return Err(Error::location(code, "Key field cannot contain an embedded null byte"));
        }
        fields.set(key, value)?;
    }
    Ok(Some(Value::Document(fields.document)))
}

fn pair_of_array(item: ValueRef<'_>) -> Result<(&str, ValueRef<'_>, i32)> {
    let words = "$arrayToObject requires a consistent input format. Elements must\
                 all be arrays or all be objects. Array was detected, now found: {}";
    let pair = array(Some(item), Refusal(40396, words))?;
    let mut parts = pair.iter();
    let (Some(key), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
        let words = "$arrayToObject requires an array of size 2 arrays,found array of size: {}";
        return Err(Refusal(40397, words).about(&pair.len().to_string()));
    };
    let words = "$arrayToObject requires an array of key-value pairs, where the key must be of type string. \
                 Found key type: {}";
    let key = key.as_str().ok_or_else(|| Refusal(40395, words).about(type_name(Some(key))))?;
    Ok((key, value, 4_940_400))
}

fn pair_of_document(item: ValueRef<'_>) -> Result<(&str, ValueRef<'_>, i32)> {
    let words = "$arrayToObject requires a consistent input format. Elements must\
                 all be arrays or all be objects. Object was detected, now found: {}";
    let ValueRef::Document(pair) = item else {
        return Err(Refusal(40391, words).about(type_name(Some(item))));
    };
    let count = pair.iter().count();
    if count != 2 {
        let words =
            "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{}";
        return Err(Refusal(40392, words).about(&count.to_string()));
    }
    let (Some(key), Some(value)) = (pair.get("k"), pair.get("v")) else {
        let words =
            "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {}";
        return Err(Refusal(40393, words).about(&text(Some(item))));
    };
    let words = "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of \
                 type string. Found type: {}";
    let key = key.as_str().ok_or_else(|| Refusal(40394, words).about(type_name(Some(key))))?;
    Ok((key, value, 4_940_401))
}

const GET: Names = Names {
    parameters: &[
        required("field", 3_041_702, "$getField requires 'field' to be specified"),
        required("input", 3_041_703, "$getField requires 'input' to be specified"),
    ],
    not_a_document: Refusal(3_041_702, "$getField requires 'field' to be specified"),
    unknown: Refusal(3_041_701, "$getField found an unknown argument: {}"),
};

#[derive(Debug)]
struct GetField {
    name: String,
    input: Node,
}

fn get_field(parser: &mut Parser<'_>, operator: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let named = match argument {
        ValueRef::Document(document) => document.iter().next().is_none_or(|(name, _)| !name.starts_with('$')),
        _ => false,
    };
    let (field, input) = if named {
        let fields = named_fields(&GET, argument)?;
        let field = |at: usize| fields[at].unwrap_or(ValueRef::Null);
        (parser.operand(field(0))?, parser.operand(field(1))?)
    } else {
        (parser.operand(argument)?, Node::Variable(Variable::Current, None))
    };
    let name = constant_name(operator, &field, [5_654_600, 5_654_601, 5_654_602])?;
    Ok(Node::Special(Arc::new(GetField { name, input })))
}

/// Returns the name that a `field` argument must be: a constant string. The codes: a path, not constant, not a string.
fn constant_name(operator: &str, field: &Node, codes: [i32; 3]) -> Result<String> {
    let path = match field {
        Node::Field(path) => Some(format!("${path}")),
        Node::Variable(variable, path) => {
            let path = path.iter().flat_map(FieldPath::names).map(|name| format!(".{name}"));
            Some(format!("$${}{}", variable.name(), path.collect::<String>()))
        }
        _ => None,
    };
    if let Some(path) = path {
        let message = format!(
            "'{path}' is a field path reference which is not allowed in this context. Did you mean {{$literal: '{path}'}}?"
        );
        return Err(Error::location(codes[0], message));
    }
    match field {
        Node::Constant(Some(Value::String(name))) => Ok(name.clone()),
        Node::Constant(other) => {
            let found = type_name(other.as_ref().map(Value::view));
            let message = format!("{operator} requires 'field' to evaluate to type String, but got {found}");
            Err(Error::location(codes[2], message))
        }
        _ => {
            let message = format!(
                "{operator} requires 'field' to evaluate to a constant, but got a non-constant argument"
            );
            Err(Error::location(codes[1], message))
        }
    }
}

impl Special for GetField {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        Ok(match self.input.evaluate(scope, context)? {
            Operand::Borrowed(ValueRef::Document(document)) => Operand::borrowed(document.get(&self.name)),
            Operand::Owned(Value::Document(mut document)) => document.remove(&self.name).into(),
            Operand::Missing => Operand::Missing,
            input if input.is_nullish() => Operand::Owned(Value::Null),
            _ => Operand::Missing,
        })
    }
}

const SET: Names = Names {
    parameters: &[
        required("field", 4_161_102, "$setField requires 'field' to be specified"),
        required("value", 4_161_103, "$setField requires 'value' to be specified"),
        required("input", 4_161_109, "$setField requires 'input' to be specified"),
    ],
    not_a_document: Refusal(4_161_100, "$setField only supports an object as its argument"),
    unknown: Refusal(4_161_101, "$setField found an unknown argument: {}"),
};

const UNSET: Names = Names {
    parameters: &[
        required("field", 4_161_102, "$unsetField requires 'field' to be specified"),
        required("input", 4_161_109, "$unsetField requires 'input' to be specified"),
    ],
    not_a_document: Refusal(4_161_100, "$unsetField only supports an object as its argument"),
    unknown: Refusal(4_161_101, "$unsetField found an unknown argument: {}"),
};

#[derive(Debug)]
struct SetField {
    name: String,
    value: Node,
    input: Node,
}

fn set_field(parser: &mut Parser<'_>, operator: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let fields = named_fields(&SET, argument)?;
    let field = |at: usize| fields[at].unwrap_or(ValueRef::Null);
    let name = parser.operand(field(0))?;
    let (value, input) = (parser.operand(field(1))?, parser.operand(field(2))?);
    set(operator, &name, value, input)
}

fn unset_field(parser: &mut Parser<'_>, operator: &'static str, argument: ValueRef<'_>) -> Result<Node> {
    let fields = named_fields(&UNSET, argument)?;
    let field = |at: usize| fields[at].unwrap_or(ValueRef::Null);
    let (name, input) = (parser.operand(field(0))?, parser.operand(field(1))?);
    set(operator, &name, Node::Constant(None), input)
}

fn set(operator: &str, name: &Node, value: Node, input: Node) -> Result<Node> {
    let name = constant_name(operator, name, [4_161_108, 4_161_106, 4_161_107])?;
    if name.contains('\0') {
        let message = format!("{operator} requires a 'field' without null bytes");
        return Err(Error::location(9_423_101, message));
    }
    Ok(Node::Special(Arc::new(SetField { name, value, input })))
}

impl Special for SetField {
    fn evaluate<'a>(&'a self, scope: &'a Scope<'a>, context: &Context) -> Result<Operand<'a>> {
        let mut document = match self.input.evaluate(scope, context)?.keep(context)? {
            Some(Value::Document(document)) => document,
            None | Some(Value::Null | Value::Undefined) => return Ok(Operand::Owned(Value::Null)),
            Some(_) => {
                let message = "$setField requires 'input' to evaluate to type Object";
                return Err(Error::location(4_161_105, message));
            }
        };
        match self.value.evaluate(scope, context)?.keep(context)? {
            Some(value) => document.insert(self.name.as_str(), value),
            None => {
                document.remove(&self.name);
            }
        }
        bounded(Value::Document(document), context).map(Operand::Owned)
    }
}

fn bson_size(call: &Call<'_>) -> Result<Option<Value>> {
    match call.get(0) {
        Some(ValueRef::Document(document)) => {
            Ok(Some(Value::Int32(RawDocument::from_view(document).as_bytes().len() as i32)))
        }
        value if is_nullish(value) => NULL,
        value => {
            Err(Refusal(31393, "$bsonSize requires a document input, found: {}").about(type_name(value)))
        }
    }
}

fn binary_size(call: &Call<'_>) -> Result<Option<Value>> {
    match call.get(0) {
        Some(ValueRef::String(text)) => Ok(Some(Value::Int32(text.len() as i32))),
        Some(ValueRef::Binary(binary)) => Ok(Some(Value::Int32(binary.bytes.len() as i32))),
        value if is_nullish(value) => NULL,
        value => {
            let refusal = Refusal(51276, "$binarySize requires a string or BinData argument, found: {}");
            Err(refusal.about(type_name(value)))
        }
    }
}
