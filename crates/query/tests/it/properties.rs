//! What holds for every query: no text breaks the parser, and neither the access nor a plan misses a matching row.

use document::{Document, Object, PartitionKey, PartitionKeyDefinition, Value, parse_json};
use proptest::prelude::*;
use query::{Context, Dialect, Error, HybridRows, Work};

/// Small enough that random filters and random rows meet.
const SCALARS: [&str; 10] = ["null", "true", "false", "0", "1", "1.0", "2.5", "100", "\"a\"", "\"b\""];
const PATHS: [&str; 6] = ["c.id", "c[\"pk\"]", "c.sub.key", "c._ts", "c.other", "c.list[0]"];

/// What stands in rows: also what is no scalar, which has the undefined partition key.
const MEMBERS: [&str; 8] = ["null", "true", "0", "1.0", "100", "\"a\"", "[1]", "{\"key\":1}"];

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(&SCALARS[..]).prop_map(str::to_owned),
        1 => Just("undefined".to_owned()),
        1 => Just("[1]".to_owned()),
        1 => Just("@p".to_owned()),
        1 => (90..110_i32).prop_map(|stamp| stamp.to_string()),
        1 => Just("99.5".to_owned()),
    ]
}

fn operand() -> impl Strategy<Value = String> {
    prop_oneof![3 => prop::sample::select(&PATHS[..]).prop_map(str::to_owned), 2 => scalar()]
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["=", "=", "=", "!=", "<>", "<", "<=", ">", ">="][..])
}

fn condition() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => (operand(), operator(), operand()).prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
        2 => (operand(), prop::bool::ANY, prop::collection::vec(operand(), 1..4)).prop_map(|(value, not, list)| {
            format!("{value} {}IN ({})", if not { "NOT " } else { "" }, list.join(", "))
        }),
        2 => (operand(), prop::bool::ANY, operand(), operand()).prop_map(|(value, not, low, high)| {
            format!("{value} {}BETWEEN {low} AND {high}", if not { "NOT " } else { "" })
        }),
        1 => operand().prop_map(|value| format!("IS_DEFINED({value})")),
        1 => operand().prop_map(|value| format!("IS_NULL({value})")),
        1 => operand(),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" AND "))),
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" OR "))),
            2 => inner.clone().prop_map(|part| format!("NOT ({part})")),
            1 => (inner, operator(), operand()).prop_map(|(part, operator, right)| format!("({part}) {operator} {right}")),
        ]
    })
}

fn row() -> impl Strategy<Value = Value> {
    let member = || prop::option::of(prop::sample::select(&MEMBERS[..]));
    let id = prop::sample::select(&["a", "b", "c"][..]);
    (id, member(), member(), 90..110_i64, member(), prop::bool::ANY).prop_map(
        |(id, pk, key, stamp, other, nested)| {
            let mut row: Object = [("id", Value::from(id)), ("_ts", stamp.into())].into_iter().collect();
            let sub: Object = key.map(|key| ("key", value(key))).into_iter().collect();
            for (name, member) in [
                ("pk", pk.map(value)),
                ("sub", nested.then(|| sub.into())),
                ("other", other.map(value)),
                ("list", other.map(|other| vec![value(other)].into())),
            ] {
                if let Some(member) = member {
                    row.insert(name, member);
                }
            }
            row.into()
        },
    )
}

fn value(json: &str) -> Value {
    parse_json(json.as_bytes()).expect("valid JSON")
}

