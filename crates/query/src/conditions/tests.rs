//! Sets of values, a table of filters and their conditions, and conditions against the evaluator.

use document::{Value, ValueRef, encode_key};
use proptest::prelude::*;

use super::interval::{Interval, ValueSet};
use super::{Analysis, Condition, Step};
use crate::logical::{Comparison, Segment};

/// Scalars of every type, around every boundary that matters.
fn scalars() -> Vec<Value> {
    let numbers = [i64::MIN, -5, -1, 0, 1, 5, 1 << 53, (1 << 53) + 1, i64::MAX];
    let doubles = [-1e300, -0.5, 0.5, 9_007_199_254_740_992.0, 9.3e18, 1e300];
    let texts = ["", "\0", "a", "a\0", "a\0b", "aa", "ab", "b", "\u{7f}", "\u{10ffff}"];
    let simple = [Value::Null, Value::Bool(false), Value::Bool(true)];
    let numbers = numbers.map(Value::Int).into_iter().chain(doubles.map(Value::Double));
    simple.into_iter().chain(numbers).chain(texts.map(Value::from)).collect()
}

fn key(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(Some(value.view()), &mut bytes);
    bytes
}

const OPERATORS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

#[test]
fn a_comparison_admits_exactly_the_scalars_for_which_it_is_true() {
    for constant in scalars() {
        for operator in OPERATORS {
            let values = ValueSet::compared(operator, constant.view());
            for value in scalars() {
                let expected =
                    crate::evaluate::compare(operator, value.view(), constant.view()) == Some(true);
                assert_eq!(values.admits(&key(&value)), expected, "{value:?} {operator:?} {constant:?}");
            }
        }
    }
}

#[test]
fn a_prefix_admits_exactly_the_texts_that_begin_with_it() {
    for prefix in ["", "\0", "a", "a\0", "ab", "\u{10ffff}"] {
        let values = ValueSet::prefix(prefix);
        for value in scalars() {
            let expected = value.as_str().is_some_and(|text| text.starts_with(prefix));
            assert_eq!(values.admits(&key(&value)), expected, "{value:?} begins with {prefix:?}");
        }
    }
}

#[test]
fn sets_of_values_follow_the_laws_of_sets() {
    let sets: Vec<ValueSet> = [Value::Int(1), Value::from("a"), Value::Bool(true)]
        .iter()
        .flat_map(|constant| OPERATORS.map(|operator| ValueSet::compared(operator, constant.view())))
        .chain([ValueSet::prefix("a"), ValueSet::defined(), ValueSet::array()])
        .collect();
    for one in &sets {
        assert_eq!(one.complement().complement(), *one);
        assert!(one.intersect(&one.complement()).is_nothing());
        assert!(ValueSet::union([one.clone(), one.complement()]).is_anything());
        for other in &sets {
            let both = one.intersect(other);
            let either = ValueSet::union([one.clone(), other.clone()]);
            assert_eq!(both.complement(), ValueSet::union([one.complement(), other.complement()]));
            for key in scalars().iter().map(key) {
                assert_eq!(both.admits(&key), one.admits(&key) && other.admits(&key));
                assert_eq!(either.admits(&key), one.admits(&key) || other.admits(&key));
            }
        }
    }
}

#[test]
fn only_a_single_value_is_a_point() {
    for value in scalars() {
        let point = Interval::point(value.view()).as_point().expect("a point");
        assert!(document::equal(point.view(), value.view()), "{value:?}");
    }
    for values in [
        ValueSet::prefix("a"),
        ValueSet::compared(Comparison::Less, ValueRef::Int(5)),
        ValueSet::of_type(ValueRef::Bool(true)),
        ValueSet::of_type(ValueRef::Int(0)),
    ] {
        assert_eq!(values.scalars[0].as_point(), None, "{values:?}");
    }
}

