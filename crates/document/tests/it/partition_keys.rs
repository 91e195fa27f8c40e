//! Partition keys: definitions, headers, extraction, encoding, effective keys.

use document::{
    Document, EffectiveKey, EffectiveRange, HashVersion, KeyPart, PartitionKey, PartitionKeyDefinition,
    PartitionKeyKind, Path, Value, parse_json,
};
use proptest::prelude::*;

use crate::strategies::{double, text};
use crate::tables;

fn definition(json: &str) -> document::Result<PartitionKeyDefinition> {
    PartitionKeyDefinition::from_value(&parse_json(json.as_bytes()).expect("the test has JSON"))
}

fn hierarchical(levels: &[&str]) -> PartitionKeyDefinition {
    PartitionKeyDefinition {
        paths: levels.iter().map(|path| Path::parse(path).expect("the test has paths")).collect(),
        kind: PartitionKeyKind::MultiHash,
        version: Some(HashVersion::V2),
        system_key: false,
    }
}

fn flat(version: HashVersion) -> PartitionKeyDefinition {
    PartitionKeyDefinition { kind: PartitionKeyKind::Hash, version: Some(version), ..hierarchical(&["/pk"]) }
}

/// Returns a key of any number of parts; headers stop at three.
fn key(json: &str) -> PartitionKey {
    let items = parse_json(json.as_bytes()).expect("the test has JSON");
    let items = items.as_array().expect("the test has an array");
    let part = |item: &Value| match item {
        Value::Object(_) => KeyPart::Undefined,
        other => KeyPart::from_view(Some(other.view())).expect("the test has scalars"),
    };
    items.iter().map(part).collect()
}

fn part() -> impl Strategy<Value = KeyPart> {
    prop_oneof![
        Just(KeyPart::Undefined),
        Just(KeyPart::Null),
        any::<bool>().prop_map(KeyPart::Bool),
        double().prop_map(KeyPart::Number),
        (-3_i32..3).prop_map(|n| KeyPart::Number(n.into())),
        text().prop_map(KeyPart::String),
        "[ab]{0,2}".prop_map(KeyPart::String),
    ]
}

fn any_key() -> impl Strategy<Value = PartitionKey> {
    proptest::collection::vec(part(), 0..=3).prop_map(PartitionKey::new)
}

fn encoded(key: &PartitionKey) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode(&mut out);
    out
}

proptest! {
    #[test]
    fn a_key_survives_its_header_and_its_bytes(key in any_key(), rest in any::<Vec<u8>>()) {
        prop_assert_eq!(&PartitionKey::from_header(&key.to_json()).unwrap(), &key);
        let bytes = [encoded(&key), rest.clone()].concat();
        let (read, after) = PartitionKey::decode(&bytes).unwrap();
        prop_assert_eq!(&read, &key);
        prop_assert_eq!(after, &rest[..]);
    }

    #[test]
    fn keys_are_equal_exactly_if_their_bytes_are(a in any_key(), b in any_key()) {
        prop_assert_eq!(a == b, encoded(&a) == encoded(&b));
        if a.len() == b.len() {
            prop_assert_eq!(a.cmp(&b), encoded(&a).cmp(&encoded(&b)));
        }
    }

    #[test]
    fn a_prefix_holds_the_keys_below_it_and_no_others(a in part(), b in part(), c in part(), d in part()) {
        let levels = hierarchical(&["/a", "/b", "/c"]);
        let full = PartitionKey::new(vec![a.clone(), b.clone(), c]);
        let effective = full.effective(&levels);
        let prefix = PartitionKey::new(vec![a, b]);
        prop_assert!(prefix.is_prefix_of(&full));
        prop_assert!(prefix.effective_range(&levels).contains(&effective));
        prop_assert!(full.effective_range(&levels).contains(&effective));
        let mut start = Vec::new();
        prefix.encode_prefix(3, &mut start);
        prop_assert!(encoded(&full).starts_with(&start));
        let other = PartitionKey::new(vec![d]);
        prop_assert_eq!(other.effective_range(&levels).contains(&effective), other.is_prefix_of(&full));
    }
}

#[test]
fn effective_keys_are_those_that_clients_compute() {
    let mut count = 0;
    for row in tables::rows(include_str!("../vectors/effective-keys.txt")) {
        let [kind, parts, expected] = row[..] else { panic!("{row:?}") };
        let key = key(&tables::json(parts));
        let definition = match kind {
            "v1" => flat(HashVersion::V1),
            "v2" => flat(HashVersion::V2),
            "multi" => hierarchical(&["/a", "/b", "/c"][..key.len()]),
            other => panic!("{other}"),
        };
        let effective = key.effective(&definition);
        assert_eq!(effective.to_string(), expected, "{kind} {parts}");
        assert_eq!(expected.parse::<EffectiveKey>().unwrap(), effective);
        assert!(EffectiveRange::all().contains(&effective));
        count += 1;
    }
    assert_eq!(count, 55, "every row of the table is read");
}

