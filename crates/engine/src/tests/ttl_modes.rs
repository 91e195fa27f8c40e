//! Random operations under all TTL modes (T33), through the engine's public interface, beside a model without queues,
//! cutoffs, renewals and counters. The model has a list of items and the settings in force, and decides after
//! each step which items have expired.
//!
//! After each step every queue, counter, index entry and renewal record is compared with the one computed from the
//! stored items.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use document::{Document, ItemNumber, Object, PartitionKey, Path, Value, parse_json};
use storage::{Direction, KeyRange, Keyspace, Read, Scan, Snapshot};

use crate::access::gate::View;
use crate::catalog::home::home_of_key;
use crate::definition::OwnTtl;
use crate::expiry::Millis;
use crate::feed::history::EventKind;
use crate::keys::{Key, PartitionId};
use crate::tests::date_rules::World;
use crate::{
    Api, Container, ContainerDefinition, Countdown, DefaultTtl, Error, HistoryStart, ItemAddress, ItemName,
    Operation, Outcome, Owner, Position, Precondition, QueryRequest, Scope,
};

const IDS: u32 = 6;

/// An item as the model knows it.
#[derive(Debug, Clone)]
struct Known {
    /// When it was last written, in whole seconds as milliseconds.
    written_ms: Millis,
    /// When the countdown of its ttl starts.
    from_ms: Millis,
    ttl: OwnTtl,
    /// The instant of expiry that it names,
    names: Option<Millis>,
    /// and the setting of the property that was in force when it last did so.
    named_under: u32,
    slides: bool,
    held: bool,
}

#[derive(Debug, Clone, Default)]
struct Settings {
    default: DefaultTtl,
    base: bool,
    /// How many times the property for instants of expiry was changed; it is set if the number is odd.
    absolute: u32,
    sliding: bool,
    held: bool,
}

impl Settings {
    fn names_death(&self) -> bool {
        self.absolute % 2 == 1
    }

    fn deadline_by_ttl(&self, item: &Known) -> Option<Millis> {
        let seconds = match (self.default, item.ttl) {
            _ if self.held || item.held => None,
            (DefaultTtl::Off, _) | (_, OwnTtl::Never) | (DefaultTtl::Never, OwnTtl::Absent) => None,
            (_, OwnTtl::Seconds(seconds)) | (DefaultTtl::Seconds(seconds), OwnTtl::Absent) => Some(seconds),
        };
        Some(item.from_ms + Millis::from(seconds?) * 1000)
    }

    fn deadline(&self, item: &Known) -> Option<Millis> {
        let is_heard = self.names_death() && item.named_under == self.absolute && !self.held && !item.held;
        self.deadline_by_ttl(item).into_iter().chain(item.names.filter(|_| is_heard)).min()
    }
}

/// What happened since the model last decided which items have expired.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Time passed: items expired at their deadlines.
    Time,
    /// Anything else: items expired just now.
    Else,
}

struct Life {
    world: World,
    /// The position before everything that happens.
    begin: Position,
    random: fastrand::Rng,
    settings: Settings,
    items: BTreeMap<u32, Known>,
    /// When which item expired.
    expiries: Vec<(Millis, u32)>,
    renewals: usize,
}