/// Returns a condition as short text: `/a in {1}`, `/a missing`, `all(...)`, `any(...)`.
fn text(condition: &Condition) -> String {
    let list = |name: &str, parts: &[Condition]| {
        let mut parts: Vec<String> = parts.iter().map(text).collect();
        parts.sort();
        format!("{name}({})", parts.join(", "))
    };
    match condition {
        Condition::Everything => "everything".to_owned(),
        Condition::Nothing => "nothing".to_owned(),
        Condition::Leaf(leaf) => {
            let step = |step: &Step| match step {
                Step::Name(name) => format!("/{name}"),
                Step::Each => "/[]".to_owned(),
            };
            let path: String = leaf.path.iter().map(step).collect::<Vec<_>>().concat();
            let mut parts: Vec<String> = leaf.values.scalars.iter().map(interval_text).collect();
            let kinds = leaf.values.kinds;
            let named = [(kinds.missing, "missing"), (kinds.array, "array"), (kinds.object, "object")];
            parts.extend(named.iter().filter(|(has, _)| *has).map(|(_, name)| (*name).to_owned()));
            format!("{path} {}", parts.join(" or "))
        }
        Condition::All(parts) => list("all", parts),
        Condition::Any(parts) => list("any", parts),
    }
}

/// Returns a point as its value, any other range as the sample values that lie in it at its ends.
fn interval_text(interval: &Interval) -> String {
    if let Some(point) = interval.as_point() {
        return point.to_json();
    }
    if *interval == Interval::all() {
        return "scalar".to_owned();
    }
    let samples: Vec<Value> = scalars().into_iter().filter(|value| interval.contains(&key(value))).collect();
    let mut keys: Vec<_> = samples.iter().map(|value| (key(value), value)).collect();
    keys.sort_by(|one, other| one.0.cmp(&other.0));
    match (keys.first(), keys.last()) {
        (Some(first), Some(last)) => format!("{}..{}", first.1.to_json(), last.1.to_json()),
        _ => "a range without samples".to_owned(),
    }
}

