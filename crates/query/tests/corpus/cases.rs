//! Checks for one input of a fuzz target. The targets share this file with the test that replays their corpus.
//!
//! An input of `syntax` is a query text. An input of `evaluation` is a text too, so that it can be read and that
//! mutations of it stay close to something meaningful:
//!
//! ```text
//! SELECT c.n FROM c WHERE c.n = @n      the first line: a query, or a bare filter that begins with FROM
//! @n 5                                  a parameter
//! computed low SELECT VALUE LOWER(c.name) FROM c
//! embedding /vector euclidean           parts of the container's definition
//! {"id":"1","n":5}                      any other line is an item; what is no JSON is left out
//! ```
//!
//! No check measures time. Every evaluation has a small budget, so an input that takes long reveals work that is not
//! charged.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Debug;

use document::{
    Document, PartitionKey, PartitionKeyDefinition, Value, ValueRef, encode_key, parse_json, total_order,
};
use query::{
    Access, Answer, Arrival, Code, Condition, Context, Dialect, Error, Fault, Flow, HybridRows, Leaf,
    PageLimits, Query, Ranking, Report, Resume, Row, Run, SortPath, Sorting, Step, Work,
};

/// Steps that one run may do; about a hundredth of a second of them.
const BUDGET: u64 = 50_000;

/// Items of one input. More of them find nothing that a few do not.
const ITEMS_MAX: usize = 12;

/// Rows up to which pages of one and of two rows are tried: each page of a sorted query starts from the beginning.
const SHORT_ROWS: usize = 24;

/// 2024-05-06T07:08:09.123Z.
const NOW_MILLIS: u64 = 1_714_979_289_123;

/// Reads a text in every way in which clients can send one.
pub(crate) fn check_syntax(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let parameters = parameters();
    match query::parse(text, &parameters, &dialect()) {
        Ok(query) => {
            for key in partition_keys() {
                query.analyse(&key);
            }
            query.counts_only();
            query.selects_items();
            query.is_streaming(Arrival::Any);
            check_plan(text, &parameters);
        }
        Err(error) => check_error(&error, text),
    }
    match query::parse_filter(text, &parameters, query::Surface::Globe) {
        Ok(query) => drop(query.analyse(&partition_keys()[0])),
        Err(error) => check_error(&error, text),
    }
}

/// Checks that the rewritten query of a plan can be run.
fn check_plan(text: &str, parameters: &[(String, Value)]) {
    for (key, rows) in partition_keys().iter().zip([HybridRows::Ordered, HybridRows::Plain]) {
        let plan = match query::plan(text, parameters, key, &dialect(), rows) {
            Ok(plan) => plan,
            Err(error) => return check_error(&error, text),
        };
        plan.to_value();
        let rewritten = match plan.work {
            Work::Merge(info) => vec![info.rewritten_query],
            Work::Fuse(info) => {
                info.components.into_iter().map(|component| component.rewritten_query).collect()
            }
        };
        for rewritten in rewritten.iter().filter(|rewritten| !rewritten.is_empty()) {
            let error = query::parse(&filled(rewritten), parameters, &dialect()).err();
            assert!(error.as_ref().is_none_or(is_limit), "{rewritten}\n{error:?}");
        }
    }
}

/// Returns a rewritten query with the statistics that a client puts into it.
fn filled(rewritten: &str) -> String {
    let mut parts = rewritten.split("{documentdb-formattablehybridsearchquery-");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        text.push_str(if name.starts_with("hitcounts") { "[1,0]" } else { "3" });
        text.push_str(rest);
    }
    text
}

/// Returns `true` if a text is refused for its size alone.
fn is_limit(error: &Error) -> bool {
    let by_size =
        |report: &Report| report.code == Code::Text("SC9002") && report.message.contains("more than");
    match error {
        Error::TooDeep { .. } | Error::TooLong { .. } => true,
        other => other.reports().iter().all(by_size),
    }
}

/// Checks that the position of an error lies inside the text.
fn check_error(error: &Error, text: &str) {
    let units = text.encode_utf16().count();
    let reports = error.reports();
    assert!(!reports.is_empty(), "{error:?} says nothing");
    for (start, end) in reports.iter().filter_map(|report| report.location) {
        assert!(start <= end && end <= units, "{error:?} is outside of {text:?}");
    }
    assert!(!error.to_string().is_empty());
}

