//! Runs a query over items in memory, as the engine does over stored ones.

use document::{Document, Value};
use query::{Answer, Arrival, Context, Fault, Flow, PageLimits, Query, Ranking, Row, Run};

/// 2024-05-06T07:08:09.123Z, the time of all tests.
const NOW_MILLIS: u64 = 1_714_979_289_123;

/// Work that a query of a test may do.
const BUDGET: u64 = 2_000_000;

/// Returns the surroundings of a test.
pub(crate) fn context() -> Context {
    Context::new(NOW_MILLIS, 1).with_budget(BUDGET)
}

/// Returns all rows, found in several ways that must agree.
pub(crate) fn rows(query: &Query, items: &[Value]) -> Result<Vec<String>, Fault> {
    let items = if query.reads_items() { items } else { &[] };
    let trees: Vec<&dyn Row> = items.iter().map(|item| item as &dyn Row).collect();
    let stored: Vec<_> = items.iter().map(|item| Document::from_value(item).expect("a document")).collect();
    let stored: Vec<&dyn Row> = stored.iter().map(|item| item as &dyn Row).collect();
    let rows = pages(query, &trees, 1000)?;
    for (items, page) in [(&stored, 1000), (&stored, 1), (&trees, 2)] {
        assert_eq!(pages(query, items, page)?, rows, "pages of {page}");
    }
    Ok(rows)
}

fn pages(query: &Query, items: &[&dyn Row], page: usize) -> Result<Vec<String>, Fault> {
    let mut rows = Vec::new();
    let mut resume = None;
    let mut first = 0;
    let ranked = ranked(query, items)?;
    let arrival = if ranked.is_some() { Arrival::InOrder } else { Arrival::Any };
    let items = ranked.unwrap_or_else(|| items.to_vec());
    loop {
        let context = context();
        let limits = PageLimits { rows: page, bytes: usize::MAX };
        let mut run = Run::new(query, &context, arrival, resume, limits);
        let mut full = false;
        for (number, item) in items.iter().enumerate().skip(first) {
            match run.push(*item, number as u64)? {
                Flow::More => {}
                Flow::Full => {
                    (first, full) = (number, true);
                    break;
                }
                Flow::Enough => break,
            }
        }
        let Answer { rows: found, resume: more } = run.finish()?;
        rows.extend(found.into_iter().map(|row| String::from_utf8(row).expect("JSON is text")));
        if !full {
            first = 0;
        }
        match more {
            None => return Ok(rows),
            Some(more) => resume = Some(more),
        }
        assert!(rows.len() < 10_000, "the pages of {page} rows never end: {query:?}");
    }
}

/// Returns the items in the order of `ORDER BY RANK`, if the query has one.
fn ranked<'i>(query: &Query, items: &[&'i dyn Row]) -> Result<Option<Vec<&'i dyn Row>>, Fault> {
    let context = context();
    let Some(mut ranking) = Ranking::of(query, &context) else { return Ok(None) };
    for item in items {
        ranking.observe(*item)?;
    }
    for (number, item) in items.iter().enumerate() {
        ranking.score(*item, number as u64)?;
    }
    Ok(Some(ranking.finish().iter().map(|number| items[*number as usize]).collect()))
}
