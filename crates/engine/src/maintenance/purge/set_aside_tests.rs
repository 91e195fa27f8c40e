//! The effect of items that are set aside on everything else: figures, the retention promise, changes of rules, numbers
//! of queues.

use std::time::Duration;

use document::ItemNumber;
use mql::index::IndexSpec;
use storage::Keyspace;

use super::damage_tests::{ITEMS, Scene, archived, collection, container, lose_counter, raw};
use crate::expiry::{Policy, Queue};
use crate::keys::{self, Key};
use crate::maintenance::check::repair;
use crate::{ContainerDefinition, DefaultTtl, Engine, Owner, Precondition};

/// The item that is damaged.
const DAMAGED: usize = 1;

/// Creates the container or collection of a scene.
type Make = fn(&Engine) -> Owner;

/// Damages an item so that it cannot be removed, and returns its number.
type Damage = fn(&Scene) -> ItemNumber;

fn no_header(scene: &Scene) -> ItemNumber {
    let (key, _) = scene.entries(Keyspace::Item).remove(DAMAGED);
    let number = keys::item_number(&key).expect("a number");
    scene.plant(move |tx| tx.put(Keyspace::Item, key, "?"));
    number
}

fn no_counter(scene: &Scene) -> ItemNumber {
    let (key, _) = scene.entries(Keyspace::Item).remove(DAMAGED);
    lose_counter(scene, &key);
    keys::item_number(&key).expect("a number")
}

fn no_touch(scene: &Scene) -> ItemNumber {
    let (key, _) = scene.entries(Keyspace::Item).remove(DAMAGED);
    let number = keys::item_number(&key).expect("a number");
    let (keyspace, key) = Key::SlidingRenewal(scene.partition().id, number).encode();
    scene.plant(move |tx| tx.put(keyspace, key, "?"));
    number
}

/// Damages an expired item that a write has moved aside, for the archive.
fn moved_aside(scene: &Scene) -> ItemNumber {
    scene.fill(0..ITEMS);
    let is_aside = |(key, _): &(Vec<u8>, Vec<u8>)| key[4] == keys::UNARCHIVED;
    let mut entries: Vec<_> = scene.entries(Keyspace::History).into_iter().filter(is_aside).collect();
    let (key, value) = entries.remove(DAMAGED);
    let (_, number) = keys::unarchived_entry(&key).expect("a number");
    scene.plant(move |tx| tx.put(Keyspace::History, key, vec![0xFF; value.len()]));
    number
}

#[test]
fn t24_a_promise_that_a_damaged_item_breaks_is_told_as_missed() {
    let cases: [(Make, Damage); 4] =
        [(container, no_header), (archived, no_header), (collection, no_counter), (archived, moved_aside)];
    for (make, damage) in cases {
        let scene = Scene::new(make);
        scene.engine.change_lifecycle(&scene.owner, |it| it.max_purge_delay = Some(60)).expect("settings");
        let missed = || scene.engine.retention_step().expect("a look").missed;
        let name = format!("{}/{}", scene.owner.database(), scene.owner.name());
        scene.fill(0..ITEMS);
        // The first expires after 100 seconds, the last four seconds later.
        scene.clock.advance(Duration::from_secs(101));
        damage(&scene);
        scene.purge_due();
        assert_eq!((scene.set_aside(), missed()), (1, vec![]));
        scene.clock.advance(Duration::from_secs(30));
        assert!(missed().is_empty(), "what was removed is scrubbed in time");
        scene.clock.advance(Duration::from_secs(30));
        assert_eq!(missed(), [name.as_str()], "the bytes of the damaged one are still there");
        assert_eq!((missed(), scene.engine.retention_status().missed), (vec![], 1), "it is told once");

        // Later misses of other items are still reported.
        scene.engine.pause_purge(true);
        scene.fill(ITEMS..ITEMS + 1);
        scene.clock.advance(Duration::from_secs(161));
        assert_eq!(missed(), [name.as_str()]);
        assert_eq!(scene.engine.retention_status().missed, 2);
    }
}

#[test]
fn t23_the_backlog_does_not_count_what_is_set_aside() {
    for (damage, is_readable) in [(no_touch as Damage, true), (no_header, false), (no_counter, false)] {
        let scene = Scene::new(container);
        scene.fill(0..ITEMS);
        damage(&scene);
        scene.purge();
        let figures = || scene.engine.purge_figures(&scene.owner).expect("figures");
        assert_eq!((figures().set_aside, figures().backlog.items, figures().backlog.bytes), (1, 0, 0));
        scene.fill(ITEMS..ITEMS + 1);
        let bytes = scene.engine.usage_of(&scene.owner).expect("figures").living.bytes;
        scene.clock.advance(Duration::from_secs(200));
        assert_eq!((figures().set_aside, figures().backlog.items), (1, 1));
        let all = scene.engine.backlog().expect("figures").expect("the purge goes on");
        assert_eq!(all.items, 1);
        if is_readable {
            assert_eq!(figures().backlog.bytes, bytes, "an item that can be read is known by its bytes");
        }
    }
}

