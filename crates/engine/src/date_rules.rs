//! Date rules in a store: figures, index, queues and purge against what the items themselves say (T27).
//!
//! No container of the NoSQL API has date rules; the test gives one to it, because its index and its figures are the ones
//! that must hold. Who is dead is `expiry`'s business and is tested there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use document::{Document, ItemNumber, parse_json};
use storage::{
    ClockOptions, Direction, KeyRange, Keyspace, ManualClock, MemoryStore, Read, Time, Transaction,
};

use crate::catalog::change_policy;
use crate::counters::Tally;
use crate::definition::OwnTtl;
use crate::expiry::{Change, Millis, Place};
use crate::footprint::{Footprint, Home};
use crate::gate::{Found, Gate, View};
use crate::header::{Header, Record};
use crate::index::{Drafted, Mark, Upkeep};
use crate::keys::{self, Grain, Key};
use crate::lsn::Writes;
use crate::{Container, ContainerDefinition, DefaultTtl, Engine, Partition, QueryRequest, purge, touch};

/// 2023-11-14, not at the start of an hour.
const START_MS: u64 = 1_700_000_000_000;

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) container: Arc<Container>,
    clock: Arc<ManualClock>,
}

/// An item as a test writes it: its dates by rule.
#[derive(Debug, Clone)]
struct Wish {
    id: u32,
    ttl: OwnTtl,
    dates: BTreeMap<u32, Millis>,
    padding: usize,
}

impl Wish {
    fn new(id: u32, dates: &[(u32, Millis)]) -> Wish {
        Wish { id, ttl: OwnTtl::Absent, dates: dates.iter().copied().collect(), padding: 0 }
    }

    fn body(&self) -> Document {
        let (id, padding) = (self.id, "x".repeat(self.padding));
        let ttl = match self.ttl {
            OwnTtl::Absent => String::new(),
            OwnTtl::Never => r#","ttl":-1"#.to_owned(),
            OwnTtl::Seconds(seconds) => format!(r#","ttl":{seconds}"#),
        };
        let text = format!(r#"{{"id":"{id}","pk":"p","k":{},"pad":"{padding}"{ttl}}}"#, id % 3);
        Document::from_json(text.as_bytes()).expect("valid JSON")
    }
}

impl World {
    pub(crate) fn new() -> World {
        World::with("")
    }

    /// With further members of the container's definition.
    pub(crate) fn with(more: &str) -> World {
        let clock = Arc::new(ManualClock::new(Time::from_millis(START_MS)));
        let store = MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store");
        let engine = Engine::open(Arc::new(store)).expect("an engine");
        let database = engine.create_database("db", None).expect("a database");
        let text =
            format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{more}}}"#);
        let definition = parse_json(text.as_bytes()).expect("valid JSON");
        let definition = ContainerDefinition::from_value(&definition).expect("valid");
        let container = engine.create_container(&database, definition, None).expect("a container");
        World { engine, container, clock }
    }

    fn partition(&self) -> &Arc<Partition> {
        &self.container.partitions[0]
    }

    pub(crate) fn now_ms(&self) -> Millis {
        self.engine.now().expect("a time").millis().cast_signed()
    }

