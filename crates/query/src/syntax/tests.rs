//! The grammar from outside: scripts of what is accepted and refused, limits, and what holds for any text.

use golden::Transcript;
use proptest::prelude::*;

use super::ast::{Binary, NodeKind, Select};
use super::print::{Layout, print_query};
use super::*;
use crate::error::{Code, CountClause, TokenKind};

/// Runs a script: each query is followed by its normal form, or by why it is refused.
fn run(script: &str, transcript: &mut Transcript) {
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        transcript.input(line);
        let Some(first) = line.strip_prefix('>') else { continue };
        let mut text = vec![first.strip_prefix(' ').unwrap_or_default()];
        while let Some(more) = lines.next_if(|line| line.starts_with('|')) {
            transcript.input(more);
            text.push(more.strip_prefix("| ").unwrap_or_default());
        }
        lines.next_if(|line| line.starts_with('=') || line.starts_with("SC"));
        transcript.answer([outcome(&text.join("\n"))]);
    }
}

fn outcome(text: &str) -> String {
    match parse(text) {
        Ok(query) => {
            let normal = print_query(&query, Layout::OneLine);
            assert_eq!(parse(&normal).map(|query| print_query(&query, Layout::OneLine)), Ok(normal.clone()));
            if normal == text { "=".to_owned() } else { format!("= {normal}") }
        }
        Err(error) => {
            let reports = error.with_positions_of(text).reports();
            let [report] = &reports[..] else { panic!("a syntax error stands alone: {reports:?}") };
            let (Code::Text(code), Some((start, end))) = (report.code, report.location) else {
                panic!("a syntax error has a code and a place: {report:?}")
            };
            format!("{code} {start}..{end} {}", report.message)
        }
    }
}

#[test]
fn the_grammar_is_what_the_scripts_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grammar");
    golden::check(folder, |script, transcript| run(&script.text, transcript));
}

#[test]
fn spans_leave_out_the_parentheses_around_a_node() {
    for (expression, expected) in [
        ("((c.a))", "c.a"),
        ("(c.a).b", "(c.a).b"),
        ("(a) + (b)", "(a) + (b)"),
        ("((a + b) + c)", "(a + b) + c"),
        ("(  f(1) )", "f(1)"),
        ("(- 1)", "- 1"),
        ("-1", "-1"),
        ("(SELECT 1)", "(SELECT 1)"),
        ("((SELECT 1))", "(SELECT 1)"),
        ("(EXISTS(SELECT 1))", "EXISTS(SELECT 1)"),
        ("(udf.f (1))", "udf.f (1)"),
        ("(a ? b : (c))", "a ? b : (c)"),
        ("(a) IN ((b))", "(a) IN ((b))"),
        ("(a LIKE 'b' ESCAPE 'c')", "a LIKE 'b' ESCAPE 'c'"),
    ] {
        let text = format!("SELECT VALUE {expression}");
        let Ok(Query { select: Select::Value(node), .. }) = parse(&text) else { panic!("{text}") };
        assert_eq!(&text[node.span.start..node.span.end], expected, "{text}");
    }
}

#[test]
fn chains_of_one_level_are_one_node() {
    for text in ["a + b - c + d", "((a + b) - c) + d", "(((a) + b) - (c) + d)"] {
        let Ok(Query { select: Select::Value(node), .. }) = parse(&format!("SELECT VALUE {text}")) else {
            panic!("{text}")
        };
        let NodeKind::Chain { rest, .. } = node.kind else { panic!("{text}") };
        let operators = rest.iter().map(|(operator, _)| *operator).collect::<Vec<_>>();
        assert_eq!(operators, [Binary::Add, Binary::Subtract, Binary::Add], "{text}");
    }
}

#[test]
fn errors_stand_at_the_offending_token() {
    for (text, start, near) in [
        ("SELECT TOP -1 c.name FROM c", 11, "-"),
        ("selectttt * FROM c", 0, "selectttt"),
        ("SELECT a, b, FROM c", 13, "FROM"),
        ("SELECT a AS Value FROM c", 12, "Value"),
        ("SELECT * FROM @c", 14, "@c"),
        ("/* x */ SELECT 1", 0, "/"),
        ("SELECT * FROM c WHERE c.id = 'it's'", 33, "s"),
        ("SELECT * WHERE true, true", 19, ","),
        ("SELECT VALUE 1, 2", 14, ","),
        ("SELECT 1 IN (1) IN (2)", 16, "IN"),
        ("SELECT 1 ORDER BY RANK 1", 23, "1"),
        ("SELECT", 6, ""),
        ("SELECT VALUE ABS(1", 18, ""),
        ("", 0, ""),
    ] {
        let expected = Error::Syntax { start, end: start + near.len(), near: near.to_owned() };
        assert_eq!(parse(text), Err(expected), "{text}");
    }
}