#[test]
fn t11_rules_may_be_changed_without_end_while_an_item_is_set_aside() {
    let mut scene = Scene::new(archived);
    scene.fill(0..ITEMS);
    let (key, value) = scene.entries(Keyspace::Item).remove(DAMAGED);
    let number = no_header(&scene);
    assert_eq!((scene.purge(), scene.set_aside()), (ITEMS as u64 - 1, 1));
    for change in 0..600 {
        let Owner::Container(container) =
            scene.engine.owner(scene.owner.api(), scene.owner.database(), "c").expect("it is there")
        else {
            panic!("a container")
        };
        let default_ttl = DefaultTtl::Seconds(if change % 2 == 0 { 100_000 } else { 100 });
        let definition = ContainerDefinition { default_ttl, ..container.definition.clone() };
        let changed = scene.engine.replace_container(&container, definition, &Precondition::None);
        changed.unwrap_or_else(|error| panic!("change {change}: {error}"));
        scene.clock.advance(Duration::from_secs(1));
        scene.purge_due();
    }
    scene.restart();
    let policy = scene.partition().policy.read().clone();
    assert_eq!(policy.cutoffs.len(), 1, "the one by which it expired: {:?}", policy.cutoffs);
    scene.plant(move |tx| tx.put(Keyspace::Item, key, value));
    repair(&*scene.store, &mut |_| ()).expect("a repair");
    scene.restart();
    assert!(!scene.is_living(number.0));
    assert_eq!((scene.purge_due(), scene.set_aside()), (1, 0));
}

#[test]
fn t13_the_number_of_a_queue_in_which_an_item_is_set_aside_is_not_used_again() {
    let mut scene = Scene::new(collection);
    let index = |scene: &Scene, name: &str| {
        let Owner::Collection(collection) = &scene.owner else { panic!("a collection") };
        let spec = format!(r#"{{"key":{{"{name}":1}},"name":"{name}","expireAfterSeconds":100}}"#);
        let spec = IndexSpec::parse(raw(&spec).view()).expect("valid");
        scene.engine.create_indexes(collection, vec![spec]).expect("made");
    };
    index(&scene, "later");
    let Owner::Collection(collection) = &scene.owner else { panic!("a collection") };
    for number in 0..ITEMS {
        let text = format!(
            r#"{{"_id":{number},"at":{{"$date":"2023-11-14T22:13:2{number}Z"}},"later":{{"$date":"2033-01-01T00:00:00Z"}}}}"#
        );
        let answers =
            scene.engine.insert(collection, vec![raw(&text)], true, None).wait().expect("an answer");
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        scene.clock.advance(Duration::from_secs(1));
    }
    let queues = |scene: &Scene| -> Vec<Queue> {
        let policy = scene.partition().policy.read().clone();
        policy.rules.iter().flat_map(|rule| rule.queues.clone()).collect()
    };
    let [first, second] = queues(&scene)[..] else { panic!("two rules") };
    let number = no_counter(&scene);
    assert_eq!((scene.purge(), scene.set_aside()), (ITEMS as u64 - 1, 1));
    let numbers = ["at", "later"].map(|name| collection.indexes().named(name).expect("it is there").number);
    scene.engine.drop_indexes(collection, &numbers).expect("dropped");

    // The last number has been used: the next that is tried is the first one, which belongs to the first rule.
    assert_eq!((first.number(), second.number()), (Queue::FIRST_DATE, Queue::FIRST_DATE + 1));
    let policy = Key::Policy(scene.partition().id);
    let (keyspace, key) = policy.encode();
    let mut policy = Policy::clone(&scene.partition().policy.read());
    policy.set_last_queue(u16::MAX);
    scene.plant(move |tx| tx.put(keyspace, key, policy.encode()));
    scene.restart();
    index(&scene, "other");
    let [fresh] = queues(&scene)[..] else { panic!("one rule") };
    assert!(![first, second].contains(&fresh), "{fresh:?}: the item stands in {first:?} and {second:?}");
    repair(&*scene.store, &mut |_| ()).expect("a repair");
    scene.restart();
    assert!(!scene.is_living(number.0));
    assert_eq!((scene.purge_due(), scene.set_aside()), (1, 0));
}