/// Values of every type for texts that use parameters.
fn parameters() -> Vec<(String, Value)> {
    let values = [
        ("@n", "5"),
        ("@p", "\"p\""),
        ("@a", "[1,\"a\",null,[2],{\"b\":3}]"),
        ("@o", "{\"type\":\"Point\",\"coordinates\":[1,2]}"),
        ("@z", "null"),
        ("@t", "true"),
        ("@d", "-0.5"),
    ];
    values.map(|(name, json)| (name.to_owned(), value(json))).into()
}

fn dialect() -> Dialect {
    let computed = [("low", "SELECT VALUE LOWER(c.name) FROM c"), ("bad", "SELECT c.x, c.y FROM c")];
    let embeddings = [("/v", "cosine"), ("/e/v", "euclidean")];
    Dialect {
        computed: computed.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
        embeddings: embeddings.map(|(path, kind)| (path.parse().expect("a path"), kind.to_owned())).into(),
        surface: query::Surface::default(),
    }
}

fn partition_keys() -> Vec<PartitionKeyDefinition> {
    let definitions = [
        r#"{"paths":["/pk"],"kind":"Hash","version":2}"#,
        r#"{"paths":["/a","/b/c","/id"],"kind":"MultiHash","version":2}"#,
    ];
    let read = |json| PartitionKeyDefinition::from_value(&value(json)).expect("a partition key");
    definitions.map(read).into()
}

fn value(json: &str) -> Value {
    parse_json(json.as_bytes()).expect("valid JSON")
}

/// Runs a query over items in several ways that must agree.
pub(crate) fn check_evaluation(data: &[u8]) {
    let text = &*String::from_utf8_lossy(data);
    let Case { query: text, parameters, dialect, items } = Case::read(text);
    let stored: Vec<Document> = items.iter().map(|item| Document::from_value(item).expect("small")).collect();
    let trees: Vec<&dyn Row> = items.iter().map(|item| item as &dyn Row).collect();
    let stored: Vec<&dyn Row> = stored.iter().map(|item| item as &dyn Row).collect();
    let filters = text.trim_start().get(..4).is_some_and(|word| word.eq_ignore_ascii_case("FROM"));
    let query = if filters {
        query::parse_filter(text, &parameters, query::Surface::Globe)
    } else {
        query::parse(text, &parameters, &dialect)
    };
    let query = match query {
        Ok(query) => query,
        Err(error) => return check_error(&error, text),
    };
    if filters {
        for (item, stored) in trees.iter().zip(&stored) {
            assert_eq!(query.matches(*item, &context()), query.matches(*stored, &context()));
        }
    }
    let (trees, stored) = if query.reads_items() { (trees, stored) } else { Default::default() };
    let numbers: Vec<usize> = (0..trees.len()).collect();
    let all = Way { items: &trees, order: &numbers, arrival: Arrival::Any, limits: whole_pages() };
    let Ok(rows) = all.rows(&query) else { return };
    for row in &rows {
        check_json(row);
    }
    // What is random differs from page to page.
    if data.to_ascii_uppercase().windows(4).all(|word| word != b"RAND") {
        let all = Way { items: &stored, ..all };
        check_pages(&query, all, &rows);
        check_order(&query, all, &rows);
        check_analysis(&query, all, &rows);
    }
}

/// Pages of any length have the same rows together.
fn check_pages(query: &Query, way: Way<'_>, rows: &[Vec<u8>]) {
    let many = rows.len() / 3 + 1;
    let lengths = if rows.len() <= SHORT_ROWS { [1, 2] } else { [many, many + 1] };
    let total: usize = rows.iter().map(Vec::len).sum();
    let by_rows = lengths.map(|rows| PageLimits { rows, bytes: usize::MAX });
    let by_bytes = PageLimits { rows: 1000, bytes: total / 3 + 1 };
    for limits in [whole_pages(), by_rows[0], by_rows[1], by_bytes] {
        check_rows(query, Way { limits, ..way }, rows, &limits);
    }
}

