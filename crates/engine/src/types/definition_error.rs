//! Why a container definition was refused, and the small readers that parse every part of a definition.

use document::{Object, Value};

/// How many characters of an offending value a message repeats.
const QUOTED_CHARS: usize = 200;

/// A definition that cannot be used. Every message names the property and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The definition breaks a rule.
    #[error("{message}")]
    Invalid {
        /// The whole explanation.
        message: String,
    },
    /// The definition asks for something that exists in the service and not here.
    #[error("The property '{member}' of a container is not supported.")]
    NotSupported {
        /// The property.
        member: String,
    },
    /// The replacement changes what is fixed when a container is created.
    #[error("{message}")]
    Immutable {
        /// The whole explanation.
        message: String,
    },
}

pub(crate) type Result<T> = std::result::Result<T, DefinitionError>;

pub(crate) fn invalid(message: impl Into<String>) -> DefinitionError {
    DefinitionError::Invalid { message: message.into() }
}

/// Returns the service's message for a property of the wrong shape, with the property's name.
pub(crate) fn malformed(member: &str, expected: &str, found: &Value) -> DefinitionError {
    invalid(format!(
        "One of the specified inputs is invalid: '{member}' must be {expected}, but is {}.",
        quote(found)
    ))
}

/// Returns the JSON text of a value, shortened for a message.
pub(crate) fn quote(value: &Value) -> String {
    let text = value.to_json();
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Returns the members of an object, all of which must be in `known`.
pub(crate) fn members<'v>(value: &'v Value, name: &str, known: &[&str]) -> Result<&'v Object> {
    let object = value.as_object().ok_or_else(|| malformed(name, "an object", value))?;
    match object.iter().find(|(member, _)| !known.contains(member)) {
        None => Ok(object),
        Some((member, _)) => Err(invalid(format!(
            "One of the specified inputs is invalid: '{name}' has the unknown property '{member}'; known are {}.",
            known.join(", ")
        ))),
    }
}

/// Returns a member; null means absent.
pub(crate) fn optional<'v>(object: &'v Object, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !value.is_null())
}

pub(crate) fn required<'v>(object: &'v Object, name: &str) -> Result<&'v Value> {
    optional(object, name)
        .ok_or_else(|| invalid(format!("One of the specified inputs is invalid: '{name}' is required.")))
}

pub(crate) fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str> {
    value.as_str().ok_or_else(|| malformed(name, "a string", value))
}

/// Returns the items of an array of at most `most`.
pub(crate) fn list<'v>(value: &'v Value, name: &str, most: usize) -> Result<&'v [Value]> {
    let items = value.as_array().ok_or_else(|| malformed(name, "an array", value))?;
    if items.len() > most {
        return Err(invalid(format!("'{name}' has {} entries, the limit is {most}.", items.len())));
    }
    Ok(items)
}

/// Returns the member's items, or none if it is absent.
pub(crate) fn optional_list<'v>(object: &'v Object, name: &str, most: usize) -> Result<&'v [Value]> {
    optional(object, name).map_or(Ok(&[]), |value| list(value, name, most))
}

/// Returns the word among `words` that the value is, in its proper spelling; letter case is ignored.
pub(crate) fn word(value: &Value, name: &str, words: &[&'static str]) -> Result<&'static str> {
    let given = text(value, name)?;
    words
        .iter()
        .find(|word| word.eq_ignore_ascii_case(given))
        .copied()
        .ok_or_else(|| malformed(name, &format!("one of {}", words.join(", ")), value))
}
