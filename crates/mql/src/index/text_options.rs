//! The options of a text index, as received, listed and stored.

use std::collections::BTreeMap;

use bson::{Document, DocumentRef, Value, ValueRef};
use stemming::{Language, SNOWBALL};

use super::parse::Origin;
use super::pattern::{Part, PartKind};
use super::{as_double, cannot_create};
use crate::error::{Code, Error, Result};
use crate::path::{Component, FieldPath};
use crate::text::TextRules;
use crate::text::analysis::Edition;

/// The option of a stored index that names the rules of its terms.
pub(super) const TERMS: &str = "terms";
const WEIGHT_MAX: f64 = 1_000_000_000.0;
const KEY_FIELD: &str = "_fts";
const KEY_EXTRA_FIELD: &str = "_ftsx";
const VERSION: i32 = 3;

impl TextRules {
    /// Reads the options of a text index; also returns the key as it is listed, and the parts with one for all text fields.
    /// `None` if it is not a text index.
    pub(super) fn parse(
        spec: DocumentRef<'_>,
        key: &Document,
        parts: &[Part],
        origin: Origin,
    ) -> Result<Option<(TextRules, Document, Vec<Part>)>> {
        if !parts.iter().any(|part| part.kind == PartKind::Text) {
            let foreign = ["weights", "default_language", "language_override", "textIndexVersion"];
            if let Some(name) = foreign.into_iter().find(|name| spec.get(name).is_some()) {
                let message = format!("the option '{name}' is only allowed in a text index");
                return Err(cannot_create(message));
            }
            return Ok(None);
        }
        let mut weights = BTreeMap::new();
        for part in parts.iter().filter(|part| part.kind == PartKind::Text && part.name != KEY_FIELD) {
            weights.insert(part.name.clone(), 1.0);
        }
        read_weights(spec, &mut weights)?;
        if weights.is_empty() {
            return Err(cannot_create("a text index needs at least one text field"));
        }
        let listed = weights.iter().map(|(name, weight)| (name.as_str(), listed_weight(*weight))).collect();
        let default_language = string(spec, "default_language", "english")?;
        let language = Language::named(&default_language)
            .ok_or_else(|| cannot_create("default_language is not valid"))?;
        let language_override = string(spec, "language_override", "language")?;
        if language_override.is_empty() || language_override.starts_with('$') {
            return Err(cannot_create("language_override is not valid"));
        }
        let version = version(spec)?;
        let edition = edition(spec, version, origin)?;
        let rules =
            TextRules { weights, listed, default_language, language, language_override, version, edition };
        let (key, parts) = listed_key(key, parts);
        Ok(Some((rules, key, parts)))
    }

    pub(super) fn list(&self, listed: &mut Document) {
        listed.push("weights", self.listed.clone());
        listed.push("default_language", self.default_language.as_str());
        listed.push("language_override", self.language_override.as_str());
        listed.push("textIndexVersion", self.version);
    }

    /// Returns the text stored beside the listed options: the name of the rules of its terms.
    pub(super) fn stored_terms(&self) -> Option<&'static str> {
        (self.edition != Edition::Legacy).then_some(SNOWBALL)
    }

    /// Refuses arrays in the fields beside the words of a key. Indexes made before format 10 may have some.
    pub(super) fn check_parts(&self, parts: &[Part], document: DocumentRef<'_>) -> Result<()> {
        let has_array = |part: &&Part| {
            part.kind.is_ordinary() && meets_array(ValueRef::Document(document), part.path.components())
        };
        match parts.iter().find(has_array) {
            Some(part) if self.edition != Edition::Legacy => Err(Error::new(
                Code::CANNOT_BUILD_INDEX_KEYS,
                format!("Field '{}' of text index contains an array", part.name),
            )),
            _ => Ok(()),
        }
    }
}

