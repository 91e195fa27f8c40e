//! Extended JSON to values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::OLD_BINARY;
use super::lexer::{Lexer, Token};
use super::time::parse_date;
use crate::error::{Error, Result};
use crate::limits;
use crate::object_id::ObjectId;
use crate::value::{Binary, Document, Regex, Timestamp, Value};

/// Reads one value in relaxed or canonical Extended JSON v2; both may be mixed.
///
/// Plain numbers become the smallest of int, long and double that holds them as written. `{"$regex": ..}` stays a document,
/// because that is how a filter spells it; a regular expression as a value is `{"$regularExpression": ..}`.
pub fn parse_extended_json(text: &str) -> Result<Value> {
    let mut lexer = Lexer::new(text);
    let value = read_value(&mut lexer, 0)?;
    match lexer.peek() {
        None => Ok(value),
        Some(_) => Err(lexer.wrong("something after the value")),
    }
}

fn read_value(lexer: &mut Lexer<'_>, depth: usize) -> Result<Value> {
    if depth > limits::DEPTH_MAX {
        return Err(Error::TooDeep);
    }
    match lexer.token()? {
        Token::Mark(b'{') => typed(read_fields(lexer, depth)?),
        Token::Mark(b'[') => read_items(lexer, depth).map(Value::Array),
        Token::Mark(_) => Err(lexer.wrong("a value is missing before this point")),
        Token::String(text) => Ok(Value::String(text)),
        Token::Number(text) => number(&text).ok_or_else(|| lexer.wrong("a number that cannot be read")),
        Token::True => Ok(Value::Bool(true)),
        Token::False => Ok(Value::Bool(false)),
        Token::Null => Ok(Value::Null),
    }
}

fn read_items(lexer: &mut Lexer<'_>, depth: usize) -> Result<Vec<Value>> {
    let mut items = Vec::new();
    if lexer.take(b']') {
        return Ok(items);
    }
    loop {
        items.push(read_value(lexer, depth + 1)?);
        if lexer.take(b']') {
            return Ok(items);
        }
        if !lexer.take(b',') {
            return Err(lexer.wrong("a comma or a bracket is missing"));
        }
    }
}

fn read_fields(lexer: &mut Lexer<'_>, depth: usize) -> Result<Document> {
    let mut fields = Document::new();
    if lexer.take(b'}') {
        return Ok(fields);
    }
    loop {
        let Token::String(name) = lexer.token()? else {
            return Err(lexer.wrong("a name is missing before this point"));
        };
        if name.contains('\0') {
            return Err(lexer.wrong("a name with a zero byte"));
        }
        if !lexer.take(b':') {
            return Err(lexer.wrong("a colon is missing"));
        }
        fields.push(name, read_value(lexer, depth + 1)?);
        if lexer.take(b'}') {
            return Ok(fields);
        }
        if !lexer.take(b',') {
            return Err(lexer.wrong("a comma or a brace is missing"));
        }
    }
}

fn number(text: &str) -> Option<Value> {
    if text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
        if let Ok(number) = text.parse::<i32>() {
            return Some(Value::Int32(number));
        }
        if let Ok(number) = text.parse::<i64>() {
            return Some(Value::Int64(number));
        }
    }
    text.parse().ok().map(Value::Double)
}

