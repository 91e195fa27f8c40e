//! Hostile queries: what is large but allowed runs on an ordinary stack, what is too large is refused at once.

use document::{Object, PartitionKeyDefinition, Value, parse_json};
use query::{Dialect, Error, Fault};

use crate::runner::rows;

fn item() -> Value {
    let list: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let text = format!(
        "{{\"id\":\"1\",\"a\":1,\"s\":\"{}\",\"l\":[{}],\"one\":[1]}}",
        "x".repeat(100_000),
        list.join(",")
    );
    parse_json(text.as_bytes()).expect("valid JSON")
}

fn key() -> PartitionKeyDefinition {
    let json = parse_json(br#"{"paths":["/id"],"kind":"Hash","version":2}"#).expect("valid JSON");
    PartitionKeyDefinition::from_value(&json).expect("a valid key")
}

fn run(text: &str) -> Result<Vec<String>, Fault> {
    let query = query::parse(text, &[], &Dialect::default()).unwrap_or_else(|error| panic!("{error}"));
    rows(&query, &[item()])
}

fn refused(text: &str) -> String {
    let error = query::parse(text, &[], &Dialect::default()).expect_err("refused");
    assert!(matches!(error, Error::Refused(_) | Error::TooDeep { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn the_deepest_expressions_run_on_an_ordinary_stack() {
    for (open, close) in [
        ("(1 + ", ")"),
        ("NOT ", ""),
        ("[", "]"),
        ("{\"a\": ", "}"),
        ("ABS(", ")"),
        ("CONCAT('a', ", ")"),
        ("c.l[", "]"),
        ("(c.a = 1 ? 1 : ", ")"),
        ("(1 IN (2, ", "))"),
        ("('a' || ", ")"),
        ("(true AND NOT ", ")"),
        ("(1 = 1) = (", ")"),
    ] {
        // Some forms take several levels of the parser, so the deepest that is allowed is found by trying.
        let text = |levels| {
            format!("SELECT VALUE {}c.a{} FROM c", str::repeat(open, levels), str::repeat(close, levels))
        };
        let deepest =
            (1..=128).rev().find(|levels| query::parse(&text(*levels), &[], &Dialect::default()).is_ok());
        let deepest = deepest.expect("some depth is allowed");
        assert!(deepest >= 20, "{open} {deepest}");
        run(&text(deepest)).expect("no limit is reached");
    }
}

#[test]
fn long_chains_are_not_deep() {
    for (operator, expected) in [("+", "20001"), ("OR", "none"), ("??", "1"), ("&", "1"), ("IN", "")] {
        if operator == "IN" {
            let list = "2,".repeat(50_000);
            assert_eq!(run(&format!("SELECT VALUE c.a IN ({list}1) FROM c")).unwrap(), ["true"]);
            assert_eq!(run(&format!("SELECT VALUE c.a IN ({list}c.a) FROM c")).unwrap(), ["true"]);
            continue;
        }
        let text = format!("SELECT VALUE c.a{} FROM c", format!(" {operator} c.a").repeat(20_000));
        let rows = run(&text).unwrap();
        assert_eq!(rows.first().map_or("none", String::as_str), expected, "{operator}");
    }
    let path = format!("SELECT VALUE c{} FROM c", ".a".repeat(100_000));
    assert!(run(&path).unwrap().is_empty());
    let path = format!("SELECT VALUE c{} FROM c", "[0]['a']".repeat(10_000));
    assert!(run(&path).unwrap().is_empty());
    assert!(refused(&format!("SELECT VALUE c{} FROM c", "[c.a]".repeat(1000))).contains("128 levels"));
    assert!(refused(&format!("SELECT VALUE c.a{} FROM c", " = c.a".repeat(1000))).contains("128 levels"));
}

/// Runs on a stack as small as those of most threads.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work).expect("a thread");
    thread.join().expect("the stack suffices");
}

#[test]
fn chains_inside_of_chains_are_as_deep_as_they_are_run() {
    // What is flat in the text and nested when it is run, many times inside of itself: before, within, behind.
    let forms: [(&str, String); 7] = [
        ("(", format!("{} OR c.a)", " = c.x".repeat(64))),
        ("(c.x = ", format!("{})", " = c.x".repeat(63))),
        ("(c.x < (", format!("{}))", " < c.x".repeat(63))),
        ("c[", format!("]{}", "[c.a]".repeat(63))),
        ("c[", format!("]{}", "[c.a].b".repeat(40))),
        ("c[", format!("]{}", "[null]".repeat(63))),
        ("(", " NOT IN (c.a, c.x))".to_owned()),
    ];
    on_a_small_stack(move || {
        for (open, close) in forms {
            let text = |levels| {
                let (open, close) = (open.repeat(levels), close.repeat(levels));
                format!("SELECT VALUE {open}c.x{close} FROM c WHERE {open}c.x{close} OR c.a = 1")
            };
            let parsed = |levels: usize| query::parse(&text(levels), &[], &Dialect::default());
            let deepest = (1..=128).rev().find(|levels| parsed(*levels).is_ok()).unwrap_or(1);
            let query = parsed(deepest).unwrap_or_else(|error| panic!("{open} {error}"));
            query.analyse(&key());
            rows(&query, &[item()]).expect("no limit is reached");
        }
    });
}

#[test]
fn a_computed_property_in_the_deepest_place_runs_on_an_ordinary_stack() {
    let nest = |inner: &str, levels: usize| {
        format!("{}{inner}{}", "(".repeat(levels), " NOT IN (c.a, c.x))".repeat(levels))
    };
    on_a_small_stack(move || {
        let computed = format!("SELECT VALUE {} FROM c", nest("c.x", 120));
        let dialect = Dialect { computed: vec![("deep".to_owned(), computed)], ..Dialect::default() };
        let text = format!("SELECT VALUE 1 FROM c WHERE {} OR true = c.deep", nest("c.deep", 120));
        let query = query::parse(&text, &[], &dialect).unwrap_or_else(|error| panic!("{error}"));
        query.analyse(&key());
        rows(&query, &[item()]).expect("no limit is reached");
    });
}

#[test]
fn sources_and_subqueries_are_bounded() {
    let joins = |count: usize| {
        let joins: Vec<String> = (0..count).map(|number| format!(" JOIN x{number} IN c.one")).collect();
        format!("SELECT VALUE 1 FROM c{}", joins.concat())
    };
    assert_eq!(run(&joins(63)).unwrap(), ["1"]);
    assert!(refused(&joins(64)).contains("64 sources"));
    assert!(refused(&joins(5000)).contains("64 sources"));
    let nested = |count: usize| {
        let (open, close) = ("(SELECT VALUE 1 + ".repeat(count), " FROM x IN c.one)".repeat(count));
        format!("SELECT VALUE {open} 1 {close} FROM c")
    };
    assert_eq!(run(&nested(15)).unwrap(), ["16"]);
    assert!(refused(&nested(16)).contains("16 levels"));
    let inside = |count: usize| {
        let (open, close) = ("(SELECT DISTINCT * FROM ".repeat(count), ") s".repeat(count));
        format!("SELECT * FROM {open} c {close}")
    };
    assert_eq!(run(&inside(15)).unwrap().len(), 1);
    assert!(refused(&inside(16)).contains("16 levels"));
    assert!(refused(&format!("SELECT {}1 FROM c", "1,".repeat(5000))).contains("1024 members"));
}

#[test]
fn work_and_memory_end_in_a_clear_fault() {
    let members: Vec<String> = (0..900).map(|number| format!("[c.s, c.s] AS m{number},")).collect();
    let product = "FROM a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l";
    for (text, out_of_memory) in [
        (format!("SELECT VALUE (SELECT VALUE COUNT(1) {product}) FROM c"), false),
        (format!("SELECT VALUE EXISTS(SELECT VALUE 1 {product} WHERE a < 0) FROM c"), false),
        (format!("SELECT VALUE ARRAY(SELECT VALUE c.s {product}) FROM c"), true),
        (format!("SELECT VALUE (SELECT VALUE MAKELIST(c.s) {product}) FROM c"), true),
        (format!("SELECT VALUE [{}1] FROM c", "c.s,".repeat(1000)), true),
        (format!("SELECT VALUE c.s{} FROM c", " || c.s".repeat(1000)), true),
        (format!("SELECT {}1 AS last FROM c", members.concat()), true),
    ] {
        match run(&text) {
            Err(Fault::OutOfMemory { .. }) if out_of_memory => {}
            Err(Fault::OutOfBudget) if !out_of_memory => {}
            other => panic!("{}: {:?}", &text[..60], other.map(|rows| rows.len())),
        }
    }
}

#[test]
fn values_that_wrap_one_another_have_a_deepest_level() {
    let wrapped = |sources: usize| {
        let (open, close) = ("[".repeat(60), "]".repeat(60));
        let source =
            |number: usize| format!(" JOIN x{} IN (SELECT VALUE {open}x{number}{close})", number + 1);
        let sources: String = (0..sources).map(source).collect();
        run(&format!("SELECT VALUE 1 FROM x0{sources}"))
    };
    assert_eq!(wrapped(4).unwrap(), ["1"]);
    assert!(matches!(wrapped(5), Err(Fault::Refused(message)) if message.contains("256 levels")));
    assert!(matches!(wrapped(60), Err(Fault::Refused(_))));
}

#[test]
fn constants_that_a_short_text_makes_are_bounded() {
    let long = format!("REPLACE(REPLICATE('x', 10000), 'x', '{}')", "y".repeat(400));
    let longs = vec![long.as_str(); 400].join(",");
    assert!(matches!(run(&format!("SELECT VALUE [{longs}] FROM c")), Err(Fault::OutOfMemory { .. })));
    let patterns: Vec<String> =
        (0..2000).map(|number| format!("RegexMatch('a', '\\\\w{{60}}{number}')")).collect();
    let text = format!("SELECT VALUE 1 FROM c WHERE c.a = 1 OR {}", patterns.join(" OR "));
    assert_eq!(run(&text).unwrap(), ["1"]);
}

#[test]
fn what_is_used_often_may_not_be_large() {
    let parameters = [("@p".to_owned(), Value::from("x".repeat(1_000_000)))];
    let computed = format!("SELECT VALUE CONCAT(c.s, '{}') FROM c", "x".repeat(100_000));
    let dialect = Dialect { computed: vec![("long".to_owned(), computed)], ..Dialect::default() };
    let uses = |used: &str, times: usize| {
        let text = format!("SELECT VALUE [{}1] FROM c", format!("{used},").repeat(times));
        query::parse(&text, &parameters, &dialect).map_err(|error| error.to_string())
    };
    assert!(uses("@p", 30).is_ok());
    assert!(uses("@p", 50_000).unwrap_err().contains("so often"));
    assert!(uses("c.long", 3).is_ok());
    assert!(uses("c.long", 30_000).unwrap_err().contains("so often"));
}

#[test]
fn constants_take_little_memory() {
    let members: Vec<String> = (0..300)
        .map(|number| format!("REPLACE(REPLICATE('a',10000),'a',REPLICATE('b',400)) AS m{number}"))
        .collect();
    let text = format!("SELECT {} FROM c", members.join(", "));
    let query = query::parse(&text, &[], &Dialect::default()).expect("a valid query");
    assert!(format!("{query:?}").len() < 40 << 20);
}

#[test]
fn walks_over_large_values_are_paid_for() {
    for (part, times) in [
        ("c.l = c.l", 16_000),
        ("c.s >= c.s", 2_000),
        ("c.s BETWEEN c.s AND c.s", 1_000),
        ("c.l IN (c.l, c.a)", 11_000),
        ("c = c", 2_000),
        ("c.a NOT LIKE c.s", 30),
        ("c.s LIKE c.s", 30),
    ] {
        let text = |times: usize| format!("SELECT VALUE 1 FROM c WHERE {}", vec![part; times].join(" AND "));
        assert!(run(&text(2)).is_ok(), "{part}");
        assert_eq!(run(&text(times)), Err(Fault::OutOfBudget), "{part}");
    }
    let pattern = run("SELECT VALUE c.s LIKE (c.s || c.s || c.s) FROM c");
    assert!(matches!(pattern, Err(Fault::OutOfMemory { .. })), "{pattern:?}");
}

#[test]
fn keys_and_aggregates_of_groups_are_bounded() {
    let list = |count: usize, form: &dyn Fn(usize) -> String| {
        (0..count).map(form).collect::<Vec<String>>().join(", ")
    };
    let paths = |count| list(count, &|number| format!("c.p{number}"));
    let keys = |count| format!("SELECT VALUE [{}, 1] FROM c GROUP BY {0}", paths(count));
    assert_eq!(run(&keys(256)).unwrap(), ["[1]"]);
    assert!(refused(&keys(257)).contains("256 expressions"));
    assert!(refused(&keys(13_000)).contains("256 expressions"));
    let counts = |count| list(count, &|number| format!("COUNT(c.p{number})"));
    let aggregates = |count| format!("SELECT VALUE [{}] FROM c", counts(count));
    assert_eq!(run(&aggregates(256)).unwrap(), [format!("[{}0]", "0,".repeat(255))]);
    assert!(refused(&aggregates(257)).contains("256 different aggregates"));
    assert!(refused(&aggregates(13_000)).contains("256 different aggregates"));
}

#[test]
fn the_first_rows_in_an_order_take_memory_for_themselves_alone() {
    // All rows together are more than a subquery may hold.
    let inside = "SELECT x, c.s FROM x IN c.l ORDER BY x";
    let rows =
        |order: &str| run(&format!("SELECT VALUE ARRAY(SELECT VALUE r.x FROM ({inside} {order}) r) FROM c"));
    assert_eq!(rows("DESC OFFSET 1 LIMIT 2").unwrap(), ["[198,197]"]);
    assert_eq!(rows("ASC OFFSET 198 LIMIT 5").unwrap_err(), rows("ASC").unwrap_err());
    assert_eq!(rows("ASC OFFSET 1 LIMIT 2").unwrap(), ["[1,2]"]);
    assert_eq!(rows("ASC OFFSET 0 LIMIT 0").unwrap(), ["[]"]);
    assert!(matches!(rows("ASC"), Err(Fault::OutOfMemory { .. })));
    // Of equal rows those stay that come first in the order.
    assert_eq!(
        run("SELECT VALUE ARRAY(SELECT TOP 3 VALUE x FROM x IN c.l ORDER BY c.a) FROM c").unwrap(),
        ["[0,1,2]"]
    );
    assert_eq!(
        run("SELECT VALUE ARRAY(SELECT TOP 3 VALUE x FROM x IN c.l ORDER BY c.a DESC) FROM c").unwrap(),
        ["[199,198,197]"]
    );
}

#[test]
fn all_collections_of_a_query_share_its_memory() {
    let texts: Object = (0..20).map(|number| (format!("s{number}"), "x".repeat(100_000))).collect();
    let numbers = Value::from((0..40).map(Value::from).collect::<Vec<_>>());
    let item: Value = texts
        .iter()
        .map(|(name, text)| (name, text.clone()))
        .chain([("l", numbers)])
        .collect::<Object>()
        .into();
    let lists: Vec<String> = (0..20).map(|number| format!("MAKELIST(c.s{number}) AS l{number}")).collect();
    let fault = |text: &str, items: &[Value]| {
        let query = query::parse(text, &[], &Dialect::default()).unwrap_or_else(|error| panic!("{error}"));
        match rows(&query, items) {
            Err(Fault::OutOfMemory { what, .. } | Fault::OutOfAllowance { what, .. }) => what,
            other => panic!("{:?}", other.map(|rows| rows.len())),
        }
    };
    let items = vec![item; 40];
    let text = format!("SELECT {} FROM c", lists.join(", "));
    assert_eq!(fault(&text, &items), "the aggregates");
    assert_eq!(fault(&format!("{text} GROUP BY c.l"), &items), "one row of the result");
    let inner = format!("SELECT VALUE (SELECT {} FROM x IN c.l) FROM c", lists.join(", "));
    assert_eq!(fault(&inner, &items[..1]), "the rows of a subquery");
}
