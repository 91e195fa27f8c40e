//! Why a filter refuses a document: each operator with what it looked at.

use bson::{Document, Value, parse_extended_json};
use mql::Context;
use mql::filter::{Filter, Settings, explain_filter};

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