/// Returns a document, or the value that its names say it stands for.
fn typed(fields: Document) -> Result<Value> {
    let Some((name, first)) = fields.iter().next() else { return Ok(Value::Document(fields)) };
    let name = name.to_owned();
    let wrong = || Error::Text(format!("the value of \"{name}\" in the JSON text has a wrong form"));
    let text = first.as_str();
    let value = match (name.as_str(), fields.len()) {
        ("$oid", 1) => text.and_then(|text| text.parse().ok()).map(Value::ObjectId),
        ("$symbol", 1) => text.map(|text| Value::Symbol(text.into())),
        ("$numberInt", 1) => text.and_then(|text| text.parse().ok()).map(Value::Int32),
        ("$numberLong", 1) => text.and_then(|text| text.parse().ok()).map(Value::Int64),
        ("$numberDouble", 1) => text.and_then(double).map(Value::Double),
        ("$numberDecimal", 1) => text.and_then(|text| text.parse().ok()).map(Value::Decimal128),
        ("$binary", 1) => binary(first),
        ("$binary", 2) => legacy_binary(first, fields.get("$type")),
        ("$uuid", 1) => text.and_then(uuid),
        ("$code", 1) => text.map(|code| Value::JavaScript(code.into())),
        ("$code", 2) => match (text, fields.get("$scope")) {
            (Some(code), Some(Value::Document(scope))) => {
                Some(Value::JavaScriptWithScope { code: code.into(), scope: scope.clone() })
            }
            _ => None,
        },
        ("$timestamp", 1) => timestamp(first),
        ("$regularExpression", 1) => regular_expression(first),
        ("$dbPointer", 1) => db_pointer(first),
        ("$date", 1) => date(first),
        ("$minKey", 1) => (*first == Value::Int32(1)).then_some(Value::MinKey),
        ("$maxKey", 1) => (*first == Value::Int32(1)).then_some(Value::MaxKey),
        ("$undefined", 1) => (*first == Value::Bool(true)).then_some(Value::Undefined),
        _ => return Ok(Value::Document(fields)),
    };
    value.ok_or_else(wrong)
}

fn double(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        text => text.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

/// Returns the two fields of a document that has just these.
fn pair<'a>(value: &'a Value, first: &str, second: &str) -> Option<(&'a Value, &'a Value)> {
    let document = value.as_document().filter(|document| document.len() == 2)?;
    Some((document.get(first)?, document.get(second)?))
}

fn binary(value: &Value) -> Option<Value> {
    let (bytes, subtype) = pair(value, "base64", "subType")?;
    let subtype = u8::from_str_radix(subtype.as_str()?, 16).ok()?;
    Some(binary_of(subtype, BASE64.decode(bytes.as_str()?).ok()?))
}

/// Returns a binary value; bytes of the old subtype have their length before them once more.
fn binary_of(subtype: u8, bytes: Vec<u8>) -> Value {
    let bytes = match subtype {
        OLD_BINARY => [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat(),
        _ => bytes,
    };
    Value::Binary(Binary { subtype, bytes })
}

fn legacy_binary(bytes: &Value, subtype: Option<&Value>) -> Option<Value> {
    let subtype = match subtype? {
        Value::String(text) => u8::from_str_radix(text, 16).ok()?,
        Value::Int32(number) => u8::try_from(*number).ok()?,
        _ => return None,
    };
    Some(binary_of(subtype, BASE64.decode(bytes.as_str()?).ok()?))
}

fn uuid(text: &str) -> Option<Value> {
    let hyphens = [8, 13, 18, 23];
    let placed = text.len() == 36 && hyphens.iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits: Vec<u32> =
        text.chars().filter(|digit| *digit != '-').map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    if !placed || digits.len() != 32 {
        return None;
    }
    let bytes = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    Some(Value::Binary(Binary { subtype: 4, bytes }))
}

fn timestamp(value: &Value) -> Option<Value> {
    let (seconds, increment) = pair(value, "t", "i")?;
    let number = |value: &Value| match value {
        Value::Int32(number) => u32::try_from(*number).ok(),
        Value::Int64(number) => u32::try_from(*number).ok(),
        _ => None,
    };
    Some(Value::Timestamp(Timestamp { seconds: number(seconds)?, increment: number(increment)? }))
}

fn regular_expression(value: &Value) -> Option<Value> {
    let (pattern, options) = pair(value, "pattern", "options")?;
    let (pattern, options) = (pattern.as_str()?, options.as_str()?);
    if pattern.contains('\0') || options.contains('\0') {
        return None;
    }
    let mut sorted: Vec<char> = options.chars().collect();
    sorted.sort_unstable();
    Some(Value::Regex(Regex { pattern: pattern.into(), options: sorted.into_iter().collect() }))
}

fn db_pointer(value: &Value) -> Option<Value> {
    let (namespace, id) = pair(value, "$ref", "$id")?;
    let id: ObjectId = if let Value::ObjectId(id) = id { *id } else { return None };
    Some(Value::DbPointer { namespace: namespace.as_str()?.into(), id })
}

fn date(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => parse_date(text).map(Value::DateTime),
        Value::Int64(millis) => Some(Value::DateTime(*millis)),
        Value::Int32(millis) => Some(Value::DateTime((*millis).into())),
        _ => None,
    }
}