fn definitions() -> Vec<PartitionKeyDefinition> {
    [
        r#"{"paths":["/pk"],"version":2}"#,
        r#"{"paths":["/id"]}"#,
        r#"{"paths":["/sub/key"],"version":2}"#,
        r#"{"paths":["/pk","/sub/key","/id"],"kind":"MultiHash","version":2}"#,
    ]
    .iter()
    .map(|json| PartitionKeyDefinition::from_value(&value(json)).expect("valid definition"))
    .collect()
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn every_matching_row_lies_within_the_access(
        condition in condition(),
        parameter in prop::sample::select(&SCALARS[..]),
        rows in prop::collection::vec(row(), 1..20),
    ) {
        let text = format!("SELECT * FROM c WHERE {condition}");
        let query = query::parse(&text, &[("@p".to_owned(), value(parameter))], &Dialect::default()).unwrap();
        for row in &rows {
            let stored = Document::from_value(row).unwrap();
            let context = Context::new(0, 1);
            let matches = query.matches(row, &context);
            prop_assert_eq!(matches, query.matches(&stored, &context), "tree and stored form differ");
            for definition in definitions() {
                let key = PartitionKey::extract(&definition, row.view()).unwrap();
                let access = query.access(&definition);
                let id = row.get("id").and_then(Value::as_str).unwrap();
                let stamp = row.get("_ts").and_then(Value::as_i64).unwrap() as u64;
                prop_assert!(!matches || access.contains(id, &key, stamp), "{text}\n{}\n{access:?}", row.to_json());
            }
        }
    }

    #[test]
    fn a_plan_asks_where_rows_are_and_means_what_the_query_means(
        condition in condition(),
        parameter in prop::sample::select(&SCALARS[..]),
        rows in prop::collection::vec(row(), 1..20),
    ) {
        let parameters = [("@p".to_owned(), value(parameter))];
        let text = format!("SELECT * FROM c WHERE {condition} ORDER BY c.id");
        let query = query::parse(&text, &parameters, &Dialect::default()).unwrap();
        for definition in definitions() {
            let plan = query::plan(&text, &parameters, &definition, &Dialect::default(), HybridRows::Ordered).unwrap();
            let Work::Merge(info) = &plan.work else { panic!("{text}") };
            let sent = info.rewritten_query.replace("{documentdb-formattableorderbyquery-filter}", "true");
            let sent = query::parse(&sent, &parameters, &Dialect::default()).unwrap();
            prop_assert!(plan.ranges.is_sorted_by(|one, next| one.max < next.min), "{text}\n{:?}", plan.ranges);
            for row in &rows {
                let matches = query.matches(row, &Context::new(0, 1));
                prop_assert_eq!(matches, sent.matches(row, &Context::new(0, 1)), "{}", &info.rewritten_query);
                let key = PartitionKey::extract(&definition, row.view()).unwrap().effective(&definition);
                let asked = plan.ranges.iter().any(|range| range.contains(&key));
                prop_assert!(!matches || asked, "{text}\n{}\n{:?}", row.to_json(), plan.ranges);
            }
        }
    }

    #[test]
    fn a_condition_and_its_negation_never_both_hold(condition in condition(), row in row()) {
        let parameters = [("@p".to_owned(), Value::Int(1))];
        let holds = |condition: &str| {
            query::parse_filter(&format!("FROM c WHERE {condition}"), &parameters, query::Surface::Globe).unwrap().matches(&row, &Context::new(0, 1))
        };
        let negation = format!("NOT ({condition})");
        prop_assert!(!holds(&condition) || !holds(&negation), "{}", condition);
    }

    #[test]
    fn no_text_breaks_the_parser(text in "\\PC{0,60}") {
        let _ = query::parse(&text, &[], &Dialect::default());
        let _ = query::parse(&format!("SELECT * FROM c WHERE {text}"), &[], &Dialect::default());
    }

    #[test]
    fn no_sequence_of_tokens_breaks_the_parser(
        tokens in prop::collection::vec(prop::sample::select(&[
            "SELECT", "*", "FROM", "WHERE", "c", "c.x", ".", "(", ")", "[", "]", "{", "}", ",", ":", "=", "<>", ">=",
            "-", "+", "~", "?", "??", "||", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS_NULL(", "EXISTS", "udf",
            "1", "1.5e3", "'s'", "\"é\"", "'\\u00", "@p", "undefined", "GROUP", "BY", "JOIN", "--", "\n", "as",
        ][..]), 0..40),
    ) {
        let text = tokens.join(" ");
        for text in [text.clone(), format!("SELECT * FROM c WHERE {text}")] {
            let (parameters, dialect) = ([("@p".to_owned(), Value::Null)], Dialect::default());
            let _ = query::plan(&text, &parameters, &definitions()[0], &dialect, HybridRows::Plain);
            if let Err(error) = query::parse(&text, &parameters, &dialect)
                && let Some((start, end)) = error.location()
            {
                let units = text.encode_utf16().count();
                prop_assert!(start <= end && end <= units, "{error:?} is outside of {text:?}");
            }
        }
    }
}

#[test]
fn nesting_is_bounded_and_length_is_not_nesting() {
    let parse = |condition: String| {
        query::parse(&format!("SELECT * FROM c WHERE {condition}"), &[], &Dialect::default())
    };
    assert!(parse(format!("{}true{}", "(".repeat(2000), ")".repeat(2000))).is_ok());
    for (open, close) in
        [("(1+", ")"), ("[", "]"), ("NOT ", ""), ("{a:", "}"), ("IS_NULL(", ")"), ("c[", "]")]
    {
        let deep = format!("{}1{}", open.repeat(20_000), close.repeat(20_000));
        assert!(matches!(parse(deep), Err(Error::TooDeep { limit: 128, .. })), "{open}");
    }
    for keyword in ["AND", "OR"] {
        let long = vec!["c.x=1"; 20_000].join(&format!(" {keyword} "));
        assert!(
            parse(long)
                .unwrap()
                .matches(&Value::Object([("x", 1)].into_iter().collect()), &Context::new(0, 1))
        );
    }
    assert!(parse(format!("c.x IN ({}1)", "1,".repeat(100_000))).is_ok());
    assert!(matches!(parse(" ".repeat(300_000)), Err(Error::TooLong { .. })));
}
