//! Legal holds of containers and of items, against a plain model (T31).

use std::collections::BTreeMap;

use engine::{Api, Error, Holder, ItemAddress, Precondition};

use super::collections::{by, item};
use super::world::{World, key};

pub(crate) fn holder(world: &World) -> Holder {
    world.engine.holder(Api::NoSql, "db", "c").expect("made by the test")
}

pub(crate) fn address(pk: &str, id: &str) -> ItemAddress {
    ItemAddress::Id(key(pk), id.to_owned())
}

fn hold_container(world: &World, reason: Option<&str>) {
    let hold = reason.map(str::to_owned);
    world.engine.change_lifecycle(&holder(world), |wishes| wishes.hold = hold).expect("a wish");
}

fn assert_held<T: std::fmt::Debug>(outcome: &Result<T, Error>, what: &str) {
    assert!(matches!(outcome, Err(Error::Held { .. })), "{what}: {outcome:?}");
}

#[test]
fn t31_a_held_item_outlives_its_rule_and_refuses_every_change() {
    let mut world = World::new();
    world.container(r#","defaultTtl":10"#);
    let made = world.create("a", r#""id":"x""#).expect("new");
    world.create("a", r#""id":"y""#).expect("new");
    world.engine.hold_item(&holder(&world), &address("a", "x"), "case 7").expect("it lives");
    world.pass(100);
    world.engine.purge_step(100).expect("a step");
    world.restart();
    let read = world.read("a", "x").expect("held");
    assert_eq!((read.etag, read.ts), (made.etag, made.ts), "a hold is no new version");
    assert!(!world.is_alive("a", "y"));

    assert_held(&world.replace("a", "x", r#""id":"x""#), "replace");
    assert_held(&world.upsert("a", r#""id":"x""#), "upsert");
    assert_held(&world.patch("a", "x", r#"{"operations":[{"op":"set","path":"/n","value":1}]}"#), "patch");
    assert_held(&world.delete("a", "x"), "delete");
    assert_held(&world.engine.delete_partition(&world.current(), &key("a")), "delete by key");
    assert_held(&world.engine.delete_container(&world.current(), &Precondition::None), "drop");
    let database = world.engine.database("db").expect("there");
    assert_held(&world.engine.delete_database(&database, &Precondition::None), "drop of the database");
    assert!(matches!(world.create("a", r#""id":"x""#), Err(Error::Exists { .. })));
    world.create("a", r#""id":"z""#).expect("others are free");

    let held = world.engine.held_items(&holder(&world), None).expect("a list");
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].reason.as_str(), &held[0].address), ("case 7", &address("a", "x")));
    assert!(world.engine.held_items(&holder(&world), Some(held[0].number)).expect("a list").is_empty());

    world.engine.lift_item(&holder(&world), &address("a", "x")).expect("it is held");
    assert!(!world.is_alive("a", "x"), "it was overdue");
    world.engine.purge_step(100).expect("a step");
    world.engine.check_index(&world.current()).expect("nothing is left behind");
    let usage = world.engine.usage(&world.current()).expect("figures");
    assert_eq!((usage.living.items, usage.dead.items), (1, 0));
    assert!(world.engine.held_items(&holder(&world), None).expect("a list").is_empty());
    world.engine.delete_container(&world.current(), &Precondition::None).expect("nothing is held");
}

#[test]
fn t31_another_reason_does_not_change_since_when_an_item_is_held() {
    let world = World::new();
    world.container("");
    world.create("a", r#""id":"x""#).expect("new");
    let hold = |reason| {
        world.engine.hold_item(&holder(&world), &address("a", "x"), reason).expect("it lives");
        let held = world.engine.held_items(&holder(&world), None).expect("a list");
        (held[0].since, held[0].reason.clone())
    };
    let (since, _) = hold("case 7");
    world.pass(100);
    assert_eq!(hold("case 8"), (since, "case 8".to_owned()));
}

#[test]
fn t31_who_is_dead_or_not_there_cannot_be_held() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"x""#).expect("new");
    world.pass(10);
    for id in ["x", "y"] {
        let refused = world.engine.hold_item(&holder(&world), &address("a", id), "");
        assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
        let refused = world.engine.lift_item(&holder(&world), &address("a", id));
        assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    }
}

/// A rule that was in force only while an item was held has not killed it, whether or not the purge has run since.
#[test]
fn t31_a_lifted_item_is_judged_by_the_rules_then_in_force() {
    for purged in [false, true] {
        let world = World::new();
        world.container(r#","defaultTtl":10"#);
        for id in ["x", "y", "z"] {
            world.create("a", &format!(r#""id":"{id}""#)).expect("new");
        }
        for id in ["x", "z"] {
            world.engine.hold_item(&holder(&world), &address("a", id), "").expect("it lives");
        }
        world.pass(20);
        world.set_default(Some(100));
        if purged {
            world.engine.purge_step(100).expect("a step");
        }
        world.engine.lift_item(&holder(&world), &address("a", "x")).expect("it is held");
        assert!(world.is_alive("a", "x") && !world.is_alive("a", "y"), "purged: {purged}");
        assert_eq!(world.engine.usage(&world.current()).expect("figures").living.items, 2);
        world.pass(80);
        assert!(!world.is_alive("a", "x") && world.is_alive("a", "z"), "purged: {purged}");
        world.engine.lift_item(&holder(&world), &address("a", "z")).expect("it is held");
        assert!(!world.is_alive("a", "z"));
        world.engine.purge_step(100).expect("a step");
        let usage = world.engine.usage(&world.current()).expect("figures");
        assert_eq!((usage.living.items, usage.dead.items), (0, 0));
    }
}

#[test]
fn t31_in_a_held_container_nothing_dies_is_changed_or_purged() {
    let mut world = World::new();
    world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"dead""#).expect("new");
    world.pass(5);
    world.create("a", r#""id":"x""#).expect("new");
    world.pass(5);
    hold_container(&world, Some("case 7"));
    world.pass(100);
    world.engine.purge_step(100).expect("a step");
    world.restart();
    assert!(world.is_alive("a", "x") && !world.is_alive("a", "dead"));
    let usage = world.engine.usage(&world.current()).expect("figures");
    assert_eq!((usage.living.items, usage.dead.items), (1, 1), "what was dead stays as it is");

    assert_held(&world.replace("a", "x", r#""id":"x""#), "replace");
    assert_held(&world.delete("a", "x"), "delete");
    assert_held(&world.engine.delete_partition(&world.current(), &key("a")), "delete by key");
    assert_held(&world.engine.delete_container(&world.current(), &Precondition::None), "drop");
    world.create("a", r#""id":"new""#).expect("a new item changes none");
    assert_held(&world.delete("a", "new"), "delete of the new one");
    world.set_default(Some(50));
    assert!(world.is_alive("a", "x"), "rules may be changed, they wait");

    hold_container(&world, None);
    assert!(!world.is_alive("a", "x"), "overdue");
    assert!(world.is_alive("a", "new") && !world.is_alive("a", "dead"));
    world.engine.purge_step(100).expect("a step");
    let usage = world.engine.usage(&world.current()).expect("figures");
    assert_eq!((usage.living.items, usage.dead.items), (1, 0));
    world.delete("a", "new").expect("nothing is held");
}

/// Whether the purge came before the hold does not matter to those who come after it (T15): what was dead is in nobody's way,
/// and its bytes stay as long as the hold does.
#[test]
fn t15_t31_the_place_of_the_dead_is_free_in_a_held_container_and_they_stay() {
    let mut world = World::new();
    let unique = r#","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}"#;
    world.container(&format!(r#","defaultTtl":10{unique}"#));
    for (id, value) in [("x", 1), ("y", 2)] {
        world.create("a", &format!(r#""id":"{id}","u":{value}"#)).expect("new");
    }
    world.pass(10);
    hold_container(&world, Some("case 7"));
    world.create("a", r#""id":"x","u":3,"ttl":-1"#).expect("its id is free");
    world.create("a", r#""id":"z","u":2,"ttl":-1"#).expect("its unique value is free");
    world.restart();
    world.engine.purge_step(100).expect("a step");
    let backlog = |world: &World| world.engine.purge_figures(&holder(world)).expect("figures").backlog.items;
    assert_eq!((world.counts(), backlog(&world)), ((2, 0), 2), "both are there, and in nobody's way");
    hold_container(&world, None);
    assert_eq!(world.drain(), 2);
    assert_eq!((world.counts(), backlog(&world)), ((2, 0), 0));
    world.engine.check_index(&world.current()).expect("nothing is left behind");
}

/// The same of documents, and with everything that is owed to the dead: told once, with the instant and the rule.
#[test]
fn t31_t32_who_makes_way_in_a_held_collection_is_told_of_when_the_hold_is_lifted() {
    let world = World::new();
    let collection = world.collection("c");
    let holder = Holder::Collection(collection.clone());
    let wish = world.engine.change_lifecycle(&holder, |wishes| {
        wishes.archive = engine::ArchiveDirectory::parse("cold");
        wishes.deletion_record = true;
    });
    wish.expect("a wish");
    world.index(&collection, &by("_ts").with("expireAfterSeconds", 10));
    world.put(&collection, &item(1)).expect("inserted");
    world.pass(15);
    let turn = |hold: Option<&str>| {
        let hold = hold.map(str::to_owned);
        world.engine.change_lifecycle(&holder, |wishes| wishes.hold = hold).expect("a wish");
    };
    turn(Some("case 7"));
    world.put(&collection, &item(1).with("v", 2)).expect("its _id is free");
    world.drain();
    let log = || world.engine.deletion_logs_of(&holder).expect("logs").remove(0);
    let purged = || {
        let lines = world.engine.deletion_page(log().log, 0).expect("a page").lines;
        let lines = String::from_utf8(lines).expect("text");
        lines.lines().filter(|line| line.contains(r#""event":"purged""#)).map(str::to_owned).collect()
    };
    let told = || -> [Vec<String>; 2] { [world.archive.lines("cold"), purged()] };
    assert_eq!(told(), [Vec::<String>::new(), Vec::new()]);
    turn(None);
    assert_eq!(world.drain(), 1);
    for lines in told() {
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains(r#""expired":"2023-11-14T22:13:30.000Z","rule":"defaultTtl","seconds":10"#),
            "{}",
            lines[0]
        );
    }
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

    /// Lets the dead go, by the rules in force at this instant.
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
        let outcome = self.world.engine.hold_item(&holder(&self.world), &address("a", &id), "why");
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
        let outcome = self.world.engine.lift_item(&holder(&self.world), &address("a", &id));
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
        let held = self.world.engine.held_items(&holder(&self.world), None).expect("a list").len();
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