/// Items that come in the order of the query give the same rows as those that are sorted.
fn check_order(query: &Query, way: Way<'_>, rows: &[Vec<u8>]) {
    let Sorting::Paths(paths) = query.analyse(&partition_keys()[0]).sorting else { return };
    let Some(descending) = paths.first().map(|path| path.descending) else { return };
    let wholes: Vec<Value> = way.items.iter().map(|item| item.whole()).collect();
    let at = |number: usize, path: &[String]| {
        path.iter().try_fold(wholes[number].view(), |value, name| value.get(name))
    };
    let turned = |order: Ordering, turn: bool| if turn { order.reverse() } else { order };
    let mut order = way.order.to_vec();
    order.sort_by(|&one, &other| {
        let by_path = |SortPath { path, descending }: &SortPath| {
            turned(total_order(at(one, path), at(other, path)), *descending)
        };
        let by_values = paths.iter().map(by_path).find(|order| order.is_ne());
        by_values.unwrap_or_else(|| turned(one.cmp(&other), descending))
    });
    let way = Way { order: &order, arrival: Arrival::InOrder, ..way };
    check_pages(query, way, rows);
}

fn check_rows(query: &Query, way: Way<'_>, rows: &[Vec<u8>], by: &dyn Debug) {
    let Ok(found) = way.rows(query) else { return };
    // Of equal values such as 1 and 1.0, `DISTINCT` shows the one that comes first.
    let same = way.arrival == Arrival::InOrder && by_value(&found) == by_value(rows);
    if !same {
        assert_eq!(shown(&found), shown(rows), "items {:?}, {:?}, by {by:?}", way.order, way.arrival);
    }
}

/// Bytes that are the same for rows with equal values.
fn by_value(rows: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let key = |row: &Vec<u8>| {
        let Ok(value) = parse_json(row) else { return row.clone() };
        let mut key = Vec::new();
        encode_key(Some(value.view()), &mut key);
        key
    };
    rows.iter().map(key).collect()
}

fn shown(rows: &[Vec<u8>]) -> Vec<Cow<'_, str>> {
    rows.iter().map(|row| String::from_utf8_lossy(row)).collect()
}

/// One input of `evaluation`.
struct Case<'t> {
    query: &'t str,
    parameters: Vec<(String, Value)>,
    dialect: Dialect,
    items: Vec<Value>,
}

impl<'t> Case<'t> {
    fn read(text: &'t str) -> Case<'t> {
        let mut lines = text.split('\n');
        let query = lines.next().unwrap_or_default();
        let mut case = Case { query, parameters: Vec::new(), dialect: Dialect::default(), items: Vec::new() };
        for line in lines {
            case.setting(line);
        }
        case
    }

    fn setting(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, rest.split_once(' ')) {
            (name, _) if name.starts_with('@') => {
                if let Ok(value) = parse_json(rest.as_bytes()) {
                    self.parameters.push((name.to_owned(), value));
                }
            }
            ("computed", Some((name, text))) => {
                self.dialect.computed.push((name.to_owned(), text.to_owned()));
            }
            ("embedding", Some((path, kind))) => {
                if let Ok(path) = path.parse() {
                    self.dialect.embeddings.push((path, kind.to_owned()));
                }
            }
            _ if self.items.len() < ITEMS_MAX => self.items.extend(item(line)),
            _ => {}
        }
    }
}

/// Returns an item as a container would have it.
fn item(json: &str) -> Option<Value> {
    let item = parse_json(json.as_bytes()).ok()?;
    matches!(item, Value::Object(_)).then_some(item)
}

fn context() -> Context {
    Context::new(NOW_MILLIS, 1).with_budget(BUDGET)
}

/// Pages that are never full.
fn whole_pages() -> PageLimits {
    PageLimits { rows: usize::MAX >> 1, bytes: usize::MAX }
}

/// How items are gone through.
#[derive(Clone, Copy)]
struct Way<'a> {
    items: &'a [&'a dyn Row],
    /// Those of them that come, in the order in which they do.
    order: &'a [usize],
    arrival: Arrival,
    limits: PageLimits,
}

