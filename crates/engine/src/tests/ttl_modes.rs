//! Random operations under all TTL modes (T33). After each step every queue, counter, index entry and renewal record is
//! compared with what the stored items call for, and what queries find with the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use document::ItemNumber;
use fastrand::Rng;
use storage::{Direction, KeyRange, Keyspace, Read, Scan, Snapshot};

use crate::access::gate::View;
use crate::catalog::home::home_of_key;
use crate::definition::OwnTtl;
use crate::feed::history::EventKind;
use crate::keys::{Key, PartitionId};
use crate::tests::container_model::{Cause, ContainerModel, Draft, Settings};
use crate::tests::model_test::{ModelTest, Reached, Step, run};
use crate::tests::world::{World, key};
use crate::{Container, Countdown, DefaultTtl, HistoryStart, ItemName, Owner, Position, Precondition, Scope};

const IDS: u32 = 6;

struct TtlModeTest {
    model: ContainerModel,
    /// The position before everything that happens, if the container keeps all versions.
    begin: Option<Position>,
}

impl TtlModeTest {
    fn write(&mut self) {
        let now = self.model.now_ms();
        let random = &mut self.model.random;
        let ttl = match random.u8(..5) {
            0 => OwnTtl::Never,
            1 | 2 => OwnTtl::Seconds(random.u32(1..6)),
            _ => OwnTtl::Absent,
        };
        let somewhen =
            |random: &mut Rng| (random.u8(..3) == 0).then(|| now.div_euclid(1000) + random.i64(-6..6));
        let (created, expires_at) = (somewhen(random), somewhen(random));
        let countdown = if random.u8(..3) == 0 { Countdown::Keep } else { Countdown::Restart };
        self.model.write(&Draft { ttl, created, expires_at, countdown });
    }

    fn change_settings(&mut self) {
        let ContainerModel { random, settings, .. } = &mut self.model;
        match random.u8(..6) {
            0 => settings.sliding = !settings.sliding,
            1 => settings.absolute += 1,
            2 => settings.base = !settings.base,
            3 => settings.held = random.bool() && random.bool(),
            _ => {
                settings.default = match random.u32(..8) {
                    0 => DefaultTtl::Off,
                    1 => DefaultTtl::Never,
                    seconds => DefaultTtl::Seconds(seconds),
                }
            }
        }
        self.model.apply_settings();
    }

    fn pass(&mut self) {
        self.model.world.pass_millis(self.model.random.u64(..2000));
        self.model.expire(Cause::Time);
    }

    fn drain(&mut self) {
        self.model.world.drain();
    }

    fn rows(&self, query: &str) -> Vec<String> {
        self.model.world.rows(query, 1000)
    }

    /// Checks that the feed of all versions reports each expiry, as of its instant (T28).
    fn check_feed(&self, begin: Position) {
        self.model.world.pass_millis(1);
        let engine = &self.model.world.engine;
        let (container, barrier) = (self.model.world.current(), engine.barrier().expect("a barrier"));
        let (partition, scope) = (&container.partitions[0], Scope::default());
        let start = HistoryStart::After(begin);
        let page = engine.container_history(&container, partition, &scope, &barrier, start, 100_000);
        let page = page.expect("a page");
        assert!(!page.more);
        let mut told: Vec<(i64, u32)> = page
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Expire)
            .map(|event| {
                let id = event.previous.as_ref().expect("an image").id().parse().expect("a number");
                (event.position.time().millis().cast_signed(), id)
            })
            .collect();
        let mut known: Vec<_> =
            self.model.expired.iter().map(|expired| (expired.at_ms, expired.id)).collect();
        told.sort_unstable();
        known.sort_unstable();
        assert_eq!(told, known);
    }
}

