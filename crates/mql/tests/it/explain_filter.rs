//! Why a filter refuses a document: each operator with the values that it examined.

use bson::{Document, Value, parse_extended_json};
use mql::filter::{Filter, Settings, explain_filter};
use mql::{Code, Context};

/// A filter, a document that it refuses, and the explanation.
const CASES: &[(&str, &str, &str)] = &[
    (
        r#"{"a":{"$gt":0}}"#,
        r#"{"a":-1}"#,
        r#"{"operatorName":"$gt","specifiedAs":{"a":{"$gt":0}},"reason":"comparison failed","consideredValue":-1}"#,
    ),
    (
        r#"{"a":{"$gt":0}}"#,
        "{}",
        r#"{"operatorName":"$gt","specifiedAs":{"a":{"$gt":0}},"reason":"field was missing"}"#,
    ),
    (
        r#"{"a":5}"#,
        r#"{"a":[1,2]}"#,
        r#"{"operatorName":"$eq","specifiedAs":{"a":5},"reason":"comparison failed","consideredValues":[1,2]}"#,
    ),
    (
        r#"{"a":{"$ne":2}}"#,
        r#"{"a":2}"#,
        r#"{"operatorName":"$ne","specifiedAs":{"a":{"$ne":2}},"reason":"comparison succeeded","consideredValue":2}"#,
    ),
    (
        r#"{"a":{"$in":[1,2]}}"#,
        r#"{"a":3}"#,
        r#"{"operatorName":"$in","specifiedAs":{"a":{"$in":[1,2]}},"reason":"no matching value found in array","consideredValue":3}"#,
    ),
    (
        r#"{"a":{"$nin":[1]}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$nin","specifiedAs":{"a":{"$nin":[1]}},"reason":"matching value found in array","consideredValue":1}"#,
    ),
    (
        r#"{"a":{"$exists":true}}"#,
        "{}",
        r#"{"operatorName":"$exists","specifiedAs":{"a":{"$exists":true}},"reason":"path does not exist"}"#,
    ),
    (
        r#"{"a":{"$exists":false}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$exists","specifiedAs":{"a":{"$exists":false}},"reason":"path does exist"}"#,
    ),
    (
        r#"{"a":{"$exists":0.0}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$exists","specifiedAs":{"a":{"$exists":0.0}},"reason":"path does exist"}"#,
    ),
    (
        r#"{"a":{"$exists":null}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$exists","specifiedAs":{"a":{"$exists":null}},"reason":"path does exist"}"#,
    ),
    (
        r#"{"a":{"$exists":{"$numberDecimal":"0"}}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$exists","specifiedAs":{"a":{"$exists":{"$numberDecimal":"0"}}},"reason":"path does exist"}"#,
    ),
    // A clause after the deciding one may be impossible to evaluate.
    (
        r#"{"a":5,"$expr":{"$divide":[1,"$b"]},"c":1}"#,
        r#"{"a":1,"b":0,"c":2}"#,
        r#"{"operatorName":"$and","clausesNotSatisfied":[{"index":0,"details":{"operatorName":"$eq","specifiedAs":{"a":5},"reason":"comparison failed","consideredValue":1}},{"index":2,"details":{"operatorName":"$eq","specifiedAs":{"c":1},"reason":"comparison failed","consideredValue":2}}]}"#,
    ),
    // Types are those of all values, of which ten are shown.
    (
        r#"{"a":{"$regex":"x"}}"#,
        r#"{"a":[0,0,0,0,0,0,0,0,0,0,0,0,"y"]}"#,
        r#"{"operatorName":"$regex","specifiedAs":{"a":{"$regex":"x"}},"reason":"regular expression did not match","consideredValues":[0,0,0,0,0,0,0,0,0,0],"consideredValuesTruncated":true}"#,
    ),
    (
        r#"{"a":{"$type":"string"}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$type","specifiedAs":{"a":{"$type":"string"}},"reason":"type did not match","consideredValue":1,"consideredType":"int"}"#,
    ),
    (
        r#"{"a":{"$regex":"^x","$options":"i"}}"#,
        r#"{"a":"y"}"#,
        r#"{"operatorName":"$regex","specifiedAs":{"a":{"$regex":"^x","$options":"i"}},"reason":"regular expression did not match","consideredValue":"y"}"#,
    ),
    (
        r#"{"a":{"$regex":"^x"}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$regex","specifiedAs":{"a":{"$regex":"^x"}},"reason":"type did not match","consideredType":"int","expectedTypes":["regex","string","symbol"],"consideredValue":1}"#,
    ),
    (
        r#"{"a":{"$size":2}}"#,
        r#"{"a":[1]}"#,
        r#"{"operatorName":"$size","specifiedAs":{"a":{"$size":2}},"reason":"array length was not equal to given size","consideredValue":[1]}"#,
    ),
    (
        r#"{"a":{"$elemMatch":{"$gt":5}}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$elemMatch","specifiedAs":{"a":{"$elemMatch":{"$gt":5}}},"reason":"type did not match","consideredType":"int","expectedType":"array","consideredValue":1}"#,
    ),
    (
        r#"{"a":{"$not":{"$gt":5}}}"#,
        r#"{"a":7}"#,
        r#"{"operatorName":"$not","details":{"operatorName":"$gt","specifiedAs":{"a":{"$gt":5}},"reason":"comparison succeeded","consideredValue":7}}"#,
    ),
    (
        r#"{"a":{"$gt":0,"$lt":9},"b":1}"#,
        r#"{"a":10,"b":2}"#,
        r#"{"operatorName":"$and","clausesNotSatisfied":[{"index":1,"details":{"operatorName":"$lt","specifiedAs":{"a":{"$lt":9}},"reason":"comparison failed","consideredValue":10}},{"index":2,"details":{"operatorName":"$eq","specifiedAs":{"b":1},"reason":"comparison failed","consideredValue":2}}]}"#,
    ),
    (
        r#"{"$or":[{"a":1},{"b":1}]}"#,
        r#"{"a":2}"#,
        r#"{"operatorName":"$or","clausesNotSatisfied":[{"index":0,"details":{"operatorName":"$eq","specifiedAs":{"a":1},"reason":"comparison failed","consideredValue":2}},{"index":1,"details":{"operatorName":"$eq","specifiedAs":{"b":1},"reason":"field was missing"}}]}"#,
    ),
    (
        r#"{"$nor":[{"a":1},{"a":2}]}"#,
        r#"{"a":2}"#,
        r#"{"operatorName":"$nor","clausesSatisfied":[{"index":1,"details":{"operatorName":"$eq","specifiedAs":{"a":2},"reason":"comparison succeeded","consideredValue":2}}]}"#,
    ),
    (
        r#"{"$expr":{"$gt":["$a","$b"]}}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"operatorName":"$expr","specifiedAs":{"$expr":{"$gt":["$a","$b"]}},"reason":"expression did not match","expressionResult":false}"#,
    ),
    (
        r#"{"$jsonSchema":{"required":["x"]}}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$jsonSchema","schemaRulesNotSatisfied":[{"operatorName":"required","specifiedAs":{"required":["x"]},"missingProperties":["x"]}]}"#,
    ),
    (
        r#"{"$nor":[{"$jsonSchema":{"required":["a"]}}]}"#,
        r#"{"a":1}"#,
        r#"{"operatorName":"$nor","clausesSatisfied":[{"index":0,"details":{"operatorName":"$jsonSchema","reason":"schema matched"}}]}"#,
    ),
    (
        r#"{"a":1}"#,
        r#"{"a":[0,0,0,0,0,0,0,0,0,0,0]}"#,
        r#"{"operatorName":"$eq","specifiedAs":{"a":1},"reason":"comparison failed","consideredValues":[0,0,0,0,0,0,0,0,0,0],"consideredValuesTruncated":true}"#,
    ),
];

