//! Random items, indexing policies, queries and choices: an answer never depends on the way to it.
//!
//! What is expected comes from the query crate's run over a plain listing, which needs no index. Every choice turns on
//! numbers ([`Tuning`]), and here they are small and random, so that a few dozen items take every way there is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use document::{Document, EffectiveRange, ItemRid, Value, parse_json};
use query::{Arrival, Context, Dialect, PageLimits, Query, Run};
use storage::{ClockOptions, ManualClock, MemoryStore, Time};

use super::tuning::Tuning;
use crate::{
    Container, ContainerDefinition, Engine, ItemName, Operation, Precondition, QueryPage, QueryRequest, Scope,
};

/// Seeds of one run of the tests, unless `BOLIDE_SEEDS` says how many.
const SEEDS: u64 = 8;

const POLICIES: &[&str] = &[
    "{}",
    r#"{"excludedPaths":[{"path":"/*"}]}"#,
    r#"{"includedPaths":[{"path":"/a/?"},{"path":"/t/*"}],"excludedPaths":[{"path":"/*"}]}"#,
    r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"},{"path":"/pk/?"}]}"#,
    r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/n"}],[{"path":"/s"},{"path":"/n","order":"descending"},{"path":"/a"}],
        [{"path":"/n","order":"descending"},{"path":"/_ts"}]]}"#,
];

const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "1.0",
    "2.5",
    "-7",
    "9007199254740993",
    "\"a\"",
    "\"ab\"",
    "\"b\"",
    "\"\"",
    "[]",
    "[1]",
    "[1,\"a\"]",
    "[{\"k\":1}]",
    "{\"k\":1}",
    "{\"k\":\"a\"}",
    "{}",
];

const CONSTANTS: &[&str] =
    &["null", "true", "0", "1", "2.5", "9007199254740993", "'a'", "'ab'", "[1]", "{\"k\": 1}"];

const PLACES: &[&str] = &["c.a", "c.a", "c.s", "c.n", "c.b", "c.b.k", "c.t[0]", "c.id", "c.pk", "c._ts"];

/// An engine with one container under random policy, partitions and numbers.
struct Life {
    random: fastrand::Rng,
    engine: Engine,
    clock: Arc<ManualClock>,
    policy: &'static str,
    next_id: u32,
    /// Partition keys by id.
    ids: BTreeMap<String, String>,
}

impl Life {
    fn new(seed: u64) -> Life {
        let mut random = fastrand::Rng::with_seed(seed);
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let policy = random.choice(POLICIES).expect("some");
        let definition = definition(policy);
        let ranges = EffectiveRange::split(random.u32(1..=3), &definition.partition_key);
        engine.create_partitioned(&database, definition, None, ranges).expect("a container");
        let mut life = Life { random, engine, clock, policy, next_id: 0, ids: BTreeMap::new() };
        for _ in 0..life.random.usize(0..60) {
            life.create();
        }
        life
    }

    fn container(&self) -> Arc<Container> {
        let database = self.engine.database("db").expect("made at the start");
        self.engine.container(&database, "c").expect("made at the start")
    }

