//! A client that follows a query plan as SDKs do: it reads the plan's JSON, sends the rewritten text to each range, and
//! merges, adds up, groups, drops duplicates and cuts the rows that come back.

use std::cmp::Ordering;
use std::collections::VecDeque;

use document::{EffectiveKey, EffectiveRange};
use query::{Dialect, HybridRows, Query};

use super::super::tuning::Tuning;
use super::json::{Json, double, order};
use super::world::{World, parse};
use crate::Scope;

/// What a client of some SDK can do. A plan that needs more is for no client over several ranges.
const FEATURES: &[&str] = &[
    "Aggregate",
    "CompositeAggregate",
    "CountIf",
    "DCount",
    "Distinct",
    "GroupBy",
    "ListAndSetAggregate",
    "MultipleAggregates",
    "MultipleOrderBy",
    "NonStreamingOrderBy",
    "NonValueAggregate",
    "OffsetAndLimit",
    "OrderBy",
    "Top",
];

const FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// How a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Straight on, with the choices that the server makes by itself.
    Plain,
    /// With other choices for each page, and now and then from tokens that were put away.
    Varied,
}

/// A query on its way through the ranges.
pub(super) struct Client {
    query: Query,
    info: Json,
    cursors: Vec<Cursor>,
    page_rows: usize,
    manner: Manner,
    /// Requests so far, the plan not counted.
    pub(super) requests: usize,
    /// Rows that ranges have sent so far.
    pub(super) received: usize,
}

/// How far one range has been read.
struct Cursor {
    range: EffectiveRange,
    rows: VecDeque<Json>,
    /// The token for the next page; empty before the first one, none behind the last.
    token: Option<String>,
}

impl Client {
    /// Asks for the plan; none if no client could follow it.
    pub(super) fn new(world: &World, text: &str, page_rows: usize, manner: Manner) -> Option<Client> {
        let container = world.container();
        let key = &container.definition.partition_key;
        let plan = query::plan(text, &[], key, &Dialect::default(), HybridRows::Ordered);
        let plan = plan.unwrap_or_else(|error| panic!("{text}: {error}"));
        if plan.features.iter().any(|feature| !FEATURES.contains(feature)) {
            return None;
        }
        let plan: Json = serde_json::from_str(&plan.to_value().to_json()).expect("a plan is JSON");
        let info = plan["queryInfo"].clone();
        let rewritten = info["rewrittenQuery"].as_str().expect("a text");
        let sent = if rewritten.is_empty() { text } else { rewritten };
        let reached: Vec<EffectiveRange> =
            plan["queryRanges"].as_array().expect("a list").iter().map(range).collect();
        let partitions = container.partitions.iter().map(|partition| partition.range.clone());
        let partitions = partitions.filter(|range| reached.iter().any(|reached| reached.overlaps(range)));
        let cursor = |range| Cursor { range, rows: VecDeque::new(), token: Some(String::new()) };
        let cursors = partitions.map(cursor).collect();
        let query = parse(&sent.replace(FILTER, "true"));
        Some(Client { query, info, cursors, page_rows, manner, requests: 0, received: 0 })
    }

    pub(super) fn ranges(&self) -> usize {
        self.cursors.len()
    }

    fn texts(&self, member: &str) -> Vec<String> {
        let list = self.info[member].as_array().expect("a list");
        list.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
    }

    fn count(&self, member: &str) -> Option<usize> {
        self.info[member].as_u64().map(|count| usize::try_from(count).expect("a count"))
    }

