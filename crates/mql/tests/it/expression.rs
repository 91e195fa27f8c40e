//! Expressions from arbitrary clients: nothing panics, nothing grows without bound, and constants mean the same as fields.

use bson::{Document, Value};
use mql::expression::{Expression, Scope, Variables};
use mql::{Code, Context, Result};
use proptest::prelude::*;

/// Every operator, so that none is missing here.
const OPERATORS: &[&str] = &[
    "$abs",
    "$acos",
    "$acosh",
    "$add",
    "$allElementsTrue",
    "$and",
    "$anyElementTrue",
    "$arrayElemAt",
    "$arrayToObject",
    "$asin",
    "$asinh",
    "$atan",
    "$atan2",
    "$atanh",
    "$avg",
    "$binarySize",
    "$bitAnd",
    "$bitNot",
    "$bitOr",
    "$bitXor",
    "$bsonSize",
    "$ceil",
    "$cmp",
    "$concat",
    "$concatArrays",
    "$cond",
    "$convert",
    "$cos",
    "$cosh",
    "$dateAdd",
    "$dateDiff",
    "$dateFromParts",
    "$dateFromString",
    "$dateSubtract",
    "$dateToParts",
    "$dateToString",
    "$dateTrunc",
    "$dayOfMonth",
    "$dayOfWeek",
    "$dayOfYear",
    "$degreesToRadians",
    "$divide",
    "$eq",
    "$exp",
    "$filter",
    "$first",
    "$firstN",
    "$floor",
    "$getField",
    "$gt",
    "$gte",
    "$hour",
    "$ifNull",
    "$in",
    "$indexOfArray",
    "$indexOfBytes",
    "$indexOfCP",
    "$isArray",
    "$isNumber",
    "$isoDayOfWeek",
    "$isoWeek",
    "$isoWeekYear",
    "$last",
    "$lastN",
    "$let",
    "$literal",
    "$ln",
    "$log",
    "$log10",
    "$lt",
    "$lte",
    "$ltrim",
    "$map",
    "$max",
    "$maxN",
    "$median",
    "$mergeObjects",
    "$meta",
    "$millisecond",
    "$min",
    "$minN",
    "$minute",
    "$mod",
    "$month",
    "$multiply",
    "$ne",
    "$not",
    "$objectToArray",
    "$or",
    "$percentile",
    "$pow",
    "$radiansToDegrees",
    "$rand",
    "$range",
    "$reduce",
    "$regexFind",
    "$regexFindAll",
    "$regexMatch",
    "$replaceAll",
    "$replaceOne",
    "$reverseArray",
    "$round",
    "$rtrim",
    "$second",
    "$setDifference",
    "$setEquals",
    "$setField",
    "$setIntersection",
    "$setIsSubset",
    "$setUnion",
    "$sin",
    "$sinh",
    "$size",
    "$slice",
    "$sortArray",
    "$split",
    "$sqrt",
    "$stdDevPop",
    "$stdDevSamp",
    "$strLenBytes",
    "$strLenCP",
    "$strcasecmp",
    "$substr",
    "$substrBytes",
    "$substrCP",
    "$subtract",
    "$sum",
    "$switch",
    "$tan",
    "$tanh",
    "$tsIncrement",
    "$tsSecond",
    "$toBool",
    "$toDate",
    "$toDecimal",
    "$toDouble",
    "$toInt",
    "$toLong",
    "$toLower",
    "$toObjectId",
    "$toString",
    "$toUpper",
    "$trim",
    "$trunc",
    "$type",
    "$unsetField",
    "$week",
    "$year",
    "$zip",
];

/// Names of arguments of all operators that have some.
const ARGUMENTS: &[&str] = &[
    "input",
    "in",
    "as",
    "cond",
    "limit",
    "initialValue",
    "vars",
    "date",
    "format",
    "timezone",
    "onNull",
    "onError",
    "to",
    "unit",
    "amount",
    "startDate",
    "endDate",
    "binSize",
    "startOfWeek",
    "year",
    "month",
    "day",
    "isoWeekYear",
    "second",
    "dateString",
    "find",
    "replacement",
    "regex",
    "options",
    "field",
    "value",
    "n",
    "inputs",
    "defaults",
    "p",
    "method",
    "sortBy",
    "chars",
    "if",
    "then",
    "else",
    "branches",
    "case",
    "default",
];

fn evaluate(expression: &Value, document: &Document) -> Result<Option<Value>> {
    let scope = Scope::root(document.view());
    Expression::parse(expression.view(), &Variables::none())?.evaluate(&scope, &Context::at(0))
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![-3..4_i32, any::<i32>()].prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        prop_oneof![any::<f64>(), Just(f64::NAN), Just(0.5), Just(-1.0)].prop_map(Value::Double),
        any::<i64>().prop_map(Value::DateTime),
        any::<[u8; 16]>().prop_map(|bytes| Value::Decimal128(bson::Decimal128(bytes))),
        "[a-zé%YmdH0-9:+-]{0,8}".prop_map(Value::String),
        prop_oneof![
            Just("$a"),
            Just("$b.c"),
            Just("$$ROOT"),
            Just("$$this"),
            Just("day"),
            Just("month"),
            Just("int"),
            Just("UTC"),
            Just("Europe/Rome"),
            Just("approximate"),
            Just("2024-05-06T07:08:09Z"),
            Just("%Y-%m-%d"),
        ]
        .prop_map(Value::from),
    ]
}

