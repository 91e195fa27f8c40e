//! `ORDER BY RANK`: a query per score, fused by the client.
//!
//! A rank depends on all rows, and a text's score on how often its words occur in all texts, so no partition can
//! compute either. The client first sums up the statistics of all partitions, puts them into the component queries,
//! runs these and fuses the ranks:
//!
//! ```text
//! ORDER BY RANK RRF(FullTextScore(c.text, 'swim'), VectorDistance(c.v, [1, 2]))
//!
//! statistics   how many items, and per text: words in all, and items that have each keyword
//! component 0  the best by _FullTextScore(c.text, ["swim"], {items}, {words-0}, {hits-0})
//! component 1  the best by _VectorScore(c.v, [1, 2])
//! ```
//!
//! Every component shows the scores of all, so a row found by one of them has its rank in the others. It has more rows
//! than wanted, because a row that is second best everywhere may win.

use super::build::{WORST, aliased, array, binary, call, literal, node, object, placeholder};
use super::info::{QueryInfo, SortOrder};
use super::rewrite::{
    COUNT_MAX, Window, calls, count, filter, ordered_row, resume, row, row_id, source_name, text,
};
use crate::logical::{Score, ScoreKind};
use crate::syntax::ast::{Binary, Direction, Node, NodeKind, Query, Select, SortKey};
use crate::syntax::print::{Layout, print_query};

/// Rows of a component at least.
const LEAST_ROWS: u64 = 120;

/// The form of a component query's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HybridRows {
    /// As those of any `ORDER BY`: keys to merge by, and a payload that holds row and scores.
    #[default]
    Ordered,
    /// Row and scores side by side, for clients that say `HybridSearchSkipOrderByRewrite`.
    Plain,
}

/// The plan of a fused rank.
#[derive(Debug, Clone, PartialEq)]
pub struct HybridInfo {
    /// The query for the statistics that text scores need.
    pub statistics_query: String,
    /// Whether there is a text score at all.
    pub requires_statistics: bool,
    /// One query per score.
    pub components: Vec<QueryInfo>,
    /// The weight of each score; none if all weigh the same.
    pub weights: Vec<f64>,
    /// Rows to leave out.
    pub skip: Option<u64>,
    /// Rows to show.
    pub take: Option<u64>,
}

/// One score of the rank.
struct Component {
    /// The score as a partition computes it.
    score: Node,
    order: SortOrder,
    /// The direction to write behind the score, if it is not the function's own.
    written: Option<Direction>,
    /// The score of a row without one.
    missing: Node,
}

/// Returns the plan of a ranked query. `scores` are those that resolving found, in the order of the text.
pub(super) fn hybrid(query: &Query, scores: &[Score], window: Window, rows: HybridRows) -> HybridInfo {
    let (arguments, weighted) = score_arguments(query);
    let mut texts = Vec::new();
    let components = arguments
        .into_iter()
        .zip(scores)
        .map(|(arguments, score)| component(arguments, score, &mut texts))
        .collect::<Vec<_>>();
    let weights = scores.iter().filter(|_| weighted).map(|score| score.weight.abs()).collect();
    HybridInfo {
        statistics_query: statistics_query(query, &texts),
        requires_statistics: !texts.is_empty(),
        components: components
            .iter()
            .map(|one| component_info(query, one, &components, window, rows))
            .collect(),
        weights,
        skip: window.offset_limit.map(|(skip, _)| skip),
        take: window.top.or(window.offset_limit.map(|(_, take)| take)),
    }
}

/// Returns the arguments of each call that gives a score, and whether the calls have weights.
fn score_arguments(query: &Query) -> (Vec<&[Node]>, bool) {
    let mut scores = Vec::new();
    let mut weighted = false;
    for key in query.order_by.iter().flat_map(|order_by| &order_by.keys) {
        let NodeKind::Call { arguments, .. } = &key.node.kind else { continue };
        if !calls(&key.node, "RRF") {
            scores.push(arguments.as_slice());
            continue;
        }
        for argument in arguments {
            match &argument.kind {
                NodeKind::Call { arguments, .. } => scores.push(arguments),
                _ => weighted = true,
            }
        }
    }
    (scores, weighted)
}

