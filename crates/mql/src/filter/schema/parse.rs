//! Reading a schema.

use bson::{DocumentRef, Kind, ValueRef};

use super::{Fields, Rest, Rule, Schema};
use crate::error::{Error, Result};
use crate::filter::node::TypeSet;
use crate::filter::types::type_set;
use crate::numbers::integer;
use crate::regex::{Pattern, PatternBudget};

/// Keywords of JSON Schema that are not supported.
const UNSUPPORTED: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

/// Keywords of client-side encryption, which the server cannot check.
const ENCRYPTION: [&str; 2] = ["encrypt", "encryptMetadata"];

/// Reads a schema.
pub(super) fn schema(schema: ValueRef<'_>, patterns: &PatternBudget) -> Result<Schema> {
    let Some(schema) = schema.as_document() else {
        return Err(Error::type_mismatch("$jsonSchema must be an object"));
    };
    Parser { schema, patterns, rules: Vec::new() }.run()
}

struct Parser<'a> {
    schema: DocumentRef<'a>,
    patterns: &'a PatternBudget,
    rules: Vec<Rule>,
}

impl<'a> Parser<'a> {
    fn run(mut self) -> Result<Schema> {
        if self.schema.get("type").is_some() && self.schema.get("bsonType").is_some() {
            let message = "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'";
            return Err(Error::failed_to_parse(message));
        }
        for (keyword, value) in self.schema.iter() {
            self.keyword(keyword, value)?;
        }
        self.ranges()?;
        self.items()?;
        self.fields()?;
        Ok(Schema { rules: self.rules })
    }

    fn keyword(&mut self, keyword: &str, value: ValueRef<'a>) -> Result<()> {
        let rule = match keyword {
            "type" => Rule::Types(json_types(value)?),
            "bsonType" => Rule::Types(bson_types(value)?),
            "enum" => Rule::Enum(enumeration(value)?),
            "multipleOf" => Rule::MultipleOf(divisor(value)?),
            "pattern" => Rule::Pattern(Pattern::parse(text(keyword, value)?, "", self.patterns)?),
            "uniqueItems" if flag(keyword, value)? => Rule::UniqueItems,
            "required" => Rule::Required(names(keyword, value)?),
            "dependencies" => return self.dependencies(value),
            "allOf" => Rule::AllOf(schemas(keyword, value, self.patterns)?),
            "anyOf" => Rule::AnyOf(schemas(keyword, value, self.patterns)?),
            "oneOf" => Rule::OneOf(schemas(keyword, value, self.patterns)?),
            "not" => Rule::Not(nested(keyword, value, self.patterns)?),
            "title" | "description" => {
                text(keyword, value)?;
                return Ok(());
            }
            // Parsed together below, because they only have a meaning together.
            "uniqueItems"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "minLength"
            | "maxLength"
            | "minItems"
            | "maxItems"
            | "minProperties"
            | "maxProperties"
            | "items"
            | "additionalItems"
            | "properties"
            | "patternProperties"
            | "additionalProperties" => return Ok(()),
            _ if UNSUPPORTED.contains(&keyword) => {
                let message = format!("$jsonSchema keyword '{keyword}' is not currently supported");
                return Err(Error::failed_to_parse(message));
            }
            _ if ENCRYPTION.contains(&keyword) => {
                let message =
                    format!("$jsonSchema keyword '{keyword}' is not supported: encryption is up to clients");
                return Err(Error::failed_to_parse(message));
            }
            _ => return Err(Error::failed_to_parse(format!("Unknown $jsonSchema keyword: {keyword}"))),
        };
        self.rules.push(rule);
        Ok(())
    }

