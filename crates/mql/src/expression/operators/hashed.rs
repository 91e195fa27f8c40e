//! `$toHashedIndexKey`: the key that a hashed index of MongoDB has for a value.
//!
//! The key is the first half of an MD5 over a seed and the value: its class in the order of types, and its bytes as BSON
//! has them, except that numbers of all types count as the whole number to which they are truncated. Fields of documents
//! and items of arrays follow one after another with their names. Hashed indexes here have keys of their own; this one is
//! for clients that compute MongoDB's.

use bson::{Document, RawDocument, Value, ValueRef};
use md5::{Digest, Md5};

use crate::error::Result;
use crate::expression::number::Number;
use crate::expression::table::{Arity, Call, Group, positional};

pub(crate) const GROUP: Group =
    Group { foldable: true, operators: &[positional("$toHashedIndexKey", Arity::Exactly(1), hashed_key)] };

const SEED: i32 = 0;

fn hashed_key(call: &Call<'_>) -> Result<Option<Value>> {
    let value = call.get(0).unwrap_or(ValueRef::Null);
    let mut hash = Md5::new();
    hash.update(SEED.to_le_bytes());
    add(&mut hash, None, value, call)?;
    let digest = hash.finalize();
    let first = digest.first_chunk::<8>().expect("an MD5 has sixteen bytes");
    Ok(Some(Value::Int64(i64::from_le_bytes(*first))))
}

fn add(hash: &mut Md5, name: Option<&str>, value: ValueRef<'_>, call: &Call<'_>) -> Result<()> {
    call.context.spend(1)?;
    hash.update(class(value).to_le_bytes());
    if let Some(name) = name {
        hash.update(name.as_bytes());
        hash.update([0]);
    }
    match value {
        ValueRef::Document(fields) => add_fields(hash, fields.iter(), call),
        ValueRef::JavaScriptWithScope { code, scope } => {
            hash.update(code.as_bytes());
            hash.update([0]);
            add_fields(hash, scope.iter(), call)
        }
        ValueRef::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                add(hash, Some(&place.to_string()), item, call)?;
            }
            hash.update(END.to_le_bytes());
            Ok(())
        }
        _ => {
            match Number::of(value) {
                Some(number) => hash.update(number.saturating_i64().to_le_bytes()),
                None => hash.update(bytes(value)),
            }
            Ok(())
        }
    }
}

/// The class that marks the end of a document.
const END: i32 = 0;

fn add_fields<'v>(
    hash: &mut Md5,
    fields: impl Iterator<Item = (&'v str, ValueRef<'v>)>,
    call: &Call<'_>,
) -> Result<()> {
    for (name, value) in fields {
        add(hash, Some(name), value, call)?;
    }
    hash.update(END.to_le_bytes());
    Ok(())
}

/// Returns the bytes of a value as they stand in a document.
fn bytes(value: ValueRef<'_>) -> Vec<u8> {
    // The length, the type and an empty name stand before the value, the end of the document behind it.
    const BEFORE: usize = 4 + 1 + 1;
    let document = RawDocument::from(&Document::new().with("", value.to_value()));
    let bytes = document.as_bytes();
    bytes[BEFORE..bytes.len() - 1].to_vec()
}

/// Returns the position of a type in the order of types; types that compare by value have one number.
fn class(value: ValueRef<'_>) -> i32 {
    match value {
        ValueRef::MinKey => -1,
        ValueRef::Undefined => 0,
        ValueRef::Null => 5,
        ValueRef::Double(_) | ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Decimal128(_) => 10,
        ValueRef::String(_) | ValueRef::Symbol(_) => 15,
        ValueRef::Document(_) => 20,
        ValueRef::Array(_) => 25,
        ValueRef::Binary(_) => 30,
        ValueRef::ObjectId(_) => 35,
        ValueRef::Bool(_) => 40,
        ValueRef::DateTime(_) => 45,
        ValueRef::Timestamp(_) => 47,
        ValueRef::Regex(_) => 50,
        ValueRef::DbPointer { .. } => 55,
        ValueRef::JavaScript(_) => 60,
        ValueRef::JavaScriptWithScope { .. } => 65,
        ValueRef::MaxKey => 127,
    }
}
