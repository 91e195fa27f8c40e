//! Pages of queries that must see everything before they can show anything, while items change between them.

use document::{Value, parse_json};
use query::{Arrival, Context, Dialect, Fault, PageLimits, Resume, Run};

fn item(json: &str) -> Value {
    parse_json(json.as_bytes()).expect("valid JSON")
}

/// Returns one page over these items.
fn page(text: &str, items: &[Value], resume: Option<Resume>) -> Result<(Vec<String>, Option<Resume>), Fault> {
    let query = query::parse(text, &[], &Dialect::default()).expect("a query");
    let context = Context::new(0, 1);
    let limits = PageLimits { rows: 1, bytes: usize::MAX };
    let mut run = Run::new(&query, &context, Arrival::Any, resume, limits);
    for (number, item) in (1..).zip(items) {
        run.push(item, number)?;
    }
    let answer = run.finish()?;
    let rows = answer.rows.into_iter().map(|row| String::from_utf8(row).expect("JSON is text")).collect();
    Ok((rows, answer.resume))
}

#[test]
fn a_row_of_a_query_in_from_is_shown_though_others_went_before_it() {
    let text = "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.b FROM c) x";
    let mut items = vec![item(r#"{"b":2}"#), item(r#"{"b":1}"#), item(r#"{"b":3}"#)];
    let (mut shown, mut resume) = page(text, &items, None).expect("a page");
    items.retain(|item| item.to_json() != format!("{{\"b\":{}}}", shown[0]));
    while let Some(before) = resume.take() {
        items.reverse();
        let (rows, next) = page(text, &items, Some(before)).expect("a page");
        shown.extend(rows);
        resume = next;
    }
    assert_eq!(shown, ["1", "2", "3"]);
}

#[test]
fn what_groups_collect_counts_as_memory() {
    let text = "SELECT c.k, MAKELIST(c.b) AS l, MAX(c.b) AS m FROM c GROUP BY c.k ORDER BY c.k";
    let long = "x".repeat(1 << 20);
    let items: Vec<Value> = (0..80).map(|n| item(&format!(r#"{{"k":{n},"b":"{long}"}}"#))).collect();
    let fault = page(text, &items, None).expect_err("more than a query may hold");
    assert!(matches!(fault, Fault::OutOfAllowance { .. }), "{fault}");
    let by_key = "SELECT c.k, MAKELIST(c.b) AS l FROM c GROUP BY c.k";
    let (rows, resume) = page(by_key, &items, None).expect("a page of the groups that fit");
    assert!(rows.len() == 1 && resume.is_some());
}