fn expression() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array);
        let named = prop::collection::vec((prop::sample::select(ARGUMENTS), inner.clone()), 0..5).prop_map(
            |fields| {
                let mut document = Document::new();
                for (name, value) in fields {
                    document.insert(name, value);
                }
                Value::Document(document)
            },
        );
        let argument = prop_oneof![3 => list.clone(), 2 => named.clone(), 1 => inner];
        let operator = (prop::sample::select(OPERATORS), argument)
            .prop_map(|(name, argument)| Value::Document(Document::new().with(name, argument)));
        prop_oneof![4 => operator, 1 => list, 1 => named]
    })
}

fn document() -> impl Strategy<Value = Document> {
    (scalar(), prop::collection::vec(scalar(), 0..4)).prop_map(|(a, c)| {
        Document::new().with("a", a).with("b", vec![Value::Document(Document::new().with("c", c))])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// Every expression has a result: a value or an error.
    #[test]
    fn any_expression_over_any_document_ends(expression in expression(), document in document()) {
        let _ = evaluate(&expression, &document);
    }

    /// One operator over plain values has the same result for constants, which are folded, and for fields, which are not.
    #[test]
    fn constants_mean_what_fields_mean(
        name in prop::sample::select(OPERATORS),
        arguments in prop::collection::vec(scalar(), 0..4),
    ) {
        let plain = |value: &Value| !value.as_str().is_some_and(|text| text.starts_with('$'));
        prop_assume!(arguments.iter().all(plain));
        prop_assume!(!["$rand", "$literal", "$meta", "$getField"].contains(&name));
        let mut document = Document::new();
        let mut paths = Vec::new();
        for (position, argument) in arguments.iter().enumerate() {
            document.push(format!("f{position}"), argument.clone());
            paths.push(Value::String(format!("$f{position}")));
        }
        let constant = Value::Document(Document::new().with(name, arguments));
        let variable = Value::Document(Document::new().with(name, paths));
        let show = |answer: Result<Option<Value>>| format!("{answer:?}");
        prop_assert_eq!(show(evaluate(&constant, &document)), show(evaluate(&variable, &document)));
    }
}

#[test]
fn every_operator_is_known() {
    for name in OPERATORS {
        let expression = Value::Document(Document::new().with(*name, Value::Null));
        if let Err(error) = evaluate(&expression, &Document::new()) {
            assert_ne!(error.code, Code(168), "{name}");
        }
    }
}

/// An expression as deep as bytes may be.
#[test]
fn depth_is_bearable() {
    for (name, list) in
        [("$not", true), ("$add", true), ("$toString", false), ("$let", false), ("$map", false)]
    {
        let mut expression = Value::from("$a");
        for _ in 0..90 {
            let argument = match name {
                "$let" => Value::from(Document::new().with("vars", Document::new()).with("in", expression)),
                "$map" => {
                    Value::from(Document::new().with("input", vec![Value::Null]).with("in", expression))
                }
                _ if list => Value::Array(vec![expression]),
                _ => expression,
            };
            expression = Value::Document(Document::new().with(name, argument));
        }
        assert!(evaluate(&expression, &Document::new().with("a", 1)).is_ok(), "{name}");
    }
}

/// Loops inside of loops end when the request is cancelled or has done too much.
#[test]
fn nested_loops_can_be_cancelled() {
    let mut body = Value::from(1);
    for _ in 0..6 {
        let range = Document::new().with("$range", vec![Value::from(0), Value::from(1_000_000)]);
        body =
            Value::Document(Document::new().with(
                "$reduce",
                Document::new().with("input", range).with("initialValue", 0).with("in", body),
            ));
    }
    let cancelled = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let context = Context::new(0, bson::Timestamp { seconds: 0, increment: 0 }, 1, cancelled);
    let empty = Document::new();
    let expression = Expression::parse(body.view(), &Variables::none()).unwrap();
    let error = expression.evaluate(&Scope::root(empty.view()), &context).unwrap_err();
    assert_eq!(error.code, Code::MAX_TIME_MS_EXPIRED);
}

/// Strings and arrays that double at every step are refused at the size of a document.
#[test]
fn results_end_where_documents_do() {
    let twice = |operator: &str, of: &str| {
        let both = vec![Value::from(of), Value::from(of)];
        Value::Document(Document::new().with(operator, both))
    };
    for (operator, seed) in
        [("$concat", Value::from("text")), ("$concatArrays", Value::Array(vec![1.into()]))]
    {
        let steps = Document::new().with("$range", vec![Value::from(0), Value::from(100)]);
        let reduce = Document::new()
            .with("input", steps)
            .with("initialValue", seed)
            .with("in", twice(operator, "$$value"));
        let error = evaluate(&Value::Document(Document::new().with("$reduce", reduce)), &Document::new())
            .unwrap_err();
        assert_eq!(error.code, Code::BSON_OBJECT_TOO_LARGE, "{operator}");
    }
}

/// Copying counts as work: a loop that passes a large array around is not cheaper than one that computes.
#[test]
fn copies_are_counted() {
    let large = Value::Array(vec![Value::from("0123456789abcdef"); 50_000]);
    let document = Document::new().with("large", large);
    let range = Document::new().with("$range", vec![Value::from(0), Value::from(1_000_000)]);
    for body in ["$large", "$$value"] {
        let reduce =
            Document::new().with("input", range.clone()).with("initialValue", "$large").with("in", body);
        let expression = Value::Document(Document::new().with("$reduce", reduce));
        let cancelled = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let context = Context::new(0, bson::Timestamp { seconds: 0, increment: 0 }, 1, cancelled);
        let parsed = Expression::parse(expression.view(), &Variables::none()).unwrap();
        let error = parsed.evaluate(&Scope::root(document.view()), &context).unwrap_err();
        assert_eq!(error.code, Code::MAX_TIME_MS_EXPIRED, "{body}");
    }
}