impl ModelTest for TtlModeTest {
    const SEEDS: u64 = 60;
    const LENGTH: usize = 90;
    const STEPS: &'static [Step<Self>] = &[
        (5, "write", Self::write),
        (5, "read", |test| test.model.read()),
        (1, "delete", |test| test.model.delete()),
        (5, "pass", Self::pass),
        (1, "change settings", Self::change_settings),
        (1, "hold", |test| test.model.hold()),
        (2, "lift", |test| test.model.lift()),
        (1, "drain", Self::drain),
        (1, "restart", |test| test.model.restart()),
        (1, "purge", |test| test.model.world.purge_some(test.model.random.usize(1..4))),
    ];

    fn start(seed: u64, random: Rng) -> TtlModeTest {
        let keeps_versions = seed % 2 == 1;
        let policy = r#","changeFeedPolicy":{"retentionDuration":100000}"#;
        let default = DefaultTtl::Seconds(2 + (seed % 5) as u32);
        let settings = Settings { default, sliding: seed % 4 < 2, ..Settings::default() };
        let model = ContainerModel::new(if keeps_versions { policy } else { "" }, settings, IDS, random);
        let begin = keeps_versions.then(|| model.world.engine.barrier().expect("a barrier").position());
        TtlModeTest { model, begin }
    }

    fn compare(&mut self) {
        let ContainerModel { world, items, settings, .. } = &self.model;
        world.check();
        let living: Vec<String> = items.keys().map(|id| format!("\"{id}\"")).collect();
        let mut found = self.rows("SELECT VALUE c.id FROM c");
        found.sort();
        assert_eq!(found, living, "T14: {settings:?}");
        let at = world.now_ms() / 1000 - 3;
        let recent = items.values().filter(|item| item.written_ms / 1000 >= at).count();
        let found = self.rows(&format!("SELECT VALUE c.id FROM c WHERE c._ts >= {at}"));
        assert_eq!(found.len(), recent, "what was written since {at}");
        let ordered = self.rows("SELECT VALUE c._ts FROM c ORDER BY c._ts");
        let mut stamps: Vec<_> = items.values().map(|item| (item.written_ms / 1000).to_string()).collect();
        stamps.sort();
        assert_eq!(ordered, stamps);
    }

    fn finish(&mut self) {
        if let Some(begin) = self.begin {
            self.check_feed(begin);
        }
    }

    fn reached(&self) -> Vec<Reached> {
        vec![("expiry", self.model.expired.len(), 301), ("sliding renewal", self.model.renewals, 61)]
    }
}

#[test]
fn t18_t22_t33_random_lives_under_all_countings_are_as_the_model_says() {
    run::<TtlModeTest>();
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
    let home = home_of_key(container, Some(key("p"))).expect("a key");
    let by_id = |id: u32| view.by_id_key(&home.id_key(&id.to_string())).expect("readable").is_some();
    let living = (0..3).map(by_id).collect();
    (living, watched.looks.load(Ordering::Relaxed))
}

#[test]
fn t33_a_renewal_is_looked_up_only_if_an_item_looks_expired() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    let engine = &world.engine;
    let owner = Owner::Container(world.current());
    engine.change_lifecycle(&owner, |lifecycle| lifecycle.sliding = true).expect("a change");
    let container = world.current();
    for id in 0..3 {
        world.create("p", &format!(r#""id":"{id}","k":{id}"#)).expect("created");
    }
    assert_eq!(look(&world, &container), (vec![true; 3], 0));
    world.pass_millis(5000);
    let outcome = engine.read(&container, &key("p"), &ItemName::Id("1".into()), &Precondition::None);
    let renewal = engine.renew(&outcome.expect("it lives").renewal.expect("it slides")).expect("the first");
    assert_eq!(renewal.wait(), Ok(Some(10)));
    assert_eq!(look(&world, &container), (vec![true; 3], 0), "their headers let all of them live");
    world.pass_millis(5000);
    assert_eq!(look(&world, &container), (vec![false, true, false], 3));
    world.pass_millis(5000);
    assert_eq!(look(&world, &container), (vec![false; 3], 3));
    world.check();
}