#[test]
fn a_prefix_range_ends_with_ff() {
    let levels = hierarchical(&["/a", "/b"]);
    let range = key("[\"x\"]").effective_range(&levels);
    let start = key("[\"x\"]").effective(&levels).to_string();
    assert_eq!((range.min.to_string(), range.max.to_string()), (start.clone(), format!("{start}FF")));
    assert!(range.contains(&key(r#"["x","y"]"#).effective(&levels)));
    assert!(!range.contains(&key(r#"["y","x"]"#).effective(&levels)));
    assert_eq!(key("[]").effective_range(&levels), EffectiveRange::all());
}

#[test]
fn definitions_are_read_with_their_defaults() {
    for (json, echoed) in [
        (r#"{"paths":["/pk"]}"#, r#"{"paths":["/pk"],"kind":"Hash"}"#),
        (r#"{"paths":["/pk"],"version":null}"#, r#"{"paths":["/pk"],"kind":"Hash"}"#),
        (r#"{"paths":["/pk"],"version":1}"#, r#"{"paths":["/pk"],"kind":"Hash","version":1}"#),
        (r#"{"paths":["/pk"],"kind":"Hash","version":2}"#, r#"{"paths":["/pk"],"kind":"Hash","version":2}"#),
        (
            r#"{"paths":["/a","/b/c"],"kind":"MultiHash","version":2}"#,
            r#"{"paths":["/a","/b/c"],"kind":"MultiHash","version":2}"#,
        ),
        (r#"{"paths":["/pk"],"version":"V1"}"#, r#"{"paths":["/pk"],"kind":"Hash","version":1}"#),
        (
            r#"{"paths":["/a","/b"],"kind":"MultiHash","version":"V2"}"#,
            r#"{"paths":["/a","/b"],"kind":"MultiHash","version":2}"#,
        ),
        (r#"{"paths":["/a"],"kind":"MultiHash"}"#, r#"{"paths":["/a"],"kind":"MultiHash","version":2}"#),
        (
            r#"{"paths":["/\"a b\""],"version":2.0,"systemKey":true,"other":1}"#,
            r#"{"paths":["/\"a b\""],"kind":"Hash","version":2,"systemKey":true}"#,
        ),
    ] {
        let definition = definition(json).unwrap();
        assert_eq!(definition.to_value().to_json(), echoed);
        assert_eq!(PartitionKeyDefinition::from_value(&definition.to_value()).unwrap(), definition);
    }
}

/// Stored definitions of older containers may have such paths, so reading a definition does not refuse them.
#[test]
fn new_paths_are_made_of_plain_or_quoted_names() {
    for (path, position) in [
        ("/pk", None),
        ("/a_b/C9/$x-y/größe", None),
        (r#"/"id ds"/'a.b'"#, None),
        (r#"/"q\"r""#, None),
        ("/id ds", Some(4)),
        ("/asdwqr31 @#$#$WRadf", Some(10)),
        ("/a.b", Some(2)),
        ("/a+b/c", Some(2)),
        ("/id ", Some(4)),
        ("/a/b c/d", Some(5)),
    ] {
        let text = format!(r#"{{"paths":[{}]}}"#, document::Value::from(path).to_json());
        let checked = definition(&text).unwrap().check_new_paths().map_err(|error| error.to_string());
        let expected = match position {
            None => Ok(()),
            Some(position) => Err(format!(
                "The partition key component definition path '{path}' could not be accepted, failed near position \
                 '{position}'. Partition key paths must contain only valid characters and not contain a trailing slash \
                 or wildcard character."
            )),
        };
        assert_eq!(checked, expected, "{path}");
    }
}

#[test]
fn bad_definitions_say_what_is_wrong() {
    for (json, message) in [
        ("[]", "must be an object, but is of type array"),
        ("{}", "array of strings named \"paths\""),
        (r#"{"paths":[]}"#, "exactly 1 path, not 0"),
        (r#"{"paths":["/a","/b"]}"#, "exactly 1 path, not 2"),
        (r#"{"paths":["/a","/b","/c","/d"],"kind":"MultiHash"}"#, "1 to 3 paths, not 4"),
        (r#"{"paths":["/a","/a"],"kind":"MultiHash"}"#, "given twice"),
        (r#"{"paths":[5]}"#, "must be a string, not 5"),
        (r#"{"paths":["a"]}"#, "path 'a' could not be accepted, failed near position '0'"),
        (r#"{"paths":["/a/*"]}"#, "path '/a/*' could not be accepted, failed near position '3'"),
        (r#"{"paths":["/a/?"]}"#, "path '/a/?' could not be accepted, failed near position '3'"),
        (r#"{"paths":["/a/"]}"#, "not contain a trailing slash or wildcard character."),
        (r#"{"paths":["/a"],"kind":"Range"}"#, "kind \"Range\" is not supported"),
        (r#"{"paths":["/a"],"version":3}"#, "version 3 is not supported"),
        (r#"{"paths":["/a"],"kind":"MultiHash","version":1}"#, "must have version 2"),
    ] {
        let error = definition(json).unwrap_err().to_string();
        assert!(error.contains(message), "{json}: {error}");
    }
}

#[test]
fn headers_are_read() {
    for (header, parts) in [
        ("[]", &[][..]),
        (r#"["x"]"#, &[KeyPart::String("x".into())]),
        (r#"["\u00e9"]"#, &[KeyPart::String("é".into())]),
        (r#"["é"]"#, &[KeyPart::String("é".into())]),
        (r#"[""]"#, &[KeyPart::String(String::new())]),
        (r#"["],["]"#, &[KeyPart::String("],[".into())]),
        (r#"["a","b"]"#, &[KeyPart::String("a".into()), KeyPart::String("b".into())]),
        (r#"["a\"]"]"#, &[KeyPart::String("a\"]".into())]),
        ("[5.5]", &[KeyPart::Number(5.5)]),
        ("[{}]", &[KeyPart::Undefined]),
        (" [ null , true , {} ] ", &[KeyPart::Null, KeyPart::Bool(true), KeyPart::Undefined]),
    ] {
        assert_eq!(PartitionKey::from_header(header).unwrap().parts(), parts, "{header}");
    }
    for (header, message) in [
        ("", "invalid JSON"),
        ("x", "invalid JSON"),
        ("[\"]", "invalid JSON"),
        ("[\"a\nb\"]", "invalid JSON"),
        (r#"["\"]"#, "invalid JSON"),
        ("\"x\"", "must be a JSON array"),
        ("[[]]", "not an array"),
        (r#"[{"a":1}]"#, "not an object"),
        ("[1,2,3,4]", "more than 3"),
    ] {
        let error = PartitionKey::from_header(header).unwrap_err().to_string();
        assert!(error.contains(message), "{header}: {error}");
    }
    let longest = format!("[\"{}\"]", "a".repeat(2048));
    assert!(PartitionKey::from_header(&longest).is_ok());
    let longer = format!("[\"{}\"]", "a".repeat(2049));
    assert!(PartitionKey::from_header(&longer).unwrap_err().to_string().contains("2048"));
}

#[test]
fn numbers_are_one_key_however_they_are_written() {
    let one = PartitionKey::from_header("[1]").unwrap();
    assert_eq!(one, PartitionKey::from_header("[1.0]").unwrap());
    assert_eq!(one.to_json(), "[1]");
    let zero = PartitionKey::new(vec![KeyPart::Number(0.0)]);
    let minus = PartitionKey::new(vec![KeyPart::Number(-0.0)]);
    assert_eq!(zero, minus);
    assert_eq!(encoded(&zero), encoded(&minus));
    for version in [HashVersion::V1, HashVersion::V2] {
        assert_eq!(zero.effective(&flat(version)), minus.effective(&flat(version)));
    }
    assert_eq!(
        PartitionKey::from_header("[9007199254740993]").unwrap(),
        PartitionKey::from_header("[9007199254740992]").unwrap()
    );
}

#[test]
fn the_key_of_an_item_stands_at_the_paths() {
    let item = Document::from_json(br#"{"a":"x","b":{"c":7},"d":[1],"e":{}}"#).unwrap();
    let extract = |paths: &[&str]| PartitionKey::extract(&hierarchical(paths), item.root());
    assert_eq!(extract(&["/a", "/b/c"]).unwrap().to_json(), r#"["x",7]"#);
    assert_eq!(extract(&["/a", "/missing", "/b/c/d"]).unwrap().to_json(), r#"["x",{},{}]"#);
    for path in ["/d", "/e", "/b"] {
        assert_eq!(
            extract(&[path]).unwrap().to_json(),
            "[{}]",
            "an array or object at {path} counts as undefined"
        );
    }
    let tree = item.to_value();
    assert_eq!(PartitionKey::extract(&hierarchical(&["/a"]), tree.view()).unwrap().to_json(), r#"["x"]"#);
}

#[test]
fn a_key_is_completed_or_refused() {
    let levels = hierarchical(&["/a", "/b"]);
    assert!(key("[1,2]").complete(&levels).is_ok());
    assert_eq!(key("[1]").complete(&levels), Err(key("[1]")));
    assert!(key("[]").complete(&levels).is_err());
    let system = PartitionKeyDefinition { system_key: true, ..flat(HashVersion::V2) };
    assert_eq!(key("[]").complete(&system).unwrap(), key("[{}]"));
}