fn analyse(text: &str) -> Analysis {
    let query = crate::parse(text, &[], &crate::Dialect::default());
    let query = query.unwrap_or_else(|error| panic!("{text}: {error}"));
    let key = document::parse_json(br#"{"paths":["/pk"],"kind":"Hash","version":2}"#).expect("JSON");
    query.analyse(&document::PartitionKeyDefinition::from_value(&key).expect("a definition"))
}

fn assert_condition(filter: &str, condition: &str, exact: bool) {
    let analysis = analyse(&format!("SELECT * FROM c WHERE {filter}"));
    assert_eq!((text(&analysis.condition).as_str(), analysis.exact), (condition, exact), "{filter}");
}

#[test]
fn filters_become_conditions() {
    for (filter, condition, exact) in [
        ("true", "everything", true),
        ("false", "nothing", true),
        ("c.a = 5", "/a 5", true),
        ("5 = c.a", "/a 5", true),
        ("c.a.b = 'a'", r#"/a/b "a""#, true),
        ("c.a = undefined", "nothing", true),
        ("c.a IN (1, 5, 1.0)", "/a 1 or 5", true),
        ("c.a = 1 OR c.a = 5 OR c.a = null", "/a null or 1 or 5", true),
        ("c.a > 0 AND c.a < 5", "/a 0.5..1", true),
        ("c.a > 0 AND c.a < 'a'", "nothing", true),
        ("c.a BETWEEN 1 AND 5", "/a 1..5", true),
        ("c.a NOT BETWEEN 1 AND 5", "/a -1e+300..0.5 or 9007199254740992..1e+300", true),
        ("c.a != 5", r#"/a null..1 or 9007199254740992.."􏿿" or array or object"#, true),
        ("NOT (c.a = 5)", r#"/a null..1 or 9007199254740992.."􏿿" or array or object"#, true),
        ("NOT (c.a >= 5)", "/a -1e+300..1", true),
        ("c.a NOT IN (null, true)", r#"/a false or -1e+300.."􏿿" or array or object"#, true),
        ("c.a", "/a true", true),
        ("NOT c.a", "/a false", true),
        ("IS_DEFINED(c.a)", "/a scalar or array or object", true),
        ("NOT IS_DEFINED(c.a)", "/a missing", true),
        ("IS_NULL(c.a) OR NOT IS_DEFINED(c.a)", "/a null or missing", true),
        ("IS_BOOL(c.a)", "/a false..true", true),
        ("IS_BOOLEAN(c.a)", "/a false..true", true),
        ("IS_ARRAY(c.a)", "/a array", true),
        ("NOT IS_OBJECT(c.a)", "/a scalar or missing or array", true),
        ("IS_DEFINED(c.a) AND NOT IS_ARRAY(c.a) AND NOT IS_OBJECT(c.a)", "/a scalar", true),
        ("IS_INTEGER(c.a)", "/a -1e+300..1e+300", false),
        ("STARTSWITH(c.a, 'a')", r#"/a "a".."ab""#, true),
        ("STARTSWITH(c.a, 'a', true)", r#"/a "".."􏿿""#, false),
        ("NOT STARTSWITH(c.a, 'a')", r#"/a "".."􏿿""#, false),
        ("CONTAINS(c.a, 'x')", r#"/a "".."􏿿""#, false),
        ("c.a LIKE 'a%'", r#"/a "a".."ab""#, true),
        ("c.a LIKE 'a%b'", r#"/a "a".."ab""#, false),
        ("STRINGEQUALS(c.a, 'ab')", r#"/a "ab""#, true),
        ("c.a = 1 AND c.b = 'b'", r#"all(/a 1, /b "b")"#, true),
        ("c.a = 1 OR c.b = 'b'", r#"any(/a 1, /b "b")"#, true),
        (
            "NOT (c.a = 1 AND IS_DEFINED(c.b))",
            "any(/a null..0.5 or 5..\"􏿿\" or array or object, /b missing)",
            true,
        ),
        ("c.a = 1 AND UPPER(c.b) = 'B'", "/a 1", false),
        ("c.a = 1 OR UPPER(c.b) = 'B'", "everything", false),
        ("(c.a = 1 OR c.b = 1) AND c.a > 0", "all(/a 0.5..1e+300, any(/a 1, /b 1))", true),
        ("IS_DEFINED(c.a) = true", "/a scalar or array or object", true),
        ("(c.a ?? true) = true", "everything", false),
    ] {
        assert_condition(filter, condition, exact);
    }
}

/// The item is an object, so a condition on the item itself is constant.
#[test]
fn conditions_on_the_item_itself_are_constants() {
    for (filter, condition, exact) in [
        ("IS_DEFINED(c)", "everything", true),
        ("NOT IS_DEFINED(c)", "nothing", true),
        ("NOT (NOT IS_DEFINED(c))", "everything", true),
        ("IS_OBJECT(c)", "everything", true),
        ("NOT IS_OBJECT(c)", "nothing", true),
        ("IS_NULL(c)", "nothing", true),
        ("NOT IS_NULL(c)", "everything", true),
        ("IS_ARRAY(c)", "nothing", true),
        ("NOT IS_PRIMITIVE(c)", "everything", true),
        ("IS_INTEGER(c)", "nothing", true),
        ("NOT IS_INTEGER(c)", "everything", true),
        ("NOT IS_FINITE_NUMBER(c)", "everything", true),
        ("NOT IS_DATETIME(c)", "everything", true),
        ("c", "nothing", true),
        ("NOT c", "nothing", true),
        ("c = null", "nothing", true),
        ("c != null", "everything", true),
        ("NOT (c != null)", "nothing", true),
        ("5 != c", "everything", true),
        ("c < 5", "nothing", true),
        ("NOT (c < 5)", "nothing", true),
        ("c IN (1, 2)", "nothing", true),
        ("c NOT IN (1, 2)", "everything", true),
        ("c NOT IN (1, [2])", "everything", true),
        ("c IN (1, {\"a\": 1})", "/a 1", false),
        ("c NOT IN (1, {\"a\": 1})", "everything", false),
        ("c BETWEEN 1 AND 2", "nothing", true),
        ("c NOT BETWEEN 1 AND 2", "nothing", true),
        ("c = {\"a\": 1}", "/a 1", false),
        ("c != {\"a\": 1}", "everything", false),
        ("c = [1]", "nothing", true),
        ("c != [1]", "everything", true),
        ("c LIKE 'a%'", "nothing", true),
        ("c NOT LIKE 'a%'", "nothing", true),
        ("STARTSWITH(c, 'a')", "nothing", true),
        ("NOT CONTAINS(c, 'a')", "nothing", true),
        ("ARRAY_CONTAINS(c, 5)", "nothing", true),
        ("ARRAY_CONTAINS([1, 5], c)", "nothing", true),
        ("ARRAY_CONTAINS([1, {\"a\": 1}], c)", "/a 1", false),
        ("c[0] = 5", "nothing", true),
        ("IS_DEFINED(c[0])", "nothing", true),
        ("NOT IS_DEFINED(c[0].k)", "everything", true),
        ("EXISTS(SELECT VALUE x FROM x IN c)", "nothing", true),
        ("EXISTS(SELECT VALUE x FROM x IN c WHERE NOT IS_DEFINED(x.k))", "nothing", true),
        ("IS_DEFINED(c) OR c.a = 5", "everything", true),
        ("IS_DEFINED(c) AND c.a = 5", "/a 5", true),
        ("NOT IS_DEFINED(c) OR c.a = 5", "/a 5", true),
        (
            "NOT (IS_DEFINED(c) AND c.a = 5)",
            r#"/a null..1 or 9007199254740992.."􏿿" or array or object"#,
            true,
        ),
    ] {
        assert_condition(filter, condition, exact);
    }
}

#[test]
fn subqueries_that_yield_the_item_keep_all_items() {
    for (query, condition) in [
        ("SELECT VALUE s FROM c JOIN (SELECT VALUE c) s", "everything"),
        ("SELECT VALUE s FROM c JOIN (SELECT VALUE c) s WHERE IS_DEFINED(s) AND s.a = 5", "/a 5"),
        ("SELECT VALUE s FROM c JOIN (SELECT VALUE c) s WHERE s != null", "everything"),
        ("SELECT VALUE s FROM (SELECT VALUE c FROM c) s", "everything"),
        ("SELECT VALUE s FROM (SELECT VALUE c FROM c WHERE c.a = 5) s WHERE IS_OBJECT(s)", "/a 5"),
        ("SELECT VALUE COUNT(1) FROM (SELECT VALUE c FROM c) s", "everything"),
        ("SELECT VALUE COUNT(1) FROM (SELECT TOP 3 VALUE c FROM c WHERE IS_DEFINED(c)) s", "everything"),
        ("SELECT VALUE x FROM x IN c", "nothing"),
    ] {
        assert_eq!(text(&analyse(query).condition), condition, "{query}");
    }
}

/// Returns what a condition of a single leaf admits.
fn only_leaf(analysis: &Analysis) -> &ValueSet {
    match &analysis.condition {
        Condition::Leaf(leaf) => &leaf.values,
        other => panic!("not a leaf: {other:?}"),
    }
}

#[test]
fn many_statements_about_one_place_are_merged_at_once() {
    let list = |operator: &str, between: &str, count: usize| {
        let parts: Vec<String> = (0..count).map(|number| format!("c.a{operator}{number}")).collect();
        analyse(&format!("SELECT * FROM c WHERE {}", parts.join(between)))
    };
    let analysis = list("!=", " AND ", 16_000);
    let values = only_leaf(&analysis);
    assert!(analysis.exact);
    assert_eq!(values.scalars.len(), 16_001);
    for (value, fits) in [(Value::Int(-1), true), (Value::Int(7), false), (Value::Double(7.5), true)] {
        assert_eq!(values.admits(&key(&value)), fits, "{value:?}");
    }
    assert!(values.kinds.array && values.kinds.object && !values.kinds.missing);
    assert_eq!(only_leaf(&list(">", " AND ", 16_000)).scalars.len(), 1);
    assert_eq!(list("=", " AND ", 16_000).condition, Condition::Nothing);
}

#[test]
fn more_ranges_than_are_told_apart_make_a_wider_condition() {
    let list: Vec<String> = (0..40_000).map(|number| number.to_string()).collect();
    for (filter, inside) in [
        (format!("c.a IN ({}) OR c.a = 'x'", list.join(",")), ["0", "20001", "39999"]),
        (format!("c.a NOT IN ({}) AND c.a != 'x'", list.join(",")), ["-1", "20000.5", "40000"]),
    ] {
        let analysis = analyse(&format!("SELECT * FROM c WHERE {filter}"));
        let values = only_leaf(&analysis);
        assert!(!analysis.exact);
        assert!(values.scalars.len() <= 16_384 && values.scalars.len() > 8_192);
        for value in inside {
            let value = document::parse_json(value.as_bytes()).expect("JSON");
            assert!(values.admits(&key(&value)), "{value:?}");
        }
    }
}

#[test]
fn filters_on_elements_become_conditions_on_some_element() {
    for (filter, condition, exact) in [
        ("c.a[0] = 5", "/a/[] 5", false),
        ("c.a[0] != 5", "/a array", false),
        ("c.a[0].b = 1 AND c.a[1].b = 5", "all(/a/[]/b 1, /a/[]/b 5)", false),
        ("c.a = {\"b\": 1, \"x\": [\"a\"]}", "all(/a object, /a/b 1, /a/x/[] \"a\")", false),
        ("c.a = [1, 5]", "all(/a array, /a/[] 1, /a/[] 5)", false),
        ("ARRAY_CONTAINS(c.a, 5)", "/a/[] 5", true),
        ("ARRAY_CONTAINS(c.a, 1) AND ARRAY_CONTAINS(c.a, 5)", "all(/a/[] 1, /a/[] 5)", true),
        ("ARRAY_CONTAINS(c.a, 1) OR ARRAY_CONTAINS(c.a, 5)", "/a/[] 1 or 5", true),
        ("ARRAY_CONTAINS(c.a, {\"b\": 5}, true)", "/a/[]/b 5", false),
        ("ARRAY_CONTAINS([1, 5], c.a)", "/a 1 or 5", true),
        ("NOT ARRAY_CONTAINS(c.a, 5)", "everything", false),
        ("EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 5)", "/a/[] 5", true),
        ("EXISTS(SELECT VALUE x FROM x IN c.a WHERE x > 0 AND x <= 5)", "/a/[] 0.5..5", true),
        ("EXISTS(SELECT VALUE x FROM x IN c.a WHERE x.b = 5)", "/a/[]/b 5", true),
        (
            "EXISTS(SELECT VALUE x FROM x IN c.a WHERE x.b = 5 AND x.d = 1)",
            "all(/a array, /a/[]/b 5, /a/[]/d 1)",
            false,
        ),
        (
            "EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 1) AND EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 5)",
            "all(/a/[] 1, /a/[] 5)",
            true,
        ),
        ("EXISTS(SELECT VALUE x.b FROM x IN c.a WHERE x.d = 5)", "all(/a array, /a/[]/d 5)", false),
        ("EXISTS(SELECT VALUE COUNT(1) FROM x IN c.a WHERE x = 5)", "everything", false),
        ("NOT EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 5)", "everything", false),
    ] {
        assert_condition(filter, condition, exact);
    }
}

#[test]
fn joins_become_conditions_on_some_element() {
    for (query, condition) in [
        ("SELECT VALUE x FROM c JOIN x IN c.a", "/a array"),
        ("SELECT VALUE x FROM x IN c.a WHERE x = 5", "all(/a array, /a/[] 5)"),
        (
            "SELECT VALUE x FROM c JOIN x IN c.a WHERE x > 0 AND x < 5 AND c.b = 1",
            "all(/a array, /a/[] 0.5..1, /b 1)",
        ),
        (
            "SELECT VALUE 1 FROM c JOIN x IN c.a JOIN y IN c.a WHERE x = 1 AND y = 5",
            "all(/a array, /a/[] 1, /a/[] 5)",
        ),
        ("SELECT VALUE y FROM c JOIN x IN c.a JOIN y IN x.b WHERE y.d = 5", "all(/a array, /a/[]/b/[]/d 5)"),
        (
            "SELECT VALUE x FROM c JOIN (SELECT VALUE t FROM t IN c.a WHERE t.b = 5) x",
            "all(/a array, /a/[]/b 5)",
        ),
        ("SELECT VALUE x FROM c.a x WHERE x.b = 5", "all(/a scalar or array or object, /a/b 5)"),
        ("SELECT VALUE x FROM c JOIN x IN c.a WHERE NOT IS_DEFINED(x.b)", "/a array"),
    ] {
        let analysis = analyse(query);
        assert_eq!((text(&analysis.condition).as_str(), analysis.exact), (condition, false), "{query}");
    }
}

#[test]
fn references_are_what_an_answer_reads() {
    for (query, whole, paths) in [
        ("SELECT * FROM c WHERE c.a = 1", true, "a"),
        ("SELECT VALUE COUNT(1) FROM c", false, ""),
        ("SELECT VALUE SUM(c.a) FROM c WHERE c.b.d = 1", false, "a b.d"),
        ("SELECT c.a FROM c ORDER BY c.e", false, "a e"),
        ("SELECT VALUE x.y FROM c JOIN x IN c.a", false, "a"),
        ("SELECT VALUE EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = c.b) FROM c", false, "a b"),
        ("SELECT VALUE c FROM c", true, ""),
        ("SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a", false, "a"),
    ] {
        let references = analyse(query).references;
        let path = |path: &Vec<Segment>| {
            let names =
                path.iter().map(|segment| if let Segment::Name(name) = segment { name } else { "[n]" });
            names.collect::<Vec<_>>().join(".")
        };
        let found: Vec<String> = references.paths.iter().map(path).collect();
        assert_eq!((references.whole, found.join(" ").as_str()), (whole, paths), "{query}");
    }
}

/// Returns `true` if an item is in the set that a condition describes.
fn admits(condition: &Condition, item: &Value) -> bool {
    match condition {
        Condition::Everything => true,
        Condition::Nothing => false,
        Condition::All(parts) => parts.iter().all(|part| admits(part, item)),
        Condition::Any(parts) => parts.iter().any(|part| admits(part, item)),
        Condition::Leaf(leaf) => {
            let mut values = vec![item];
            for step in &leaf.path {
                values = values.into_iter().flat_map(|value| inside(value, step)).collect();
            }
            let kinds = leaf.values.kinds;
            let fits = |value: &&Value| match value {
                Value::Array(_) => kinds.array,
                Value::Object(_) => kinds.object,
                scalar => leaf.values.admits(&key(scalar)),
            };
            values.iter().any(fits) || (values.is_empty() && kinds.missing)
        }
    }
}

fn inside<'v>(value: &'v Value, step: &Step) -> Vec<&'v Value> {
    match step {
        Step::Name(name) => value.get(name).into_iter().collect(),
        Step::Each => value.as_array().unwrap_or_default().iter().collect(),
    }
}

const VALUES: [&str; 12] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "1.0",
    "2.5",
    "\"a\"",
    "\"ab\"",
    "[1]",
    "[{\"k\":1},\"a\",2.5]",
    "{\"k\":1}",
];

/// Returns one of some names.
fn named(names: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(names).prop_map(str::to_owned).boxed()
}

fn constant() -> impl Strategy<Value = String> {
    prop::sample::select(&VALUES[..]).prop_map(str::to_owned)
}

/// Returns a condition on something named `place`.
fn statement(place: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let operators = prop::sample::select(&["=", "!=", "<", "<=", ">", ">="][..]);
    let functions = [
        "IS_DEFINED",
        "IS_NULL",
        "IS_BOOL",
        "IS_BOOLEAN",
        "IS_NUMBER",
        "IS_STRING",
        "IS_ARRAY",
        "IS_OBJECT",
        "IS_PRIMITIVE",
        "IS_INTEGER",
    ];
    prop_oneof![
        4 => (place.clone(), operators, constant()).prop_map(|(place, operator, value)| format!("{place} {operator} {value}")),
        1 => (place.clone(), constant(), constant()).prop_map(|(place, a, b)| format!("{place} IN ({a}, {b})")),
        1 => (place.clone(), constant(), constant()).prop_map(|(place, a, b)| format!("{place} BETWEEN {a} AND {b}")),
        2 => (prop::sample::select(functions.to_vec()), place.clone()).prop_map(|(name, place)| format!("{name}({place})")),
        1 => place.clone().prop_map(|place| format!("STARTSWITH({place}, 'a')")),
        1 => place.clone().prop_map(|place| format!("{place} LIKE 'a%'")),
        1 => (place.clone(), constant()).prop_map(|(place, value)| format!("ARRAY_CONTAINS({place}, {value})")),
        1 => (place.clone(), constant()).prop_map(|(place, value)| format!("ARRAY_CONTAINS({place}, {value}, true)")),
        1 => (place.clone(), constant()).prop_map(|(place, value)| format!("ARRAY_CONTAINS([{value}, 1], {place})")),
        1 => (place.clone(), constant()).prop_map(|(place, value)| format!("ARRAY_CONTAINS_ANY({place}, {value}, 'a')")),
        1 => (place.clone(), constant()).prop_map(|(place, value)| format!("({place} ?? {value}) = 1")),
        1 => place,
    ]
}

fn combined(leaf: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" AND "))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" OR "))),
            inner.prop_map(|part| format!("NOT ({part})")),
        ]
    })
}

fn filter() -> impl Strategy<Value = String> {
    let exists = combined(statement(named(&["x", "x.k", "c.b", "c"])))
        .prop_map(|filter| format!("EXISTS(SELECT VALUE x FROM x IN c.a WHERE {filter})"));
    combined(
        prop_oneof![4 => statement(named(&["c", "c.a", "c.b", "c.b.k", "c.a[0]", "c.a[0].k", "c[0]"])), 1 => exists],
    )
}

fn item() -> impl Strategy<Value = Value> {
    let member = || prop::option::of(prop::sample::select(&VALUES[..]));
    (member(), member()).prop_map(|(a, b)| {
        let members = [("a", a), ("b", b)].into_iter().filter_map(|(name, value)| Some((name, value?)));
        let members =
            members.map(|(name, value)| format!("\"{name}\":{value}")).collect::<Vec<_>>().join(",");
        document::parse_json(format!("{{\"id\":\"1\",{members}}}").replace(",}", "}").as_bytes())
            .expect("JSON")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Every matching item meets the condition, and no other item meets an exact one.
    #[test]
    fn a_condition_is_a_superset_and_exact_when_it_says_so(filter in filter(), item in item()) {
        let text = format!("SELECT * FROM c WHERE {filter}");
        let query = crate::parse(&text, &[], &crate::Dialect::default()).expect("a query");
        let Analysis { condition, exact, .. } = analyse(&text);
        let context = crate::Context::new(0, 1);
        let (matches, admitted) = (query.matches(&item, &context), admits(&condition, &item));
        prop_assert!(admitted || !matches, "{filter}: {condition:?} misses {}", item.to_json());
        prop_assert!(!exact || admitted == matches, "{filter}: {condition:?} is not exact for {}", item.to_json());
    }

    /// The same for the rows of a join.
    #[test]
    fn a_condition_of_a_join_is_a_superset(
        filter in combined(statement(named(&["x", "x.k", "y", "c.b", "s", "s.b"]))),
        item in item(),
    ) {
        let text =
            format!("SELECT VALUE 1 FROM c JOIN x IN c.a JOIN y IN c.a JOIN (SELECT VALUE c) s WHERE {filter}");
        let query = crate::parse(&text, &[], &crate::Dialect::default()).expect("a query");
        let condition = analyse(&text).condition;
        let matches = query.matches(&item, &crate::Context::new(0, 1));
        prop_assert!(admits(&condition, &item) || !matches, "{filter}: {condition:?} misses {}", item.to_json());
    }
}