fn document(json: &str) -> Document {
    parse_extended_json(json).expect(json).as_document().expect("a document").clone()
}

#[test]
fn every_operator_tells_what_it_looked_at_and_why_that_is_not_enough() {
    for (filter, stored, expected) in CASES {
        let (filter, stored) = (document(filter), document(stored));
        let parsed = Filter::parse(filter.view(), &Settings::default()).expect("a filter");
        assert_eq!(parsed.matches(stored.view(), &Context::at(0)), Ok(false), "{filter:?}");
        let told = explain_filter(filter.view(), stored.view(), &Context::at(0)).expect("an explanation");
        assert_eq!(told, document(expected), "{filter:?}");
    }
}

#[test]
fn explanations_are_bounded_in_depth() {
    let mut filter = document(r#"{"a":1}"#);
    for _ in 0..40 {
        filter = Document::new().with("$and", vec![Value::Document(filter)]);
    }
    let stored = document(r#"{"a":2}"#);
    assert!(explain_filter(filter.view(), stored.view(), &Context::at(0)).is_ok());
}

/// An array is examined within the bound on the work of the request, and not copied.
#[test]
fn the_values_of_a_large_array_are_counted_as_work() {
    let (filter, items) = (document(r#"{"a":1}"#), vec![Value::Int32(0); 100_000]);
    let stored = Document::new().with("a", items);
    let told = explain_filter(filter.view(), stored.view(), &Context::at(0)).expect("an explanation");
    assert_eq!(told.get("consideredValues").and_then(Value::as_array).map(<[Value]>::len), Some(10));
    let stopped = explain_filter(filter.view(), stored.view(), &Context::at(0).with_steps_max(10_000));
    assert_eq!(stopped.expect_err("too much work").code, Code::MAX_TIME_MS_EXPIRED);
}

/// A rule without an explanation is shown within the bound of everything that is shown.
#[test]
fn rules_without_an_explanation_are_shown_only_if_they_are_small() {
    for (bytes, shown) in [(10, true), (100_000, false)] {
        let pad = "x".repeat(bytes);
        let filter = document(&format!(r#"{{"$expr":{{"$divide":[{{"$strLenBytes":"{pad}"}},"$b"]}}}}"#));
        let stored = document(r#"{"b":0}"#);
        let told = explain_filter(filter.view(), stored.view(), &Context::at(0)).expect("an explanation");
        assert_eq!(told.get("specifiedAs").is_some(), shown, "{bytes}");
        assert_eq!(told.get("reason"), Some(&Value::from("the document does not match")));
    }
}