    pub(crate) fn advance(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    fn change(&self, change: Change) {
        self.change_all(vec![change]);
    }

    fn change_all(&self, changes: Vec<Change>) {
        let partition = self.partition();
        let mut lock = partition.policy.write();
        let id = partition.id;
        *lock = Arc::new(self.engine.change(move |tx| change_policy(tx, id, &changes)).expect("a change"));
        partition.next_look.at_once();
    }

    fn rule(&self, id: u32, delay_ms: Millis) {
        self.change(Change::AddRule { id });
        self.change(Change::SetDelay { id, delay_ms });
    }

    /// A new version of an item, or a new item.
    fn write(&self, wish: Wish) {
        let (container, partition) = (Arc::clone(&self.container), Arc::clone(self.partition()));
        let due = self.engine.change(move |tx| {
            let (gate, upkeep) = (Gate::for_write(tx, partition.id)?, Upkeep::load(tx, &partition)?);
            let write = Writes::new(partition.id).next(tx)?;
            let sequence = write.sequence;
            let bases = gate.policy.bases(|rule| wish.dates.get(&rule).copied());
            let header = Header { bases, ..Header::numbered(write, tx.time().seconds(), wish.ttl) };
            let due = gate.policy.death(&header);
            let mut record = Record { number: ItemNumber(sequence.0), header, body: wish.body() };
            let home = Home::of(partition.id, &container.definition, &record)?;
            let footprint = |record: &Record| {
                Footprint::new(&home, &container.definition, &upkeep, record, Drafted::default())
            };
            match gate.by_id_key(tx, &home.id_key(&wish.id.to_string()))? {
                Found::Living(old) => {
                    record.number = old.number;
                    footprint(&record).replace(footprint(&old), tx)?;
                }
                Found::Dead(old) => {
                    footprint(&old).remove(tx)?;
                    footprint(&record).insert(tx)?;
                }
                Found::Nobody | Found::Damaged(_) => footprint(&record).insert(tx)?,
            }
            Ok(due)
        });
        if let Some(due) = due.expect("written") {
            self.partition().next_look.not_after(due);
        }
    }

    /// What an index build does for a rule: every living item gets its base; it is no write of the item.
    fn build(&self, rule: u32, dates: &BTreeMap<u32, BTreeMap<u32, Millis>>) {
        let (container, partition) = (Arc::clone(&self.container), Arc::clone(self.partition()));
        let dates = dates.clone();
        let built = self.engine.change(move |tx: &mut Transaction<'_>| {
            let (gate, upkeep) = (Gate::for_write(tx, partition.id)?, Upkeep::load(tx, &partition)?);
            for old in stored(tx, &partition) {
                if gate.policy.is_dead(&old.header, gate.now) {
                    continue;
                }
                let id = old.body.get("id").and_then(|id| id.as_str()?.parse().ok()).expect("an id");
                let bases = gate.policy.rebase(&old.header, rule, dates[&id].get(&rule).copied());
                let new = Record { header: Header { bases, ..old.header.clone() }, ..old.clone() };
                let home = Home::of(partition.id, &container.definition, &new)?;
                let footprint = |record: &Record| {
                    Footprint::new(&home, &container.definition, &upkeep, record, Drafted::default())
                };
                footprint(&new).replace(footprint(&old), tx)?;
            }
            Ok(())
        });
        built.expect("built");
    }

    fn count(&self, text: &str) -> usize {
        let query = query::parse(text, &[], &query::Dialect::default()).expect("supported");
        let page =
            self.engine.query(&self.container, &QueryRequest::new(Some(&query), 1000)).expect("a page");
        page.rows.len()
    }

    /// Every figure, queue, counter and index answer is what the stored items call for.
    pub(crate) fn check(&self) {
        let snapshot = self.engine.store.snapshot().expect("a snapshot");
        let policy = Arc::clone(&self.partition().policy.read());
        let now = self.engine.now().expect("a time");
        let records = stored(&*snapshot, self.partition());
        let (mut living, mut dead) = (Tally::default(), Tally::default());
        let mut kinds = [0; 3];
        for record in &records {
            let size = Tally { items: 1, bytes: record.size() };
            if policy.is_dead(&record.header, now) {
                dead = dead.plus(size);
            } else {
                living = living.plus(size);
                let kind = record.body.get("k").and_then(document::ValueRef::as_i64).expect("a number");
                kinds[usize::try_from(kind).expect("small")] += 1;
            }
        }
        let usage = self.engine.usage(&self.container).expect("figures");
        assert_eq!((usage.living, usage.dead), (living, dead), "T18: {policy:?}");
        for (kind, expected) in kinds.iter().enumerate() {
            let found = self.count(&format!("SELECT c.id FROM c WHERE c.k = {kind}"));
            assert_eq!(found, *expected, "T14: {policy:?}");
        }
        self.engine.check_index(&self.container).expect("an index as the items call for");
        self.check_marks(&records);
        check_queues(&*snapshot, self.partition(), &records);
        check_buckets(&*snapshot, self.partition(), &records);
        check_touches(&*snapshot, self.partition(), &records);
    }