#[test]
fn counts_are_integers_of_32_bits() {
    for good in ["0", "10", "2147483648", "4294967295", "@p"] {
        assert!(parse(&format!("SELECT TOP {good} * OFFSET {good} LIMIT {good}")).is_ok(), "{good}");
    }
    for bad in ["4294967296", "1.5", "99999999999999999999", "1e10"] {
        let fails = |before: &str, after: &str, clause| {
            let (start, end) = (before.len(), before.len() + bad.len());
            let expected = Error::InvalidCount { clause, start, end };
            assert_eq!(parse(&format!("{before}{bad}{after}")), Err(expected), "{bad}");
        };
        fails("SELECT TOP ", " *", CountClause::Top);
        fails("SELECT * OFFSET ", " LIMIT 1", CountClause::Offset);
        fails("SELECT * OFFSET 1 LIMIT ", "", CountClause::Limit);
    }
}

#[test]
fn numbers_beyond_all_numbers_are_no_tokens() {
    let text = "SELECT -1e400";
    let expected = Error::InvalidToken { kind: TokenKind::Number, start: 8, end: 13, token: "1e400".into() };
    assert_eq!(parse(text), Err(expected));
}

#[test]
fn a_condition_is_one_container_and_a_filter() {
    let (alias, filter) = parse_condition("from items AS c where c.a = 1").unwrap();
    assert_eq!((alias.text.as_str(), filter.span.start), ("c", 22));
    for bad in ["FROM c", "c.a = 1", "FROM c.d WHERE true", "FROM c WHERE true ORDER BY c.a", "FROM c WHERE"]
    {
        assert!(matches!(parse_condition(bad), Err(Error::Syntax { .. })), "{bad}");
    }
}

#[test]
fn length_is_not_nesting() {
    let fits = |text: String| assert!(parse(&text).is_ok(), "{}", &text[..60]);
    for operator in ["OR", "AND", "+", "||", "??", "<<", "|"] {
        fits(format!("SELECT VALUE 1{}", format!(" {operator} 1").repeat(20_000)));
    }
    fits(format!("SELECT VALUE 1 IN ({}1)", "1,".repeat(100_000)));
    fits(format!("SELECT VALUE [{}1]", "1,".repeat(100_000)));
    fits(format!("SELECT VALUE c{}", ".a".repeat(100_000)));
    fits(format!("SELECT {}1", "1,".repeat(100_000)));
    fits(format!("SELECT 1 FROM c{}", " JOIN x IN c.y".repeat(10_000)));
    // What query builders write: every further operand puts all before it in parentheses.
    fits(format!("SELECT VALUE {}1{}", "(".repeat(20_000), " OR 1)".repeat(20_000)));
    fits(format!("SELECT VALUE {}1{}", "(".repeat(100_000), ")".repeat(100_000)));
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [
        ("(1+", ")"),
        ("[", "]"),
        ("NOT ", ""),
        ("- ", ""),
        ("{a:", "}"),
        ("ABS(", ")"),
        ("c[", "]"),
        ("1 ? 1 : ", ""),
        ("1 ? ", " : 1"),
        ("1 IN (", ")"),
        ("(SELECT VALUE ", ")"),
        ("EXISTS(SELECT VALUE ", ")"),
        ("(SELECT VALUE 1 FROM (SELECT VALUE ", "))"),
        ("1 | 2 ^ 3 & 4 = 5 < 6 || 7 << 8 + 9 * (", ")"),
    ] {
        let deep = |levels| parse(&format!("SELECT VALUE {}1{}", open.repeat(levels), close.repeat(levels)));
        assert!(deep(5).is_ok(), "{open}");
        assert!(matches!(deep(6_000), Err(Error::TooDeep { limit: 128, .. })), "{open}");
    }
    // These grow the tree from below, without nesting in the parser.
    for step in [" + 1) * 1)", " ? 1 : 1)", " IN (1))", "[0] + 1)", " = 1)", " < 1)", "[c.a])"] {
        let opening = step.matches(')').count() - step.matches('(').count();
        let grown =
            |steps| parse(&format!("SELECT VALUE {}1{}", "(".repeat(steps * opening), step.repeat(steps)));
        assert!(grown(5).is_ok(), "{step}");
        assert!(matches!(grown(6_000), Err(Error::TooDeep { limit: 128, .. })), "{step}");
    }
}

#[test]
fn hostile_texts_are_refused_at_once() {
    for text in ["(", "[", "SELECT ", "'", "--", "{documentdb-formattable", "SELECT VALUE "] {
        assert!(matches!(parse(&text.repeat(1_000_000)), Err(Error::TooLong { .. })), "{text}");
        assert!(parse(&text.repeat(MAX_TEXT_UNITS / text.len())).is_err(), "{text}");
    }
    let open = format!("SELECT VALUE {}", "(".repeat(200_000));
    assert!(matches!(parse(&open), Err(Error::Syntax { start: 200_013, .. })));
}

