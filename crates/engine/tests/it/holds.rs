//! Legal holds of containers and of items, against a plain model (T31).

use engine::definition::OwnTtl;
use engine::{DefaultTtl, ItemAddress};
use fastrand::Rng;

use crate::container_model::{ContainerModel, Draft, Settings};
use crate::model_test::{ModelTest, Step, run};
use crate::world::key;

const IDS: u32 = 8;

pub(crate) fn address(pk: &str, id: &str) -> ItemAddress {
    ItemAddress::Id(key(pk), id.to_owned())
}

struct HoldTest(ContainerModel);

impl HoldTest {
    fn write(&mut self) {
        let random = &mut self.0.random;
        let ttl = if random.bool() { OwnTtl::Seconds(random.u32(1..60)) } else { OwnTtl::Absent };
        self.0.write(&Draft { ttl, ..Draft::default() });
    }

    fn change_default(&mut self) {
        let seconds = DefaultTtl::Seconds(self.0.random.u32(1..50));
        let default = self.0.random.choice([DefaultTtl::Off, DefaultTtl::Never, seconds]);
        self.0.set_default(default.expect("one of three"));
    }
}

impl ModelTest for HoldTest {
    const SEEDS: u64 = 80;
    const LENGTH: usize = 120;
    const STEPS: &'static [Step<Self>] = &[
        (6, "write", Self::write),
        (1, "delete", |test| test.0.delete()),
        (2, "hold", |test| test.0.hold()),
        (3, "lift", |test| test.0.lift()),
        (1, "change the ttl", Self::change_default),
        (1, "hold the container", |test| test.0.turn_hold()),
        (1, "purge", |test| test.0.world.purge_some(test.0.random.usize(1..4))),
        (1, "restart", |test| test.0.restart()),
        (4, "pass", |test| test.0.pass(1..15)),
    ];

    fn start(_: u64, random: Rng) -> HoldTest {
        HoldTest(ContainerModel::new("", Settings::default(), IDS, random))
    }

    fn compare(&mut self) {
        let ContainerModel { world, items, .. } = &self.0;
        let mut seen = world.ids("SELECT * FROM c");
        seen.sort();
        let known: Vec<String> = items.keys().map(ToString::to_string).collect();
        assert_eq!(seen, known);
        let by_time = world.ids("SELECT * FROM c ORDER BY c._ts");
        assert_eq!(by_time.len(), known.len());
        for (id, item) in items {
            assert_eq!(world.read("p", &id.to_string()).expect("it lives").etag.to_string(), item.etag);
        }
        assert_eq!(world.counts().0, known.len() as u64);
        let held = world.engine.held_items(&world.owner(), None).expect("a list").len();
        assert_eq!(held, items.values().filter(|item| item.held).count());
    }

    fn finish(&mut self) {
        let world = &self.0.world;
        world.engine.check_index(&world.current()).expect("index and items agree");
    }
}

#[test]
fn t31_random_lives_with_holds_are_as_the_model_says() {
    run::<HoldTest>();
}