    /// Every index entry tells the living from the dead.
    fn check_marks(&self, records: &[Record]) {
        let view = View::open(&*self.engine.store, self.partition()).expect("a view");
        let is_dead = |record: &Record| view.gate.policy.is_dead(&record.header, view.gate.now);
        let dead: BTreeMap<u64, bool> =
            records.iter().map(|record| (record.number.0, is_dead(record))).collect();
        let range = KeyRange::prefix(keys::partition(self.partition().id));
        for entry in view.snapshot.scan(Keyspace::Index, range, Direction::Forward) {
            let (key, value) = entry.expect("readable");
            let number = u64::from_be_bytes(*key.last_chunk().expect("an item number"));
            let mark = Mark::decode(&value).expect("a mark");
            let living = view.is_living(ItemNumber(number), &mark).expect("readable");
            assert_eq!(living, !dead[&number], "T14: {mark:?} of item {number}");
        }
    }

    /// Purges all that is dead, a few items at a time, and says how many there were.
    pub(crate) fn purge(&self) -> u64 {
        let mut purged = 0;
        loop {
            let report = self.engine.purge_step(3).expect("a step");
            purged += report.purged_items;
            if report.next_due.is_none_or(|due| due > self.engine.now().expect("a time")) {
                return purged;
            }
        }
    }
}

/// Every item in the store, dead or alive.
fn stored(reader: &dyn Read, partition: &Partition) -> Vec<Record> {
    let range = KeyRange::prefix(keys::partition(partition.id));
    let decode = |entry: storage::Result<(bytes::Bytes, bytes::Bytes)>| {
        let (key, value) = entry.expect("readable");
        let number = keys::item_number(&key).expect("an item's key");
        let mut record = Record::decode(number, &value).expect("an item");
        touch::look_up(reader, partition.id, number, &mut record.header).expect("readable");
        record
    };
    reader.scan(Keyspace::Item, range, Direction::Forward).map(decode).collect()
}

/// The queues hold the places of the items and nothing else, and nothing lies before a hand.
fn check_queues(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let expected: BTreeSet<Vec<u8>> =
        records.iter().flat_map(|record| queue_keys(partition, record)).collect();
    let range = KeyRange::prefix(keys::partition(partition.id));
    let found = reader.scan(Keyspace::Queue, range, Direction::Forward);
    let found: BTreeSet<Vec<u8>> = found.map(|entry| entry.expect("readable").0.to_vec()).collect();
    assert_eq!(found, expected);
    for queue in partition.policy.read().queues() {
        let (keyspace, key) = Key::Hand(partition.id, queue).encode();
        let Some(hand) = reader.get(keyspace, &key).expect("readable") else { continue };
        let prefix = keys::queue_prefix(partition.id, queue);
        let first = found.iter().find(|key| key.starts_with(&prefix));
        assert!(first.is_none_or(|first| **first >= *hand), "an entry of {queue:?} lies before the hand");
    }
}

fn queue_keys(partition: &Partition, record: &Record) -> Vec<Vec<u8>> {
    let places = record.header.mortal_places().chain(record.header.stamp_place());
    let key = |Place { queue, base }| {
        Key::Queue { partition: partition.id, queue, base, number: record.number }.encode().1
    };
    places.map(key).collect()
}

/// The buckets are what the items sum up to: nobody purged is counted any more.
fn check_buckets(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let mut expected: BTreeMap<Vec<u8>, Tally> = BTreeMap::new();
    for record in records {
        for Place { queue, base } in record.header.mortal_places() {
            for grain in [Grain::Hour, Grain::Second, Grain::Milli] {
                if grain == Grain::Milli && base.rem_euclid(1000) == 0 {
                    continue;
                }
                let start = base.div_euclid(grain.millis()).saturating_mul(grain.millis());
                let key = Key::Bucket { partition: partition.id, queue, grain, start }.encode().1;
                let sum = expected.entry(key).or_default();
                *sum = sum.plus(Tally { items: 1, bytes: record.size() });
            }
        }
    }
    let all = keys::partition(partition.id);
    let found: BTreeMap<Vec<u8>, Tally> = reader
        .scan(Keyspace::Counter, KeyRange::prefix([&all[..], &[0x20]].concat()), Direction::Forward)
        .map(|entry| entry.expect("readable"))
        .map(|(key, value)| (key.to_vec(), Tally::decode(&value).expect("a counter")))
        .collect();
    assert_eq!(found, expected);
}

/// Touches lie beside items that are there, and nowhere else.
fn check_touches(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let touched = records.iter().filter(|record| record.header.touched.is_some()).count();
    let range = KeyRange::prefix([&keys::partition(partition.id)[..], &[0x80]].concat());
    assert_eq!(reader.scan(Keyspace::Counter, range, Direction::Forward).count(), touched);
}

