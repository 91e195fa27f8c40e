//! Date rules in a store: figures, index, queues and purge against the values computed from the items themselves (T27).
//!
//! No container of the NoSQL API has date rules. The test adds them to one, because its index and its figures are the
//! ones that must be right.

use std::collections::BTreeMap;
use std::sync::Arc;

use document::{Document, ItemNumber};
use fastrand::Rng;
use storage::{Time, Transaction};

use crate::DefaultTtl;
use crate::access::gate::{Gate, LookupResult};
use crate::definition::OwnTtl;
use crate::entries::counters::Tally;
use crate::entries::queues;
use crate::entries::traces::Home;
use crate::entries::writes::{NumberWrites, Writes};
use crate::expiry::header::{Header, Record};
use crate::expiry::{Change, Millis};
use crate::schema::policies::change_policy;
use crate::tests::model_test::{ModelTest, Step, run};
use crate::tests::stored::stored;
use crate::tests::world::{START, World};
use crate::write::container_schema::ContainerSchema;
use crate::write::schema::ItemSchema;

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
        let (container, partition) = (self.current(), self.partition());
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
        let (container, partition) = (self.current(), self.partition());
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
}

fn with_container() -> World {
    let world = World::new();
    world.container("");
    world
}

#[test]
fn t27_figures_are_exact_where_several_rules_expire_the_same_items() {
    let world = with_container();
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
        world.pass_millis(97);
    }
    let expired = world.counts().1;
    assert!(expired > 50, "{expired}");
    assert_eq!(world.drain(), expired, "each item is purged once, whatever number of queues it stands in");
    world.check();
}

/// Millions of items may share a second: the millisecond in which the prefix ends is exact without reading them.
#[test]
fn t27_figures_are_exact_to_the_millisecond_and_before_1970() {
    let world = with_container();
    world.rule(1, 0);
    let now = world.now_ms();
    let hour = now - now.rem_euclid(3_600_000);
    let dates = [now, now + 1, now + 1, now + 999, now + 1000, hour, hour - 1, -1, -1000, -1001, Millis::MIN];
    for (id, date) in (0..).zip(dates) {
        world.write(Edit::new(id, &[(1, date)]));
    }
    world.write(Edit::new(99, &[(1, Millis::MAX)]));
    for (step, expected) in [(0, 7), (1, 9), (997, 9), (1, 10), (1, 11), (100_000, 11)] {
        world.pass_millis(step);
        world.check();
        assert_eq!(world.counts().1, expected);
    }
    assert_eq!(world.drain(), 11);
    world.check();
    let (snapshot, id) = (world.engine.store.snapshot().expect("a snapshot"), world.partition().id);
    let queue = world.partition().policy.read().rules[0].newest();
    let is_occupied = |through| queues::is_occupied(&*snapshot, id, queue, through).expect("readable");
    assert!(is_occupied(Millis::MAX) && !is_occupied(Millis::MAX - 1), "the end of time has its place too");
}

/// A document that has expired when it is written is inserted and removed, even where the purge cursor has already
/// passed.
#[test]
fn t27_an_item_written_expired_is_purged_wherever_the_cursor_is() {
    let world = with_container();
    world.rule(1, 1000);
    let now = world.now_ms();
    for (id, age) in [(1, 5000), (2, 9000), (3, 2000), (4, 100_000)] {
        world.write(Edit::new(id, &[(1, now - age)]));
        world.check();
        assert_eq!(world.ids("SELECT c.id FROM c").len(), 0);
        assert_eq!(world.drain(), 1, "id {id}");
        world.check();
    }
    world.write(Edit::new(5, &[(1, now + 5000)]));
    world.write(Edit::new(5, &[(1, now - 5000)]));
    world.check();
    assert_eq!(world.drain(), 1, "also one that an update has expired");
}

#[test]
fn t19_t27_the_purge_says_when_the_first_date_comes() {
    let world = with_container();
    world.rule(1, 1500);
    world.change(Change::AddRule { id: 2 });
    let now = world.now_ms();
    world.write(Edit::new(1, &[(1, now + 7000), (2, now)]));
    world.write(Edit::new(2, &[(1, now + 4001)]));
    let next_due = || world.engine.purge_step(10).expect("a step").next_due;
    while next_due().is_some_and(|due| due.millis() <= START * 1000) {}
    assert_eq!(next_due(), Some(Time::from_millis(START * 1000 + 4001 + 1500)));
    world.change(Change::SetDelay { id: 1, delay_ms: 9000 });
    assert_eq!(next_due(), Some(Time::from_millis(START * 1000 + 4001 + 9000)));
    world.change(Change::DropRule { id: 1 });
    assert_eq!(next_due(), None, "the rule that is not in force wants nothing");
    world.change(Change::SetDelay { id: 2, delay_ms: 20_000 });
    assert_eq!(next_due(), Some(Time::from_millis(START * 1000 + 20_000)));
}

