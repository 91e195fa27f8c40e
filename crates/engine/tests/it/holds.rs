//! Legal holds of containers and of items, against a plain model (T31).

use std::collections::BTreeMap;

use engine::{Api, Error, ItemAddress, Owner};

use super::world::{World, key};

pub(crate) fn owner(world: &World) -> Owner {
    world.engine.owner(Api::NoSql, "db", "c").expect("made by the test")
}

pub(crate) fn address(pk: &str, id: &str) -> ItemAddress {
    ItemAddress::Id(key(pk), id.to_owned())
}

fn hold_container(world: &World, reason: Option<&str>) {
    let hold = reason.map(str::to_owned);
    world.engine.change_lifecycle(&owner(world), |settings| settings.hold = hold).expect("a wish");
}

fn assert_held<T: std::fmt::Debug>(outcome: &Result<T, Error>, what: &str) {
    assert!(matches!(outcome, Err(Error::Held { .. })), "{what}: {outcome:?}");
}

#[derive(Debug, Clone)]
struct Known {
    written: u64,
    ttl: Option<u64>,
    held: bool,
    etag: String,
}

struct Life {
    world: World,
    random: fastrand::Rng,
    items: BTreeMap<String, Known>,
    default_ttl: Option<i64>,
    held: bool,
}

impl Life {
    fn now(&self) -> u64 {
        self.world.engine.now().expect("a time").seconds()
    }

    /// Removes the items that have expired by the rules in force at this instant.
    fn bury(&mut self) {
        let (now, default_ttl, held) = (self.now(), self.default_ttl, self.held);
        self.items.retain(|_, item| {
            let ttl = match (item.ttl, default_ttl) {
                (_, None) | (None, Some(-1)) => None,
                (Some(ttl), _) => Some(ttl),
                (None, Some(seconds)) => Some(seconds as u64),
            };
            held || item.held || ttl.is_none_or(|ttl| now < item.written + ttl)
        });
    }

    fn write(&mut self) {
        let id = self.random.u8(..8).to_string();
        let ttl = self.random.bool().then(|| self.random.u64(1..60));
        let text = ttl.map_or_else(String::new, |ttl| format!(r#","ttl":{ttl}"#));
        let outcome = self.world.upsert("a", &format!(r#""id":"{id}","n":{}{text}"#, self.random.u8(..)));
        let is_held = self.items.get(&id).is_some_and(|item| self.held || item.held);
        match outcome {
            Ok(outcome) => {
                assert!(!is_held, "{id} is held");
                let etag = outcome.item.expect("written").etag.to_string();
                self.items.insert(id, Known { written: self.now(), ttl, held: false, etag });
            }
            Err(Error::Held { .. }) => assert!(is_held, "{id} is not there"),
            Err(error) => panic!("{error}"),
        }
    }

    fn delete(&mut self) {
        let id = self.random.u8(..8).to_string();
        let outcome = self.world.delete("a", &id);
        match self.items.get(&id) {
            None => assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}"),
            Some(item) if self.held || item.held => assert_held(&outcome, &id),
            Some(_) => {
                outcome.expect("deleted");
                self.items.remove(&id);
            }
        }
    }

    fn hold(&mut self) {
        let id = self.random.u8(..8).to_string();
        let outcome = self.world.engine.hold_item(&owner(&self.world), &address("a", &id), "why");
        match self.items.get_mut(&id) {
            None => assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}"),
            Some(item) => {
                outcome.expect("it lives");
                item.held = true;
            }
        }
    }

    fn lift(&mut self) {
        let id = self.random.u8(..8).to_string();
        let outcome = self.world.engine.lift_item(&owner(&self.world), &address("a", &id));
        match self.items.get_mut(&id) {
            _ if self.held => assert_held(&outcome, "a lift in a held container"),
            Some(item) if item.held => {
                outcome.expect("it is held");
                item.held = false;
            }
            _ => assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}"),
        }
    }

    fn step(&mut self) {
        match self.random.u8(..20) {
            0..=5 => self.write(),
            6 => self.delete(),
            7..=8 => self.hold(),
            9..=11 => self.lift(),
            12 => {
                let next = [None, Some(-1), Some(self.random.i64(1..50))][self.random.usize(..3)];
                self.world.set_default(next);
                self.default_ttl = next;
            }
            13 => {
                self.held = !self.held;
                hold_container(&self.world, self.held.then_some("why"));
            }
            14 => drop(self.world.engine.purge_step(self.random.usize(1..4)).expect("a step")),
            15 => self.world.restart(),
            _ => self.world.pass(self.random.u64(1..15)),
        }
        self.bury();
    }

    fn compare(&self) {
        let mut seen = self.world.ids("SELECT * FROM c");
        seen.sort();
        let known: Vec<String> = self.items.keys().cloned().collect();
        assert_eq!(seen, known);
        let by_time = self.world.ids("SELECT * FROM c ORDER BY c._ts");
        assert_eq!(by_time.len(), known.len());
        for (id, item) in &self.items {
            assert_eq!(self.world.read("a", id).expect("it lives").etag.to_string(), item.etag);
        }
        let living = self.world.engine.usage(&self.world.current()).expect("figures").living.items;
        assert_eq!(living, known.len() as u64);
        let held = self.world.engine.held_items(&owner(&self.world), None).expect("a list").len();
        assert_eq!(held, self.items.values().filter(|item| item.held).count());
    }
}

#[test]
fn t31_random_lives_with_holds_are_as_the_model_says() {
    for seed in 0..80 {
        let world = World::new();
        world.container("");
        let random = fastrand::Rng::with_seed(seed);
        let mut life = Life { world, random, items: BTreeMap::new(), default_ttl: None, held: false };
        for step in 0..120 {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                life.step();
                life.compare();
            }));
            assert!(outcome.is_ok(), "seed {seed}, step {step}");
        }
        life.world.engine.check_index(&life.world.current()).expect("index and items agree");
    }
}
