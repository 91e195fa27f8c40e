//! One damaged item does not keep others from being purged: it is set aside, stays so over restarts, and a repair
//! brings it back.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bson::RawDocument;
use document::{Document, ItemNumber};
use mql::index::IndexSpec;
use storage::{ClockOptions, Keyspace, ManualClock, MemoryStore, Time, Transaction};

use crate::access::gate::View;
use crate::catalog::container::Partition;
use crate::evidence::archive::PurgeNews;
use crate::keys::{self, Grain, Key};
use crate::maintenance::check::{check, repair};
use crate::tests::below;
use crate::{
    ArchiveDirectory, CollectionDefinition, ContainerDefinition, DefaultTtl, Engine, Error, MemoryArchive,
    Operation, Options, Owner, Precondition,
};

const START: u64 = 1_700_000_000;
pub(super) const ITEMS: usize = 5;

/// More steps than any purge of these items takes.
const STEPS_MAX: usize = 50;

/// How many items there are, and which of them is damaged: one among others, the last, the only one.
const DAMAGED: [(usize, usize); 3] = [(ITEMS, 1), (ITEMS, ITEMS - 1), (1, 0)];

pub(super) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) struct Scene {
    pub(super) store: Arc<MemoryStore>,
    archive: Arc<MemoryArchive>,
    pub(super) engine: Engine,
    pub(super) clock: Arc<ManualClock>,
    pub(super) owner: Owner,
}

impl Scene {
    pub(super) fn new(make: fn(&Engine) -> Owner) -> Scene {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store"));
        let archive = Arc::new(MemoryArchive::default());
        let engine = open(&store, &archive);
        let owner = make(&engine);
        Scene { store, archive, engine, clock, owner }
    }

    /// Writes items that each have a second of their own.
    pub(super) fn fill(&self, numbers: Range<usize>) {
        for number in numbers {
            write(&self.engine, &self.owner, number);
            self.clock.advance(Duration::from_secs(1));
        }
    }

    pub(super) fn restart(&mut self) {
        self.engine = open(&self.store, &self.archive);
        self.owner = self
            .engine
            .owner(self.owner.api(), self.owner.database(), self.owner.name())
            .expect("it is there");
    }

    pub(super) fn partition(&self) -> &Arc<Partition> {
        &self.owner.partitions()[0]
    }

    pub(super) fn entries(&self, keyspace: Keyspace) -> Entries {
        below::entries(&*self.store, keyspace, self.partition().id)
    }

    pub(super) fn plant(&self, change: impl FnOnce(&mut Transaction<'_>) + Send + 'static) {
        below::change(&*self.store, change);
    }

    /// Lets everything expire and purges until a step finds nothing. Returns how many items were removed.
    pub(super) fn purge(&self) -> u64 {
        self.clock.advance(Duration::from_secs(1000));
        self.purge_due()
    }

    /// Purges what has expired until a step finds nothing. Returns how many items were removed.
    pub(super) fn purge_due(&self) -> u64 {
        let mut purged = 0;
        for _ in 0..STEPS_MAX {
            let report = self.engine.purge_step(2).expect("damage of one item fails no step");
            purged += report.purged_items;
            let now = self.engine.now().expect("a time");
            if report.next_due.is_none_or(|due| due > now) {
                return purged;
            }
        }
        panic!("the purge does not come to rest");
    }

    /// Returns whether a read finds an item.
    pub(super) fn is_living(&self, number: u64) -> bool {
        let view = View::open(&*self.store, self.partition()).expect("a view");
        view.is_number_living(ItemNumber(number)).expect("readable")
    }

    pub(super) fn set_aside(&self) -> u64 {
        self.engine.purge_figures(&self.owner).expect("figures").set_aside
    }

    /// Returns the numbers of the items that the log names.
    pub(super) fn named(&self) -> Vec<u64> {
        let of = |news| match news {
            PurgeNews::SetAside { container, item, reason } => {
                assert_eq!(container, format!("{}/{}", self.owner.database(), self.owner.name()));
                assert!(!reason.is_empty());
                item
            }
            other => panic!("{other:?}"),
        };
        self.engine.take_purge_news().into_iter().map(of).collect()
    }
}

fn open(store: &Arc<MemoryStore>, archive: &Arc<MemoryArchive>) -> Engine {
    let options = Options { archive: Some(archive.clone()), ..Options::default() };
    Engine::open_with(store.clone(), options).expect("an engine")
}

pub(super) fn container(engine: &Engine) -> Owner {
    let database = engine.create_database("db", None).expect("made");
    let text = r#"{"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":100,
        "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/n"]}]}}"#;
    let definition = ContainerDefinition::from_value(&document::parse_json(text.as_bytes()).expect("JSON"));
    let made = engine.create_container(&database, definition.expect("valid"), None).expect("made");
    let owner = Owner::Container(made);
    engine.change_lifecycle(&owner, |settings| settings.sliding = true).expect("settings");
    owner
}

