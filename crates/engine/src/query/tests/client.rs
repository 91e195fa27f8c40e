//! A client that follows a query plan as SDKs do: it reads the plan's JSON, sends the rewritten text to each range,
//! and merges, adds up, groups, deduplicates and cuts the rows that come back.

use std::cmp::Ordering;
use std::collections::VecDeque;

use document::{EffectiveKey, EffectiveRange, ItemRid};
use query::{HybridRows, Query};

use super::super::tuning::Tuning;
use super::join::join;
use super::json::{Json, order};
use super::resume;
use super::world::{STEPS_MAX, World};
use crate::Scope;

/// What at least one SDK supports. A plan that needs more cannot be followed over several ranges.
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
    /// From page to page, with the choices that the server makes by itself.
    Plain,
    /// With other choices for each page, and sometimes from tokens that were kept.
    Varied,
    /// The same, and an ordered query is sometimes stopped and started again behind its last row.
    Resumed,
}

/// A query in progress over the ranges.
pub(super) struct Client {
    /// The text that is sent to ranges, with a placeholder for a filter.
    text: String,
    info: Json,
    /// Whether each sort key descends.
    descends: Vec<bool>,
    cursors: Vec<Cursor>,
    page_rows: usize,
    manner: Manner,
    /// Requests so far, except for the plan.
    pub(super) requests: usize,
    /// The number of requests after which the server is considered to make the client ask for ever.
    pub(super) requests_max: usize,
    /// How often it was started again behind a row.
    pub(super) resumed: usize,
}

/// How far one range has been read.
struct Cursor {
    range: EffectiveRange,
    query: Query,
    /// The token that the current page was read with; empty for the first one.
    page: String,
    rows: VecDeque<Json>,
    /// The rows of the current page that were taken.
    taken: Vec<Json>,
    /// The last row that was taken before the client was stopped, and how many rows of its item and sort keys were.
    behind: Option<(Json, usize)>,
    /// The token for the next page; empty before the first one, none behind the last.
    token: Option<String>,
}

impl Cursor {
    fn new(range: EffectiveRange, query: Query) -> Cursor {
        Cursor {
            range,
            query,
            page: String::new(),
            rows: VecDeque::new(),
            taken: Vec::new(),
            behind: None,
            token: Some(String::new()),
        }
    }

    /// Drops rows that were taken before the client was stopped: of those with the same sort keys the ones up to the
    /// item of the last row, and of that item as many as were taken.
    fn drop_taken(&mut self, descends: &[bool]) {
        let Some((last, left)) = &mut self.behind else { return };
        while let Some(row) = self.rows.front() {
            let by_item = number(row).cmp(&number(last));
            let by_item = if descends[0] { by_item.reverse() } else { by_item };
            let is_taken = compare_rows(row, last, descends).is_eq()
                && (by_item.is_lt() || (by_item.is_eq() && *left > 0));
            if !is_taken {
                self.behind = None;
                return;
            }
            *left -= usize::from(by_item.is_eq());
            self.taken.extend(self.rows.pop_front());
        }
    }
}

impl Client {
    /// Requests the plan. Returns `None` if no client could follow it.
    pub(super) fn new(world: &World, text: &str, page_rows: usize, manner: Manner) -> Option<Client> {
        let container = world.container();
        let key = &container.definition.partition_key;
        let plan = query::plan(
            text,
            &world.named_parameters(),
            key,
            &container.definition.dialect(),
            HybridRows::Ordered,
        );
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
        let query = world.parse(&sent.replace(FILTER, "true"));
        let cursors = partitions.map(|range| Cursor::new(range, query.clone())).collect();
        let orders = info["orderBy"].as_array().expect("a list");
        Some(Client {
            text: sent.to_owned(),
            descends: orders.iter().map(|order| order == "Descending").collect(),
            info,
            cursors,
            page_rows,
            manner,
            requests: 0,
            requests_max: STEPS_MAX,
            resumed: 0,
        })
    }

