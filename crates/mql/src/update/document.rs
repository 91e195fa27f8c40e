//! Validation of documents to be stored: their size, their depth, their `_id`.

use bson::{DocumentRef, ObjectId, RawDocument, Timestamp, ValueRef, Writer, limits};

use crate::error::{Code, Error, Result};

/// How deep a stored document may be nested: less than what is read, so that it fits into a reply.
const DEPTH_MAX: usize = 180;

/// Prepares a document for storage: with an `_id`, which comes first, and with the time in place of a top-level timestamp
/// of zero, if one is given.
pub fn prepare_insert(
    document: &RawDocument,
    make_id: &mut dyn FnMut() -> ObjectId,
    now: Option<Timestamp>,
) -> Result<RawDocument> {
    let size = document.as_bytes().len();
    if size > limits::DOCUMENT_BYTES_MAX {
        let max = limits::DOCUMENT_BYTES_MAX;
        let message = format!("object to insert too large. size in bytes: {size}, max size: {max}");
        return Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, message));
    }
    if document.view().iter().any(|(_, value)| depth(value) >= DEPTH_MAX) {
        let message = format!("cannot insert document because it exceeds {DEPTH_MAX} levels of nesting");
        return Err(Error::new(Code::OVERFLOW, message));
    }
    let prepared = with_id_first(document, make_id, now)?;
    match prepared.get("_id") {
        Some(id) => check_id(id)?,
        None => debug_assert!(false, "an id was given"),
    }
    Ok(prepared)
}

/// Creates the document with its `_id` as the first field, made if it has none. Timestamps of zero become `now`, if that is
/// given.
pub(super) fn with_id_first(
    document: &RawDocument,
    make_id: &mut dyn FnMut() -> ObjectId,
    now: Option<Timestamp>,
) -> Result<RawDocument> {
    let mut ids = document.view().iter().enumerate().filter(|(_, (name, _))| *name == "_id");
    let id = ids.next();
    if ids.next().is_some() {
        return Err(Error::bad_value("can't have multiple _id fields in one document"));
    }
    let is_first = matches!(id, Some((0, _)));
    if is_first && (now.is_none() || !document.view().iter().any(|(_, value)| is_zero_timestamp(value))) {
        return Ok(document.clone());
    }
    let mut writer = Writer::default();
    match id {
        Some((_, (name, value))) => writer.field(name, value),
        None => writer.field("_id", make_id()),
    }
    for (name, value) in document.view().iter().filter(|(name, _)| *name != "_id") {
        match now {
            Some(now) if is_zero_timestamp(value) => writer.field(name, now),
            _ => writer.field(name, value),
        }
    }
    Ok(writer.finish())
}

pub(super) fn is_zero_timestamp(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Timestamp(Timestamp { seconds: 0, increment: 0 }))
}

/// Refuses an `_id` that no document may have.
pub(super) fn check_id(id: ValueRef<'_>) -> Result<()> {
    match id {
        ValueRef::Array(_) | ValueRef::Regex(_) | ValueRef::Undefined => {
            let message = format!("The '_id' value cannot be of type {}", id.kind().alias());
            Err(Error::new(Code::INVALID_ID_FIELD, message))
        }
        id => match prefixed_field("_id", id) {
            Some((path, name)) => {
                let message = format!(
                    "_id fields may not contain '$'-prefixed fields: The dollar ($) prefixed field '{name}' in \
                     '{path}' is not valid for storage."
                );
                Err(Error::new(Code::DOLLAR_PREFIXED_FIELD_NAME, message))
            }
            None => Ok(()),
        },
    }
}

/// Returns the path and the name of the first field with a `$` in front, at any depth.
fn prefixed_field(above: &str, value: ValueRef<'_>) -> Option<(String, String)> {
    let inner = |name: &str, value: ValueRef<'_>| {
        let path = format!("{above}.{name}");
        if name.starts_with('$') { Some((path, name.to_owned())) } else { prefixed_field(&path, value) }
    };
    match value {
        ValueRef::Document(document) => document.iter().find_map(|(name, value)| inner(name, value)),
        ValueRef::Array(items) => {
            items.iter().enumerate().find_map(|(number, item)| inner(&number.to_string(), item))
        }
        _ => None,
    }
}

/// Refuses the value of a top-level field that is nested too deep.
pub(super) fn check_depth(value: ValueRef<'_>) -> Result<()> {
    if depth(value) < DEPTH_MAX {
        return Ok(());
    }
    let message = format!("Document exceeds maximum nesting depth of {DEPTH_MAX}");
    Err(Error::new(Code::OVERFLOW, message))
}

/// Refuses a top-level name that only a pipeline may make.
pub(super) fn dollar_prefixed(name: &str) -> Error {
    let message = format!(
        "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement \
         document. Consider using an aggregation pipeline with $replaceWith."
    );
    Error::new(Code::DOLLAR_PREFIXED_FIELD_NAME, message)
}