impl Way<'_> {
    /// Returns all rows, page by page.
    fn rows(&self, query: &Query) -> Result<Vec<Vec<u8>>, Fault> {
        let ranked = self.ranked(query)?;
        let order = ranked.as_deref().unwrap_or(self.order);
        let mut rows = Vec::new();
        let mut resume = None;
        let mut first = 0;
        for _ in 0..10_000 {
            let (found, full) = self.page(query, &order[first..], resume)?;
            rows.extend(found.rows);
            first = full.map_or(0, |full| first + full);
            match found.resume {
                None => return Ok(rows),
                Some(more) => resume = Some(more),
            }
        }
        panic!("the pages never end");
    }

    /// Returns one page, and how many items were taken if it could not take all.
    fn page(
        &self,
        query: &Query,
        order: &[usize],
        resume: Option<Resume>,
    ) -> Result<(Answer, Option<usize>), Fault> {
        let context = context();
        let mut run = Run::new(query, &context, self.arrival, resume, self.limits);
        let mut full = None;
        for (place, number) in order.iter().enumerate() {
            match run.push(self.items[*number], *number as u64)? {
                Flow::More => {}
                Flow::Full => {
                    full = Some(place);
                    break;
                }
                Flow::Enough => break,
            }
        }
        Ok((run.finish()?, full))
    }

    /// Returns the order by rank, where the query asks for it.
    fn ranked(&self, query: &Query) -> Result<Option<Vec<usize>>, Fault> {
        let context = context();
        let Some(mut ranking) = Ranking::of(query, &context) else { return Ok(None) };
        if ranking.needs_statistics() {
            for item in self.items {
                ranking.observe(*item)?;
            }
        }
        for number in self.order {
            ranking.score(self.items[*number], *number as u64)?;
        }
        Ok(Some(ranking.finish().into_iter().map(|number| number as usize).collect()))
    }
}

/// Checks that a row is JSON; only rows that are nested deeper than any item may not parse.
fn check_json(row: &[u8]) {
    if let Err(error) = parse_json(row) {
        let depth = row.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
        assert!(depth > 128, "{error} in {:?}", String::from_utf8_lossy(row));
    }
}

/// The items that an index would be asked for, and those that can be looked up, give the same rows as all of them.
fn check_analysis(query: &Query, way: Way<'_>, rows: &[Vec<u8>]) {
    let wholes: Vec<Value> = way.items.iter().map(|item| item.whole()).collect();
    for key in partition_keys() {
        let analysis = query.analyse(&key);
        let inside = |number: &usize| lies_in(&analysis.condition, wholes[*number].view());
        let reachable = |number: &usize| is_reachable(&analysis.access, &key, &wholes[*number]);
        let indexed: Vec<usize> = way.order.iter().copied().filter(inside).collect();
        let looked_up: Vec<usize> = way.order.iter().copied().filter(reachable).collect();
        check_rows(query, Way { order: &indexed, ..way }, rows, &analysis.condition);
        check_rows(query, Way { order: &looked_up, ..way }, rows, &analysis.access);
        if analysis.exact && query.counts_only() {
            let context = context();
            let mut run = Run::new(query, &context, Arrival::Any, None, whole_pages());
            run.push_count(indexed.len() as u64);
            let counted = run.finish().expect("counting costs nothing");
            assert_eq!(shown(&counted.rows), shown(rows), "counted by {:?}", analysis.condition);
        }
    }
}

/// Returns `true` if an item can be looked up; one without an id or a time of writing is in no container.
fn is_reachable(access: &Access, key: &PartitionKeyDefinition, item: &Value) -> bool {
    let id = item.get("id").and_then(Value::as_str);
    let stamp = item.get("_ts").and_then(Value::as_i64).and_then(|stamp| u64::try_from(stamp).ok());
    match (id, stamp, PartitionKey::extract(key, item.view())) {
        (Some(id), Some(stamp), Ok(key)) => access.contains(id, &key, stamp),
        _ => true,
    }
}

/// Returns `true` if an item lies in a set that an index is asked for.
fn lies_in(condition: &Condition, item: ValueRef<'_>) -> bool {
    match condition {
        Condition::Everything => true,
        Condition::Nothing => false,
        Condition::Leaf(leaf) => stands(leaf, item),
        Condition::All(parts) => parts.iter().all(|part| lies_in(part, item)),
        Condition::Any(parts) => parts.iter().any(|part| lies_in(part, item)),
    }
}

fn stands(leaf: &Leaf, item: ValueRef<'_>) -> bool {
    let mut places = vec![Some(item)];
    for step in &leaf.path {
        places = match step {
            Step::Name(name) => places.iter().map(|place| place.and_then(|value| value.get(name))).collect(),
            Step::Each => {
                let arrays = places.iter().filter_map(|place| place.and_then(ValueRef::as_array));
                arrays.flat_map(|array| array.iter().map(Some).collect::<Vec<_>>()).collect()
            }
        };
    }
    let kinds = leaf.values.kinds;
    places.into_iter().any(|place| match place {
        None => kinds.missing,
        Some(ValueRef::Array(_)) => kinds.array,
        Some(ValueRef::Object(_)) => kinds.object,
        Some(scalar) => {
            let mut key = Vec::new();
            encode_key(Some(scalar), &mut key);
            leaf.values.admits(&key)
        }
    })
}