#[test]
fn t27_figures_are_exact_where_several_rules_kill_the_same_items() {
    let world = World::new();
    world.rule(1, 0);
    world.rule(2, 500);
    world.change(Change::DefaultTtl(DefaultTtl::Seconds(5)));
    let now = world.now_ms();
    for id in 0..60 {
        let late = Millis::from(id) * 100;
        let dates = [(1, now + late), (2, now + 3000 - late / 2)];
        let wish = Wish::new(id, if id % 4 == 0 { &dates[..1] } else { &dates });
        let ttl = if id % 5 == 0 { OwnTtl::Never } else { OwnTtl::Absent };
        world.write(Wish { ttl, padding: id as usize, ..wish });
    }
    for _ in 0..80 {
        world.check();
        world.advance(97);
    }
    let dead = world.engine.usage(&world.container).expect("figures").dead.items;
    assert!(dead > 50, "{dead}");
    assert_eq!(world.purge(), dead, "each item is purged once, whatever number of queues it stands in");
    world.check();
}

/// Millions of items may share a second: the millisecond in which the prefix ends is exact without a look at them.
#[test]
fn t27_figures_are_exact_to_the_millisecond_and_before_1970() {
    let world = World::new();
    world.rule(1, 0);
    let now = world.now_ms();
    let hour = now - now.rem_euclid(3_600_000);
    let dates = [now, now + 1, now + 1, now + 999, now + 1000, hour, hour - 1, -1, -1000, -1001, Millis::MIN];
    for (id, date) in (0..).zip(dates) {
        world.write(Wish::new(id, &[(1, date)]));
    }
    world.write(Wish::new(99, &[(1, Millis::MAX)]));
    for (step, expected) in [(0, 7), (1, 9), (997, 9), (1, 10), (1, 11), (100_000, 11)] {
        world.advance(step);
        world.check();
        assert_eq!(world.engine.usage(&world.container).expect("figures").dead.items, expected);
    }
    assert_eq!(world.purge(), 11);
    world.check();
    let (snapshot, id) = (world.engine.store.snapshot().expect("a snapshot"), world.partition().id);
    let queue = world.partition().policy.read().rules[0].newest();
    let is_occupied = |through| purge::is_occupied(&*snapshot, id, queue, through).expect("readable");
    assert!(is_occupied(Millis::MAX) && !is_occupied(Millis::MAX - 1), "the end of time has its place too");
}

/// A document that is written already dead is inserted and gone, also where the purge has been already.
#[test]
fn t27_an_item_written_dead_is_purged_wherever_the_hand_stands() {
    let world = World::new();
    world.rule(1, 1000);
    let now = world.now_ms();
    for (id, age) in [(1, 5000), (2, 9000), (3, 2000), (4, 100_000)] {
        world.write(Wish::new(id, &[(1, now - age)]));
        world.check();
        assert_eq!(world.count("SELECT c.id FROM c"), 0);
        assert_eq!(world.purge(), 1, "id {id}");
        world.check();
    }
    world.write(Wish::new(5, &[(1, now + 5000)]));
    world.write(Wish::new(5, &[(1, now - 5000)]));
    world.check();
    assert_eq!(world.purge(), 1, "also one that an update has killed");
}

#[test]
fn t19_t27_the_purge_says_when_the_first_date_comes() {
    let world = World::new();
    world.rule(1, 1500);
    world.change(Change::AddRule { id: 2 });
    let now = world.now_ms();
    world.write(Wish::new(1, &[(1, now + 7000), (2, now)]));
    world.write(Wish::new(2, &[(1, now + 4001)]));
    let next_due = || world.engine.purge_step(10).expect("a step").next_due;
    while next_due().is_some_and(|due| due.millis() <= START_MS) {}
    assert_eq!(next_due(), Some(Time::from_millis(START_MS + 4001 + 1500)));
    world.change(Change::SetDelay { id: 1, delay_ms: 9000 });
    assert_eq!(next_due(), Some(Time::from_millis(START_MS + 4001 + 9000)));
    world.change(Change::DropRule { id: 1 });
    assert_eq!(next_due(), None, "the rule that is not in force wants nothing");
    world.change(Change::SetDelay { id: 2, delay_ms: 20_000 });
    assert_eq!(next_due(), Some(Time::from_millis(START_MS + 20_000)));
}

