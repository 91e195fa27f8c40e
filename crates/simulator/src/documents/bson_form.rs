//! Documents and index specifications in BSON, and back.

use bson::{Document, RawDocument, Value, ValueRef};
use mql::index::IndexSpec;

use super::types::{Dates, Doc, FIELDS, IgnoredTtl, NumberType, Rule, Ttl};

/// The name of the index that sets the default.
pub(super) const DEFAULT_INDEX: &str = "default";
const FIELD_NAMES: [&str; FIELDS] = ["a", "b"];

/// Returns the name of the index on a date field.
pub(super) fn index_name(field: usize) -> String {
    format!("by {}", FIELD_NAMES[field])
}

/// Returns the field of an index's name.
pub(super) fn field_of(index: &str) -> Option<usize> {
    (0..FIELDS).find(|field| index_name(*field) == index)
}

fn integer(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Returns the document that a client would send.
pub(super) fn raw(doc: &Doc) -> RawDocument {
    let mut document = Document::new().with("_id", Value::Int32(doc.id)).with("n", Value::Int32(doc.number));
    let ttl = match doc.ttl {
        Ttl::Absent => None,
        Ttl::Never => Some(Value::Int32(-1)),
        Ttl::After(seconds, NumberType::Int32) => Some(Value::Int32(integer(seconds))),
        Ttl::After(seconds, NumberType::Int64) => Some(Value::Int64(seconds)),
        Ttl::After(seconds, NumberType::Double) => Some(Value::Double(seconds as f64)),
        Ttl::Ignored(IgnoredTtl::Fraction) => Some(Value::Double(20.5)),
        Ttl::Ignored(IgnoredTtl::TooLarge) => Some(Value::Int64(2_147_483_649)),
        Ttl::Ignored(IgnoredTtl::Text) => Some(Value::String("2".to_owned())),
        Ttl::Ignored(IgnoredTtl::Zero) => Some(Value::Int32(0)),
        Ttl::Ignored(IgnoredTtl::Negative) => Some(Value::Int32(-5)),
        Ttl::Ignored(IgnoredTtl::Null) => Some(Value::Null),
    };
    if let Some(ttl) = ttl {
        document.push("ttl", ttl);
    }
    for (name, dates) in FIELD_NAMES.into_iter().zip(&doc.dates) {
        match dates {
            Dates::Missing => {}
            Dates::NoDate => document.push(name, Value::String("soon".to_owned())),
            Dates::One(date) => document.push(name, Value::DateTime(*date)),
            Dates::Several(dates) => {
                document.push(name, Value::Array(dates.iter().map(|date| Value::DateTime(*date)).collect()));
            }
        }
    }
    if doc.tag {
        document.push("tag", Value::Bool(true));
    }
    RawDocument::from_document(&document)
}

/// Returns the document as the archive has it.
pub(super) fn json(doc: &Doc) -> String {
    let text = bson::to_extended_json(ValueRef::Document(raw(doc).view()), false);
    document::parse_json(text.as_bytes()).expect("it is JSON").to_json()
}

/// Returns the `_id` of one of the model's documents.
pub(super) fn id(document: &RawDocument) -> i32 {
    match document.get("_id") {
        Some(ValueRef::Int32(id)) => id,
        _ => -1,
    }
}

/// Returns the model's form of one of its documents; an unexpected field is an error.
pub(super) fn doc(document: &RawDocument) -> Result<Doc, String> {
    let mut doc = Doc {
        id: id(document),
        ttl: Ttl::Absent,
        dates: [Dates::Missing, Dates::Missing],
        tag: document.get("tag").is_some(),
        number: -1,
    };
    let document = document.to_document();
    for (name, value) in document.iter() {
        let field = FIELD_NAMES.iter().position(|field| *field == name);
        match (field, name, value) {
            (Some(field), _, value) => doc.dates[field] = dates(value)?,
            (_, "ttl", value) => doc.ttl = ttl(value)?,
            (_, "n", Value::Int32(number)) => doc.number = *number,
            (_, "_id" | "tag", _) => {}
            (_, name, value) => return Err(format!("unforeseen {name}: {value:?}")),
        }
    }
    Ok(doc)
}

fn dates(value: &Value) -> Result<Dates, String> {
    let date = |value: &Value| match value {
        Value::DateTime(date) => Ok(*date),
        other => Err(format!("no date: {other:?}")),
    };
    Ok(match value {
        Value::String(_) => Dates::NoDate,
        Value::Array(dates) => Dates::Several(dates.iter().map(date).collect::<Result<_, _>>()?),
        other => Dates::One(date(other)?),
    })
}

fn ttl(value: &Value) -> Result<Ttl, String> {
    Ok(match value {
        Value::Int32(-1) => Ttl::Never,
        Value::Int32(0) => Ttl::Ignored(IgnoredTtl::Zero),
        Value::Int32(-5) => Ttl::Ignored(IgnoredTtl::Negative),
        Value::Int32(seconds) => Ttl::After((*seconds).into(), NumberType::Int32),
        Value::Int64(2_147_483_649) => Ttl::Ignored(IgnoredTtl::TooLarge),
        Value::Int64(seconds) => Ttl::After(*seconds, NumberType::Int64),
        Value::Double(20.5) => Ttl::Ignored(IgnoredTtl::Fraction),
        Value::Double(seconds) => Ttl::After(*seconds as i64, NumberType::Double),
        Value::String(_) => Ttl::Ignored(IgnoredTtl::Text),
        Value::Null => Ttl::Ignored(IgnoredTtl::Null),
        other => return Err(format!("unforeseen ttl: {other:?}")),
    })
}

/// Returns the index that sets the default of a collection (T26).
pub(super) fn default_index(seconds: i64) -> IndexSpec {
    let key = Document::new().with("_ts", Value::Int32(1));
    specification(key, DEFAULT_INDEX.to_owned(), seconds, &Document::new())
}

/// Returns the index of a date rule (T27).
pub(super) fn rule_index(field: usize, rule: Rule) -> IndexSpec {
    let key = Document::new().with(FIELD_NAMES[field], Value::Int32(1));
    let mut options = Document::new();
    if rule.partial {
        let filter = Document::new().with("tag", Value::Bool(true));
        options.push("partialFilterExpression", Value::Document(filter));
    }
    if rule.hidden {
        options.push("hidden", Value::Bool(true));
    }
    specification(key, index_name(field), rule.seconds, &options)
}

fn specification(key: Document, name: String, seconds: i64, options: &Document) -> IndexSpec {
    let mut spec = Document::new().with("key", Value::Document(key)).with("name", Value::String(name));
    spec.push("expireAfterSeconds", Value::Int32(integer(seconds)));
    for (name, value) in options.iter() {
        spec.push(name, value.clone());
    }
    IndexSpec::parse(spec.view()).expect("a valid specification")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_a_document_survives_the_way_there_and_back() {
        let ttls =
            [Ttl::Absent, Ttl::Never, Ttl::After(3, NumberType::Double), Ttl::Ignored(IgnoredTtl::TooLarge)];
        for ttl in ttls {
            for first in [Dates::Missing, Dates::NoDate, Dates::One(5), Dates::Several(vec![7, 6])] {
                let dates = [first, Dates::One(-1)];
                let written = Doc { id: 3, ttl, dates, tag: true, number: 4 };
                assert_eq!(doc(&raw(&written)), Ok(written));
            }
        }
    }
}