fn read_weights(spec: DocumentRef<'_>, weights: &mut BTreeMap<String, f64>) -> Result<()> {
    let given = match spec.get("weights") {
        None => return Ok(()),
        // One name alone is that field, with the weight one.
        Some(ValueRef::String(name)) => {
            weights.entry(name.to_owned()).or_insert(1.0);
            return Ok(());
        }
        Some(ValueRef::Document(given)) => given,
        Some(_) => return Err(cannot_create("text index option 'weights' must be an object")),
    };
    for (name, value) in given.iter() {
        let number = as_double(&value.to_value())
            .ok_or_else(|| cannot_create("weight for text index needs numeric type"))?;
        if !(number > 0.0 && number < WEIGHT_MAX) {
            return Err(cannot_create(format!(
                "text index weight must be in the exclusive interval (0,{WEIGHT_MAX}) but found: {number}"
            )));
        }
        FieldPath::parse(name)?;
        weights.insert(name.to_owned(), number);
    }
    Ok(())
}

fn listed_weight(weight: f64) -> Value {
    if weight.fract() == 0.0 { Value::Int32(weight as i32) } else { Value::Double(weight) }
}

fn string(spec: DocumentRef<'_>, name: &str, default: &str) -> Result<String> {
    match spec.get(name) {
        None => Ok(default.to_owned()),
        Some(ValueRef::String(text)) => Ok(text.to_owned()),
        Some(_) => Err(cannot_create(format!("{name} needs a string type"))),
    }
}

fn version(spec: DocumentRef<'_>) -> Result<i32> {
    let Some(given) = spec.get("textIndexVersion") else { return Ok(VERSION) };
    match as_double(&given.to_value()) {
        Some(number) if (1.0..=3.0).contains(&number) => Ok(number as i32),
        _ => Err(cannot_create(format!("bad textIndexVersion: {}", bson::shell_text(given)))),
    }
}

/// Returns the rules of the terms: a new index gets those of its version, a stored one names its rules.
fn edition(spec: DocumentRef<'_>, version: i32, origin: Origin) -> Result<Edition> {
    let current = if version < VERSION { Edition::Ascii } else { Edition::Unicode };
    match spec.get(TERMS) {
        _ if origin != Origin::Store => Ok(current),
        None => Ok(Edition::Legacy),
        Some(ValueRef::String(SNOWBALL)) => Ok(current),
        Some(other) => {
            Err(cannot_create(format!("the terms of the index are made by {}", bson::shell_text(other))))
        }
    }
}

/// Returns `true` if there is an array on the way to a field or at its end, other than one of which the path names an item.
fn meets_array(value: ValueRef<'_>, rest: &[Component]) -> bool {
    match (value, rest.split_first()) {
        (ValueRef::Array(items), Some((component, rest))) => match component.index() {
            Some(index) => items.iter().nth(index).is_some_and(|item| meets_array(item, rest)),
            None => true,
        },
        (ValueRef::Array(_), None) => true,
        (ValueRef::Document(document), Some((component, rest))) => {
            document.get(component.name()).is_some_and(|value| meets_array(value, rest))
        }
        _ => false,
    }
}

/// Returns the listed key: all text fields are listed as one, with its two names.
fn listed_key(key: &Document, parts: &[Part]) -> (Document, Vec<Part>) {
    let (mut listed, mut kept) = (Document::new(), Vec::new());
    for (part, (name, value)) in parts.iter().zip(key.iter()) {
        match part.kind {
            PartKind::Text if listed.contains(KEY_FIELD) => {}
            PartKind::Text => {
                listed.push(KEY_FIELD, "text");
                listed.push(KEY_EXTRA_FIELD, 1);
                kept.push(Part { name: KEY_FIELD.into(), path: FieldPath::default(), kind: PartKind::Text });
            }
            // The second name of a key that is already in its listed form.
            _ if name == KEY_EXTRA_FIELD => {}
            _ => {
                listed.push(name, value.clone());
                kept.push(part.clone());
            }
        }
    }
    (listed, kept)
}

#[cfg(test)]
mod tests {
    use bson::parse_extended_json;

    use super::*;
    use crate::context::Context;
    use crate::index::{IndexSpec, Relation, compare_specs};

    fn document(json: &str) -> Document {
        parse_extended_json(json).expect(json).as_document().expect("a document").clone()
    }

