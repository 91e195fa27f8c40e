//! An engine with one container under a random policy, ranges and numbers, and the items that it must have.

use std::collections::BTreeMap;
use std::sync::Arc;

use document::{Document, EffectiveRange, Value, parse_json};
use query::Query;
use storage::{ClockOptions, ManualClock, MemoryStore, Time};

use super::super::tuning::Tuning;
use super::container::{DEFAULT_TTL, LEVELS, POLICIES, computed, partition_key};
use super::json::Json;
use super::tree::Expr;
use crate::{
    Container, Engine, Error, ItemName, Operation, Outcome, Precondition, QueryPage, QueryRequest, Scope,
};

/// When every world begins, in seconds.
pub(super) const START: u64 = 1_700_000_000;

/// Requests, pages and steps after which something is considered not to end: a hundred times what a world takes.
pub(super) const STEPS_MAX: usize = 5000;

/// What a property or an element may hold.
pub(super) const VALUES: &[&str] = &[
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
    "\"2026-01-02T03:04:05Z\"",
    "[]",
    "[1]",
    "[1,\"a\"]",
    "[{\"k\":1}]",
    "{\"k\":1}",
    "{\"k\":\"a\"}",
    "{}",
];

/// An item as it was written, and when it expires.
struct Stored {
    item: Json,
    key: Vec<&'static str>,
    expires: Option<u64>,
}