    /// Reads the next page of a range that has no rows left.
    fn fill(&mut self, at: usize, world: &mut World) {
        let cursor = &mut self.cursors[at];
        while cursor.rows.is_empty()
            && let Some(token) = cursor.token.take()
        {
            let scope = Scope { key: None, range: Some(cursor.range.clone()) };
            let token = Some(token).filter(|token| !token.is_empty());
            let mut page = |world: &mut World| {
                let tuning = match self.manner {
                    Manner::Plain => Tuning::default(),
                    Manner::Varied => world.tuning(),
                };
                self.requests += 1;
                let page = world.page(Some(&self.query), &scope, self.page_rows, token.as_deref(), tuning);
                page.unwrap_or_else(|error| panic!("{error}"))
            };
            let first = page(world);
            // A client that was stopped reads its last page again and goes on from there.
            let again = self.manner == Manner::Varied && world.random.u8(..8) == 0;
            let read = if again { page(world) } else { first };
            assert!(read.rows.len() <= self.page_rows);
            self.received += read.rows.len();
            cursor
                .rows
                .extend(read.rows.iter().map(|row| serde_json::from_slice::<Json>(row).expect("JSON")));
            cursor.token = read.continuation;
        }
    }

    /// The next row of all ranges: in the order of the sort keys, or range after range.
    fn next(&mut self, descends: &[bool], world: &mut World) -> Option<Json> {
        if descends.is_empty() {
            for at in 0..self.cursors.len() {
                self.fill(at, world);
                if let Some(row) = self.cursors[at].rows.pop_front() {
                    return Some(row);
                }
            }
            return None;
        }
        for at in 0..self.cursors.len() {
            self.fill(at, world);
        }
        let heads = self.cursors.iter().enumerate().filter(|(_, cursor)| !cursor.rows.is_empty());
        let by_keys = |one: &(usize, &Cursor), other: &(usize, &Cursor)| {
            compare_rows(&one.1.rows[0], &other.1.rows[0], descends)
        };
        let (at, _) = heads.min_by(by_keys)?;
        self.cursors[at].rows.pop_front()
    }

    /// Reads everything that the answer takes; `between` is called before each row.
    pub(super) fn rows(&mut self, world: &mut World, mut between: impl FnMut(&mut World)) -> Vec<Json> {
        let descends: Vec<bool> = self.texts("orderBy").iter().map(|order| order == "Descending").collect();
        let mut rows: Vec<Json> = Vec::new();
        let (aggregates, groups) = (self.texts("aggregates"), self.texts("groupByExpressions"));
        let aliases = self.info["groupByAliasToAggregateType"].as_object().expect("an object").clone();
        let joins = !aggregates.is_empty() || !aliases.is_empty() || !groups.is_empty();
        let counts = !self.info["dCountInfo"].is_null();
        let distinct = self.info["distinctType"] != "None";
        let (offset, limit) = (self.count("offset").unwrap_or(0), self.count("limit"));
        let most = [limit, self.count("top")].into_iter().flatten().min();
        let enough = most.map(|most| offset + most).filter(|_| !joins);
        while enough.is_none_or(|enough| rows.len() < enough) {
            between(world);
            let Some(row) = self.next(&descends, world) else { break };
            let row = if descends.is_empty() { row } else { row.get("payload").expect("a payload").clone() };
            if !distinct || joins || !rows.iter().any(|other| order(Some(other), Some(&row)).is_eq()) {
                rows.push(row);
            }
        }
        if joins {
            rows = join(rows, aggregates.first().map(String::as_str), &aliases, !groups.is_empty());
        }
        if distinct && joins {
            let mut shown: Vec<Json> = Vec::new();
            rows.retain(|row| {
                let new = !shown.iter().any(|other| order(Some(other), Some(row)).is_eq());
                if new {
                    shown.push(row.clone());
                }
                new
            });
        }
        let rows: Vec<Json> = rows.into_iter().skip(offset).take(most.unwrap_or(usize::MAX)).collect();
        if !counts {
            return rows;
        }
        let count = Json::from(rows.len());
        match self.info["dCountInfo"]["dCountAlias"].as_str() {
            None | Some("") => vec![count],
            Some(alias) => vec![Json::Object([(alias.to_owned(), count)].into_iter().collect())],
        }
    }
}