    fn terms(index: &IndexSpec, stored: &str) -> String {
        let scores =
            index.text_rules().expect("a text index").scores(document(stored).view(), &Context::at(0));
        scores.expect("scores").into_keys().collect::<Vec<_>>().join(" ")
    }

    /// An index from before format 10 names no rules; its terms stay as they are, also when it is stored again.
    #[test]
    fn an_index_keeps_the_terms_it_was_made_with() {
        let listed = document(r#"{"v":2,"key":{"t":"text"},"name":"t_text"}"#);
        let old = IndexSpec::parse_stored(listed.view()).expect("an old index");
        let new = IndexSpec::parse(listed.view()).expect("a new index");
        let text = r#"{"t":"generously skies"}"#;
        assert_eq!((terms(&old, text).as_str(), terms(&new, text).as_str()), ("gener ski", "generous sky"));
        for (index, mark) in [(&old, None), (&new, Some("snowball 1.2"))] {
            let stored = index.to_stored();
            assert_eq!(stored.get("terms").and_then(Value::as_str), mark);
            assert!(!index.to_document().contains("terms"), "it is not listed");
            let again = IndexSpec::parse_stored(stored.view()).expect("what was stored");
            assert_eq!(terms(&again, text), terms(index, text));
        }
        // An application that creates its index at each start gets no error for one of another edition.
        assert_eq!(compare_specs(&old, &new), Relation::Identical);
        let foreign = document(r#"{"key":{"t":"text"},"name":"t","terms":"snowball 9"}"#);
        assert!(IndexSpec::parse_stored(foreign.view()).is_err(), "rules of a later program");
        assert!(IndexSpec::parse(new.to_stored().view()).is_err(), "no option of clients");
        // Only old indexes may have arrays beside the words.
        let compound = document(r#"{"key":{"a":1,"t":"text"},"name":"x"}"#);
        let array = document(r#"{"a":[1,2],"t":"word"}"#);
        let keys = |index: Result<IndexSpec>| index.expect("an index").keys(array.view(), &Context::at(0));
        assert_eq!(
            keys(IndexSpec::parse_stored(compound.view())).expect("keys").map(|keys| keys.len()),
            Some(2)
        );
        assert_eq!(
            keys(IndexSpec::parse(compound.view())).expect_err("an array").code,
            Code::CANNOT_BUILD_INDEX_KEYS
        );
    }

    #[test]
    fn arrays_beside_the_words_are_refused_unless_one_item_is_named() {
        for (key, stored, refused) in [
            (r#"{"a.b":1,"t":"text"}"#, r#"{"a":{"b":[]},"t":"word"}"#, true),
            (r#"{"a.b":1,"t":"text"}"#, r#"{"a":{"b":[1]},"t":"word"}"#, true),
            (r#"{"a.b":1,"t":"text"}"#, r#"{"a":[],"t":"word"}"#, true),
            (r#"{"a.b":1,"t":"text"}"#, r#"{"a":[{"b":1}],"t":5}"#, true),
            (r#"{"a.b":1,"t":"text"}"#, r#"{"a":{"b":1},"t":["word","other"]}"#, false),
            (r#"{"t":"text","y.z":-1}"#, r#"{"t":"word","y":[{"z":1},{"z":2}]}"#, true),
            (r#"{"a.0":1,"t":"text"}"#, r#"{"a":[0,1,2],"t":"word"}"#, false),
            (r#"{"a.0":1,"t":"text"}"#, r#"{"a":[[8,9],1],"t":"word"}"#, true),
            (r#"{"a.0.1":1,"t":"text"}"#, r#"{"a":[[8,9],1],"t":"word"}"#, false),
        ] {
            let spec = document(&format!(r#"{{"key":{key},"name":"x"}}"#));
            let index = IndexSpec::parse(spec.view()).expect(key);
            let keys = index.keys(document(stored).view(), &Context::at(0));
            assert_eq!(keys.is_err(), refused, "{key} {stored}: {keys:?}");
        }
    }
}