#[test]
fn length_is_counted_in_utf16_units() {
    let text = |chars| format!("SELECT '{}'", "é".repeat(chars));
    assert!(parse(&text(MAX_TEXT_UNITS - 9)).is_ok());
    let limit = MAX_TEXT_UNITS;
    assert_eq!(parse(&text(limit - 8)), Err(Error::TooLong { given: limit + 1, limit }));
}

/// Small pieces that make up most of what the grammar knows.
const PIECES: [&str; 84] = [
    "SELECT",
    "SELECT VALUE",
    "SELECT *",
    "DISTINCT",
    "TOP",
    "*",
    "FROM",
    "FROM c",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "RANK",
    "OFFSET",
    "LIMIT",
    "JOIN",
    "AS",
    "IN",
    "c",
    "c.x",
    "x",
    ".",
    "(",
    ")",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ",",
    ":",
    "=",
    "!=",
    "<>",
    "<",
    ">=",
    "-",
    "+",
    "~",
    "/",
    "%",
    "<<",
    ">>>",
    "&",
    "|",
    "^",
    "?",
    "??",
    "||",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "f(",
    "EXISTS(",
    "ARRAY(",
    "ALL(",
    "FIRST",
    "udf.g(",
    "1",
    "-1",
    "1.5e3",
    "99",
    "'s'",
    "\"é\"",
    "'\\u00",
    "'",
    "@p",
    "undefined",
    "null",
    "true",
    "ASC",
    "DESC",
    "a",
    "b",
    "--",
    "\n",
    "😀",
    "{documentdb-formattablex}",
    "{documentdb-formattable",
    "\u{0}",
];

/// Expressions that are in the grammar, of every kind.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(
        &[
            "c",
            "c.a",
            "c[\"b c\"]",
            "c.a[0].b",
            "1",
            "-2.5",
            "1e-9",
            "'s'",
            "\"\\u00e9\"",
            "true",
            "null",
            "undefined",
            "@p",
        ][..],
    )
    .prop_map(str::to_owned);
    let operator = prop::sample::select(
        &["+", "-", "*", "/", "%", "=", "!=", "<", ">=", "||", "&", "|", "^", "<<", ">>>", "AND", "OR", "??"]
            [..],
    );
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4).prop_map(|list| list.join(", "));
        prop_oneof![
            4 => (inner.clone(), operator.clone(), inner.clone()).prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
            2 => inner.clone().prop_map(|a| format!("({a})")),
            1 => (prop::sample::select(&["NOT", "-", "~", "+"][..]), inner.clone()).prop_map(|(sign, a)| format!("({sign} {a})")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            1 => (inner.clone(), list.clone()).prop_map(|(a, list)| format!("(({a}) NOT IN ({list}))")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(({a}) LIKE ({b}) ESCAPE '!')")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("(({a}) BETWEEN ({b}) AND ({c}))")),
            1 => list.clone().prop_map(|list| format!("[{list}]")),
            1 => list.prop_map(|list| format!("f({list})")),
            1 => inner.clone().prop_map(|a| format!("{{a: {a}, \"b\": {a}}}.b[{a}]")),
            1 => inner.prop_map(|a| format!("EXISTS(SELECT VALUE {a} FROM x IN c.y WHERE {a})")),
        ]
    })
}

/// Checks the properties that hold for every text.
fn check(text: &str) -> std::result::Result<(), TestCaseError> {
    let parsed = parse(text);
    prop_assert_eq!(&parsed, &parse(text));
    match parsed {
        Ok(query) => {
            for layout in [Layout::OneLine, Layout::Lines] {
                let printed = print_query(&query, layout);
                let again = parse(&printed).map(|query| print_query(&query, layout));
                prop_assert_eq!(again, Ok(printed));
            }
        }
        Err(error) => {
            let units = text.encode_utf16().count();
            for report in error.with_positions_of(text).reports() {
                let (start, end) = report.location.unwrap_or_default();
                prop_assert!(start <= end && end <= units, "{report:?} is outside of {text:?}");
            }
        }
    }
    let _ = parse_condition(text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_the_parser(text in "\\PC{0,60}") {
        check(&text)?;
        check(&format!("SELECT {text}"))?;
        check(&format!("SELECT '{text}"))?;
    }

    #[test]
    fn no_sequence_of_pieces_breaks_the_parser(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..30),
        blank in prop::sample::select(&[" ", "", "\n"][..]),
    ) {
        let text = pieces.join(blank);
        check(&text)?;
        check(&format!("SELECT VALUE {text}"))?;
        check(&format!("SELECT * FROM c WHERE {text}"))?;
    }

    #[test]
    fn expressions_of_every_kind_are_read_back_from_their_text(expression in expression()) {
        let text = format!("SELECT {expression} AS a FROM c WHERE {expression} ORDER BY {expression} DESC");
        prop_assert!(parse(&text).is_ok(), "{:?}", parse(&text));
        check(&text)?;
    }
}