/// A range of the plan; a point is the smallest range with it.
fn range(range: &Json) -> EffectiveRange {
    let bound = |name: &str| range[name].as_str().expect("a text").parse::<EffectiveKey>().expect("hex");
    let is_point = range["isMaxInclusive"].as_bool().expect("a boolean");
    if is_point {
        EffectiveRange::point(bound("min"))
    } else {
        EffectiveRange::new(bound("min"), bound("max"))
    }
}

fn compare_rows(one: &Json, other: &Json, descends: &[bool]) -> Ordering {
    let keys = one["orderByItems"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(other["orderByItems"].as_array().into_iter().flatten());
    let mut found = keys.zip(descends).map(|((one, other), descends)| {
        let found = order(one.get("item"), other.get("item"));
        if *descends { found.reverse() } else { found }
    });
    found.find(|found| found.is_ne()).unwrap_or(Ordering::Equal)
}

/// Makes the ranges' parts of each group one row.
fn join(
    parts: Vec<Json>,
    aggregate: Option<&str>,
    aliases: &serde_json::Map<String, Json>,
    grouped: bool,
) -> Vec<Json> {
    let mut groups: Vec<(Json, Vec<Option<Json>>)> = Vec::new();
    for part in parts {
        let key = if grouped { part["groupByItems"].clone() } else { Json::Null };
        // The rows of an aggregate without groups are bare if they are values.
        let payload = if grouped || aggregate.is_none() { part.get("payload").cloned() } else { Some(part) };
        match groups.iter_mut().find(|(other, _)| order(Some(other), Some(&key)).is_eq()) {
            Some((_, payloads)) => payloads.push(payload),
            None => groups.push((key, vec![payload])),
        }
    }
    groups.into_iter().filter_map(|(_, payloads)| joined(&payloads, aggregate, aliases)).collect()
}

/// One row from the payloads of a group; a payload that is not there is undefined, and so is the row then.
fn joined(
    payloads: &[Option<Json>],
    aggregate: Option<&str>,
    aliases: &serde_json::Map<String, Json>,
) -> Option<Json> {
    if aggregate.is_none() && aliases.is_empty() {
        return payloads.first().cloned().flatten();
    }
    let payloads: Vec<&Json> =
        payloads.iter().map(|payload| payload.as_ref().expect("an array or object")).collect();
    if let Some(kind) = aggregate {
        return total(kind, payloads.iter().map(|payload| &payload[0]));
    }
    let member = |(alias, kind): (&String, &Json)| {
        let value = match kind.as_str() {
            Some(kind) => total(kind, payloads.iter().map(|payload| &payload[alias])),
            None => payloads.first().and_then(|payload| payload.get(alias).cloned()),
        };
        Some((alias.clone(), value?))
    };
    Some(Json::Object(aliases.iter().filter_map(member).collect()))
}

/// One value from those of the ranges; none is undefined.
fn total<'a>(kind: &str, parts: impl Iterator<Item = &'a Json>) -> Option<Json> {
    let parts: Vec<&Json> = parts.collect();
    let sum = |of: fn(&Json) -> Option<f64>| parts.iter().map(|part| of(part)).sum::<Option<f64>>();
    match kind {
        "Count" | "CountIf" | "Sum" => double(sum(|part| part["item"].as_f64())?),
        "Average" => {
            let count = sum(|part| part["item"]["count"].as_f64())?;
            if count == 0.0 { None } else { double(sum(|part| part["item"]["sum"].as_f64())? / count) }
        }
        "Min" | "Max" => {
            let name = if kind == "Min" { "min" } else { "max" };
            let counted = parts.iter().filter(|part| part["item2"]["count"].as_u64() != Some(0));
            let values: Vec<Option<&Json>> = counted.map(|part| part["item2"].get(name)).collect();
            let values = values.into_iter().collect::<Option<Vec<_>>>()?;
            let by_order = |one: &&Json, other: &&Json| order(Some(one), Some(other));
            let values = values.into_iter();
            if kind == "Min" { values.min_by(by_order) } else { values.max_by(by_order) }.cloned()
        }
        other => panic!("no aggregate that a plan names: {other}"),
    }
}