pub(super) fn archived(engine: &Engine) -> Owner {
    let owner = container(engine);
    let directory = ArchiveDirectory::parse("cold").expect("a name");
    engine
        .change_lifecycle(&owner, |settings| {
            settings.archive = Some(directory);
            settings.deletion_record = true;
            settings.history_minutes = Some(60);
        })
        .expect("settings");
    owner
}

pub(super) fn collection(engine: &Engine) -> Owner {
    let made =
        engine.create_collection("shop", "carts", CollectionDefinition::default(), None).expect("made");
    let spec = r#"{"key":{"at":1},"name":"at","expireAfterSeconds":100}"#;
    let spec = IndexSpec::parse(raw(spec).view()).expect("valid");
    engine.create_indexes(&made, vec![spec]).expect("made");
    Owner::Collection(made)
}

pub(super) fn raw(text: &str) -> RawDocument {
    let value = bson::parse_extended_json(text).expect("JSON");
    RawDocument::from_view(value.view().as_document().expect("a document"))
}

fn write(engine: &Engine, owner: &Owner, number: usize) {
    match owner {
        Owner::Container(container) => {
            let text = format!(r#"{{"id":"{number}","pk":"p","n":{number}}}"#);
            let body = Document::from_json(text.as_bytes()).expect("JSON");
            engine.write(container, None, Operation::Create { body }).wait().expect("created");
        }
        Owner::Collection(collection) => {
            let text = format!(r#"{{"_id":{number},"at":{{"$date":"2023-11-14T22:13:2{number}Z"}}}}"#);
            let answers = engine.insert(collection, vec![raw(&text)], true, None).wait().expect("an answer");
            assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        }
    }
}

/// The name of a damage, the function that does it to an item, and whether the repair can undo it by itself.
type Damage = (&'static str, fn(&Scene, Vec<u8>, Vec<u8>), bool);

const DAMAGES: &[Damage] = &[
    (
        "its bytes are cut",
        |scene, key, value| {
            scene.plant(move |tx| tx.put(Keyspace::Item, key, value[..value.len() - 3].to_vec()));
        },
        false,
    ),
    ("its header is none", |scene, key, _| scene.plant(move |tx| tx.put(Keyspace::Item, key, "?")), false),
    ("it is gone", |scene, key, _| scene.plant(move |tx| tx.remove(Keyspace::Item, key)), true),
    ("its counter is gone", |scene, key, _| lose_counter(scene, &key), true),
    (
        "its note of a read is none",
        |scene, key, _| {
            let number = keys::item_number(&key).expect("a number");
            let (keyspace, key) = Key::SlidingRenewal(scene.partition().id, number).encode();
            scene.plant(move |tx| tx.put(keyspace, key, "?"));
        },
        true,
    ),
];

/// Removes the counter of the second in which an item has its queue entry; no other item is in it.
pub(super) fn lose_counter(scene: &Scene, item: &[u8]) {
    let at = scene.entries(Keyspace::Item).iter().position(|(key, _)| key == item).expect("it is there");
    let counters = scene.entries(Keyspace::Counter).into_iter();
    let mut seconds = counters.filter(|(key, _)| key[4] == keys::BUCKET && key[7] == Grain::Second as u8);
    let (key, _) = seconds.nth(at).expect("one for each item");
    scene.plant(move |tx| tx.remove(Keyspace::Counter, key));
}

#[test]
fn t22_a_damaged_item_is_set_aside_and_the_purge_of_its_partition_goes_on() {
    for make in [container as fn(&Engine) -> Owner, archived, collection] {
        for damage in DAMAGES {
            for place in DAMAGED {
                is_set_aside(make, damage, place);
            }
        }
    }
}

fn is_set_aside(make: fn(&Engine) -> Owner, damage: &Damage, (items, at): (usize, usize)) {
    let (name, damage, is_mended) = damage;
    let name = format!("{name}: {at} of {items}");
    let mut scene = Scene::new(make);
    if name.contains("read") && matches!(scene.owner, Owner::Collection(_)) {
        return; // Reads restart no countdown of a date rule.
    }
    scene.fill(0..items);
    let (key, value) = scene.entries(Keyspace::Item).remove(at);
    let number = keys::item_number(&key).expect("a number").0;
    damage(&scene, key.clone(), value.clone());
    assert_eq!(scene.purge(), items as u64 - 1, "{name}");
    assert_eq!((scene.set_aside(), scene.named()), (1, vec![number]), "{name}");
    let told = check(&*scene.store, &mut |_| ()).expect("an inspection");
    let is_named = |text: &str| text.contains(&number.to_string()) || text.contains("set it aside");
    assert!(told.told.iter().any(|it| is_named(&it.to_string())), "{name}: {:#?}", told.told);

    // After a restart it is known, is not reported a second time, and later items are purged.
    scene.restart();
    scene.fill(ITEMS..ITEMS + items);
    assert_eq!(scene.purge(), items as u64, "{name}");
    assert_eq!((scene.set_aside(), scene.named()), (1, vec![]), "{name}");

    if !is_mended {
        let kept = repair(&*scene.store, &mut |_| ()).expect("a repair");
        assert!(!kept.after.is_sound(), "{name}: it cannot be read");
        scene.restart();
        assert_eq!((scene.purge(), scene.set_aside()), (0, 1), "{name}");
        scene.plant(move |tx| tx.put(Keyspace::Item, key, value));
    }
    let mended = repair(&*scene.store, &mut |_| ()).expect("a repair");
    assert!(mended.after.is_sound(), "{name}: {:#?}", mended.after.told);
    scene.restart();
    assert_eq!(scene.purge(), u64::from(!name.starts_with("it is gone")), "{name}");
    assert_eq!((scene.set_aside(), scene.entries(Keyspace::Item).len()), (0, 0), "{name}");
    assert!(scene.entries(Keyspace::Queue).is_empty(), "{name}");
    let after = check(&*scene.store, &mut |_| ()).expect("an inspection");
    assert!(after.is_sound(), "{name}: {:#?}", after.told);
}

#[test]
fn t24_a_damaged_item_makes_no_purge_urgent_and_is_waited_for_by_no_drop() {
    for (items, at) in DAMAGED {
        let scene = Scene::new(archived);
        scene.engine.change_lifecycle(&scene.owner, |it| it.max_purge_delay = Some(60)).expect("settings");
        scene.fill(0..items);
        let (key, _) = scene.entries(Keyspace::Item).remove(at);
        lose_counter(&scene, &key);
        scene.purge();
        assert_eq!(scene.set_aside(), 1);
        let lines = scene.archive.lines("cold").len();
        assert_eq!(lines, items, "it can be read, so it has its line");
        let report = scene.engine.purge_step(100).expect("a step");
        assert!(!report.urgent && report.purged_items == 0, "{report:?}");
        let report = scene.engine.purge_at_once(None, 100).expect("a step");
        assert!(report.next_due.is_none_or(|due| due > scene.engine.now().expect("a time")), "{report:?}");
        let Owner::Container(container) = &scene.owner else { panic!("a container") };
        scene.engine.delete_container(container, &Precondition::None).expect("no line is owed to it");
        assert_eq!(scene.archive.lines("cold").len(), lines, "no second line");
    }
}

#[test]
fn t32_a_damaged_item_that_a_write_moved_aside_keeps_no_other_from_the_archive() {
    let mut scene = Scene::new(archived);
    scene.fill(0..ITEMS);
    scene.clock.advance(Duration::from_secs(200));
    // Writes of the same ids move the expired items aside.
    scene.fill(0..ITEMS);
    let aside = |scene: &Scene| -> Entries {
        let all = scene.entries(Keyspace::History).into_iter();
        all.filter(|(key, _)| key[4] == keys::UNARCHIVED).collect()
    };
    let (key, value) = aside(&scene).remove(1);
    let (at, damaged) = (key.clone(), vec![0xFF; value.len()]);
    scene.plant(move |tx| tx.put(Keyspace::History, at, damaged));
    assert_eq!(scene.purge(), 2 * ITEMS as u64 - 1);
    assert_eq!((scene.set_aside(), aside(&scene).len()), (1, 1));
    let status = scene.engine.archive_status(&scene.owner).expect("a status").expect("it has an archive");
    let lines = scene.archive.lines("cold");
    assert_eq!((status.archived.items, lines.len()), (2 * ITEMS as u64 - 1, 2 * ITEMS - 1));
    scene.restart();
    assert_eq!((scene.purge(), scene.set_aside()), (0, 1));
    scene.plant(move |tx| tx.put(Keyspace::History, key, value));
    repair(&*scene.store, &mut |_| ()).expect("a repair");
    scene.restart();
    assert_eq!((scene.purge(), scene.set_aside(), aside(&scene).len()), (1, 0, 0));
}

#[test]
fn t13_what_is_set_aside_never_comes_back_to_life() {
    let scene = Scene::new(container);
    scene.fill(0..ITEMS);
    let (key, value) = scene.entries(Keyspace::Item).remove(1);
    let at = key.clone();
    scene.plant(move |tx| tx.put(Keyspace::Item, at, "?"));
    scene.clock.advance(Duration::from_secs(200));
    let Owner::Container(container) = &scene.owner else { panic!("a container") };
    // The rule is removed while the expired items are there: a cutoff keeps them expired.
    let mut definition = container.definition.clone();
    definition.default_ttl = DefaultTtl::Off;
    scene.engine.replace_container(container, definition, &Precondition::None).expect("changed");
    assert_eq!((scene.purge(), scene.set_aside()), (ITEMS as u64 - 1, 1));
    scene.plant(move |tx| tx.put(Keyspace::Item, key, value));
    assert_eq!(scene.engine.usage_of(&scene.owner).expect("figures").living.items, 0);
    repair(&*scene.store, &mut |_| ()).expect("a repair");
    let engine = open(&scene.store, &scene.archive);
    assert_eq!(engine.usage_of(&scene.owner).expect("figures").living.items, 0);
}

#[test]
fn t13_no_change_of_rules_brings_an_item_back_that_is_set_aside() {
    for (items, at) in DAMAGED {
        for later in [DefaultTtl::Seconds(100_000), DefaultTtl::Never, DefaultTtl::Off] {
            let mut scene = Scene::new(container);
            scene.fill(0..items);
            let (key, _) = scene.entries(Keyspace::Item).remove(at);
            let number = keys::item_number(&key).expect("a number").0;
            lose_counter(&scene, &key);
            assert_eq!((scene.purge(), scene.set_aside()), (items as u64 - 1, 1));
            assert!(!scene.is_living(number));
            let Owner::Container(container) = &scene.owner else { panic!("a container") };
            let definition = ContainerDefinition { default_ttl: later, ..container.definition.clone() };
            scene.engine.replace_container(container, definition, &Precondition::None).expect("changed");
            assert!(!scene.is_living(number), "{later:?}");
            assert_eq!(scene.purge(), 0);
            scene.restart();
            assert!(!scene.is_living(number), "{later:?}, after a restart");
            repair(&*scene.store, &mut |_| ()).expect("a repair");
            scene.restart();
            assert!(!scene.is_living(number), "{later:?}, after a repair");
            assert_eq!((scene.purge(), scene.set_aside()), (1, 0));
        }
    }
}

#[test]
fn t13_no_change_of_a_date_rule_brings_an_item_back_that_is_set_aside() {
    let specs = [Some(r#"{"key":{"at":1},"name":"at","expireAfterSeconds":100000000}"#), None];
    for (spec, (items, at)) in specs.into_iter().flat_map(|spec| DAMAGED.map(|place| (spec, place))) {
        let scene = Scene::new(collection);
        scene.fill(0..items);
        let (key, _) = scene.entries(Keyspace::Item).remove(at);
        let number = keys::item_number(&key).expect("a number").0;
        lose_counter(&scene, &key);
        assert_eq!((scene.purge(), scene.set_aside()), (items as u64 - 1, 1));
        let Owner::Collection(collection) = &scene.owner else { panic!("a collection") };
        let index = collection.indexes().named("at").expect("it is there").number;
        match spec {
            Some(spec) => {
                let spec = IndexSpec::parse(raw(spec).view()).expect("valid");
                scene.engine.change_index(collection, index, spec).expect("changed");
            }
            None => scene.engine.drop_indexes(collection, &[index]).expect("dropped"),
        }
        assert!(!scene.is_living(number), "{spec:?}, {at} of {items}");
    }
}

#[test]
fn t30_a_dry_run_counts_an_item_that_is_set_aside_as_expired() {
    let scene = Scene::new(container);
    scene.fill(0..ITEMS);
    let (key, _) = scene.entries(Keyspace::Item).remove(1);
    scene.plant(move |tx| tx.put(Keyspace::Item, key, "?"));
    assert_eq!((scene.purge(), scene.set_aside()), (ITEMS as u64 - 1, 1));
    for default_ttl in [DefaultTtl::Off, DefaultTtl::Seconds(1_000_000)] {
        let run = scene.engine.dry_run(&scene.owner, default_ttl).expect("counted");
        assert_eq!((run.living.items, run.expiring.tally.items), (0, 0), "{default_ttl:?}");
    }
}

#[test]
fn too_many_damaged_items_are_damage_of_the_partition() {
    let scene = Scene::new(container);
    scene.fill(0..ITEMS);
    let partition = scene.partition().id;
    let (key, _) = scene.entries(Keyspace::Item).remove(1);
    scene.plant(move |tx| {
        tx.put(Keyspace::Item, key, "?");
        for number in 0..crate::types::limits::SET_ASIDE_MAX as u64 {
            let (keyspace, key) = Key::SetAside(partition, ItemNumber(number << 32)).encode();
            tx.put(keyspace, key, "?");
        }
    });
    scene.clock.advance(Duration::from_secs(200));
    let Err(Error::Corrupt(text)) = scene.engine.purge_step(100) else { panic!("it is damaged") };
    assert!(text.starts_with("container 'c': more than 1000 expired items cannot be removed"), "{text}");
}
