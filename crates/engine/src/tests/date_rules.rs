//! Date rules in a store: figures, index, queues and purge against the values computed from the items themselves (T27).
//!
//! No container of the NoSQL API has date rules. The test adds them to one, because its index and its figures are the
//! ones that must be right. Which items have expired is decided in `expiry` and tested there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use document::{Document, ItemNumber, parse_json};
use storage::{
    ClockOptions, Direction, KeyRange, Keyspace, ManualClock, MemoryStore, Read, Time, Transaction,
};

use crate::access::gate::{Gate, LookupResult, View};
use crate::definition::OwnTtl;
use crate::entries::counters::Tally;
use crate::entries::mark::Mark;
use crate::entries::traces::Home;
use crate::entries::writes::{NumberWrites, Writes};
use crate::entries::{queues, renewals};
use crate::expiry::header::{Header, Record};
use crate::expiry::{Change, Millis, QueuePosition};
use crate::keys::{self, Grain, Key};
use crate::schema::policies::change_policy;
use crate::write::container_schema::ContainerSchema;
use crate::write::schema::ItemSchema;
use crate::{Container, ContainerDefinition, DefaultTtl, Engine, Partition, QueryRequest};

/// 2023-11-14, not at the start of an hour.
const START_MS: u64 = 1_700_000_000_000;

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) container: Arc<Container>,
    clock: Arc<ManualClock>,
}

/// An item as a test writes it: its dates by rule.
#[derive(Debug, Clone)]
struct Edit {
    id: u32,
    ttl: OwnTtl,
    dates: BTreeMap<u32, Millis>,
    padding: usize,
}

impl Edit {
    fn new(id: u32, dates: &[(u32, Millis)]) -> Edit {
        Edit { id, ttl: OwnTtl::Absent, dates: dates.iter().copied().collect(), padding: 0 }
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

    /// Creates a world with further members of the container's definition.
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
        partition.next_due.at_once();
    }

    fn rule(&self, id: u32, delay_ms: Millis) {
        self.change(Change::AddRule { id });
        self.change(Change::SetDelay { id, delay_ms });
    }

    /// A new version of an item, or a new item.
    fn write(&self, edit: Edit) {
        let (container, partition) = (Arc::clone(&self.container), Arc::clone(self.partition()));
        let due = self.engine.change(move |tx| {
            let gate = Gate::for_write(tx, partition.id)?;
            let schema = ContainerSchema::open(tx, &container, &partition)?;
            let write = Writes::new(partition.id).next_write(tx)?;
            let sequence = write.sequence;
            let bases = gate.policy.bases(|rule| edit.dates.get(&rule).copied());
            let header = Header { bases, ..Header::numbered(write, tx.time().seconds(), edit.ttl) };
            let due = gate.policy.expiry_time(&header);
            let mut record = Record { number: ItemNumber(sequence.0), header, body: edit.body() };
            let home = Home::of(partition.id, &container.definition, &record)?;
            let footprint = |record: &Record| schema.stored_footprint(record);
            match gate.by_id_key(tx, &home.id_key(&edit.id.to_string()))? {
                LookupResult::Living(old) => {
                    record.number = old.number;
                    footprint(&record)?.replace(footprint(&old)?, tx)?;
                }
                LookupResult::Expired(old) => {
                    footprint(&old)?.remove(tx)?;
                    footprint(&record)?.insert(tx)?;
                }
                LookupResult::Absent | LookupResult::Damaged(_) => footprint(&record)?.insert(tx)?,
            }
            Ok(due)
        });
        if let Some(due) = due.expect("written") {
            self.partition().next_due.not_after(due);
        }
    }