    /// Lower and upper ends.
    fn ranges(&mut self) -> Result<()> {
        let schema = self.schema;
        let end = |keyword: &str, exclusive: &str| {
            let value = schema.get(keyword);
            if let Some(value) = value.filter(|value| !value.is_number()) {
                return Err(wrong_type(keyword, "a number", value));
            }
            let flag = schema.get(exclusive).map(|value| flag(exclusive, value)).transpose()?;
            if flag.is_some() && value.is_none() {
                let message = format!("$jsonSchema keyword '{exclusive}' requires '{keyword}' to be present");
                return Err(Error::failed_to_parse(message));
            }
            Ok(value.map(|value| (value.to_value(), flag.unwrap_or(false))))
        };
        if let Some((value, exclusive)) = end("minimum", "exclusiveMinimum")? {
            self.rules.push(Rule::Minimum { value, exclusive });
        }
        if let Some((value, exclusive)) = end("maximum", "exclusiveMaximum")? {
            self.rules.push(Rule::Maximum { value, exclusive });
        }
        let range = |least: &str, most: &str| {
            let bound = |keyword: &str| schema.get(keyword).map(|value| length(keyword, value)).transpose();
            match (bound(least)?, bound(most)?) {
                (None, None) => Ok(None),
                (least, most) => Ok(Some((least.unwrap_or(0), most.unwrap_or(u64::MAX)))),
            }
        };
        let (lengths, items, fields) = (
            range("minLength", "maxLength")?,
            range("minItems", "maxItems")?,
            range("minProperties", "maxProperties")?,
        );
        self.rules.extend(lengths.map(|(least, most)| Rule::Length { least, most }));
        self.rules.extend(items.map(|(least, most)| Rule::ItemCount { least, most }));
        self.rules.extend(fields.map(|(least, most)| Rule::FieldCount { least, most }));
        Ok(())
    }

    fn items(&mut self) -> Result<()> {
        let rest = rest(self.schema, "additionalItems", self.patterns)?;
        match self.schema.get("items") {
            Some(ValueRef::Array(items)) => {
                let schemas =
                    items.iter().map(|item| nested("items", item, self.patterns)).collect::<Result<_>>()?;
                self.rules.push(Rule::ItemList(schemas, rest));
            }
            Some(ValueRef::Document(items)) => {
                self.rules.push(Rule::Items(schema(ValueRef::Document(items), self.patterns)?));
            }
            Some(other) => return Err(wrong_type("items", "an array or an object", other)),
            None => {}
        }
        Ok(())
    }

    fn fields(&mut self) -> Result<()> {
        let each = |keyword: &str| match self.schema.get(keyword) {
            None => Ok(Vec::new()),
            Some(ValueRef::Document(fields)) => {
                let field =
                    |(name, value): (&'a str, ValueRef<'a>)| Ok((name, nested(name, value, self.patterns)?));
                fields.iter().map(field).collect::<Result<Vec<_>>>()
            }
            Some(other) => Err(wrong_type(keyword, "an object", other)),
        };
        let named = each("properties")?.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        let pattern =
            |(pattern, schema): (&str, Schema)| Ok((Pattern::parse(pattern, "", self.patterns)?, schema));
        let patterns = each("patternProperties")?.into_iter().map(pattern).collect::<Result<Vec<_>>>()?;
        let fields =
            Fields { named, patterns, rest: rest(self.schema, "additionalProperties", self.patterns)? };
        let says_something =
            !fields.named.is_empty() || !fields.patterns.is_empty() || !matches!(fields.rest, Rest::Anything);
        if says_something {
            self.rules.push(Rule::Fields(fields));
        }
        Ok(())
    }

    fn dependencies(&mut self, value: ValueRef<'_>) -> Result<()> {
        let Some(dependencies) = value.as_document() else {
            return Err(wrong_type("dependencies", "an object", value));
        };
        for (field, wanted) in dependencies.iter() {
            self.rules.push(match wanted {
                ValueRef::Document(_) => {
                    Rule::SchemaWith(field.to_owned(), nested(field, wanted, self.patterns)?)
                }
                ValueRef::Array(_) => Rule::RequiredWith(field.to_owned(), names("dependencies", wanted)?),
                other => return Err(wrong_type(field, "an object or an array", other)),
            });
        }
        Ok(())
    }
}

fn wrong_type(keyword: &str, wanted: &str, value: ValueRef<'_>) -> Error {
    let kind = value.kind().alias();
    Error::type_mismatch(format!(
        "$jsonSchema keyword '{keyword}' must be {wanted}, but found an element of type {kind}"
    ))
}

fn text<'a>(keyword: &str, value: ValueRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(keyword, "a string", value))
}

fn flag(keyword: &str, value: ValueRef<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| wrong_type(keyword, "a boolean", value))
}

fn length(keyword: &str, value: ValueRef<'_>) -> Result<u64> {
    if !value.is_number() {
        return Err(wrong_type(keyword, "a number", value));
    }
    integer(value).and_then(|length| u64::try_from(length).ok()).ok_or_else(|| {
        let text = bson::shell_text(value);
        Error::failed_to_parse(format!("Expected a non-negative number in: {keyword}: {text}"))
    })
}

