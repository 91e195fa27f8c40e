//! Why a document violates a schema: the contents of `errInfo.details` of a refused write.
//!
//! The explainer evaluates the schema as it was written, keyword by keyword, each with its companions. So the explanation
//! has no rules of its own about keywords and cannot disagree with the check.

use bson::{Document, DocumentRef, Value, ValueRef};

use super::Schema;
use crate::context::Context;
use crate::error::Result;
use crate::filter::explain_limits::{is_shown, push_shown, spend_on};
use crate::regex::PatternBudget;

/// The depth to which properties are explained.
const DEPTH_MAX: usize = 32;

/// Keywords that only modify another keyword.
const COMPANIONS: &[(&str, &str)] = &[
    ("exclusiveMinimum", "minimum"),
    ("exclusiveMaximum", "maximum"),
    ("additionalItems", "items"),
    ("title", ""),
    ("description", ""),
];

/// Keywords that name properties, and so say which ones are additional.
const NAMED: [&str; 2] = ["properties", "patternProperties"];

/// Returns every rule of a schema that a document violates. The work counts in the context, and ends with it.
pub(crate) fn explain_schema(
    schema: DocumentRef<'_>,
    document: DocumentRef<'_>,
    context: &Context,
) -> Result<Vec<Document>> {
    broken_rules(schema, ValueRef::Document(document), DEPTH_MAX, context)
}

fn broken_rules(
    schema: DocumentRef<'_>,
    value: ValueRef<'_>,
    depth: usize,
    context: &Context,
) -> Result<Vec<Document>> {
    let mut broken = Vec::new();
    for (keyword, asked) in schema.iter() {
        if COMPANIONS.iter().any(|(companion, _)| *companion == keyword) {
            continue;
        }
        let alone = with_companions(schema, keyword, asked);
        spend_on(&alone, context)?;
        if Schema::parse(Value::Document(alone.clone()).view(), &PatternBudget::default())?
            .accepts(value, context)?
        {
            continue;
        }
        let shown = Document::new().with("operatorName", keyword);
        let specified = |mut shown: Document| {
            push_shown(&mut shown, "specifiedAs", Value::Document(alone.clone()));
            shown
        };
        broken.push(match (keyword, value, asked) {
            ("properties", ValueRef::Document(document), ValueRef::Document(asked)) if depth > 0 => {
                let properties = broken_properties(asked, document, depth - 1, context)?;
                if properties.is_empty() {
                    // Another keyword about fields is violated and reported.
                    continue;
                }
                shown.with("propertiesNotSatisfied", properties)
            }
            ("required", ValueRef::Document(document), ValueRef::Array(names)) => {
                let missing = names
                    .iter()
                    .filter(|name| name.as_str().is_some_and(|name| document.get(name).is_none()));
                let missing: Vec<Value> = missing.map(ValueRef::to_value).collect();
                specified(shown).with("missingProperties", missing)
            }
            _ => {
                let mut shown = specified(shown).with("reason", reason(keyword));
                if is_shown(value) {
                    shown.push("consideredValue", value.to_value());
                }
                shown.with("consideredType", value.kind().alias())
            }
        });
    }
    Ok(broken)
}

/// Creates a keyword with those that belong to it, as a schema of its own.
fn with_companions(schema: DocumentRef<'_>, keyword: &str, asked: ValueRef<'_>) -> Document {
    let mut alone = Document::new().with(keyword, asked.to_value());
    for (other, value) in schema.iter().filter(|(other, _)| *other != keyword) {
        if COMPANIONS.iter().any(|(name, of)| *name == other && *of == keyword) {
            alone.push(other, value.to_value());
        } else if keyword == "additionalProperties" && NAMED.contains(&other) {
            alone.push(other, names_alone(value));
        }
    }
    alone
}

/// Returns the names of properties, each with an empty schema.
fn names_alone(properties: ValueRef<'_>) -> Document {
    let names = properties.as_document().into_iter().flat_map(bson::DocumentRef::iter);
    names.map(|(name, _)| (name, Value::Document(Document::new()))).collect()
}

fn broken_properties(
    asked: DocumentRef<'_>,
    document: DocumentRef<'_>,
    depth: usize,
    context: &Context,
) -> Result<Vec<Value>> {
    let mut properties = Vec::new();
    for (name, schema) in asked.iter() {
        let (Some(value), ValueRef::Document(schema)) = (document.get(name), schema) else { continue };
        let details = broken_rules(schema, value, depth, context)?;
        if details.is_empty() {
            continue;
        }
        let mut property = Document::new().with("propertyName", name);
        if let Some(description) = schema.get("description") {
            property.push("description", description.to_value());
        }
        let details: Vec<Value> = details.into_iter().map(Value::Document).collect();
        properties.push(Value::Document(property.with("details", details)));
    }
    Ok(properties)
}

fn reason(keyword: &str) -> &'static str {
    match keyword {
        "bsonType" | "type" => "type did not match",
        "minimum" | "maximum" => "comparison failed",
        "multipleOf" => "considered value is not a multiple of the specified value",
        "minLength" | "maxLength" => "specified string length was not satisfied",
        "pattern" => "regular expression did not match",
        "enum" => "value was not found in enum",
        "minItems" | "maxItems" => "array did not match specified length",
        "uniqueItems" => "found a duplicate item",
        "minProperties" | "maxProperties" => "specified number of properties was not satisfied",
        "additionalProperties" => "found properties that are not allowed",
        "not" => "child expression matched",
        _ => "the value does not match",
    }
}