    fn pick(&mut self, list: &[&'static str]) -> &'static str {
        self.random.choice(list).expect("some")
    }

    /// A new body; some members are missing, some texts are too long for the index, a few items are too large for it.
    fn body(&mut self, id: &str, key: &str) -> Document {
        let mut members = vec![format!(r#""id":"{id}","pk":"{key}""#)];
        if self.random.u8(..4) > 0 {
            let value = self.pick(VALUES).to_owned();
            members
                .push(format!(r#""a":{}"#, if self.random.u8(..6) == 0 { self.long_text() } else { value }));
        }
        if self.random.u8(..3) > 0 {
            members.push(format!(r#""b":{}"#, self.pick(VALUES)));
        }
        members.push(format!(r#""n":{}"#, self.random.i32(0..8)));
        members.push(format!(r#""s":"{}""#, ["x", "y", "z"][self.random.usize(..3)]));
        if self.random.bool() {
            let elements: Vec<_> = (0..self.random.usize(..4)).map(|_| self.pick(VALUES)).collect();
            members.push(format!(r#""t":[{}]"#, elements.join(",")));
        }
        if self.random.u8(..40) == 0 {
            let many: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
            members.push(format!(r#""many":[{}]"#, many.join(",")));
        }
        match self.random.u8(..4) {
            0 => members.push(r#""ttl":-1"#.to_owned()),
            1 => members.push(format!(r#""ttl":{}"#, self.random.u32(1..40))),
            _ => {}
        }
        Document::from_json(format!("{{{}}}", members.join(",")).as_bytes()).expect("valid JSON")
    }

    fn long_text(&mut self) -> String {
        let end = ["", "a", "b", "ab"][self.random.usize(..4)];
        format!(r#""{}{end}""#, "l".repeat(self.random.usize(126..132)))
    }

    fn create(&mut self) -> String {
        let (id, key) = (format!("{:03}", self.next_id), format!("k{}", self.random.u8(..3)));
        self.next_id += 1;
        let body = self.body(&id, &key);
        self.engine.write(&self.container(), None, Operation::Create { body }).wait().expect("created");
        self.ids.insert(id.clone(), key);
        id
    }

    /// Changes or removes an item, if it lives.
    fn disturb(&mut self, id: &str) {
        let key = self.ids[id].clone();
        let body = self.body(id, &key);
        let (name, precondition) = (ItemName::Id(id.to_owned()), Precondition::None);
        let operation = if self.random.bool() {
            Operation::Delete { name, precondition }
        } else {
            Operation::Replace { name, body, precondition }
        };
        let key = document::PartitionKey::from_header(&format!("[\"{key}\"]")).expect("a key");
        // It may be dead or gone.
        let _ = self.engine.write(&self.container(), Some(key), operation).wait();
    }

    fn change_policy(&mut self) {
        self.policy = self.pick(POLICIES);
        let definition = definition(self.policy);
        self.engine.replace_container(&self.container(), definition, &Precondition::None).expect("a change");
        for _ in 0..self.random.usize(..4) {
            self.engine.index_step(20).expect("a step");
        }
    }

    fn drain(&self) {
        while self
            .engine
            .purge_step(7)
            .expect("a step")
            .next_due
            .is_some_and(|due| due <= self.engine.now().expect("a running clock"))
        {}
    }

    fn tuning(&mut self) -> Tuning {
        let mut few = |large: usize| [0, 1, 3, large][self.random.usize(..4)];
        Tuning {
            probe: few(256),
            page_entries: few(100_000).max(1),
            lookups: few(256),
            streams: few(64),
            collected_for_page: few(10_000),
            collected_for_all: few(1_000_000),
            shapes: few(4096),
            shape_streams: few(256),
            outliers: few(100),
            group: few(10_000),
            ..Tuning::default()
        }
    }

    fn page(
        &self,
        query: &Query,
        scope: &Scope,
        rows: usize,
        token: Option<String>,
        tuning: Tuning,
    ) -> QueryPage {
        let request = QueryRequest {
            scope: scope.clone(),
            continuation: token,
            ..QueryRequest::new(Some(query), rows)
        };
        self.engine.tuned_query(&self.container(), &request, tuning).expect("a page")
    }

    /// All pages of a query, each by a way of its own.
    fn rows(&mut self, query: &Query, scope: &Scope) -> Vec<String> {
        let (mut rows, mut token, size) = (Vec::new(), None, self.random.usize(1..12));
        for _ in 0..2000 {
            let tuning = self.tuning();
            let page = self.page(query, scope, size, token, tuning);
            assert!(page.rows.len() <= size);
            rows.extend(page.rows.into_iter().map(|row| String::from_utf8(row).expect("JSON")));
            token = page.continuation;
            if token.is_none() {
                return rows;
            }
        }
        panic!("a query does not end");
    }

    /// What a query should find: over a plain listing, without index, in one page.
    fn expected(&self, query: &Query, scope: &Scope) -> Vec<String> {
        let all = QueryRequest { scope: scope.clone(), ..QueryRequest::new(None, 10_000) };
        let tuning = Tuning { probe: 0, lookups: 0, ..Tuning::default() };
        let items = self.engine.tuned_query(&self.container(), &all, tuning).expect("a listing").rows;
        let context = Context::new(0, 1);
        let limits = PageLimits { rows: 100_000, bytes: usize::MAX };
        let mut run = Run::new(query, &context, Arrival::Any, None, limits);
        let mut items: Vec<(u64, Value)> = items.iter().map(|row| numbered(row)).collect();
        items.sort_by_key(|(number, _)| *number);
        for (number, item) in &items {
            if run.push(item, *number).expect("no fault") == query::Flow::Enough {
                break;
            }
        }
        let rows = run.finish().expect("no fault").rows;
        rows.into_iter().map(|row| String::from_utf8(row).expect("JSON")).collect()
    }

    fn statement(&mut self, place: &str) -> String {
        let value = self.pick(CONSTANTS);
        match self.random.u8(..14) {
            0..=5 => format!("{place} {} {value}", self.pick(&["=", "=", "=", "!=", "<", "<=", ">", ">="])),
            6 => format!("{place} IN ({value}, {}, {})", self.pick(CONSTANTS), self.pick(CONSTANTS)),
            7 => format!("{place} BETWEEN {value} AND {}", self.pick(CONSTANTS)),
            8 => format!(
                "{}({place})",
                self.pick(&["IS_DEFINED", "IS_NULL", "IS_STRING", "IS_ARRAY", "IS_OBJECT"])
            ),
            9 => format!("STARTSWITH({place}, '{}')", self.pick(&["a", "l", ""])),
            10 => format!("ARRAY_CONTAINS(c.t, {value})"),
            11 => format!(
                "EXISTS(SELECT VALUE x FROM x IN c.t WHERE x {} {value})",
                self.pick(&["=", ">", "!="])
            ),
            12 => format!("CONTAINS({place}, 'a')"),
            _ => format!("{place} = '{}'", "l".repeat(self.random.usize(126..132))),
        }
    }

    fn filter(&mut self, depth: usize) -> String {
        let place = self.pick(PLACES);
        match self.random.u8(..if depth == 0 { 4 } else { 8 }) {
            0..=3 => match (place, self.random.bool()) {
                ("c.id", true) => {
                    format!("c.id IN ('00{}', '01{}')", self.random.u8(..10), self.random.u8(..10))
                }
                ("c.pk", true) => format!("c.pk = 'k{}'", self.random.u8(..4)),
                ("c._ts", true) => format!("c._ts > {}", 1_700_000_000 + self.random.u64(..20)),
                ("c.n", true) => format!("c.n >= {}", self.random.u8(..9)),
                ("c.s", true) => format!("c.s = '{}'", self.pick(&["x", "y", "w"])),
                _ => self.statement(place),
            },
            4 | 5 => format!("({} AND {})", self.filter(depth - 1), self.filter(depth - 1)),
            6 => format!("({} OR {})", self.filter(depth - 1), self.filter(depth - 1)),
            _ => format!("NOT ({})", self.filter(depth - 1)),
        }
    }

    /// A query text, and whether the order of its rows is told.
    fn query(&mut self) -> (String, bool) {
        let filter = match self.random.u8(..5) {
            0 => String::new(),
            _ => format!(" WHERE {}", self.filter(2)),
        };
        let select = self.pick(&[
            "SELECT * FROM c",
            "SELECT VALUE c.a FROM c",
            "SELECT c.a, c.n FROM c",
            "SELECT VALUE c.id FROM c",
            "SELECT VALUE x FROM c JOIN x IN c.t",
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT VALUE SUM(c.n) FROM c",
            "SELECT VALUE MAX(c._ts) FROM c",
            "SELECT MAX(c.a) AS m, COUNT(c.a) AS d FROM c",
            "SELECT VALUE COUNT(1) FROM c JOIN x IN c.t",
            "SELECT DISTINCT VALUE c.a FROM c",
            "SELECT c.s, COUNT(1) AS n FROM c",
        ]);
        if select.starts_with("SELECT c.s") {
            return (format!("{select}{filter} GROUP BY c.s"), true);
        }
        if select.contains("DISTINCT") || select.contains('(') {
            return (format!("{select}{filter}"), true);
        }
        let order = self.pick(&[
            "",
            "",
            "c.a",
            "c.a",
            "c.a DESC",
            "c.n",
            "c._ts DESC",
            "c._ts",
            "c.b.k DESC",
            "c.a, c.n",
            "c.a DESC, c.n DESC",
            "c.a, c.n DESC",
            "c.n DESC",
            "c.n, c.a",
            "c.n DESC, c._ts",
            "c.n, c._ts DESC",
            "c.pk, c.a",
        ]);
        if order.is_empty() {
            return (format!("{select}{filter}"), false);
        }
        let window = self.pick(&["", "", " OFFSET 2 LIMIT 5", " OFFSET 0 LIMIT 1"]);
        (format!("{select}{filter} ORDER BY {order}{window}"), true)
    }

    fn scope(&mut self) -> Scope {
        let key = |n: u8| document::PartitionKey::from_header(&format!("[\"k{n}\"]")).expect("a key");
        match self.random.u8(..5) {
            0 => Scope { key: Some(key(self.random.u8(..4))), range: None },
            1 => {
                let ranges = EffectiveRange::split(3, &self.container().definition.partition_key);
                Scope { key: None, range: Some(ranges[self.random.usize(..3)].clone()) }
            }
            _ => Scope::default(),
        }
    }
}

fn definition(policy: &str) -> ContainerDefinition {
    let text = format!(
        r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},"defaultTtl":30,"indexingPolicy":{policy}}}"#
    );
    ContainerDefinition::from_value(&parse_json(text.as_bytes()).expect("valid JSON")).expect("valid")
}

fn parse(text: &str) -> Query {
    query::parse(text, &[], &Dialect::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// An item of a listing, with its number.
fn numbered(row: &[u8]) -> (u64, Value) {
    let item = parse_json(row).expect("a row is JSON");
    let rid: ItemRid =
        item.get("_rid").and_then(Value::as_str).expect("a row is an item").parse().expect("a rid");
    (rid.number, item)
}

/// Runs some seeds; `BOLIDE_SEED` names a single one.
fn each_seed(test: impl Fn(u64)) {
    if let Ok(seed) = std::env::var("BOLIDE_SEED") {
        return test(seed.parse().expect("a number"));
    }
    let seeds = std::env::var("BOLIDE_SEEDS").map_or(SEEDS, |seeds| seeds.parse().expect("a number"));
    for seed in 0..seeds {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(seed)));
        if let Err(panic) = outcome {
            eprintln!("BOLIDE_SEED={seed} shows it again");
            std::panic::resume_unwind(panic);
        }
    }
}

/// T14: rows are the same by every way, before and after a death, before and after the purge.
#[test]
fn t14_an_answer_does_not_depend_on_the_way_to_it() {
    each_seed(|seed| {
        let mut life = Life::new(seed);
        for round in 0..4 {
            match round {
                1 => life.clock.advance(Duration::from_secs(15)),
                2 => life.change_policy(),
                3 => life.drain(),
                _ => {}
            }
            for _ in 0..12 {
                let (text, in_order) = life.query();
                let (query, scope) = (parse(&text), life.scope());
                let mut expected = life.expected(&query, &scope);
                let mut rows = life.rows(&query, &scope);
                if !in_order {
                    expected.sort();
                    rows.sort();
                }
                // Of equal numbers any spelling may stand for the group.
                if text.contains("DISTINCT") || text.contains("MAX") {
                    for row in expected.iter_mut().chain(&mut rows) {
                        *row = row.replace("1.0", "1");
                    }
                }
                assert_eq!(rows, expected, "{text} in {scope:?} under {}", life.policy);
            }
        }
    });
}

/// What lives throughout and does not change is found exactly once, whatever happens between two pages.
#[test]
fn pages_neither_repeat_nor_lose_what_stays() {
    each_seed(|seed| {
        let mut life = Life::new(seed + 1000);
        for _ in 0..6 {
            let order = life.pick(&[
                "",
                "",
                "ORDER BY c.a",
                "ORDER BY c.a DESC",
                "ORDER BY c.n, c.a",
                "ORDER BY c._ts",
            ]);
            let text = format!("SELECT * FROM c WHERE {} {order}", life.filter(1));
            let query = parse(&text);
            let matching = |life: &Life| -> BTreeMap<String, Value> {
                let rows = life.expected(&query, &Scope::default());
                let items = rows.iter().map(|row| numbered(row.as_bytes()).1);
                items
                    .map(|item| (item.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(), item))
                    .collect()
            };
            let mut staying = matching(&life);
            let (mut seen, mut token, size) = (Vec::new(), None, life.random.usize(1..6));
            loop {
                let tuning = life.tuning();
                let page = life.page(&query, &Scope::default(), size, token, tuning);
                let living = matching(&life);
                for row in &page.rows {
                    let item = numbered(row).1;
                    let id = item.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                    assert_eq!(living.get(&id), Some(&item), "{text}: shown and should not be");
                    seen.push((id, item));
                }
                token = page.continuation;
                if token.is_none() {
                    break;
                }
                interfere(&mut life);
                let living = matching(&life);
                staying.retain(|id, item| living.get(id) == Some(item));
            }
            for (id, item) in &staying {
                let times = seen.iter().filter(|(other, shown)| other == id && shown == item).count();
                assert_eq!(times, 1, "{text} under {}: {id} was shown {times} times", life.policy);
            }
        }
    });
}

fn interfere(life: &mut Life) {
    for _ in 0..life.random.usize(..3) {
        match life.random.u8(..12) {
            0..=3 => {
                life.create();
            }
            4..=7 => {
                let ids: Vec<String> = life.ids.keys().cloned().collect();
                if let Some(id) = life.random.choice(&ids) {
                    life.disturb(id);
                }
            }
            8 => life.clock.advance(Duration::from_secs(1)),
            9 => life.drain(),
            10 => life.change_policy(),
            _ => {
                life.engine.index_step(20).expect("a step");
            }
        }
    }
}
