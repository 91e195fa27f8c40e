//! Validation of values by a schema.

use bson::{ArrayRef, Decimal128, DocumentRef, Value, ValueRef};

use super::{Fields, Rest, Rule, Schema};
use crate::context::Context;
use crate::error::Result;
use crate::numbers::integer;

impl Schema {
    /// Returns whether a value satisfies all rules.
    pub(super) fn accepts(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        for rule in &self.rules {
            context.spend(1)?;
            if !rule.accepts(value, context)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Rule {
    fn accepts(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        match (self, value) {
            (Rule::Types(types), value) => Ok(types.contains(value.kind())),
            (Rule::Enum(values), value) => {
                context.spend(values.len() as u64)?;
                Ok(values.iter().any(|known| bson::equal(known.view(), value)))
            }
            (Rule::AllOf(schemas), value) => {
                Ok(count(schemas, value, schemas.len(), context)? == schemas.len())
            }
            (Rule::AnyOf(schemas), value) => Ok(count(schemas, value, 1, context)? >= 1),
            (Rule::OneOf(schemas), value) => Ok(count(schemas, value, 2, context)? == 1),
            (Rule::Not(schema), value) => Ok(!schema.accepts(value, context)?),
            (rule, ValueRef::String(text)) => rule.accepts_text(text, context),
            (rule, ValueRef::Array(items)) => rule.accepts_items(items, context),
            (rule, ValueRef::Document(document)) => rule.accepts_fields(document, context),
            (rule, value) if value.is_number() => Ok(rule.accepts_number(value)),
            _ => Ok(true),
        }
    }

    fn accepts_number(&self, value: ValueRef<'_>) -> bool {
        match self {
            Rule::Minimum { value: least, exclusive } => {
                let order = bson::compare(value, least.view());
                order.is_gt() || order.is_eq() && !exclusive
            }
            Rule::Maximum { value: most, exclusive } => {
                let order = bson::compare(value, most.view());
                order.is_lt() || order.is_eq() && !exclusive
            }
            Rule::MultipleOf(divisor) => is_multiple(value, divisor.view()),
            _ => true,
        }
    }

    fn accepts_text(&self, text: &str, context: &Context) -> Result<bool> {
        match self {
            Rule::Length { least, most } => {
                context.spend(text.len() as u64 / 64)?;
                let length = text.chars().count() as u64;
                Ok((*least..=*most).contains(&length))
            }
            Rule::Pattern(pattern) => pattern.is_match(text, context),
            _ => Ok(true),
        }
    }

    fn accepts_items(&self, items: ArrayRef<'_>, context: &Context) -> Result<bool> {
        match self {
            Rule::ItemCount { least, most } => Ok((*least..=*most).contains(&(items.len() as u64))),
            Rule::UniqueItems => {
                let mut values: Vec<Value> = items.iter().map(with_sorted_fields).collect();
                context.spend(values.len() as u64 * 8)?;
                values.sort_by(|left, right| bson::compare(left.view(), right.view()));
                Ok(values.windows(2).all(|pair| !bson::equal(pair[0].view(), pair[1].view())))
            }
            Rule::Items(schema) => {
                for item in items.iter() {
                    if !schema.accepts(item, context)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Rule::ItemList(schemas, rest) => {
                for (position, item) in items.iter().enumerate() {
                    let accepted = match schemas.get(position) {
                        Some(schema) => schema.accepts(item, context)?,
                        None => rest.accepts(item, context)?,
                    };
                    if !accepted {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn accepts_fields(&self, document: DocumentRef<'_>, context: &Context) -> Result<bool> {
        match self {
            Rule::FieldCount { least, most } => {
                Ok((*least..=*most).contains(&(document.iter().count() as u64)))
            }
            Rule::Required(names) => {
                context.spend(names.len() as u64)?;
                Ok(names.iter().all(|name| document.get(name).is_some()))
            }
            Rule::Fields(fields) => fields.accept(document, context),
            Rule::RequiredWith(field, names) => {
                Ok(document.get(field).is_none() || names.iter().all(|name| document.get(name).is_some()))
            }
            Rule::SchemaWith(field, schema) => {
                Ok(document.get(field).is_none() || schema.accepts(ValueRef::Document(document), context)?)
            }
            _ => Ok(true),
        }
    }
}

impl Fields {
    fn accept(&self, document: DocumentRef<'_>, context: &Context) -> Result<bool> {
        for (name, value) in document.iter() {
            context.spend(1 + self.named.len() as u64 / 8)?;
            let mut named = false;
            for (_, schema) in self.named.iter().filter(|(known, _)| known == name) {
                named = true;
                if !schema.accepts(value, context)? {
                    return Ok(false);
                }
            }
            for (pattern, schema) in &self.patterns {
                if pattern.is_match(name, context)? {
                    named = true;
                    if !schema.accepts(value, context)? {
                        return Ok(false);
                    }
                }
            }
            if !named && !self.rest.accepts(value, context)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Rest {
    fn accepts(&self, value: ValueRef<'_>, context: &Context) -> Result<bool> {
        match self {
            Rest::Anything => Ok(true),
            Rest::Nothing => Ok(false),
            Rest::Like(schema) => schema.accepts(value, context),
        }
    }
}

/// Returns the value with the fields of its documents sorted by name: `uniqueItems` ignores their order.
fn with_sorted_fields(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(document) => {
            let mut fields: Vec<(&str, Value)> =
                document.iter().map(|(name, value)| (name, with_sorted_fields(value))).collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::Document(fields.into_iter().collect())
        }
        ValueRef::Array(items) => Value::Array(items.iter().map(with_sorted_fields).collect()),
        other => other.to_value(),
    }
}

/// Returns how many of the schemas accept a value, counted up to a limit.
fn count(schemas: &[Schema], value: ValueRef<'_>, limit: usize, context: &Context) -> Result<usize> {
    let mut accepted = 0;
    for schema in schemas {
        accepted += usize::from(schema.accepts(value, context)?);
        if accepted == limit {
            break;
        }
    }
    Ok(accepted)
}

/// Returns `true` if the value is a multiple, computed with decimals, because 0.3 has to be a multiple of 0.1.
fn is_multiple(value: ValueRef<'_>, divisor: ValueRef<'_>) -> bool {
    let decimal = |number: ValueRef<'_>| match number {
        ValueRef::Double(number) => Decimal128::from_f64(number),
        ValueRef::Decimal128(number) => number,
        other => Decimal128::from(integer(other).unwrap_or_default()),
    };
    (decimal(value) % decimal(divisor)).is_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_what_people_take_for_them() {
        assert!(is_multiple(ValueRef::Double(0.3), ValueRef::Double(0.1)));
        assert!(is_multiple(ValueRef::Int32(6), ValueRef::Int64(3)));
        assert!(!is_multiple(ValueRef::Int32(7), ValueRef::Double(3.0)));
        assert!(!is_multiple(ValueRef::Double(f64::NAN), ValueRef::Int32(1)));
    }
}