impl Life {
    fn new(seed: u64) -> Life {
        let more = if seed % 2 == 1 { r#","changeFeedPolicy":{"retentionDuration":100000}"# } else { "" };
        let world = World::with(more);
        let begin = world.engine.barrier().expect("a barrier").position();
        let default = DefaultTtl::Seconds(2 + (seed % 5) as u32);
        let mut life = Life {
            world,
            begin,
            random: fastrand::Rng::with_seed(seed),
            settings: Settings { default, sliding: seed % 4 < 2, ..Settings::default() },
            items: BTreeMap::new(),
            expiries: Vec::new(),
            renewals: 0,
        };
        life.apply_settings();
        life
    }

    fn container(&self) -> Arc<Container> {
        self.world.engine.container_by_rid(self.world.container.rid).expect("it is there")
    }

    fn owner(&self) -> Owner {
        self.world.engine.owner(Api::NoSql, "db", "c").expect("it is there")
    }

    fn second(&self) -> Millis {
        self.world.now_ms() / 1000 * 1000
    }

    /// Removes the items that have expired.
    fn remove_expired(&mut self, step: Step) {
        let now = self.world.now_ms();
        let (settings, expiries) = (&self.settings, &mut self.expiries);
        self.items.retain(|id, item| {
            let deadline = settings.deadline(item).filter(|deadline| *deadline <= now);
            expiries.extend(deadline.map(|deadline| (if step == Step::Time { deadline } else { now }, *id)));
            deadline.is_none()
        });
    }

    fn write(&mut self) {
        let id = self.random.u32(..IDS);
        let (now, second) = (self.world.now_ms(), self.second());
        let ttl = match self.random.u8(..5) {
            0 => OwnTtl::Never,
            1 | 2 => OwnTtl::Seconds(self.random.u32(1..6)),
            _ => OwnTtl::Absent,
        };
        let somewhen = |random: &mut fastrand::Rng| {
            (random.u8(..3) == 0).then(|| now.div_euclid(1000) + random.i64(-6..6))
        };
        let (created, dies_at) = (somewhen(&mut self.random), somewhen(&mut self.random));
        let countdown = if self.random.u8(..3) == 0 { Countdown::Keep } else { Countdown::Restart };
        let written = self.run(
            Operation::Upsert { body: body(id, ttl, created, dies_at), precondition: Precondition::None },
            countdown,
        );
        let old = self.items.get(&id);
        // An item that had expired before the hold may be in the way of a new one.
        let may_be_refused = self.settings.held || old.is_some_and(|old| old.held);
        if may_be_refused && (old.is_some() || written.is_err()) {
            assert!(matches!(written, Err(Error::Held { .. })), "{written:?}");
            return;
        }
        let kept = old.filter(|_| countdown == Countdown::Keep).map(|old| old.from_ms);
        let based = created.filter(|_| self.settings.base).map(|created| created * 1000);
        let item = Known {
            written_ms: second,
            from_ms: kept.or(based).unwrap_or(second),
            ttl,
            names: dies_at.map(|seconds| seconds * 1000),
            named_under: self.settings.absolute,
            slides: self.settings.sliding && ttl != OwnTtl::Never,
            held: false,
        };
        self.check_seconds_left(&item, &written.expect("written"));
        self.items.insert(id, item);
        self.remove_expired(Step::Else);
    }

    fn run(&self, operation: Operation, countdown: Countdown) -> Result<Outcome, Error> {
        self.world.engine.write_with(&self.container(), Some(key()), operation, countdown).wait()
    }

    fn check_seconds_left(&self, item: &Known, outcome: &Outcome) {
        let left = self.settings.deadline(item).map(|deadline| deadline - self.world.now_ms());
        let left = left.map(|left| u64::try_from(left).unwrap_or_default().div_ceil(1000));
        assert_eq!(outcome.seconds_left, left, "{item:?}");
    }

    /// Makes a point read, a read in a transaction, or a read of several ids.
    fn read(&mut self) {
        let living = self.random.choice(self.items.keys().copied());
        let id = living.filter(|_| self.random.u8(..4) > 0).unwrap_or(self.random.u32(..IDS));
        let name = ItemName::Id(id.to_string());
        let engine = &self.world.engine;
        let way = self.random.u8(..4);
        let found = match way {
            0 => {
                let read = Operation::Read { name, precondition: Precondition::None };
                self.run(read, Countdown::Restart).map(Some)
            }
            1 => {
                let text = format!("SELECT * FROM c WHERE c.id IN ('{id}', 'nobody')");
                let query = query::parse(&text, &[], &query::Dialect::default()).expect("supported");
                let page = engine.query(&self.container(), &QueryRequest::new(Some(&query), 10));
                let page = page.expect("a page");
                for renewal in &page.renewals {
                    if let Some(begun) = engine.renew(renewal) {
                        begun.wait().expect("touched");
                    }
                }
                if page.rows.is_empty() { Err(Error::no_item(id)) } else { Ok(None) }
            }
            _ => engine.read(&self.container(), &key(), &name, &Precondition::None).map(|outcome| {
                if let Some(renewal) = outcome.renewal.as_ref().and_then(|renewal| engine.renew(renewal)) {
                    renewal.wait().expect("touched");
                }
                Some(outcome)
            }),
        };
        let second = self.second();
        let settings = self.settings.clone();
        let Some(item) = self.items.get_mut(&id) else {
            assert!(matches!(found, Err(Error::NotFound { .. })), "{found:?}");
            return;
        };
        if settings.sliding
            && item.slides
            && settings.deadline_by_ttl(item).is_some()
            && item.from_ms < second
        {
            item.from_ms = second;
            self.renewals += 1;
        }
        let item = item.clone();
        if let Some(outcome) = found.expect("it lives") {
            self.check_seconds_left(&item, &outcome);
        }
    }

    fn delete(&mut self) {
        let id = self.random.u32(..IDS);
        let name = ItemName::Id(id.to_string());
        let deleted =
            self.run(Operation::Delete { name, precondition: Precondition::None }, Countdown::Restart);
        match self.items.get(&id) {
            Some(item) if item.held || self.settings.held => {
                assert!(matches!(deleted, Err(Error::Held { .. })), "{deleted:?}");
            }
            Some(_) => {
                deleted.expect("it lives");
                self.items.remove(&id);
            }
            None => assert!(matches!(deleted, Err(Error::NotFound { .. })), "{deleted:?}"),
        }
    }

    fn change_settings(&mut self) {
        match self.random.u8(..6) {
            0 => self.settings.sliding = !self.settings.sliding,
            1 => self.settings.absolute += 1,
            2 => self.settings.base = !self.settings.base,
            3 => self.settings.held = self.random.bool() && self.random.bool(),
            _ => {
                self.settings.default = match self.random.u32(..8) {
                    0 => DefaultTtl::Off,
                    1 => DefaultTtl::Never,
                    seconds => DefaultTtl::Seconds(seconds),
                }
            }
        }
        self.apply_settings();
    }

    fn apply_settings(&mut self) {
        let wanted = self.settings.clone();
        let changed = self.world.engine.change_lifecycle(&self.owner(), |lifecycle_settings| {
            lifecycle_settings.sliding = wanted.sliding;
            lifecycle_settings.expire_at_path =
                wanted.names_death().then(|| Path::parse("/diesAt").expect("a path"));
            lifecycle_settings.hold = wanted.held.then(|| "a case".to_owned());
        });
        changed.expect("a change");
        let container = self.container();
        let mut definition = container.definition.to_value();
        let members = definition.as_object_mut().expect("an object");
        members.insert("ttlPropertyPath", if wanted.base { "/created" } else { "" });
        members.insert("defaultTtl", wanted.default.to_member().unwrap_or(Value::Null));
        let definition = ContainerDefinition::from_value(&definition).expect("valid");
        let replaced = self.world.engine.replace_container(&container, definition, &Precondition::None);
        assert_eq!(replaced.expect("a change").definition.ttl_property_path().is_some(), wanted.base);
        self.remove_expired(Step::Else);
    }

    fn hold_or_lift(&mut self) {
        let id = self.random.u32(..IDS);
        let (engine, owner) = (&self.world.engine, self.owner());
        let address = ItemAddress::Id(key(), id.to_string());
        match self.items.get_mut(&id) {
            Some(item) if item.held && !self.settings.held => {
                engine.lift_item(&owner, &address).expect("lifted");
                // The rules then in force apply (T31).
                (item.held, item.named_under) = (false, self.settings.absolute);
            }
            Some(item) if !item.held => {
                engine.hold_item(&owner, &address, "a case").expect("held");
                item.held = true;
            }
            _ => {}
        }
        self.remove_expired(Step::Else);
    }

    fn check(&self) {
        self.world.check();
        let living: Vec<String> = self.items.keys().map(ToString::to_string).collect();
        let mut found = self.ids("SELECT VALUE c.id FROM c");
        found.sort_by_key(|id| id.parse::<u32>().expect("a number"));
        assert_eq!(found, living, "T14: {:?}", self.settings);
        let at = self.world.now_ms() / 1000 - 3;
        let recent = self.items.values().filter(|item| item.written_ms / 1000 >= at).count();
        let found = self.ids(&format!("SELECT VALUE c.id FROM c WHERE c._ts >= {at}"));
        assert_eq!(found.len(), recent, "what was written since {at}");
        let ordered = self.ids("SELECT VALUE c._ts FROM c ORDER BY c._ts");
        let mut stamps: Vec<_> =
            self.items.values().map(|item| (item.written_ms / 1000).to_string()).collect();
        stamps.sort();
        assert_eq!(ordered, stamps);
    }

    fn ids(&self, text: &str) -> Vec<String> {
        let query = query::parse(text, &[], &query::Dialect::default()).expect("supported");
        let page = self.world.engine.query(&self.container(), &QueryRequest::new(Some(&query), 1000));
        let text = |row: &Vec<u8>| match parse_json(row).expect("JSON") {
            Value::String(text) => text,
            other => other.to_json(),
        };
        page.expect("a page").rows.iter().map(text).collect()
    }

    /// Checks that the feed of all versions reports each expiry, as of its instant (T28).
    fn check_feed(&self) {
        self.world.advance(1);
        let engine = &self.world.engine;
        let (container, barrier) = (self.container(), engine.barrier().expect("a barrier"));
        let (partition, scope) = (&container.partitions[0], Scope::default());
        let start = HistoryStart::After(self.begin);
        let page = engine.container_history(&container, partition, &scope, &barrier, start, 100_000);
        let page = page.expect("a page");
        assert!(!page.more);
        let mut told: Vec<(Millis, u32)> = page
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Expire)
            .map(|event| {
                let id = event.previous.as_ref().expect("an image").id().parse().expect("a number");
                (event.position.time().millis().cast_signed(), id)
            })
            .collect();
        let mut known = self.expiries.clone();
        told.sort_unstable();
        known.sort_unstable();
        assert_eq!(told, known);
    }
}

