//! Whether two indexes can exist side by side.
//!
//! The identity of an index is its key, its collation, its partial filter, and whether it is unique or sparse. All other
//! options are settings.

use bson::Document;

use super::pattern::PartKind;
use super::{IndexSpec, cannot_create, show};
use crate::error::{Code, Error};

/// The relation of a requested index to an existing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relation {
    /// They are different indexes.
    Different,
    /// The request is for the existing index: there is nothing to do.
    Identical,
    /// They cannot coexist.
    Conflict(Error),
}

/// Compares a requested index with one that exists.
pub fn compare_specs(existing: &IndexSpec, requested: &IndexSpec) -> Relation {
    let same_name = existing.name == requested.name;
    let same_signature = signature(existing) == signature(requested);
    let same_settings = settings(existing) == settings(requested);
    let both = || {
        format!(
            "Requested index: {}, existing index: {}",
            show(requested.to_document().view()),
            show(existing.to_document().view())
        )
    };
    let options = |message: String| Relation::Conflict(Error::new(Code::INDEX_OPTIONS_CONFLICT, message));
    match (same_name, same_signature, same_settings) {
        (true, true, true) => Relation::Identical,
        (true, true, false) => options(format!(
            "An equivalent index already exists with the same name but different options. {}",
            both()
        )),
        (true, false, _) => Relation::Conflict(Error::new(
            Code::INDEX_KEY_SPECS_CONFLICT,
            format!(
                "An existing index has the same name as the requested index. When index names are not specified, they \
                 are auto generated and can cause conflicts. Please refer to our documentation. {}",
                both()
            ),
        )),
        (false, true, true) => {
            options(format!("Index already exists with a different name: {}", existing.name))
        }
        (false, true, false) => options(format!(
            "An equivalent index already exists with a different name and options. {}",
            both()
        )),
        (false, false, _) if is_text(existing) && is_text(requested) => {
            Relation::Conflict(cannot_create(format!(
                "only one text index per collection allowed, found existing text index \"{}\"",
                existing.name
            )))
        }
        (false, false, _) if existing.is_collection_ttl() && requested.is_collection_ttl() => {
            options(format!(
                "Only one index can set the time to live of the collection, found existing index \"{}\"",
                existing.name
            ))
        }
        (false, false, _) => Relation::Different,
    }
}

fn is_text(index: &IndexSpec) -> bool {
    index.parts.iter().any(|part| part.kind == PartKind::Text)
}

/// Returns what distinguishes one index from another. Numbers in it are made comparable by writing all of them in one form.
fn signature(index: &IndexSpec) -> (Vec<u8>, bool, bool) {
    let empty = Document::new();
    let partial = index.partial.as_ref().map_or(&empty, |partial| &partial.expression);
    let mut all = Document::new()
        .with("key", index.key.clone())
        .with("collation", index.collation.to_document())
        .with("partial", partial.clone())
        .with("has partial", index.partial.is_some());
    if let Some(text) = &index.text {
        // All text indexes are listed with the same key; the fields are among the weights.
        all.push("fields", text.fields().into_iter().map(bson::Value::from).collect::<Vec<_>>());
    }
    (comparable(&all), index.unique, index.sparse)
}

fn settings(index: &IndexSpec) -> Vec<u8> {
    let mut listed = index.to_document();
    for name in ["v", "key", "name", "unique", "sparse", "partialFilterExpression", "collation", "background"]
    {
        listed.remove(name);
    }
    // Listed options stand in a fixed order, so equal settings have equal bytes.
    comparable(&listed)
}

fn comparable(document: &Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    let value = bson::ValueRef::Document(document.view());
    bson::encode_key(value, &bson::Collation::simple(), &mut bytes);
    bytes
}
