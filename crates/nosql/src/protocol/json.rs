//! Small helpers to build the JSON of control-plane answers, which are trees; items never pass through here.

use document::{Document, Object, Value};

use crate::protocol::error::Error;

/// Returns a member for an object.
pub(crate) fn member(name: &str, value: Value) -> (String, Value) {
    (name.to_owned(), value)
}

/// Creates an object of these members, in this order.
pub(crate) fn object(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(members.into_iter().collect::<Object>())
}

/// Creates a string value.
pub(crate) fn text(text: impl Into<String>) -> Value {
    Value::String(text.into())
}

/// Parses a body, JSON text or Cosmos binary.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Error> {
    Ok(Document::decode_body(body)?.to_value())
}

/// Parses a body that must be a JSON object.
pub(crate) fn parse_object(body: &[u8]) -> Result<Value, Error> {
    let value = parse(body)?;
    if value.as_object().is_some() {
        return Ok(value);
    }
    Err(Error::BadRequest(format!("The request body must be a JSON object, it is {}.", value.type_name())))
}

/// Returns a member that must be a string.
pub(crate) fn string_member<'a>(value: &'a Value, name: &str) -> Result<&'a str, Error> {
    value
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Error::BadRequest(format!("The request body must have a string '{name}'.")))
}
