//! The description of an update for change streams, derived from the documents before and after.

use std::collections::{HashMap, HashSet};

use bson::{ArrayRef, Document, DocumentRef, Value, ValueRef};

/// Returns `{updatedFields, removedFields, truncatedArrays}`: the changes that turn the one document into the other, by
/// dotted paths, without the order of fields.
pub fn describe_change(before: DocumentRef<'_>, after: DocumentRef<'_>) -> Document {
    let mut description = Description::default();
    description.documents(&mut String::new(), before, after);
    Document::new()
        .with("updatedFields", description.updated)
        .with("removedFields", description.removed)
        .with("truncatedArrays", description.truncated)
}

#[derive(Debug, Default)]
struct Description {
    updated: Document,
    removed: Vec<Value>,
    truncated: Vec<Value>,
}

impl Description {
    fn documents(&mut self, path: &mut String, before: DocumentRef<'_>, after: DocumentRef<'_>) {
        let mut old: HashMap<&str, ValueRef<'_>> = HashMap::new();
        for (name, value) in before.iter() {
            old.entry(name).or_insert(value);
        }
        let mut gone: HashSet<&str> = old.keys().copied().collect();
        for (name, value) in after.iter() {
            gone.remove(name);
            below(path, name, |path| match old.get(name) {
                Some(before) => self.values(path, *before, value),
                None => self.updated.push(path.as_str(), value.to_value()),
            });
        }
        for (name, _) in before.iter() {
            if gone.remove(name) {
                below(path, name, |path| self.removed.push(path.as_str().into()));
            }
        }
    }

    fn values(&mut self, path: &mut String, before: ValueRef<'_>, after: ValueRef<'_>) {
        match (before, after) {
            (ValueRef::Document(before), ValueRef::Document(after)) => self.documents(path, before, after),
            (ValueRef::Array(before), ValueRef::Array(after)) => self.arrays(path, before, after),
            _ if identical(before, after) => {}
            _ => self.updated.push(path.as_str(), after.to_value()),
        }
    }

    fn arrays(&mut self, path: &mut String, before: ArrayRef<'_>, after: ArrayRef<'_>) {
        let mut old = before.iter();
        let mut length: i32 = 0;
        for value in after.iter() {
            below(path, &length.to_string(), |path| match old.next() {
                Some(before) => self.values(path, before, value),
                None => self.updated.push(path.as_str(), value.to_value()),
            });
            length += 1;
        }
        if old.next().is_some() {
            self.truncated.push(Document::new().with("field", path.as_str()).with("newSize", length).into());
        }
    }
}

fn below(path: &mut String, name: &str, run: impl FnOnce(&mut String)) {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(name);
    run(path);
    path.truncate(length);
}

/// Returns `true` if two values that are no documents or arrays are equal to the bit: `1` and `1.0` are not.
fn identical(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    match (one, other) {
        (ValueRef::Double(one), ValueRef::Double(other)) => one.to_bits() == other.to_bits(),
        (ValueRef::Decimal128(one), ValueRef::Decimal128(other)) => one.0 == other.0,
        _ => one.kind() == other.kind() && bson::equal(one, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_fields_elements_and_what_is_gone() {
        let before =
            document(r#"{"_id": 1, "a": 1, "b": {"c": 1, "d": 2}, "e": [1, 2, 3], "f": [1], "g": 0}"#);
        let after = document(
            r#"{"_id": 1, "a": 1.0, "b": {"c": 1, "n": {"x": 1}}, "e": [1, 5], "f": [1, {"y": 1}], "h": null}"#,
        );
        let expected = document(
            r#"{"updatedFields": {"a": 1.0, "b.n": {"x": 1}, "e.1": 5, "f.1": {"y": 1}, "h": null},
                "removedFields": ["b.d", "g"],
                "truncatedArrays": [{"field": "e", "newSize": 2}]}"#,
        );
        assert_eq!(describe_change(before.view(), after.view()), expected);
        let nothing = document(r#"{"updatedFields": {}, "removedFields": [], "truncatedArrays": []}"#);
        assert_eq!(describe_change(after.view(), after.view()), nothing);
    }

    fn document(text: &str) -> Document {
        let value = bson::parse_extended_json(text).expect("extended JSON");
        value.as_document().expect("a document").clone()
    }
}
