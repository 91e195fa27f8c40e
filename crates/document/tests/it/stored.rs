//! The stored form: trees and bytes are two views of one thing.

use bytes::Bytes;
use document::{Document, Error, Value, ValueRef, parse_json};
use proptest::prelude::*;

use crate::strategies::value;

proptest! {
    #[test]
    fn a_value_survives_the_stored_form(value in value()) {
        let document = Document::from_value(&value).unwrap();
        prop_assert_eq!(&document.to_value(), &value);
        let again = Document::from_stored(document.as_bytes().clone()).unwrap();
        prop_assert_eq!(again.to_json(), value.to_json());
    }

    #[test]
    fn members_are_found_as_in_the_tree(value in value(), name in "[a-c]{0,2}") {
        let document = Document::from_value(&value).unwrap();
        let found = document.get(&name).map(ValueRef::to_value);
        prop_assert_eq!(found.as_ref(), value.get(&name));
        if let (Some(stored), Some(tree)) = (document.root().as_array(), value.as_array()) {
            prop_assert_eq!(stored.len(), tree.len());
            for index in 0..=tree.len() {
                prop_assert_eq!(stored.get(index).map(ValueRef::to_value), tree.get(index).cloned());
            }
        }
        if let (Some(stored), Some(tree)) = (document.root().as_object(), value.as_object()) {
            prop_assert_eq!(stored.len(), tree.len());
            for ((name, stored), (tree_name, tree)) in stored.iter().zip(tree.iter()) {
                prop_assert_eq!(name, tree_name);
                prop_assert_eq!(&stored.to_value(), tree);
            }
        }
    }

    #[test]
    fn leaving_members_out_is_the_same_on_bytes_and_tree(value in value(), names in proptest::collection::vec("[a-c]{0,2}", 0..4)) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let document = Document::from_value(&value).unwrap().without(&names);
        let mut tree = value;
        if let Some(object) = tree.as_object_mut() {
            for name in &names {
                object.remove(name);
            }
        }
        prop_assert_eq!(document.clone(), Document::from_value(&tree).unwrap());
        prop_assert!(Document::from_stored(document.as_bytes().clone()).is_ok());
    }

    #[test]
    fn every_prefix_of_a_document_is_corrupt(value in value()) {
        let bytes = Document::from_value(&value).unwrap().as_bytes().clone();
        for end in 0..bytes.len() {
            prop_assert!(Document::from_stored(bytes.slice(..end)).is_err_and(|e| e.is_corrupt()));
        }
    }
}

#[test]
fn the_documented_example_has_the_documented_bytes() {
    let document = Document::from_json(br#"{"id":"a","n":[1,true]}"#).unwrap();
    let mut expected = vec![0x09, 20, 0, 0, 0, 2, 0, 0, 0];
    expected.extend_from_slice(&[2, b'i', b'd', 0x07, 1, b'a']);
    expected.extend_from_slice(&[1, b'n', 0x08, 3, 0, 0, 0, 2, 0, 0, 0, 0x03, 1, 0x02]);
    assert_eq!(document.as_bytes()[..], expected);
}

#[test]
fn integers_take_the_shortest_tag() {
    for (value, length) in [
        (0, 2),
        (-128, 2),
        (127, 2),
        (128, 5),
        (i64::from(i32::MIN), 5),
        (i64::from(i32::MAX), 5),
        (i64::from(i32::MAX) + 1, 9),
        (i64::MIN, 9),
    ] {
        let document = Document::from_value(&Value::Int(value)).unwrap();
        assert_eq!(document.as_bytes().len(), length, "{value}");
        assert_eq!(document.to_value(), Value::Int(value));
    }
}

#[test]
fn a_clone_shares_the_bytes() {
    let document = Document::from_json(br#"{"a":1}"#).unwrap();
    assert_eq!(document.clone().as_bytes().as_ptr(), document.as_bytes().as_ptr());
    assert_eq!(document.without(&["b"]).as_bytes().as_ptr(), document.as_bytes().as_ptr());
}

#[test]
fn trees_that_no_document_holds_are_refused() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let tree = Value::Array(vec![Value::Double(number)]);
        assert!(matches!(Document::from_value(&tree), Err(Error::Invalid { .. })), "{number}");
    }
    let mut tree = Value::Null;
    for depth in 1..=129 {
        tree = Value::Array(vec![tree]);
        assert_eq!(Document::from_value(&tree).is_ok(), depth <= 128, "{depth}");
    }
}

#[test]
fn corrupt_bytes_are_named() {
    let object = |body: &[u8], count: u8| {
        let mut bytes = vec![0x09, body.len() as u8, 0, 0, 0, count, 0, 0, 0];
        bytes.extend_from_slice(body);
        bytes
    };
    let nan = [&[0x06][..], &f64::NAN.to_le_bytes()].concat();
    for (bytes, message) in [
        (vec![], "cut short"),
        (vec![0x0A], "unknown tag 0x0a"),
        (vec![0x00, 0x00], "1 bytes after the document"),
        (vec![0x07, 5, b'a'], "cut short"),
        (vec![0x07, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "cut short"),
        (vec![0x07, 1, 0xFF], "not UTF-8"),
        (nan, "not finite"),
        (object(&[1, b'a', 0x00], 2), "1 entries instead of 2"),
        (object(&[1, b'a'], 1), "cut short"),
        (object(&[1, 0xFF, 0x00], 1), "not UTF-8"),
        (object(&[9, b'a', 0x00], 1), "text at byte 9 is cut short"),
        (object(&[1, b'a', 0x08, 50, 0, 0, 0, 0, 0, 0, 0], 1), "cut short"),
    ] {
        let error = Document::from_stored(Bytes::from(bytes.clone())).unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains(message), "{bytes:x?}: {error}");
    }
}

#[test]
fn a_body_may_come_in_either_form() {
    let text = Document::decode_body(br#"{"id":true}"#).unwrap();
    let binary = Document::decode_body(&[0x80, 0xE9, 0x2C, 0xD2]).unwrap();
    assert_eq!(text, binary);
    assert_eq!(text.to_value(), parse_json(br#"{"id":true}"#).unwrap());
}