/// Refuses a document that has become too large.
pub(super) fn check_size(document: &RawDocument, inserting: bool) -> Result<()> {
    let fits = document.as_bytes().len() <= limits::DOCUMENT_BYTES_MAX;
    if fits { Ok(()) } else { Err(too_large(inserting)) }
}

pub(super) fn too_large(inserting: bool) -> Error {
    let max = limits::DOCUMENT_BYTES_MAX;
    if inserting {
        Error::location(17420, format!("Document to upsert is larger than {max}"))
    } else {
        Error::location(17419, format!("Resulting document after update is larger than {max}"))
    }
}

/// Refuses a new document whose `_id` is not that of the old one.
pub(super) fn check_same_id(before: DocumentRef<'_>, after: DocumentRef<'_>) -> Result<()> {
    let Some(id) = before.get("_id") else { return Ok(()) };
    let found = match after.get("_id") {
        Some(new) if bson::equal(id, new) => return Ok(()),
        Some(new) => format!("altered to {}", super::operator::field_text("_id", new)),
        None => "removed".to_owned(),
    };
    let message =
        format!("After applying the update, the (immutable) field '_id' was found to have been {found}");
    Err(Error::new(Code::IMMUTABLE_FIELD, message))
}

/// Returns how many levels a value adds to the one that contains it.
fn depth(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(document) => 1 + deepest(document.iter().map(|(_, value)| value)),
        ValueRef::Array(items) => 1 + deepest(items.iter()),
        ValueRef::JavaScriptWithScope { scope, .. } => 1 + deepest(scope.iter().map(|(_, value)| value)),
        _ => 0,
    }
}

fn deepest<'v>(values: impl Iterator<Item = ValueRef<'v>>) -> usize {
    values.map(depth).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use bson::{Document, Regex, Value};

    use super::*;

    const NOW: Timestamp = Timestamp { seconds: 7, increment: 1 };

    fn prepare(document: &Document) -> Result<Document> {
        let mut make_id = || ObjectId([9; 12]);
        prepare_insert(&document.into(), &mut make_id, Some(NOW)).map(|prepared| prepared.to_document())
    }

    fn nested(levels: usize) -> Value {
        (1..levels).fold(Value::Document(Document::new()), |inner, _| Document::new().with("a", inner).into())
    }

    #[test]
    fn an_id_is_given_and_comes_first() {
        let document = Document::new().with("a", 1);
        assert_eq!(prepare(&document), Ok(Document::new().with("_id", ObjectId([9; 12])).with("a", 1)));
        let document = Document::new().with("a", 1).with("_id", Value::Null).with("b", 2);
        assert_eq!(
            prepare(&document),
            Ok(Document::new().with("_id", Value::Null).with("a", 1).with("b", 2))
        );
        let document = Document::new().with("_id", 1).with("$a", 1).with("b.c", 1).with("", 2);
        assert_eq!(prepare(&document), Ok(document));
    }

    #[test]
    fn a_timestamp_of_zero_is_the_time_at_the_top_level() {
        let zero = Timestamp { seconds: 0, increment: 0 };
        let inner = Document::new().with("t", zero);
        let document = Document::new().with("_id", zero).with("t", zero).with("d", inner.clone());
        // The field `_id` stays unchanged.
        let expected = Document::new().with("_id", zero).with("t", NOW).with("d", inner);
        assert_eq!(prepare(&document), Ok(expected));
    }

    #[test]
    fn some_values_are_no_ids() {
        let regex = Regex { pattern: "a".into(), options: String::new() };
        let dollar = Document::new().with("$a", 1);
        for (id, code) in [
            (Value::Array(vec![]), Code::INVALID_ID_FIELD),
            (regex.into(), Code::INVALID_ID_FIELD),
            (Value::Undefined, Code::INVALID_ID_FIELD),
            (dollar.into(), Code::DOLLAR_PREFIXED_FIELD_NAME),
        ] {
            let refused = prepare(&Document::new().with("_id", id)).map_err(|error| error.code);
            assert_eq!(refused, Err(code));
        }
        let twice = Document::new().with("_id", 1).with("_id", 2);
        assert_eq!(prepare(&twice).map_err(|error| error.code), Err(Code::BAD_VALUE));
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let deep = |levels| Document::new().with("_id", 1).with("a", nested(levels));
        assert!(prepare(&deep(DEPTH_MAX - 1)).is_ok());
        assert_eq!(prepare(&deep(DEPTH_MAX)).map_err(|error| error.code), Err(Code::OVERFLOW));
        let large = |bytes| Document::new().with("_id", 1).with("a", "x".repeat(bytes));
        let rest = RawDocument::from_document(&large(0)).as_bytes().len();
        assert!(prepare(&large(limits::DOCUMENT_BYTES_MAX - rest)).is_ok());
        let refused = prepare(&large(limits::DOCUMENT_BYTES_MAX - rest + 1)).expect_err("too large");
        assert_eq!(refused.code, Code::BSON_OBJECT_TOO_LARGE);
        assert_eq!(
            refused.message,
            "object to insert too large. size in bytes: 16777217, max size: 16777216"
        );
    }
}
