//! Random queries over random items: no panic, and equivalent evaluations agree.

use std::fmt::Write as _;

use document::{Value, parse_json};
use proptest::prelude::*;
use query::Dialect;

use crate::runner::rows;

/// Values that meet each other often, and the limits of what a number can be.
const LITERALS: [&str; 24] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "-1",
    "2.5",
    "1e300",
    "9007199254740993",
    "'a'",
    "'b'",
    "'ab'",
    "''",
    "'é'",
    "'😀'",
    "[1,2]",
    "[]",
    "['a',1]",
    "{\"a\":1}",
    "{}",
    "{\"a\":{\"b\":2}}",
    "'2024-05-06T07:08:09.0000000Z'",
    "'a%'",
];

/// Functions by their number of arguments, aggregates and what depends on time or chance excepted.
const UNARY: [&str; 24] = [
    "IS_DEFINED",
    "IS_NULL",
    "IS_STRING",
    "IS_NUMBER",
    "IS_ARRAY",
    "LENGTH",
    "UPPER",
    "REVERSE",
    "TRIM",
    "ABS",
    "FLOOR",
    "SQRT",
    "SIGN",
    "EXP",
    "INTBITNOT",
    "ARRAY_LENGTH",
    "ARRAY_SUM",
    "ARRAY_MAX",
    "TOSTRING",
    "STRINGTONUMBER",
    "OBJECTTOARRAY",
    "YEAR",
    "DATETIMETOTICKS",
    "ST_ISVALID",
];
const BINARY: [&str; 20] = [
    "CONCAT",
    "CONTAINS",
    "STARTSWITH",
    "INDEX_OF",
    "LEFT",
    "RIGHT",
    "REPLICATE",
    "STRINGEQUALS",
    "STRINGSPLIT",
    "STRINGJOIN",
    "REGEXMATCH",
    "POWER",
    "INTADD",
    "INTDIV",
    "ROUND",
    "ARRAY_CONCAT",
    "ARRAY_CONTAINS",
    "SETUNION",
    "SETINTERSECT",
    "ARRAY_SLICE",
];
const OPERATORS: [&str; 22] = [
    "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>", "||", "=", "!=", "<", "<=", ">", ">=", "AND",
    "OR", "??", "LIKE",
];