    /// Returns the ranges that it reads.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        let scope = |cursor: &Cursor| Scope { key: None, range: Some(cursor.range.clone()) };
        self.cursors.iter().map(scope).collect()
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
            cursor.page.clone_from(&token);
            cursor.taken.clear();
            let token = Some(token).filter(|token| !token.is_empty());
            let mut page = |world: &mut World| {
                let tuning = match self.manner {
                    Manner::Plain => Tuning::default(),
                    Manner::Varied | Manner::Resumed => world.tuning(),
                };
                self.requests += 1;
                assert!(
                    self.requests <= self.requests_max,
                    "more than {} requests: {} in {scope:?}",
                    self.requests_max,
                    self.text
                );
                let page = world.page(Some(&cursor.query), &scope, self.page_rows, token.as_deref(), tuning);
                page.unwrap_or_else(|error| panic!("{error}"))
            };
            let first = page(world);
            // A client that was stopped reads its last page again and continues from there.
            let again = self.manner != Manner::Plain && world.random.u8(..8) == 0;
            let read = if again { page(world) } else { first };
            assert!(read.rows.len() <= self.page_rows);
            cursor
                .rows
                .extend(read.rows.iter().map(|row| serde_json::from_slice::<Json>(row).expect("JSON")));
            cursor.drop_taken(&self.descends);
            cursor.token = read.continuation;
        }
    }

    /// Returns the next row of all ranges: in the order of the sort keys, or range after range.
    fn next(&mut self, world: &mut World) -> Option<Json> {
        if self.descends.is_empty() {
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
            compare_rows(&one.1.rows[0], &other.1.rows[0], &self.descends)
        };
        let (at, _) = heads.min_by(by_keys)?;
        let row = self.cursors[at].rows.pop_front()?;
        let _item = number(&row);
        self.cursors[at].taken.push(row.clone());
        if self.manner == Manner::Resumed && world.random.bool() {
            self.resume(at, &row, world);
        }
        Some(row)
    }

    /// Resumes behind a row as a client that knows nothing but that row and the token of its page: ranges before it
    /// have shown equal rows, ranges behind it have not.
    fn resume(&mut self, at: usize, row: &Json, world: &World) {
        let keys = self.texts("orderByExpressions");
        let (keys, values, descends) = (&keys, resume::values(row), &self.descends);
        let beyond = |equal| resume::filter(keys, &values, descends, equal);
        let (Some(behind), Some(not_before)) = (beyond(resume::Equal::Without), beyond(resume::Equal::With))
        else {
            return;
        };
        self.resumed += 1;
        for (index, cursor) in self.cursors.iter_mut().enumerate() {
            let filter = if index < at { &behind } else { &not_before };
            let query = world.parse(&self.text.replace(FILTER, filter));
            let mut fresh = Cursor::new(cursor.range.clone(), query);
            if index == at {
                fresh.token = Some(cursor.page.clone());
                let is_of_item = |other: &&Json| {
                    compare_rows(other, row, descends).is_eq() && number(other) == number(row)
                };
                fresh.behind = Some((row.clone(), cursor.taken.iter().filter(is_of_item).count()));
            }
            *cursor = fresh;
        }
    }

    /// Reads everything that the answer takes; `between` is called before each row.
    pub(super) fn rows(&mut self, world: &mut World, mut between: impl FnMut(&mut World)) -> Vec<Json> {
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
            let Some(row) = self.next(world) else { break };
            let row =
                if self.descends.is_empty() { row } else { row.get("payload").expect("a payload").clone() };
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

/// Returns a range of the plan; a point is the smallest range with it.
fn range(range: &Json) -> EffectiveRange {
    let bound = |name: &str| range[name].as_str().expect("a text").parse::<EffectiveKey>().expect("hex");
    let is_point = range["isMaxInclusive"].as_bool().expect("a boolean");
    if is_point {
        EffectiveRange::point(bound("min"))
    } else {
        EffectiveRange::new(bound("min"), bound("max"))
    }
}

/// Returns the number of the item that a merged row comes from: SDKs read its `_rid`, and refuse a row without one.
fn number(row: &Json) -> u64 {
    let rid = row["_rid"].as_str().unwrap_or_else(|| panic!("a row to be merged without _rid: {row}"));
    rid.parse::<ItemRid>().expect("the rid of an item").number
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
