//! Small helpers to build the JSON of control-plane answers, which are trees; items never pass through here.

use document::{Document, Object, Value};

use crate::error::Error;

/// One member of an object to be.
pub(crate) fn member(name: &str, value: Value) -> (String, Value) {
    (name.to_owned(), value)
}

/// An object of these members, in this order.
pub(crate) fn object(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(members.into_iter().collect::<Object>())
}

/// Text as a value.
pub(crate) fn text(text: impl Into<String>) -> Value {
    Value::String(text.into())
}

/// A body as a tree, JSON text or Cosmos binary.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Error> {
    Ok(Document::decode_body(body)?.to_value())
}

/// A body that must be a JSON object.
pub(crate) fn parse_object(body: &[u8]) -> Result<Value, Error> {
    let value = parse(body)?;
    if value.as_object().is_some() {
        return Ok(value);
    }
    Err(Error::BadRequest(format!("The request body must be a JSON object, it is {}.", value.type_name())))
}

/// A member that must be a string.
pub(crate) fn string_member<'a>(value: &'a Value, name: &str) -> Result<&'a str, Error> {
    value
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Error::BadRequest(format!("The request body must have a string '{name}'.")))
}