    /// Does what an index build does for a rule: every living item gets its base, without a write of the item.
    fn build(&self, rule: u32, dates: &BTreeMap<u32, BTreeMap<u32, Millis>>) {
        let (container, partition) = (Arc::clone(&self.container), Arc::clone(self.partition()));
        let dates = dates.clone();
        let built = self.engine.change(move |tx: &mut Transaction<'_>| {
            let gate = Gate::for_write(tx, partition.id)?;
            let schema = ContainerSchema::open(tx, &container, &partition)?;
            for old in stored(tx, &partition) {
                if gate.policy.is_expired(&old.header, gate.now) {
                    continue;
                }
                let id = old.body.get("id").and_then(|id| id.as_str()?.parse().ok()).expect("an id");
                let bases = gate.policy.rebase(&old.header, rule, dates[&id].get(&rule).copied());
                let new = Record { header: Header { bases, ..old.header.clone() }, ..old.clone() };
                schema.stored_footprint(&new)?.replace(schema.stored_footprint(&old)?, tx)?;
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

    /// Checks that every figure, queue, counter and index answer is the one computed from the stored items.
    pub(crate) fn check(&self) {
        let snapshot = self.engine.store.snapshot().expect("a snapshot");
        let policy = Arc::clone(&self.partition().policy.read());
        let now = self.engine.now().expect("a time");
        let records = stored(&*snapshot, self.partition());
        let (mut living, mut expired) = (Tally::default(), Tally::default());
        let mut kinds = [0; 3];
        for record in &records {
            let size = Tally { items: 1, bytes: record.size() };
            if policy.is_expired(&record.header, now) {
                expired = expired.plus(size);
            } else {
                living = living.plus(size);
                let kind = record.body.get("k").and_then(document::ValueRef::as_i64).expect("a number");
                kinds[usize::try_from(kind).expect("small")] += 1;
            }
        }
        let usage = self.engine.usage(&self.container).expect("figures");
        assert_eq!((usage.living, usage.expired), (living, expired), "T18: {policy:?}");
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

    /// Checks that every index entry tells living items from expired ones.
    fn check_marks(&self, records: &[Record]) {
        let view = View::open(&*self.engine.store, self.partition()).expect("a view");
        let is_expired = |record: &Record| view.gate.policy.is_expired(&record.header, view.gate.now);
        let expired: BTreeMap<u64, bool> =
            records.iter().map(|record| (record.number.0, is_expired(record))).collect();
        let range = KeyRange::prefix(keys::partition(self.partition().id));
        for entry in view.snapshot.scan(Keyspace::Index, range, Direction::Forward) {
            let (key, value) = entry.expect("readable");
            let number = u64::from_be_bytes(*key.last_chunk().expect("an item number"));
            let mark = Mark::decode(&value).expect("a mark");
            let living = view.is_living(ItemNumber(number), &mark).expect("readable");
            assert_eq!(living, !expired[&number], "T14: {mark:?} of item {number}");
        }
    }

    /// Purges everything that has expired, a few items at a time, and returns how many items that were.
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

/// Returns every stored item, living or expired.
fn stored(reader: &dyn Read, partition: &Partition) -> Vec<Record> {
    let range = KeyRange::prefix(keys::partition(partition.id));
    let decode = |entry: storage::Result<(bytes::Bytes, bytes::Bytes)>| {
        let (key, value) = entry.expect("readable");
        let number = keys::item_number(&key).expect("an item's key");
        let mut record = Record::decode(number, &value).expect("an item");
        renewals::look_up(reader, partition.id, number, &mut record.header).expect("readable");
        record
    };
    reader.scan(Keyspace::Item, range, Direction::Forward).map(decode).collect()
}

/// Checks that the queues have the positions of the items and nothing else, and that no entry lies before a purge
/// cursor.
fn check_queues(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let expected: BTreeSet<Vec<u8>> =
        records.iter().flat_map(|record| queue_keys(partition, record)).collect();
    let range = KeyRange::prefix(keys::partition(partition.id));
    let found = reader.scan(Keyspace::Queue, range, Direction::Forward);
    let found: BTreeSet<Vec<u8>> = found.map(|entry| entry.expect("readable").0.to_vec()).collect();
    assert_eq!(found, expected);
    for queue in partition.policy.read().queues() {
        let (keyspace, key) = Key::PurgeCursor(partition.id, queue).encode();
        let Some(cursor) = reader.get(keyspace, &key).expect("readable") else { continue };
        let prefix = keys::queue_prefix(partition.id, queue);
        let first = found.iter().find(|key| key.starts_with(&prefix));
        assert!(first.is_none_or(|first| **first >= *cursor), "an entry of {queue:?} lies before the hand");
    }
}

fn queue_keys(partition: &Partition, record: &Record) -> Vec<Vec<u8>> {
    let places = record.header.expiry_positions().chain(record.header.stamp_position());
    let key = |QueuePosition { queue, base }| {
        Key::Queue { partition: partition.id, queue, base, number: record.number }.encode().1
    };
    places.map(key).collect()
}

/// Checks that the buckets are the sums over the items: no purged item is counted any more.
fn check_buckets(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let mut expected: BTreeMap<Vec<u8>, Tally> = BTreeMap::new();
    for record in records {
        for QueuePosition { queue, base } in record.header.expiry_positions() {
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

/// Checks that renewal records lie beside items that exist, and nowhere else.
fn check_touches(reader: &dyn Read, partition: &Partition, records: &[Record]) {
    let renewed_at = records.iter().filter(|record| record.header.renewed_at.is_some()).count();
    let range = KeyRange::prefix([&keys::partition(partition.id)[..], &[0x80]].concat());
    assert_eq!(reader.scan(Keyspace::Counter, range, Direction::Forward).count(), renewed_at);
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
        let edit = Edit::new(id, if id % 4 == 0 { &dates[..1] } else { &dates });
        let ttl = if id % 5 == 0 { OwnTtl::Never } else { OwnTtl::Absent };
        world.write(Edit { ttl, padding: id as usize, ..edit });
    }
    for _ in 0..80 {
        world.check();
        world.advance(97);
    }
    let expired = world.engine.usage(&world.container).expect("figures").expired.items;
    assert!(expired > 50, "{expired}");
    assert_eq!(world.purge(), expired, "each item is purged once, whatever number of queues it stands in");
    world.check();
}

/// Millions of items may share a second: the millisecond in which the prefix ends is exact without reading them.
#[test]
fn t27_figures_are_exact_to_the_millisecond_and_before_1970() {
    let world = World::new();
    world.rule(1, 0);
    let now = world.now_ms();
    let hour = now - now.rem_euclid(3_600_000);
    let dates = [now, now + 1, now + 1, now + 999, now + 1000, hour, hour - 1, -1, -1000, -1001, Millis::MIN];
    for (id, date) in (0..).zip(dates) {
        world.write(Edit::new(id, &[(1, date)]));
    }
    world.write(Edit::new(99, &[(1, Millis::MAX)]));
    for (step, expected) in [(0, 7), (1, 9), (997, 9), (1, 10), (1, 11), (100_000, 11)] {
        world.advance(step);
        world.check();
        assert_eq!(world.engine.usage(&world.container).expect("figures").expired.items, expected);
    }
    assert_eq!(world.purge(), 11);
    world.check();
    let (snapshot, id) = (world.engine.store.snapshot().expect("a snapshot"), world.partition().id);
    let queue = world.partition().policy.read().rules[0].newest();
    let is_occupied = |through| queues::is_occupied(&*snapshot, id, queue, through).expect("readable");
    assert!(is_occupied(Millis::MAX) && !is_occupied(Millis::MAX - 1), "the end of time has its place too");
}

/// A document that has expired when it is written is inserted and removed, even where the purge cursor has already
/// passed.
#[test]
fn t27_an_item_written_dead_is_purged_wherever_the_hand_stands() {
    let world = World::new();
    world.rule(1, 1000);
    let now = world.now_ms();
    for (id, age) in [(1, 5000), (2, 9000), (3, 2000), (4, 100_000)] {
        world.write(Edit::new(id, &[(1, now - age)]));
        world.check();
        assert_eq!(world.count("SELECT c.id FROM c"), 0);
        assert_eq!(world.purge(), 1, "id {id}");
        world.check();
    }
    world.write(Edit::new(5, &[(1, now + 5000)]));
    world.write(Edit::new(5, &[(1, now - 5000)]));
    world.check();
    assert_eq!(world.purge(), 1, "also one that an update has killed");
}

#[test]
fn t19_t27_the_purge_says_when_the_first_date_comes() {
    let world = World::new();
    world.rule(1, 1500);
    world.change(Change::AddRule { id: 2 });
    let now = world.now_ms();
    world.write(Edit::new(1, &[(1, now + 7000), (2, now)]));
    world.write(Edit::new(2, &[(1, now + 4001)]));
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

/// T13, T22: items that a dropped rule had expired stay expired and are purged; its entries of living items are removed
/// with their next versions.
#[test]
fn t27_a_dropped_rule_leaves_nothing_for_good() {
    let world = World::new();
    world.rule(1, 0);
    let now = world.now_ms();
    for id in 0..10 {
        world.write(Edit::new(id, &[(1, now + Millis::from(id) * 1000)]));
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
        world.write(Edit::new(id, &[(1, now)]));
    }
    world.check();
    let snapshot = world.engine.store.snapshot().expect("a snapshot");
    assert!(stored(&*snapshot, world.partition()).iter().all(|record| record.header.bases.is_empty()));
}

/// Changes of one commit take effect one after the other: for example a TTL index dropped and created again.
#[test]
fn t13_several_changes_in_one_commit_follow_each_other() {
    let world = World::new();
    let ten = || Change::DefaultTtl(DefaultTtl::Seconds(10));
    world.change_all(vec![ten(), Change::AddRule { id: 1 }, Change::SetDelay { id: 1, delay_ms: 0 }]);
    let now = world.now_ms();
    world.write(Edit::new(1, &[(1, now)]));
    world.write(Edit::new(2, &[]));
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
                    let mut edit = Edit::new(id, &[]);
                    (edit.ttl, edit.padding) = (ttl.unwrap_or_default(), random.usize(..50));
                    for rule in 1..=last_rule + 1 {
                        if random.u8(..3) > 0 {
                            let date = world.now_ms() + random.i64(-4000..4000);
                            edit.dates.insert(rule, if random.bool() { date } else { date / 1000 * 1000 });
                        }
                    }
                    dates.insert(id, edit.dates.clone());
                    world.write(edit);
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
                    assert_eq!(usage.expired, Tally::default());
                }
                _ => {
                    world.engine.purge_step(random.usize(1..4)).expect("a step");
                }
            }
            world.check();
        }
    }
}
