//! Checks for one input of the fuzz targets `json`, `binary` and `key`. The targets share this file with the tests that
//! replay their corpora.
//!
//! | target | an input is |
//! |---|---|
//! | `json` | a text: a document, a path, a pointer, a partition key, a place on the hash line |
//! | `binary` | bytes: binary JSON as clients send it, and a document as it lies on disk |
//! | `key` | bytes: ordered keys, one after the other, and a partition key |

use std::cmp::Ordering;

use bytes::Bytes;
use document::{
    ContainerRid, DatabaseRid, Document, EffectiveKey, Error, ItemRid, OfferRid, PartitionKey, Path,
    PermissionRid, Pointer, RangeRid, ScriptRid, UserRid, Value, ValueRef, decode_key, decode_key_descending,
    encode_key, encode_key_descending, parse_json, total_order,
};

/// Keys of one input that are compared with each other.
const KEYS_MAX: usize = 8;

/// Checks that a text is refused with a position inside of it, or is one document in every form; white space around it
/// does not count.
pub(crate) fn check_json(data: &[u8]) {
    check_names(&String::from_utf8_lossy(data));
    let read = Document::from_json(data);
    assert_eq!(Document::from_json(&[b" \r\n", data, b"\t "].concat()).ok(), read.as_ref().ok().cloned());
    assert_eq!(parse_json(data).ok(), read.as_ref().ok().map(Document::to_value));
    match read {
        Ok(document) => {
            assert_eq!(Document::decode_body(data), Ok(document.clone()));
            assert_eq!(Document::from_json(document.to_json().as_bytes()), Ok(document.clone()));
            assert_eq!(Document::from_value(&document.to_value()), Ok(document.clone()));
            // One more level may exceed the limit.
            if let Ok(outer) = Document::from_json(&[b"{\"a\":", data, b",\"b\":1}"].concat()) {
                let inner = outer.get("a").expect("it was put there");
                assert_eq!(Document::from_view(inner), Ok(document.clone()));
                assert_eq!(outer.without(&["a", "c"]).to_json(), "{\"b\":1}");
            }
            check_document(&document);
        }
        Err(Error::Json { line, column, .. }) => {
            let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
            assert!((1..=lines.len()).contains(&line), "line {line} of {}", lines.len());
            assert!(column <= lines[line - 1].len() + 1, "column {column} of line {line}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// Checks that bytes are refused or are a document, and that an accepted body has no superfluous byte.
pub(crate) fn check_binary(data: &[u8]) {
    let body = [&[0x80], data].concat();
    if let Ok(document) = Document::from_cosmos_binary(&body) {
        assert_eq!(Document::decode_body(&body), Ok(document.clone()));
        assert!(Document::from_cosmos_binary(&[&body[..], &[0]].concat()).is_err(), "one byte more");
        assert!(Document::from_cosmos_binary(&body[..body.len() - 1]).is_err(), "one byte less");
        assert_eq!(Document::from_json(document.to_json().as_bytes()), Ok(document.clone()));
        check_document(&document);
    }
    let Ok(document) = Document::from_stored(Bytes::copy_from_slice(data)) else { return };
    assert!(Document::from_stored([data, &[0]].concat().into()).is_err(), "one byte more");
    assert!(Document::from_stored(data[..data.len() - 1].to_vec().into()).is_err(), "one byte less");
    let short = Document::from_view(document.root()).expect("what can be read can be written");
    assert_eq!(total_order(Some(document.root()), Some(short.root())), Ordering::Equal);
    assert!(short.as_bytes().len() <= data.len(), "the form that is written is the shortest");
    check_document(&short);
}

/// Checks that the tree and the bytes of a document agree and have one key.
fn check_document(document: &Document) {
    let stored = Document::from_stored(document.as_bytes().clone());
    assert_eq!(stored.as_ref(), Ok(document));
    let tree = document.to_value();
    assert_eq!(Document::from_value(&tree), Ok(document.clone()));
    assert_eq!(document.to_json(), tree.to_json());
    assert_eq!(total_order(Some(document.root()), Some(tree.view())), Ordering::Equal);
    assert_eq!(key(Some(document.root())), key(Some(tree.view())));
    check_one_key(Some(&tree));
}

/// Checks paths, pointers and partition keys: what was parsed prints as it was written.
fn check_names(text: &str) {
    let _ = Pointer::parse(text).map(|pointer| {
        assert_eq!(Pointer::parse(&pointer.to_string()), Ok(pointer));
    });
    let _ = Path::parse(text).map(|path| assert_eq!(Path::parse(path.as_str()), Ok(path)));
    let _ = text.parse::<EffectiveKey>().map(|key| {
        assert_eq!(key.to_string(), text.to_ascii_uppercase());
    });
    let _ = PartitionKey::from_header(text).map(|key| {
        assert_eq!(PartitionKey::from_header(&key.to_json()), Ok(key.clone()));
        let mut bytes = Vec::new();
        key.encode(&mut bytes);
        bytes.push(7);
        assert_eq!(PartitionKey::decode(&bytes), Ok((key, &[7][..])));
    });
    check_rid::<DatabaseRid>(text);
    check_rid::<ContainerRid>(text);
    check_rid::<ItemRid>(text);
    check_rid::<RangeRid>(text);
    check_rid::<ScriptRid>(text);
    check_rid::<UserRid>(text);
    check_rid::<PermissionRid>(text);
    check_rid::<OfferRid>(text);
}

/// Checks that a resource id prints as it was parsed.
fn check_rid<Rid: std::str::FromStr + std::fmt::Display>(text: &str) {
    let _ = text.parse::<Rid>().map(|rid| assert_eq!(rid.to_string(), text));
}

/// Checks that keys are decoded or refused, and that decoded values sort as their keys do.
pub(crate) fn check_key(data: &[u8]) {
    let _ = PartitionKey::decode(data).map(|(key, _)| {
        let mut bytes = Vec::new();
        key.encode(&mut bytes);
        assert_eq!(PartitionKey::decode(&bytes), Ok((key, &[][..])));
    });
    let turned: Vec<u8> = data.iter().map(|byte| !byte).collect();
    let (mut rest, mut values) = (data, Vec::new());
    while let Ok((value, behind)) = decode_key(rest) {
        let (same, turned_behind) =
            decode_key_descending(&turned[data.len() - rest.len()..]).expect("it can be read turned around");
        assert_eq!(
            (key(view(same.as_ref())), turned_behind.len()),
            (key(view(value.as_ref())), behind.len())
        );
        assert!(behind.len() < rest.len());
        rest = behind;
        // No document holds such a number, so no encoded key does.
        if values.len() < KEYS_MAX && value.as_ref().is_none_or(is_finite) {
            values.push(value);
        }
    }
    assert!(decode_key_descending(&turned[data.len() - rest.len()..]).is_err());
    for left in &values {
        check_one_key(left.as_ref());
        for right in &values {
            check_two_keys(view(left.as_ref()), view(right.as_ref()));
        }
    }
}

/// Checks that a key decodes to its value whatever follows it, and that a truncated key is refused.
fn check_one_key(value: Option<&Value>) {
    let (written, mut turned) = (key(view(value)), Vec::new());
    encode_key_descending(view(value), &mut turned);
    for (bytes, decode) in [
        (written.clone(), decode_key as fn(&[u8]) -> document::Result<(Option<Value>, &[u8])>),
        (turned, decode_key_descending),
    ] {
        let followed = [&bytes[..], &[0, 0xFF]].concat();
        let (read, behind) = decode(&followed).expect("a key can be read");
        assert_eq!(behind, [0, 0xFF]);
        assert_eq!(key(view(read.as_ref())), written, "{value:?}");
        assert_eq!(total_order(view(read.as_ref()), view(value)), Ordering::Equal, "{value:?}");
        assert!(decode(&bytes[..bytes.len() - 1]).is_err());
    }
}

/// Checks that keys sort as values do, in both directions, and that no key is a prefix of another.
fn check_two_keys(left: Option<ValueRef<'_>>, right: Option<ValueRef<'_>>) {
    let order = total_order(left, right);
    assert_eq!(total_order(right, left), order.reverse());
    let (left_key, right_key) = (key(left), key(right));
    assert_eq!(left_key.cmp(&right_key), order, "{left:?} {right:?}");
    let begins = left_key.starts_with(&right_key) || right_key.starts_with(&left_key);
    assert_eq!(begins, order == Ordering::Equal, "{left:?} {right:?}");
    let (mut left_turned, mut right_turned) = (Vec::new(), Vec::new());
    encode_key_descending(left, &mut left_turned);
    encode_key_descending(right, &mut right_turned);
    assert_eq!(left_turned.cmp(&right_turned), order.reverse(), "{left:?} {right:?}");
}

fn is_finite(value: &Value) -> bool {
    match value {
        Value::Double(number) => number.is_finite(),
        Value::Array(items) => items.iter().all(is_finite),
        Value::Object(members) => members.iter().all(|(_, member)| is_finite(member)),
        _ => true,
    }
}

fn view(value: Option<&Value>) -> Option<ValueRef<'_>> {
    value.map(Value::view)
}

fn key(value: Option<ValueRef<'_>>) -> Vec<u8> {
    let mut key = Vec::new();
    encode_key(value, &mut key);
    key
}