fn key() -> PartitionKey {
    PartitionKey::from_header(r#"["p"]"#).expect("a key")
}

fn body(id: u32, ttl: OwnTtl, created: Option<i64>, dies_at: Option<i64>) -> Document {
    let mut body = Object::new();
    body.insert("id", id.to_string());
    body.insert("pk", "p");
    body.insert("k", Value::Int((id % 3).into()));
    match ttl {
        OwnTtl::Absent => {}
        OwnTtl::Never => drop(body.insert("ttl", Value::Int(-1))),
        OwnTtl::Seconds(seconds) => drop(body.insert("ttl", Value::Int(seconds.into()))),
    }
    for (name, seconds) in [("created", created), ("diesAt", dies_at)] {
        if let Some(seconds) = seconds {
            body.insert(name, Value::Int(seconds));
        }
    }
    Document::from_value(&Value::Object(body)).expect("small")
}

#[test]
fn t18_t22_t33_random_lives_under_all_countings_are_as_the_model_says() {
    let (mut expiries, mut renewals) = (0, 0);
    for seed in 0..60 {
        println!("seed {seed}");
        let mut life = Life::new(seed);
        for _ in 0..80 {
            match life.random.u8(..20) {
                0..5 => life.write(),
                5..10 => life.read(),
                10 => life.delete(),
                11..16 => {
                    life.world.advance(life.random.u64(..2000));
                    life.remove_expired(Step::Time);
                }
                16 => life.change_settings(),
                17 => life.hold_or_lift(),
                18 => drop(life.world.purge()),
                _ => drop(life.world.engine.purge_step(life.random.usize(1..4)).expect("a step")),
            }
            life.check();
        }
        if seed % 2 == 1 {
            life.check_feed();
        }
        expiries += life.expiries.len();
        renewals += life.renewals;
    }
    assert!(expiries > 300 && renewals > 60, "the lives are worth living: {expiries} {renewals}");
}

/// A snapshot that counts lookups of renewal records.
struct Watched {
    inner: Arc<dyn Snapshot>,
    looks: AtomicUsize,
}

impl Read for Watched {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> storage::Result<Option<bytes::Bytes>> {
        let (renewals, prefix) = Key::SlidingRenewal(PartitionId(0), ItemNumber(0)).encode();
        if (keyspace, key.get(4)) == (renewals, prefix.get(4)) {
            self.looks.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.get(keyspace, key)
    }

    fn scan(&self, keyspace: Keyspace, range: KeyRange, direction: Direction) -> Scan<'_> {
        self.inner.scan(keyspace, range, direction)
    }
}

impl Snapshot for Watched {}

/// Returns which of three items live, and how many renewal records were read to decide that.
fn look(world: &World, container: &Container) -> (Vec<bool>, usize) {
    let partition = &container.partitions[0];
    let view = View::open(&*world.engine.store, partition).expect("a view");
    let watched = Arc::new(Watched { inner: Arc::clone(&view.snapshot), looks: AtomicUsize::new(0) });
    let view = View { snapshot: Arc::clone(&watched) as Arc<dyn Snapshot>, ..view };
    let home = home_of_key(container, Some(key())).expect("a key");
    let by_id = |id: u32| view.by_id_key(&home.id_key(&id.to_string())).expect("readable").is_some();
    let living = (0..3).map(by_id).collect();
    (living, watched.looks.load(Ordering::Relaxed))
}

#[test]
fn t33_a_touch_is_looked_up_only_if_an_item_looks_dead() {
    let world = World::with(r#","defaultTtl":10"#);
    let engine = &world.engine;
    let owner = engine.owner(Api::NoSql, "db", "c").expect("it is there");
    engine.change_lifecycle(&owner, |lifecycle_settings| lifecycle_settings.sliding = true).expect("a wish");
    let container = engine.container_by_rid(world.container.rid).expect("it is there");
    for id in 0..3 {
        let create = Operation::Create { body: body(id, OwnTtl::Absent, None, None) };
        engine.write(&container, Some(key()), create).wait().expect("created");
    }
    assert_eq!(look(&world, &container), (vec![true; 3], 0));
    world.advance(5000);
    let outcome = engine.read(&container, &key(), &ItemName::Id("1".into()), &Precondition::None);
    let renewal = engine.renew(&outcome.expect("it lives").renewal.expect("it slides")).expect("the first");
    assert_eq!(renewal.wait(), Ok(Some(10)));
    assert_eq!(look(&world, &container), (vec![true; 3], 0), "their headers let all of them live");
    world.advance(5000);
    assert_eq!(look(&world, &container), (vec![false, true, false], 3));
    world.advance(5000);
    assert_eq!(look(&world, &container), (vec![false; 3], 3));
    world.check();
}