/// Returns one score; a text's statistics are added to `texts`.
fn component(arguments: &[Node], score: &Score, texts: &mut Vec<Node>) -> Component {
    // A negative weight asks for the worst first.
    let inverted = score.weight < 0.0;
    let largest_first = |natural: bool| natural != inverted;
    match &score.kind {
        ScoreKind::FullText { keywords, .. } => {
            let text = arguments.first().cloned().unwrap_or_else(|| node(NodeKind::Undefined));
            let words = || keywords.iter().map(|word| literal(word.as_str()));
            let number = texts.len();
            let of_text = |what: &str| placeholder(&format!("formattablehybridsearchquery-{what}-{number}"));
            let total = placeholder("formattablehybridsearchquery-totaldocumentcount");
            let hits =
                words().map(|word| call("COUNTIF", vec![call("FullTextContains", vec![text.clone(), word])]));
            texts.push(object([
                ("totalWordCount", call("SUM", vec![call("_FullTextWordCount", vec![text.clone()])])),
                ("hitCounts", array(hits.collect())),
            ]));
            let found = vec![
                text,
                array(words().collect()),
                total,
                of_text("totalwordcount"),
                of_text("hitcountsarray"),
            ];
            let order = if largest_first(true) { SortOrder::Descending } else { SortOrder::Ascending };
            // No text scores below zero.
            let missing = if inverted { literal(WORST) } else { literal(-1) };
            Component {
                score: call("_FullTextScore", found),
                order,
                written: Some(direction(order)),
                missing,
            }
        }
        ScoreKind::Vector { larger_is_better, .. } => {
            let (order, missing) = if largest_first(*larger_is_better) {
                (SortOrder::Descending, -WORST)
            } else {
                (SortOrder::Ascending, WORST)
            };
            let written = inverted.then(|| direction(order));
            Component {
                score: call("_VectorScore", arguments.to_vec()),
                order,
                written,
                missing: literal(missing),
            }
        }
    }
}

fn direction(order: SortOrder) -> Direction {
    match order {
        SortOrder::Ascending => Direction::Ascending,
        SortOrder::Descending => Direction::Descending,
    }
}

/// Returns `SELECT COUNT(1) AS documentCount, [...] AS fullTextStatistics FROM c`, over all items, without the filter.
fn statistics_query(query: &Query, texts: &[Node]) -> String {
    let statistics = vec![
        aliased(call("COUNT", vec![literal(1)]), "documentCount"),
        aliased(array(texts.to_vec()), "fullTextStatistics"),
    ];
    let query = Query {
        distinct: false,
        top: None,
        select: Select::List(statistics),
        from: query.from.clone(),
        filter: None,
        group_by: Vec::new(),
        order_by: None,
        window: None,
        span: query.span,
    };
    print_query(&query, Layout::Lines)
}

fn component_info(
    query: &Query,
    one: &Component,
    all: &[Component],
    window: Window,
    rows: HybridRows,
) -> QueryInfo {
    let most = |wanted: u64| wanted.saturating_mul(2).clamp(LEAST_ROWS, COUNT_MAX);
    let top = window.top.map(most);
    let limit = window.offset_limit.map(|(offset, limit)| most(offset.saturating_add(limit)));
    let mut rewritten = query.clone();
    rewritten.distinct = false;
    rewritten.top = top.map(count);
    rewritten.window = limit.map(|limit| (literal(0), count(limit)));
    if let Some(order_by) = &mut rewritten.order_by {
        order_by.rank = false;
        order_by.keys = vec![SortKey { node: one.score.clone(), direction: one.written }];
    }
    // A single rank is an order by itself: its rows are merged as those of any other query, without fusion.
    let (form, shown) = match rows {
        HybridRows::Plain if all.len() == 1 => (HybridRows::Ordered, &[][..]),
        _ => (rows, all),
    };
    let scores = array(shown.iter().map(|component| shown_score(component, form)).collect());
    let item = query.from.first().map_or("", source_name);
    let mut info =
        QueryInfo { has_select_value: matches!(query.select, Select::Value(_)), ..QueryInfo::default() };
    match form {
        HybridRows::Ordered => {
            let payload = object([("payload", row(query)), ("componentScores", scores)]);
            // A row without a score is merged last, where the server has it too.
            rewritten.select = ordered_row(item, vec![shown_score(one, form)], payload);
            rewritten.filter = filter(query, Some(resume()));
            info.top = top;
            info.offset = limit.map(|_| 0);
            info.limit = limit;
            info.order_by = vec![(one.order, text(&one.score))];
            info.has_non_streaming_order_by = true;
        }
        HybridRows::Plain => {
            let items =
                vec![row_id(item), aliased(row(query), "payload"), aliased(scores, "componentScores")];
            rewritten.select = Select::List(items);
            rewritten.filter = filter(query, None);
        }
    }
    info.rewritten_query = print_query(&rewritten, Layout::Lines);
    info
}

/// Returns a score as a row shows it. Without an order to go by, clients take the largest for the best.
fn shown_score(component: &Component, rows: HybridRows) -> Node {
    let score = binary(component.score.clone(), Binary::Coalesce, component.missing.clone());
    match (rows, component.order) {
        (HybridRows::Plain, SortOrder::Ascending) => binary(literal(-1), Binary::Multiply, score),
        _ => score,
    }
}
