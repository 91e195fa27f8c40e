//! Key patterns: `{a: 1, "b.c": -1, d: "hashed"}` into the parts of a key.

use bson::{DocumentRef, Value, ValueRef};

use super::{as_double, cannot_create, show};
use crate::error::{Error, Result};
use crate::path::FieldPath;

/// How many fields a key has at most.
const FIELDS_MAX: usize = 32;

/// One part of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The field as the pattern names it.
    pub name: String,
    /// The path to the field; of a wildcard, the path below which everything is indexed.
    pub path: FieldPath,
    /// How its values become keys.
    pub kind: PartKind,
}

/// How the values of a field become keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// In the order of values.
    Ascending,
    /// In the opposite order.
    Descending,
    /// By a hash: for equality alone.
    Hashed,
    /// By the words of all text fields; one part stands for all of them.
    Text,
    /// By the cells of a grid over the globe.
    Sphere,
    /// By path and value of everything below a path.
    Wildcard,
}

impl PartKind {
    /// Returns `true` if keys sort as values do.
    pub fn is_ordinary(self) -> bool {
        matches!(self, PartKind::Ascending | PartKind::Descending)
    }
}

/// Returns the default name of an index on these fields: `a_1_b_-1`.
pub fn default_name(key: DocumentRef<'_>) -> String {
    let part = |(name, value): (&str, ValueRef<'_>)| match value {
        ValueRef::String(text) => format!("{name}_{text}"),
        other => match as_double(&other.to_value()) {
            Some(number) => format!("{name}_{number}"),
            None => format!("{name}_"),
        },
    };
    key.iter().map(part).collect::<Vec<_>>().join("_")
}

/// Reads a key pattern.
pub(super) fn parse(key: DocumentRef<'_>) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    let mut fields = 0;
    for (name, value) in key.iter() {
        fields += 1;
        if fields > FIELDS_MAX {
            return Err(cannot_create(format!(
                "Index key pattern has too many fields, the most is {FIELDS_MAX}"
            )));
        }
        let kind = kind(name, value)?;
        check_name(name, kind)?;
        if parts.iter().any(|part| part.name == name) {
            let message =
                format!("The field '{name}' appears multiple times in the index key pattern {}", show(key));
            return Err(Error::bad_value(message));
        }
        let path = match kind {
            PartKind::Wildcard => match name.strip_suffix("$**").and_then(|root| root.strip_suffix('.')) {
                Some(root) => FieldPath::parse(root)?,
                None => FieldPath::default(),
            },
            _ => FieldPath::parse(name)?,
        };
        parts.push(Part { name: name.to_owned(), path, kind });
    }
    if parts.is_empty() {
        return Err(cannot_create("Index keys cannot be empty."));
    }
    check_combination(&parts)?;
    Ok(parts)
}

fn kind(name: &str, value: ValueRef<'_>) -> Result<PartKind> {
    let wildcard = name == "$**" || name.ends_with(".$**");
    match value {
        ValueRef::String("text") => Ok(PartKind::Text),
        ValueRef::String(_) if wildcard => {
            Err(cannot_create("The key pattern value for an '$**' index must be a non-zero number"))
        }
        ValueRef::String("hashed") => Ok(PartKind::Hashed),
        ValueRef::String("2dsphere") => Ok(PartKind::Sphere),
        ValueRef::String("2d") => Err(cannot_create("Index type '2d' is not supported, use '2dsphere'")),
        ValueRef::String(other) => {
            let message = format!("Unknown index plugin '{}'", other.chars().take(100).collect::<String>());
            Err(cannot_create(message))
        }
        other => {
            let Some(number) = as_double(&other.to_value()) else {
                return Err(cannot_create(format!(
                    "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings \
                     are allowed.",
                    other.kind().alias()
                )));
            };
            if number.is_nan() {
                return Err(cannot_create("Values in the index key pattern cannot be NaN."));
            }
            if number == 0.0 {
                return Err(cannot_create("Values in the index key pattern cannot be 0."));
            }
            Ok(match (wildcard, number > 0.0) {
                (true, _) => PartKind::Wildcard,
                (false, true) => PartKind::Ascending,
                (false, false) => PartKind::Descending,
            })
        }
    }
}

fn check_name(name: &str, kind: PartKind) -> Result<()> {
    let plain = match kind {
        PartKind::Wildcard => name.strip_suffix("$**").unwrap_or(name).trim_end_matches('.'),
        PartKind::Text if name == "$**" => return Ok(()),
        _ => name,
    };
    if name.is_empty() {
        return Err(cannot_create("Index keys cannot be an empty field."));
    }
    let mut components = plain.split('.');
    if plain.is_empty() {
        return Ok(());
    }
    if components.clone().any(str::is_empty) {
        return Err(cannot_create("Index keys cannot contain an empty field."));
    }
    // A reference's own fields may be indexed.
    let reference = |component: &str| matches!(component, "$id" | "$db" | "$ref");
    if components.any(|component| component.starts_with('$') && !reference(component)) {
        return Err(cannot_create("Index key contains an illegal field name: field name starts with '$'."));
    }
    Ok(())
}

fn check_combination(parts: &[Part]) -> Result<()> {
    let count = |kind: PartKind| parts.iter().filter(|part| part.kind == kind).count();
    let (hashed, text) = (count(PartKind::Hashed), count(PartKind::Text));
    let (sphere, wildcard) = (count(PartKind::Sphere), count(PartKind::Wildcard));
    if hashed > 1 {
        let message = format!("A maximum of one index field is allowed to be hashed but found {hashed}");
        return Err(Error::location(31303, message));
    }
    if wildcard > 0 && parts.len() > 1 {
        return Err(cannot_create("wildcard indexes do not allow compounding"));
    }
    let special = [hashed, text, sphere, wildcard].iter().filter(|count| **count > 0).count();
    if special > 1 {
        return Err(cannot_create("Can't use more than one index plugin for a single index."));
    }
    let first = parts.iter().position(|part| part.kind == PartKind::Text);
    let last = parts.iter().rposition(|part| part.kind == PartKind::Text);
    if let (Some(first), Some(last)) = (first, last)
        && last - first + 1 != text
    {
        return Err(cannot_create("'text' fields in an index must all be adjacent"));
    }
    Ok(())
}

/// Returns whether a pattern is that of the index on `_id`; the number is the direction.
pub(super) fn id_direction(key: &bson::Document) -> Option<f64> {
    let mut fields = key.iter();
    match (fields.next(), fields.next()) {
        (
            Some((
                "_id",
                value @ (Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_)),
            )),
            None,
        ) => as_double(value),
        _ => None,
    }
}
