//! Hostile bytes and text: an error or a value, never a panic.

use bytes::Bytes;
use document::{
    Document, EffectiveKey, PartitionKey, Path, Pointer, decode_key, decode_key_descending, encode_key,
    parse_json,
};
use proptest::prelude::*;

use crate::strategies::value;

/// Reads the whole document.
fn walk(document: &Document) {
    let tree = document.to_value();
    let mut key = Vec::new();
    encode_key(Some(document.root()), &mut key);
    assert_eq!(document.to_json(), tree.to_json());
    let _ = document.without(&["id"]);
}

/// Returns a few bytes of `bytes` changed.
fn garbled(bytes: &[u8], changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (index, byte) in changes {
        if !bytes.is_empty() {
            let at = index.index(bytes.len());
            bytes[at] = *byte;
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(prop_oneof![0_u8..12, any::<u8>()], 0..80)) {
        if let Ok(document) = Document::from_stored(Bytes::from(bytes.clone())) {
            walk(&document);
        }
        let _ = decode_key(&bytes);
        let _ = decode_key_descending(&bytes);
        let _ = PartitionKey::decode(&bytes);
        if let Ok(value) = parse_json(&bytes) {
            prop_assert!(Document::from_value(&value).is_ok());
        }
    }

    #[test]
    fn random_binary_bodies(mut body in proptest::collection::vec(
        prop_oneof![any::<u8>(), 0x70_u8..0x80, 0xC0_u8..0xF4, 0_u8..8], 0..80)) {
        body.insert(0, 0x80);
        if let Ok(document) = Document::decode_body(&body) {
            let stored = Document::from_stored(document.as_bytes().clone()).unwrap();
            walk(&stored);
        }
    }

    #[test]
    fn garbled_documents(value in value(), changes in any::<Vec<(prop::sample::Index, u8)>>()) {
        let bytes = garbled(Document::from_value(&value).unwrap().as_bytes(), &changes);
        if let Ok(document) = Document::from_stored(Bytes::from(bytes)) {
            walk(&document);
        }
    }

    #[test]
    fn garbled_keys(value in value(), changes in any::<Vec<(prop::sample::Index, u8)>>()) {
        let mut key = Vec::new();
        encode_key(Some(value.view()), &mut key);
        let _ = decode_key(&garbled(&key, &changes));
    }

    #[test]
    fn garbled_text(value in value(), changes in any::<Vec<(prop::sample::Index, u8)>>()) {
        if let Ok(document) = Document::decode_body(&garbled(value.to_json().as_bytes(), &changes)) {
            walk(&document);
        }
    }

    #[test]
    fn random_text(text in any::<String>()) {
        let _ = Path::parse(&text);
        let _ = Path::parse(&format!("/{text}"));
        let _ = Path::parse(&format!("/\"{text}"));
        let _ = Pointer::parse(&format!("/{text}"));
        let _ = PartitionKey::from_header(&text);
        let _ = text.parse::<EffectiveKey>();
    }
}

#[test]
fn deep_keys_and_documents_are_refused_without_deep_recursion() {
    for tag in [0x07_u8, 0xF8] {
        let deep = vec![tag; 1_000_000];
        assert!(decode_key(&deep).is_err());
        assert!(decode_key_descending(&deep).is_err());
    }
    let mut bytes = Vec::new();
    let levels: u32 = 10_000;
    for level in 0..levels {
        bytes.push(0x08);
        bytes.extend_from_slice(&((levels - level - 1) * 9).to_le_bytes());
        bytes.extend_from_slice(&u32::from(level + 1 < levels).to_le_bytes());
    }
    let error = Document::from_stored(Bytes::from(bytes)).unwrap_err();
    assert!(error.to_string().contains("nested more than 128 levels"), "{error}");
}