/// Returns an expression over whatever `leaf` makes.
fn expression(leaf: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let choose = |names: &'static [&'static str]| prop::sample::select(names);
    leaf.prop_recursive(3, 16, 3, move |inner| {
        let one = inner.clone();
        prop_oneof![
            6 => (one.clone(), choose(&OPERATORS), one.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            2 => (choose(&["NOT", "-", "+", "~"]), one.clone()).prop_map(|(sign, value)| format!("({sign} {value})")),
            2 => (choose(&UNARY), one.clone()).prop_map(|(name, value)| format!("{name}({value})")),
            2 => (choose(&BINARY), one.clone(), one.clone())
                .prop_map(|(name, left, right)| format!("{name}({left}, {right})")),
            1 => (one.clone(), one.clone(), one.clone())
                .prop_map(|(condition, then, otherwise)| format!("({condition} ? {then} : {otherwise})")),
            1 => (one.clone(), one.clone(), one.clone())
                .prop_map(|(value, low, high)| format!("({value} BETWEEN {low} AND {high})")),
            1 => (one.clone(), prop::collection::vec(one.clone(), 1..4))
                .prop_map(|(value, list)| format!("({value} IN ({}))", list.join(", "))),
            1 => prop::collection::vec(one.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            1 => (one.clone(), one.clone()).prop_map(|(a, b)| format!("{{\"a\": {a}, \"b\": {b}}}")),
            1 => one.clone().prop_map(|value| format!("({value}).a")),
            1 => (one.clone(), one).prop_map(|(value, index)| format!("({value})[{index}]")),
            1 => inner.prop_map(|value| format!("(SELECT VALUE {value})")),
        ]
    })
}

fn literal() -> BoxedStrategy<String> {
    prop_oneof![9 => prop::sample::select(&LITERALS[..]).prop_map(str::to_owned), 1 => Just("undefined".to_owned())]
        .boxed()
}

/// Returns an expression over an item and over `x`, an element of its list.
fn over_items() -> impl Strategy<Value = String> {
    let places = ["c.id", "c.a", "c.b", "c.l", "c.l[0]", "c.o.a", "c.o", "c", "c.missing"];
    let leaf =
        prop_oneof![3 => prop::sample::select(places.to_vec()).prop_map(str::to_owned), 2 => literal()];
    let leaf = leaf.boxed();
    prop_oneof![
        4 => expression(leaf.clone()),
        1 => (prop::sample::select(vec!["EXISTS", "ARRAY", "FIRST", "LAST", "ALL"]), expression(leaf)).prop_map(
            |(kind, filter)| format!("{kind}(SELECT VALUE x FROM x IN c.l WHERE {filter} OR x = c.a)")
        ),
    ]
}

fn query_text() -> impl Strategy<Value = String> {
    let maybe =
        |strategy: BoxedStrategy<String>| prop_oneof![2 => Just(String::new()), 1 => strategy].boxed();
    let select = prop_oneof![
        2 => over_items().prop_map(|value| format!("VALUE {value}")),
        2 => (over_items(), over_items()).prop_map(|(a, b)| format!("{a} AS a, {b} AS b")),
        1 => Just("*".to_owned()),
        1 => Just("c.id, c.a".to_owned()),
    ];
    let window =
        maybe((0..5_u32, 0..5_u32).prop_map(|(skip, take)| format!("OFFSET {skip} LIMIT {take}")).boxed());
    let order = maybe(
        (prop::sample::select(vec!["c.a", "c.b", "c.id", "c.o.a"]), prop::sample::select(vec!["", "DESC"]))
            .prop_map(|(key, direction)| format!("ORDER BY {key} {direction}"))
            .boxed(),
    );
    let top = maybe((0..5_u32).prop_map(|top| format!("TOP {top}")).boxed());
    let distinct = maybe(Just("DISTINCT".to_owned()).boxed());
    let join = maybe(Just("JOIN x IN c.l".to_owned()).boxed());
    let filter = maybe(over_items().prop_map(|filter| format!("WHERE {filter}")).boxed());
    let plain = (distinct, top, select, join, filter, order, window.clone()).prop_map(
        |(distinct, top, select, join, filter, order, window)| {
            let join = if select == "*" { String::new() } else { join };
            format!("SELECT {distinct} {top} {select} FROM c {join} {filter} {order} {window}")
        },
    );
    let aggregates =
        prop::sample::select(vec!["COUNT", "SUM", "AVG", "MIN", "MAX", "MAKELIST", "MAKESET", "COUNTIF"]);
    let leaf = prop::sample::select(vec!["c.a", "c.b", "c.id", "c.l", "1"]).prop_map(str::to_owned);
    let filter = maybe(over_items().prop_map(|filter| format!("WHERE {filter}")).boxed());
    let grouped = (aggregates, expression(leaf.boxed()), filter, any::<bool>(), any::<bool>(), window)
        .prop_map(|(name, argument, filter, grouped, ordered, window)| {
            // Aggregates do not take subqueries.
            let argument = if argument.contains("SELECT") { "c.a".to_owned() } else { argument };
            let (key, group) = if grouped { ("c.b AS k, ", "GROUP BY c.b") } else { ("", "") };
            let order = if grouped && ordered { "ORDER BY v DESC, c.b" } else { "" };
            format!("SELECT {key}{name}({argument}) AS v FROM c {filter} {group} {order} {window}")
        });
    let nested =
        plain.clone().prop_map(|text| format!("SELECT COUNT(1) AS n, MAX(s.id) AS m FROM ({text}) s"));
    prop_oneof![5 => plain, 3 => grouped, 1 => nested]
}

fn items() -> impl Strategy<Value = Vec<Value>> {
    let member = || prop::option::weighted(0.8, prop::sample::select(&LITERALS[..]));
    let item =
        (member(), member(), prop::collection::vec(prop::sample::select(&LITERALS[..]), 0..4), member());
    prop::collection::vec(item, 0..6).prop_map(|items| {
        let optional = |name: &str, value: Option<&str>| {
            value.map(|value| format!(",\"{name}\":{value}")).unwrap_or_default()
        };
        let numbered = items.into_iter().enumerate();
        numbered
            .map(|(number, (a, b, l, o))| {
                let o = o.map(|o| format!("{{\"a\":{o}}}"));
                let rest = [optional("a", a), optional("b", b), optional("o", o.as_deref())].concat();
                parse(&format!("{{\"id\":\"{number}\",\"l\":[{}]{rest}}}", l.join(",")).replace('\'', "\""))
            })
            .collect()
    })
}

fn parse(json: &str) -> Value {
    parse_json(json.as_bytes()).expect("valid JSON")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Constants are computed before the first item, properties for each.
    #[test]
    fn a_constant_and_a_property_of_the_same_value_are_the_same(
        expression in expression(Just("@".to_owned()).boxed()),
        values in prop::collection::vec(prop::sample::select(&LITERALS[..]), 32),
    ) {
        let mut item = String::from("{\"id\":\"1\"");
        let (mut constant, mut property) = (String::new(), String::new());
        for (number, piece) in expression.split('@').enumerate() {
            if number > 0 {
                let value = values[number % values.len()];
                constant.push_str(value);
                write!(property, "c.p{number}").expect("texts take all text");
                write!(item, ",\"p{number}\":{}", value.replace('\'', "\"")).expect("texts take all text");
            }
            constant.push_str(piece);
            property.push_str(piece);
        }
        let item = parse(&(item + "}"));
        let value = |expression: &str| {
            let query = query::parse(&format!("SELECT [{expression}] AS v FROM c"), &[], &Dialect::default()).unwrap();
            rows(&query, std::slice::from_ref(&item))
        };
        prop_assert_eq!(value(&constant), value(&property), "{}", constant);
    }

    /// Trees and stored bytes, whole answers and small pages: `rows` compares them.
    #[test]
    fn every_query_gives_the_same_however_it_is_run(text in query_text(), items in items()) {
        let query = query::parse(&text, &[], &Dialect::default());
        let query = query.unwrap_or_else(|error| panic!("{text}: {error}"));
        let _ = rows(&query, &items);
    }

    /// A window is a part of the whole.
    #[test]
    fn a_window_shows_a_part_of_the_whole(
        filter in over_items(),
        order in prop::sample::select(vec!["", "ORDER BY c.a", "ORDER BY c.b DESC, c.a"]),
        items in items(),
        skip in 0..4_usize,
        take in 0..4_usize,
    ) {
        let found = |window: &str| {
            let text = format!("SELECT VALUE c.id FROM c WHERE NOT ({filter} = 1) OR true {order} {window}");
            rows(&query::parse(&text, &[], &Dialect::default()).unwrap(), &items)
        };
        if let (Ok(whole), Ok(part)) = (found(""), found(&format!("OFFSET {skip} LIMIT {take}"))) {
            let expected: Vec<_> = whole.into_iter().skip(skip).take(take).collect();
            prop_assert_eq!(part, expected);
        }
    }
}
