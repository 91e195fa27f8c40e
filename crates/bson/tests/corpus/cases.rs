//! Checks for one input of the fuzz target `bson`. The target shares this file with the test that replays its corpus.
//!
//! An input is read in both ways in which values come from outside: as bytes and as Extended JSON.

use std::cmp::Ordering;

use bson::{
    Collation, Document, DocumentRef, Extent, RawDocument, Value, ValueRef, compare, encode_key,
    encode_key_descending, parse_extended_json, shell_text, to_extended_json,
};
use bytes::Bytes;

/// Values of one document that are compared with each other.
const VALUES_MAX: usize = 12;

/// Reads an input as bytes and as text.
pub(crate) fn check_bson(data: &[u8]) {
    if let Ok(raw) = RawDocument::parse(Bytes::copy_from_slice(data)) {
        check_raw(&raw);
    }
    let mut bytes = Bytes::copy_from_slice(data);
    while let Ok(raw) = RawDocument::split_from(&mut bytes) {
        assert!(raw.as_bytes().len() >= 5);
    }
    if let Ok(value) = parse_extended_json(&String::from_utf8_lossy(data)) {
        check_text(&value);
        // One more level may exceed the limit.
        let document = Document::new().with("v", value);
        if let Ok(raw) = RawDocument::parse(RawDocument::from_document(&document).into_bytes()) {
            check_raw(&raw);
        }
    }
}

/// Checks that accepted bytes can be read, copied, decoded, encoded again, printed and made into keys.
fn check_raw(raw: &RawDocument) {
    assert_eq!(&RawDocument::from_view(raw.view()), raw, "bytes are copied as bytes");
    let tree = raw.to_document();
    let packed = RawDocument::from_document(&tree);
    // The names in arrays are not kept: no reader uses them.
    assert_eq!(RawDocument::from_document(&packed.to_document()), packed);
    let Ok(packed) = RawDocument::parse(packed.into_bytes()) else { panic!("{tree:?} cannot be read") };
    let (view, other) = (ValueRef::Document(raw.view()), ValueRef::Document(packed.view()));
    assert_eq!(compare(view, other), Ordering::Equal);
    assert_eq!(compare(view, ValueRef::Document(tree.view())), Ordering::Equal);
    assert_eq!(shell_text(view), shell_text(other));
    check_json(raw.view());
    let values: Vec<ValueRef<'_>> = raw.view().iter().map(|(_, value)| value).take(VALUES_MAX).collect();
    for left in &values {
        for right in &values {
            check_order(*left, *right);
        }
    }
}

/// Checks that Extended JSON keeps every value that does not itself look like Extended JSON.
fn check_json(document: DocumentRef<'_>) {
    let text = to_extended_json(ValueRef::Document(document), false);
    let read = parse_extended_json(&text);
    if is_plain(ValueRef::Document(document)) {
        let read = read.unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(compare(read.view(), ValueRef::Document(document)), Ordering::Equal, "{text}");
        assert_eq!(to_extended_json(read.view(), false), text);
    }
    to_extended_json(ValueRef::Document(document), true);
}

/// Returns `true` if no name could be taken for a type, and all flags are in their order.
fn is_plain(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Document(document) => is_plain_document(document),
        ValueRef::Array(items) => items.iter().all(is_plain),
        ValueRef::Regex(regex) => regex.options.as_bytes().is_sorted(),
        ValueRef::JavaScriptWithScope { scope, .. } => is_plain_document(scope),
        _ => true,
    }
}

fn is_plain_document(document: DocumentRef<'_>) -> bool {
    document.iter().all(|(name, value)| !name.starts_with('$') && is_plain(value))
}

/// Checks that both forms of Extended JSON parse back to the value.
fn check_text(value: &Value) {
    let canonical = to_extended_json(value.view(), false);
    if is_plain(value.view()) {
        let again = parse_extended_json(&canonical).unwrap_or_else(|error| panic!("{error}: {canonical}"));
        assert_eq!(to_extended_json(again.view(), false), canonical);
    }
}

/// Checks that keys sort as values do, in both directions, and that no key is a prefix of another.
fn check_order(left: ValueRef<'_>, right: ValueRef<'_>) {
    let order = compare(left, right);
    assert_eq!(compare(right, left), order.reverse());
    let key = |value, encode: fn(ValueRef<'_>, &Collation, &mut Vec<u8>) -> Extent| {
        let mut key = Vec::new();
        let extent = encode(value, &Collation::simple(), &mut key);
        (key, extent)
    };
    let ((left_key, left_extent), (right_key, right_extent)) =
        (key(left, encode_key), key(right, encode_key));
    assert_eq!(left_key == right_key, order == Ordering::Equal, "{left:?} {right:?}");
    if (left_extent, right_extent) == (Extent::Whole, Extent::Whole) {
        assert_eq!(left_key.cmp(&right_key), order, "{left:?} {right:?}");
        let (left_turned, right_turned) =
            (key(left, encode_key_descending).0, key(right, encode_key_descending).0);
        assert_eq!(left_turned.cmp(&right_turned), order.reverse(), "{left:?} {right:?}");
        let begins = left_key.starts_with(&right_key) || right_key.starts_with(&left_key);
        assert_eq!(begins, order == Ordering::Equal, "{left:?} {right:?}");
    }
}