/// T13, T22: what a dropped rule had killed stays dead and is purged; what it left of the living goes with them.
#[test]
fn t27_a_dropped_rule_leaves_nothing_for_good() {
    let world = World::new();
    world.rule(1, 0);
    let now = world.now_ms();
    for id in 0..10 {
        world.write(Wish::new(id, &[(1, now + Millis::from(id) * 1000)]));
    }
    world.advance(4500);
    world.change(Change::DropRule { id: 1 });
    world.advance(100_000);
    world.check();
    assert_eq!(world.purge(), 5);
    world.check();
    assert_eq!(
        world.partition().policy.read().queues().len(),
        2,
        "nobody looks at the rule's queue any more"
    );
    for id in 5..10 {
        world.write(Wish::new(id, &[(1, now)]));
    }
    world.check();
    let snapshot = world.engine.store.snapshot().expect("a snapshot");
    assert!(stored(&*snapshot, world.partition()).iter().all(|record| record.header.bases.is_empty()));
}

/// Changes of one commit take effect one after the other: a TTL index dropped and made again, for example.
#[test]
fn t13_several_changes_in_one_commit_follow_each_other() {
    let world = World::new();
    let ten = || Change::DefaultTtl(DefaultTtl::Seconds(10));
    world.change_all(vec![ten(), Change::AddRule { id: 1 }, Change::SetDelay { id: 1, delay_ms: 0 }]);
    let now = world.now_ms();
    world.write(Wish::new(1, &[(1, now)]));
    world.write(Wish::new(2, &[]));
    world.advance(10_000);
    let again =
        [Change::DropRule { id: 1 }, Change::AddRule { id: 2 }, Change::DefaultTtl(DefaultTtl::Off), ten()];
    world.change_all(again.to_vec());
    assert_eq!(world.partition().policy.read().default_ttl, DefaultTtl::Seconds(10));
    let version = world.partition().policy.read().version;
    world.change_all(vec![ten(), Change::DropRule { id: 1 }]);
    assert_eq!(world.partition().policy.read().version, version, "nothing differs");
    world.check();
    assert_eq!(world.purge(), 2);
    world.check();
}

#[test]
fn t22_t27_random_lives_leave_no_trace_and_miscount_nobody() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let world = World::new();
        let mut dates: BTreeMap<u32, BTreeMap<u32, Millis>> = BTreeMap::new();
        let mut last_rule = 0;
        for _ in 0..60 {
            let rules = world.partition().policy.read().rules.clone();
            match random.u8(..20) {
                0..8 => {
                    let id = random.u32(..25);
                    let ttl =
                        random.choice([OwnTtl::Absent, OwnTtl::Absent, OwnTtl::Never, OwnTtl::Seconds(2)]);
                    let mut wish = Wish::new(id, &[]);
                    (wish.ttl, wish.padding) = (ttl.unwrap_or_default(), random.usize(..50));
                    for rule in 1..=last_rule + 1 {
                        if random.u8(..3) > 0 {
                            let date = world.now_ms() + random.i64(-4000..4000);
                            wish.dates.insert(rule, if random.bool() { date } else { date / 1000 * 1000 });
                        }
                    }
                    dates.insert(id, wish.dates.clone());
                    world.write(wish);
                }
                8..12 => world.advance(random.u64(..2500)),
                12 if rules.len() < 3 => {
                    last_rule += 1;
                    world.change(Change::AddRule { id: last_rule });
                }
                12..16 => match random.choice(rules) {
                    Some(rule) if random.u8(..4) == 0 => world.change(Change::DropRule { id: rule.id }),
                    Some(rule) => {
                        if rule.delay_ms.is_none() {
                            world.build(rule.id, &dates);
                        }
                        world.change(Change::SetDelay { id: rule.id, delay_ms: random.i64(0..4000) });
                    }
                    None => {
                        let ttl = [DefaultTtl::Off, DefaultTtl::Never, DefaultTtl::Seconds(random.u32(1..5))];
                        world.change(Change::DefaultTtl(random.choice(ttl).unwrap_or_default()));
                    }
                },
                16 => {
                    world.purge();
                    let usage = world.engine.usage(&world.container).expect("figures");
                    assert_eq!(usage.dead, Tally::default());
                }
                _ => {
                    world.engine.purge_step(random.usize(1..4)).expect("a step");
                }
            }
            world.check();
        }
    }
}