fn nested(keyword: &str, value: ValueRef<'_>, patterns: &PatternBudget) -> Result<Schema> {
    match value {
        ValueRef::Document(_) => schema(value, patterns),
        other => Err(Error::type_mismatch(format!(
            "Nested schema for $jsonSchema property '{keyword}' must be an object, but found {}",
            other.kind().alias()
        ))),
    }
}

fn schemas(keyword: &str, value: ValueRef<'_>, patterns: &PatternBudget) -> Result<Vec<Schema>> {
    let items = value.as_array().ok_or_else(|| wrong_type(keyword, "an array", value))?;
    if items.is_empty() {
        return Err(Error::bad_value(format!("$jsonSchema keyword '{keyword}' must be a non-empty array")));
    }
    items.iter().map(|item| nested(keyword, item, patterns)).collect()
}

fn names(keyword: &str, value: ValueRef<'_>) -> Result<Vec<String>> {
    let items = value.as_array().ok_or_else(|| wrong_type(keyword, "an array", value))?;
    let mut names = Vec::new();
    for item in items.iter() {
        names.push(text(keyword, item)?.to_owned());
    }
    if names.is_empty() {
        let message = format!("$jsonSchema keyword '{keyword}' cannot be an empty array");
        return Err(Error::failed_to_parse(message));
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        let message = format!("$jsonSchema keyword '{keyword}' array cannot contain duplicate values");
        return Err(Error::failed_to_parse(message));
    }
    Ok(names)
}

fn enumeration(value: ValueRef<'_>) -> Result<Vec<bson::Value>> {
    let items = value.as_array().ok_or_else(|| wrong_type("enum", "an array", value))?;
    if items.is_empty() {
        return Err(Error::failed_to_parse("$jsonSchema keyword 'enum' cannot be an empty array"));
    }
    Ok(items.iter().map(ValueRef::to_value).collect())
}

fn divisor(value: ValueRef<'_>) -> Result<bson::Value> {
    if !value.is_number() {
        return Err(wrong_type("multipleOf", "a number", value));
    }
    if bson::compare(value, ValueRef::Int32(0)).is_le() {
        return Err(Error::failed_to_parse("$jsonSchema keyword 'multipleOf' must have a positive value"));
    }
    Ok(value.to_value())
}

fn rest(schema: DocumentRef<'_>, keyword: &str, patterns: &PatternBudget) -> Result<Rest> {
    match schema.get(keyword) {
        None | Some(ValueRef::Bool(true)) => Ok(Rest::Anything),
        Some(ValueRef::Bool(false)) => Ok(Rest::Nothing),
        Some(value @ ValueRef::Document(_)) => Ok(Rest::Like(Box::new(nested(keyword, value, patterns)?))),
        Some(other) => Err(wrong_type(keyword, "either an object or a boolean", other)),
    }
}

/// Names of JSON's own types, one or a list.
fn json_types(value: ValueRef<'_>) -> Result<TypeSet> {
    let one = |value: ValueRef<'_>| match value.as_str() {
        Some("object") => Ok(Kind::Document.into()),
        Some("array") => Ok(Kind::Array.into()),
        Some("number") => Ok(TypeSet::NUMBERS),
        Some("boolean") => Ok(Kind::Bool.into()),
        Some("string") => Ok(Kind::String.into()),
        Some("null") => Ok(Kind::Null.into()),
        Some("integer") => {
            Err(Error::failed_to_parse("$jsonSchema type 'integer' is not currently supported."))
        }
        Some(other) => Err(Error::bad_value(format!("Unknown type name alias: {other}"))),
        None => Err(wrong_type("type", "either a string or an array of strings", value)),
    };
    listed("type", value, one)
}

fn bson_types(value: ValueRef<'_>) -> Result<TypeSet> {
    let one = |value: ValueRef<'_>| match value {
        ValueRef::String(_) => type_set(value, "bsonType"),
        other => Err(wrong_type("bsonType", "either a string or an array of strings", other)),
    };
    listed("bsonType", value, one)
}

fn listed<'a>(
    keyword: &str,
    value: ValueRef<'a>,
    one: impl Fn(ValueRef<'a>) -> Result<TypeSet>,
) -> Result<TypeSet> {
    let ValueRef::Array(items) = value else { return one(value) };
    if items.is_empty() {
        return Err(Error::failed_to_parse(format!(
            "$jsonSchema keyword '{keyword}' must name at least one type"
        )));
    }
    items.iter().try_fold(TypeSet::default(), |types, item| Ok(types.with(one(item)?)))
}