/// T13, T22: items that a dropped rule had expired stay expired and are purged; its entries of living items are removed
/// with their next versions.
#[test]
fn t27_a_dropped_rule_leaves_nothing_for_good() {
    let world = with_container();
    world.rule(1, 0);
    let now = world.now_ms();
    for id in 0..10 {
        world.write(Edit::new(id, &[(1, now + Millis::from(id) * 1000)]));
    }
    world.pass_millis(4500);
    world.change(Change::DropRule { id: 1 });
    world.pass_millis(100_000);
    world.check();
    assert_eq!(world.drain(), 5);
    world.check();
    assert_eq!(world.partition().policy.read().queues().len(), 2, "the rule's queue is not visited any more");
    for id in 5..10 {
        world.write(Edit::new(id, &[(1, now)]));
    }
    world.check();
    let snapshot = world.engine.store.snapshot().expect("a snapshot");
    assert!(stored(&*snapshot, &world.partition()).iter().all(|record| record.header.bases.is_empty()));
}

/// Changes of one commit take effect one after the other: for example a TTL index dropped and created again.
#[test]
fn t13_several_changes_in_one_commit_follow_each_other() {
    let world = with_container();
    let ten = || Change::DefaultTtl(DefaultTtl::Seconds(10));
    world.change_all(vec![ten(), Change::AddRule { id: 1 }, Change::SetDelay { id: 1, delay_ms: 0 }]);
    let now = world.now_ms();
    world.write(Edit::new(1, &[(1, now)]));
    world.write(Edit::new(2, &[]));
    world.pass_millis(10_000);
    let again =
        [Change::DropRule { id: 1 }, Change::AddRule { id: 2 }, Change::DefaultTtl(DefaultTtl::Off), ten()];
    world.change_all(again.to_vec());
    assert_eq!(world.partition().policy.read().default_ttl, DefaultTtl::Seconds(10));
    let version = world.partition().policy.read().version;
    world.change_all(vec![ten(), Change::DropRule { id: 1 }]);
    assert_eq!(world.partition().policy.read().version, version, "nothing differs");
    world.check();
    assert_eq!(world.drain(), 2);
    world.check();
}

/// Random writes, rules and purges of items with dates.
struct DateRuleTest {
    world: World,
    random: Rng,
    /// The dates of the last version of each item.
    dates: BTreeMap<u32, BTreeMap<u32, Millis>>,
    last_rule: u32,
}

impl DateRuleTest {
    fn write(&mut self) {
        let random = &mut self.random;
        let id = random.u32(..25);
        let ttl = random.choice([OwnTtl::Absent, OwnTtl::Absent, OwnTtl::Never, OwnTtl::Seconds(2)]);
        let mut edit = Edit::new(id, &[]);
        (edit.ttl, edit.padding) = (ttl.unwrap_or_default(), random.usize(..50));
        for rule in 1..=self.last_rule + 1 {
            if random.u8(..3) > 0 {
                let date = self.world.now_ms() + random.i64(-4000..4000);
                edit.dates.insert(rule, if random.bool() { date } else { date / 1000 * 1000 });
            }
        }
        self.dates.insert(id, edit.dates.clone());
        self.world.write(edit);
    }

    fn add_rule(&mut self) {
        if self.world.partition().policy.read().rules.len() < 3 {
            self.last_rule += 1;
            self.world.change(Change::AddRule { id: self.last_rule });
        } else {
            self.change_rule();
        }
    }

    /// Changes or drops a rule, or changes the time to live if there is none.
    fn change_rule(&mut self) {
        let random = &mut self.random;
        let rules = self.world.partition().policy.read().rules.clone();
        match random.choice(rules) {
            Some(rule) if random.u8(..4) == 0 => self.world.change(Change::DropRule { id: rule.id }),
            Some(rule) => {
                if rule.delay_ms.is_none() {
                    self.world.build(rule.id, &self.dates);
                }
                self.world.change(Change::SetDelay { id: rule.id, delay_ms: random.i64(0..4000) });
            }
            None => {
                let ttl = [DefaultTtl::Off, DefaultTtl::Never, DefaultTtl::Seconds(random.u32(1..5))];
                self.world.change(Change::DefaultTtl(random.choice(ttl).unwrap_or_default()));
            }
        }
    }

    fn drain(&mut self) {
        self.world.drain();
        let usage = self.world.engine.usage(&self.world.current()).expect("figures");
        assert_eq!(usage.expired, Tally::default());
    }
}

impl ModelTest for DateRuleTest {
    const SEEDS: u64 = 40;
    const LENGTH: usize = 63;
    const STEPS: &'static [Step<Self>] = &[
        (8, "write", Self::write),
        (4, "pass", |test| test.world.pass_millis(test.random.u64(..2500))),
        (1, "add a rule", Self::add_rule),
        (3, "change a rule", Self::change_rule),
        (1, "drain", Self::drain),
        (1, "restart", |test| test.world.restart()),
        (3, "purge", |test| test.world.purge_some(test.random.usize(1..4))),
    ];

    fn start(_: u64, random: Rng) -> DateRuleTest {
        DateRuleTest { world: with_container(), random, dates: BTreeMap::new(), last_rule: 0 }
    }

    fn compare(&mut self) {
        self.world.check();
    }
}

#[test]
fn t22_t27_random_operations_leave_no_trace_and_miscount_no_item() {
    run::<DateRuleTest>();
}