/// The engine, and what was written into it.
pub(super) struct World {
    pub(super) random: fastrand::Rng,
    pub(super) engine: Engine,
    pub(super) clock: Arc<ManualClock>,
    pub(super) policy: &'static str,
    /// The properties of the partition key.
    pub(super) levels: &'static [&'static str],
    /// `Hash`, or `MultiHash` of a hierarchical key.
    pub(super) kind: &'static str,
    /// Names that the container gives to expressions over `c`.
    pub(super) computed: Vec<(&'static str, Expr)>,
    /// Whether some items are too large for the index, and for a page of rows in their own order to end at.
    pub(super) has_large_items: bool,
    /// The values of the parameters of the query that was made last.
    pub(super) parameters: Vec<Json>,
    next_id: u32,
    stored: BTreeMap<String, Stored>,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let mut random = fastrand::Rng::with_seed(seed);
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let levels = &LEVELS[..[1, 1, 1, 2, 3][random.usize(..5)]];
        // Some clients make hierarchical keys of one level.
        let kind = if levels.len() == 1 && random.u8(..4) > 0 { "Hash" } else { "MultiHash" };
        let computed = computed().into_iter().filter(|_| random.u8(..3) == 0).collect();
        let has_large_items = random.bool();
        let mut world = World {
            policy: random.choice(POLICIES).expect("some"),
            random,
            engine,
            clock,
            levels,
            kind,
            computed,
            has_large_items,
            parameters: Vec::new(),
            next_id: 0,
            stored: BTreeMap::new(),
        };
        let definition = world.definition();
        let ranges = world.ranges(&definition);
        world.engine.create_partitioned(&database, definition, None, ranges).expect("a container");
        for _ in 0..world.random.usize(0..60) {
            world.create();
        }
        world
    }

    pub(super) fn container(&self) -> Arc<Container> {
        let database = self.engine.database("db").expect("made at the start");
        self.engine.container(&database, "c").expect("made at the start")
    }

    pub(super) fn pick(&mut self, list: &[&'static str]) -> &'static str {
        self.random.choice(list).expect("some")
    }

    /// Returns a new body. Some members are missing, some texts are too long for the index, a few items are too large
    /// for it.
    fn body(&mut self, id: &str, key: &[&str]) -> Document {
        let mut members = vec![format!(r#""id":"{id}""#)];
        for (level, part) in self.levels.iter().zip(key) {
            if *part != "{}" {
                members.push(format!(r#""{level}":{part}"#));
            } else if self.random.u8(..4) == 0 {
                // An array is not part of a key: the item is in the partition of those without one.
                members.push(format!(r#""{level}":[1]"#));
            }
        }
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
        if self.has_large_items && self.random.u8(..20) == 0 {
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

    pub(super) fn create(&mut self) {
        let (id, key) = (format!("{:03}", self.next_id), self.key());
        self.next_id += 1;
        let body = self.body(&id, &key);
        let outcome =
            self.engine.write(&self.container(), None, Operation::Create { body }).wait().expect("created");
        self.store(id, key, outcome);
    }

    fn store(&mut self, id: String, key: Vec<&'static str>, outcome: Outcome) {
        let item = outcome.item.expect("a write answers with the item");
        let item: Json = serde_json::from_slice(&item.to_json()).expect("an item is JSON");
        let written = item["_ts"].as_u64().expect("an item has the time of its write");
        let expires = match item.get("ttl").map(|ttl| ttl.as_i64().expect("an integer")) {
            None => Some(written + DEFAULT_TTL),
            Some(-1) => None,
            Some(ttl) => Some(written + ttl.unsigned_abs()),
        };
        self.stored.insert(id, Stored { item, key, expires });
    }

    /// Replaces or deletes some item; an expired one is not found (T15).
    pub(super) fn disturb(&mut self) {
        let ids: Vec<String> = self.stored.keys().cloned().collect();
        let Some(id) = self.random.choice(&ids).cloned() else { return };
        let key = self.stored[&id].key.clone();
        let is_living = self.is_living(&self.stored[&id]);
        let body = self.body(&id, &key);
        let (name, precondition) = (ItemName::Id(id.clone()), Precondition::None);
        let operation = if self.random.bool() {
            Operation::Delete { name, precondition }
        } else {
            Operation::Replace { name, body, precondition }
        };
        let deletes = matches!(operation, Operation::Delete { .. });
        match self.engine.write(&self.container(), Some(partition_key(&key)), operation).wait() {
            Ok(_) if !is_living => panic!("{id} has expired and was written to"),
            Ok(_) if deletes => {
                self.stored.remove(&id);
            }
            Ok(outcome) => self.store(id, key, outcome),
            Err(error) => assert!(!is_living, "{id}: {error}"),
        }
    }

    fn is_living(&self, stored: &Stored) -> bool {
        let now = self.engine.now().expect("a running clock").seconds();
        stored.expires.is_none_or(|expires| now < expires)
    }

    /// Returns what a listing of a scope must show.
    pub(super) fn living(&self, scope: &Scope) -> Vec<Json> {
        let definition = &self.container().definition.partition_key;
        let in_scope = |stored: &&Stored| {
            let key = partition_key(&stored.key);
            scope.key.as_ref().is_none_or(|wanted| wanted.is_prefix_of(&key))
                && scope.range.as_ref().is_none_or(|range| range.contains(&key.effective(definition)))
        };
        let living = self.stored.values().filter(|stored| self.is_living(stored)).filter(in_scope);
        living.map(|stored| stored.item.clone()).collect()
    }

    /// Returns the member of some item that was written, living or not.
    pub(super) fn sample(&mut self, member: &str) -> Option<Json> {
        let items: Vec<&Stored> = self.stored.values().collect();
        self.random.choice(&items).and_then(|stored| stored.item.get(member).cloned())
    }

    /// Returns the partition key of some item that was written, living or not.
    pub(super) fn sample_key(&mut self) -> Option<Vec<&'static str>> {
        let items: Vec<&Stored> = self.stored.values().collect();
        self.random.choice(&items).map(|stored| stored.key.clone())
    }

    pub(super) fn change_policy(&mut self) {
        self.policy = self.pick(POLICIES);
        let definition = self.definition();
        self.engine.replace_container(&self.container(), definition, &Precondition::None).expect("a change");
        for _ in 0..self.random.usize(..4) {
            self.engine.index_step(20).expect("a step");
        }
    }

    /// Purges all that is due.
    pub(super) fn drain(&self) {
        for _ in 0..STEPS_MAX {
            let due = self.engine.purge_step(7).expect("a step").next_due;
            if due.is_none_or(|due| due > self.engine.now().expect("a running clock")) {
                return;
            }
        }
        panic!("the purge does not end");
    }

    /// Does one of the things that may happen between two pages.
    pub(super) fn interfere(&mut self) {
        for _ in 0..self.random.usize(..3) {
            match self.random.u8(..12) {
                0..=3 => self.create(),
                4..=7 => self.disturb(),
                8 => self.clock.advance(std::time::Duration::from_secs(1)),
                9 => self.drain(),
                10 => self.change_policy(),
                _ => {
                    self.engine.index_step(20).expect("a step");
                }
            }
        }
    }

    pub(super) fn tuning(&mut self) -> Tuning {
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

    pub(super) fn page(
        &self,
        query: Option<&Query>,
        scope: &Scope,
        rows: usize,
        token: Option<&str>,
        tuning: Tuning,
    ) -> Result<QueryPage, Error> {
        let continuation = token.map(str::to_owned);
        let request = QueryRequest { scope: scope.clone(), continuation, ..QueryRequest::new(query, rows) };
        self.engine.tuned_query(&self.container(), &request, tuning)
    }

    pub(super) fn scope(&mut self) -> Scope {
        let by_key = |world: &mut World| {
            let levels = world.random.usize(1..=world.levels.len());
            Some(partition_key(&world.key()[..levels]))
        };
        let by_range = |world: &mut World| {
            let ranges = EffectiveRange::split(3, &world.container().definition.partition_key);
            Some(ranges[world.random.usize(..3)].clone())
        };
        match self.random.u8(..11) {
            0 | 1 => Scope { key: by_key(self), range: None },
            2 | 3 => Scope { key: None, range: by_range(self) },
            4 => Scope { key: by_key(self), range: by_range(self) },
            _ => Scope::default(),
        }
    }

    /// Describes the container, and the parameters of the last generated query.
    pub(super) fn about(&self) -> String {
        let parameters = Json::from(self.parameters.clone());
        format!("a container by {} {:?} under {}, with {parameters}", self.kind, self.levels, self.policy)
    }

    /// Returns the parameters of the query that was made last, as requests have them.
    pub(super) fn named_parameters(&self) -> Vec<(String, Value)> {
        let value = |value: &Json| parse_json(value.to_string().as_bytes()).expect("valid JSON");
        self.parameters
            .iter()
            .enumerate()
            .map(|(number, json)| (format!("@p{number}"), value(json)))
            .collect()
    }

    pub(super) fn parse(&self, text: &str) -> Query {
        let dialect = self.container().definition.dialect();
        query::parse(text, &self.named_parameters(), &dialect)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }
}
