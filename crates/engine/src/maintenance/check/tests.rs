//! Planted corruptions: the check finds each, reports where it is, and repairs it or refuses to.

use std::sync::Arc;
use std::time::Duration;

use bson::RawDocument;
use document::{Document, PartitionKey};
use mql::index::IndexSpec;
use storage::{
    ClockOptions, Direction, KeyRange, Keyspace, ManualClock, MemoryStore, Read, Store, Time, Transaction,
};

use super::{Remedy, Report, Subject, check, repair};
use crate::catalog::container::Container;
use crate::expiry::Queue;
use crate::expiry::header::Header;
use crate::keys::{self, Generation, Grain, Key, PartitionId};
use crate::tests::below;
use crate::{
    CollectionDefinition, ContainerDefinition, Engine, ItemAddress, ItemName, Operation, Owner, Precondition,
};

const START: u64 = 1_700_000_000;

/// A store with something of everything.
struct Scene {
    store: Arc<MemoryStore>,
    engine: Engine,
    container: Arc<Container>,
    clock: Arc<ManualClock>,
}

fn json(text: &str) -> document::Value {
    document::parse_json(text.as_bytes()).expect("JSON")
}

impl Scene {
    fn new() -> Scene {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock.clone())).expect("a store"));
        let engine = Engine::open(store.clone()).expect("an engine");
        let database = engine.create_database("db", None).expect("made");
        let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":1000,
            "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]}}"#;
        let definition = ContainerDefinition::from_value(&json(definition)).expect("valid");
        let container = engine.create_container(&database, definition, None).expect("made");
        let scene = Scene { store, engine, container, clock };
        scene.fill();
        scene
    }

    fn fill(&self) {
        let owner = Owner::Container(Arc::clone(&self.container));
        self.engine
            .change_lifecycle(&owner, |settings| {
                settings.history_minutes = Some(60);
                settings.deletion_record = true;
                settings.sliding = true;
            })
            .expect("lifecycle settings");
        for (id, ttl) in [("a", ""), ("b", r#","ttl":50"#), ("c", r#","ttl":-1"#), ("d", ""), ("h", "")] {
            self.create(id, &format!(r#"{{"id":"{id}","pk":"p","mail":"{id}@x","n":[1,2]{ttl}}}"#));
        }
        let item = ItemAddress::Id(key(), "h".to_owned());
        self.engine.hold_item(&owner, &item, "a trial").expect("held");
        self.clock.advance(Duration::from_secs(20));
        self.read("d");
        self.clock.advance(Duration::from_secs(40));
        while self.engine.purge_step(10).expect("a step").purged_items > 0 {}
        self.documents();
    }

    /// A collection with a unique index and a rule by date.
    fn documents(&self) {
        let made = self.engine.create_collection("shop", "carts", CollectionDefinition::default(), None);
        let collection = made.expect("made");
        let spec = |text: &str| {
            let value = bson::parse_extended_json(text).expect("JSON");
            let raw = RawDocument::from_view(value.view().as_document().expect("a document"));
            IndexSpec::parse(raw.view()).expect("valid")
        };
        let specs = vec![
            spec(r#"{"key":{"mail":1},"name":"mail","unique":true}"#),
            spec(r#"{"key":{"at":1},"name":"at","expireAfterSeconds":100}"#),
        ];
        self.engine.create_indexes(&collection, specs).expect("made");
        for id in 1..=3 {
            let text = format!(r#"{{"_id":{id},"mail":"{id}@x","at":{{"$date":"2023-11-14T22:14:20.5Z"}}}}"#);
            let value = bson::parse_extended_json(&text).expect("JSON");
            let raw = RawDocument::from_view(value.view().as_document().expect("a document"));
            let answers = self.engine.insert(&collection, vec![raw], true, None).wait().expect("an answer");
            assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        }
    }

    fn create(&self, _id: &str, text: &str) {
        let body = Document::from_json(text.as_bytes()).expect("valid");
        self.engine.write(&self.container, Some(key()), Operation::Create { body }).wait().expect("created");
    }

    fn read(&self, id: &str) {
        let name = ItemName::Id(id.to_owned());
        let outcome =
            self.engine.read(&self.container, &key(), &name, &Precondition::None).expect("it lives");
        let renewal = outcome.renewal.expect("reads restart its countdown");
        self.engine.renew(&renewal).expect("not yet renewed").wait().expect("durable");
    }

    fn partition(&self) -> PartitionId {
        self.container.partitions[0].id
    }

    fn collection_partition(&self) -> PartitionId {
        self.engine.collection("shop", "carts").expect("made").partition.id
    }

    /// Returns keys and values of a partition in one keyspace.
    fn entries(&self, keyspace: Keyspace, partition: PartitionId) -> Vec<(Vec<u8>, Vec<u8>)> {
        below::entries(&*self.store, keyspace, partition)
    }

    fn plant(&self, change: impl FnOnce(&mut Transaction<'_>) + Send + 'static) {
        below::change(&*self.store, change);
    }

    fn check(&self) -> Report {
        check(&*self.store, &mut |_| ()).expect("an inspection")
    }

    /// Returns every entry of the store.
    fn contents(&self) -> Vec<(Keyspace, Vec<u8>, Vec<u8>)> {
        let snapshot = self.store.snapshot().expect("a snapshot");
        let mut all = Vec::new();
        for keyspace in Keyspace::ALL {
            for entry in snapshot.scan(keyspace, KeyRange::all(), Direction::Forward) {
                let (key, value) = entry.expect("reads");
                all.push((keyspace, key.to_vec(), value.to_vec()));
            }
        }
        all
    }
}

fn key() -> PartitionKey {
    PartitionKey::from_header(r#"["p"]"#).expect("valid")
}

/// Plants a corruption, below the engine.
type Plant = fn(&Scene);

/// The first entry of a keyspace of the container's partition.
fn remove_first(scene: &Scene, keyspace: Keyspace) {
    let (key, _) = scene.entries(keyspace, scene.partition()).remove(0);
    scene.plant(move |tx| tx.remove(keyspace, key));
}

fn put_first(scene: &Scene, keyspace: Keyspace, value: &'static [u8]) {
    let (key, _) = scene.entries(keyspace, scene.partition()).remove(0);
    scene.plant(move |tx| tx.put(keyspace, key, value));
}

fn change_counter(scene: &Scene, key: Key<'_>) {
    let (keyspace, key) = key.encode();
    scene.plant(move |tx| {
        let value = tx.get(keyspace, &key).expect("read").map(|value| value.to_vec());
        let mut value = value.unwrap_or_else(|| vec![0; 16]);
        value[7] ^= 0x40;
        tx.put(keyspace, key, value);
    });
}

/// Gives the container's range another LSN.
fn put_lsn(scene: &Scene, lsn: Option<u64>) {
    let (keyspace, key) = Key::Total(scene.partition()).encode();
    scene.plant(move |tx| {
        let total = tx.get(keyspace, &key).expect("read").expect("there");
        let total = crate::entries::counters::Total::decode(&total).expect("a total");
        tx.put(keyspace, key, crate::entries::counters::Total { lsn, ..total }.encode());
    });
}

/// Returns the key of the first place of an item in a queue.
fn first_place(scene: &Scene, queue: Queue) -> (PartitionId, Vec<u8>) {
    let places = scene.entries(Keyspace::Queue, scene.partition());
    let prefix = keys::queue_prefix(scene.partition(), queue);
    let (key, _) =
        places.into_iter().find(|(key, _)| key.starts_with(&prefix)).expect("an item is in the queue");
    (scene.partition(), key)
}

/// Every corruption of derived entries: the check finds it with these words and repairs it, and then the store is as before.
const REPAIRED: &[(&str, Subject, &str, Plant)] = &[
    ("an id entry is gone", Subject::Id, "its entry by id is missing", |scene| {
        remove_first(scene, Keyspace::Id);
    }),
    ("an id entry names no item", Subject::Id, "belongs to another item or is damaged", |scene| {
        put_first(scene, Keyspace::Id, &[0, 0, 0, 0, 0, 0, 0, 9]);
    }),
    ("an id entry of no item", Subject::Id, "which is not there", |scene| {
        let (mut key, value) = scene.entries(Keyspace::Id, scene.partition()).remove(0);
        key.push(b'!');
        let other = [&value[..7], &[value[7] ^ 1]].concat();
        scene.plant(move |tx| tx.put(Keyspace::Id, key, other));
    }),
    ("a unique key is gone", Subject::Unique, "its unique key is missing", |scene| {
        remove_first(scene, Keyspace::Unique);
    }),
    ("a unique key that no item has", Subject::Unique, "that it does not call for", |scene| {
        let (mut key, value) = scene.entries(Keyspace::Unique, scene.partition()).remove(0);
        key.push(9);
        scene.plant(move |tx| tx.put(Keyspace::Unique, key, value));
    }),
    ("an item stands in no queue", Subject::Queue, "its position in an expiry queue is missing", |scene| {
        remove_first(scene, Keyspace::Queue);
    }),
    ("an item stands in a queue twice", Subject::Queue, "that it does not call for", |scene| {
        let (partition, key) = first_place(scene, Queue::Stamp);
        let (base, number) = keys::queue_entry(&key).expect("a place");
        let (keyspace, key) = Key::Queue { partition, queue: Queue::Own, base: base + 1, number }.encode();
        scene.plant(move |tx| tx.put(keyspace, key, ""));
    }),
    ("the feed lacks an event", Subject::Feed, "its event in the change feed is missing", |scene| {
        remove_first(scene, Keyspace::Feed);
    }),
    ("an event of no item", Subject::Feed, "which is not there", |scene| {
        let (keyspace, key) = Key::Feed(scene.partition(), document::Sequence(3)).encode();
        scene.plant(move |tx| tx.put(keyspace, key, vec![0, 0, 0, 0, 0, 0, 0, 0, 77]));
    }),
    ("an index lacks an entry", Subject::Index, "its entry in an index is missing", |scene| {
        remove_first(scene, Keyspace::Index);
    }),
    ("a mark behind its item", Subject::Index, "belongs to another item or is damaged", |scene| {
        put_first(scene, Keyspace::Index, &[1, 0x7F, 0, 0, 0, 0, 0, 0, 0]);
    }),
    ("an entry of a generation that is not there", Subject::Index, "that it does not call for", |scene| {
        let (mut key, value) = scene.entries(Keyspace::Index, scene.partition()).remove(0);
        key[7] = 99;
        scene.plant(move |tx| tx.put(Keyspace::Index, key, value));
    }),
    ("an index of a collection lacks an entry", Subject::Index, "document with _id 1", |scene| {
        let (key, _) = scene.entries(Keyspace::Index, scene.collection_partition()).remove(0);
        scene.plant(move |tx| tx.remove(Keyspace::Index, key));
    }),
    ("the total is wrong", Subject::Counter, "the number of its items and bytes says", |scene| {
        change_counter(scene, Key::Total(scene.partition()));
    }),
    ("the LSN of a range is behind its items", Subject::Counter, "its LSN is missing, behind", |scene| {
        put_lsn(scene, Some(1));
    }),
    ("the LSN of a range is ahead of the store", Subject::Counter, "ahead of the store", |scene| {
        put_lsn(scene, Some(1 << 40));
    }),
    ("the LSN of a range is gone", Subject::Counter, "its LSN is missing", |scene| put_lsn(scene, None)),
    ("a bucket is wrong", Subject::Counter, "by the hour from", |scene| {
        let start = i64::try_from(START).expect("small") / 3600 * 3_600_000;
        let queue = first_place(scene, Queue::Date(16)).1;
        assert!(keys::queue_entry(&queue).is_ok());
        let key =
            Key::Bucket { partition: scene.partition(), queue: Queue::Date(16), grain: Grain::Hour, start };
        change_counter(scene, key);
    }),
    ("a bucket by the millisecond is gone", Subject::Counter, "by the millisecond from", |scene| {
        let partition = scene.collection_partition();
        let counters = scene.entries(Keyspace::Counter, partition);
        let bucket =
            counters.into_iter().find(|(key, _)| key[4] == keys::BUCKET && key[7] == Grain::Milli as u8);
        let (key, _) = bucket.expect("a date within a second");
        scene.plant(move |tx| tx.remove(Keyspace::Counter, key));
    }),
    ("a bucket where nothing stands", Subject::Counter, "which counts no item", |scene| {
        let key = Key::Bucket {
            partition: scene.partition(),
            queue: Queue::Own,
            grain: Grain::Second,
            start: 5000,
        };
        change_counter(scene, key);
    }),
    ("a shape is counted wrong", Subject::Shape, "is counted as", |scene| {
        let counters = scene.entries(Keyspace::Counter, scene.partition());
        let (key, _) = counters.into_iter().find(|(key, _)| key[4] == keys::SHAPE_COUNT).expect("a shape");
        scene.plant(move |tx| tx.put(Keyspace::Counter, key, vec![0, 0, 0, 0, 0, 0, 0, 99]));
    }),
    ("a shape that no item has", Subject::Shape, "that no item has", |scene| {
        let (keyspace, key) = Key::ShapeCount(scene.partition(), Generation(1), [7; 16]).encode();
        scene.plant(move |tx| tx.put(keyspace, key, vec![0, 0, 0, 0, 0, 0, 0, 1]));
    }),
    ("the purge's hand has passed items", Subject::Hand, "would never be purged", |scene| {
        let (partition, queue) = (scene.partition(), Queue::Date(16));
        let (keyspace, key) = Key::PurgeCursor(partition, queue).encode();
        let (_, cursor) =
            Key::Queue { partition, queue, base: i64::MAX, number: document::ItemNumber(1) }.encode();
        scene.plant(move |tx| tx.put(keyspace, key, cursor));
    }),
    ("a held item has no note", Subject::Hold, "the note of its hold is missing", |scene| {
        let counters = scene.entries(Keyspace::Counter, scene.partition());
        let (key, _) = counters.into_iter().find(|(key, _)| key[4] == keys::HELD).expect("a hold");
        scene.plant(move |tx| tx.remove(Keyspace::Counter, key));
    }),
    ("the note of a hold on no item", Subject::Hold, "which is not there", |scene| {
        let (keyspace, key) = Key::Held(scene.partition(), document::ItemNumber(3)).encode();
        scene.plant(move |tx| tx.put(keyspace, key, vec![0; 9]));
    }),
    ("the note of a read is lost", Subject::Touch, "the record of its last read is missing", |scene| {
        let counters = scene.entries(Keyspace::Counter, scene.partition());
        let (key, _) =
            counters.into_iter().find(|(key, _)| key[4] == keys::SLIDING_RENEWAL).expect("a touch");
        scene.plant(move |tx| tx.remove(Keyspace::Counter, key));
    }),
    ("a number that was given would be given again", Subject::Catalog, "which is in use", |scene| {
        let (keyspace, key) = Key::LastNumber.encode();
        scene.plant(move |tx| tx.put(keyspace, key, vec![0, 0, 0, 1]));
    }),
];

/// What a repair cannot bring back: an LSN, for which it takes one that is surely not too low; the reason of a hold, a cursor that was never needed, numbers that were left out.
const NOT_BYTE_FOR_BYTE: &[&str] = &[
    "a held item has no note",
    "a number that was given would be given again",
    "the LSN of a range is behind its items",
    "the LSN of a range is ahead of the store",
    "the LSN of a range is gone",
];

#[test]
fn whatever_follows_from_the_items_is_found_and_repaired() {
    for (name, subject, words, plant) in REPAIRED {
        let scene = Scene::new();
        let sound = scene.check();
        assert!(sound.is_sound(), "before '{name}': {:#?}", sound.told);
        let before = scene.contents();
        plant(&scene);
        let report = scene.check();
        let is_meant = |finding: &super::Finding| {
            finding.subject == *subject
                && finding.to_string().contains(words)
                && finding.remedy == Remedy::Repair
        };
        assert!(report.told.iter().any(is_meant), "{name}: {:#?}", report.told);
        assert_eq!(report.found(), report.repairable(), "{name}: {:#?}", report.told);
        let repair = repair(&*scene.store, &mut |_| ()).expect("a repair");
        assert!(repair.after.is_sound() && repair.repaired > 0, "{name}: {:#?}", repair.after.told);
        assert!(scene.check().is_sound(), "{name}");
        if !NOT_BYTE_FOR_BYTE.contains(name) {
            assert!(scene.contents() == before, "{name}: the store is not what it was");
        }
        Engine::open(scene.store.clone()).expect("it opens").check_index(&scene.container).expect("sound");
    }
}

/// Damage in entries that cannot be derived: the repair is refused with the reason, and the entries stay as they are.
const REFUSED: &[(&str, Subject, &str, &str, Plant)] = &[
    ("an item that is none", Subject::Item, "cannot be read", "it cannot be derived", |scene| {
        put_first(scene, Keyspace::Item, &[1, 2, 3]);
    }),
    ("a body that is cut", Subject::Item, "cannot be read", "it cannot be derived", |scene| {
        let (key, mut value) = scene.entries(Keyspace::Item, scene.partition()).remove(0);
        value.truncate(value.len() - 3);
        scene.plant(move |tx| tx.put(Keyspace::Item, key, value));
    }),
    (
        "a header that contradicts its body",
        Subject::Item,
        "another ttl than its body",
        "it is unknown",
        |scene| {
            let (key, mut value) = scene.entries(Keyspace::Item, scene.partition()).remove(0);
            let (header, _) = Header::decode(&value).expect("a header");
            assert_eq!(header.ttl, crate::definition::OwnTtl::Absent);
            value[0] |= 1;
            scene.plant(move |tx| tx.put(Keyspace::Item, key, value));
        },
    ),
    ("two items of one unique key", Subject::Unique, "is also that of", "delete one of them", |scene| {
        let items = scene.entries(Keyspace::Item, scene.partition());
        let (first, second) = (items[0].1.clone(), items[1].clone());
        let (_, body) = Header::decode(&first).expect("a header");
        let text = String::from_utf8_lossy(&first[body..]).into_owned();
        assert!(text.contains("a@x"), "{text}");
        let mut value = second.1;
        let at = value.windows(3).position(|part| part[1..] == *b"@x").expect("an address");
        value[at] = b'a';
        scene.plant(move |tx| tx.put(Keyspace::Item, second.0, value));
    }),
    (
        "an id of an item that is hidden",
        Subject::Id,
        "which a watermark hides",
        "restore a backup",
        |scene| {
            let (mut key, _) = scene.entries(Keyspace::Id, scene.partition()).remove(0);
            key.push(b'!');
            let prefix = scene.partition().0.to_be_bytes();
            scene.plant(move |tx| {
                tx.put(Keyspace::Id, key, 5_u64.to_be_bytes().to_vec());
                tx.set_watermark(prefix, 6).expect("a watermark");
            });
        },
    ),
    ("a key of no kind", Subject::Key, "a key of no known kind", "its meaning is unknown", |scene| {
        let key = [&keys::partition(scene.partition())[..], &[0xEE, 1]].concat();
        scene.plant(move |tx| tx.put(Keyspace::Counter, key, "?"));
    }),
    (
        "entries of a partition without owner",
        Subject::Partition,
        "that no container has",
        "restore a backup",
        |scene| {
            let (keyspace, key) = Key::Item(PartitionId(4711), document::ItemNumber(1)).encode();
            scene.plant(move |tx| tx.put(keyspace, key, "lost"));
        },
    ),
    ("a container without its rules", Subject::Catalog, "has no policy", "restore a backup", |scene| {
        let (keyspace, key) = Key::Policy(scene.partition()).encode();
        scene.plant(move |tx| tx.remove(keyspace, key));
    }),
    (
        "a container without its database",
        Subject::Catalog,
        "which is not there",
        "restore a backup",
        |scene| {
            let (keyspace, key) = Key::Database(scene.container.rid.database).encode();
            scene.plant(move |tx| tx.remove(keyspace, key));
        },
    ),
    (
        "rules that contradict the definition",
        Subject::Policy,
        "disagree on defaultTtl",
        "set defaultTtl again",
        |scene| {
            let (keyspace, key) = Key::Policy(scene.partition()).encode();
            scene.plant(move |tx| {
                let mut value = tx.get(keyspace, &key).expect("read").expect("there").to_vec();
                value[11] ^= 1;
                tx.put(keyspace, key, value);
            });
        },
    ),
    ("a line of the deletion record", Subject::Deletion, "was changed", "evidence", |scene| {
        let (keyspace, key) = Key::Deletion(scene.partition(), 1).encode();
        scene.plant(move |tx| {
            let line = tx.get(keyspace, &key).expect("read").expect("there");
            let line = String::from_utf8(line.to_vec()).expect("text").replace("\"db\"", "\"dc\"");
            tx.put(keyspace, key, line.into_bytes());
        });
    }),
    ("a recorded change", Subject::History, "a recorded change", "restore a backup", |scene| {
        let events = scene.entries(Keyspace::History, scene.partition());
        let (key, _) = events.into_iter().find(|(key, _)| key[4] == keys::HISTORY_CHANGE).expect("a change");
        scene.plant(move |tx| tx.put(Keyspace::History, key, vec![9; 30]));
    }),
    (
        "two documents of one unique index",
        Subject::Unique,
        "unique index 'mail'",
        "delete one of them",
        |scene| {
            let items = scene.entries(Keyspace::Item, scene.collection_partition());
            let (key, mut value) = items[1].clone();
            let at = value.windows(4).position(|part| part[..3] == *b"2@x").expect("an address");
            value[at] = b'1';
            let index = scene.entries(Keyspace::Index, scene.collection_partition());
            let (first, second) = (index[0].0.clone(), index[1].clone());
            let twin = [&first[..first.len() - 8], &second.0[second.0.len() - 8..]].concat();
            scene.plant(move |tx| {
                tx.put(Keyspace::Item, key, value);
                tx.remove(Keyspace::Index, second.0);
                tx.put(Keyspace::Index, twin, second.1);
            });
        },
    ),
];

#[test]
fn whatever_follows_from_nothing_else_is_refused_with_the_reason() {
    for (name, subject, words, reason, plant) in REFUSED {
        let scene = Scene::new();
        plant(&scene);
        let items = |scene: &Scene| scene.entries(Keyspace::Item, scene.partition());
        let before = items(&scene);
        let is_meant = |finding: &super::Finding| {
            finding.subject == *subject
                && finding.what.contains(words)
                && matches!(finding.remedy, Remedy::Refused(why) if why.contains(reason))
        };
        let report = scene.check();
        assert!(report.told.iter().any(is_meant), "{name}: {:#?}", report.told);
        let repair = repair(&*scene.store, &mut |_| ()).expect("a repair");
        assert!(repair.after.told.iter().any(is_meant), "{name}: {:#?}", repair.after.told);
        assert_eq!(repair.after.repairable(), 0, "{name}: {:#?}", repair.after.told);
        assert!(items(&scene) == before, "{name}: no item is touched");
    }
}

#[test]
fn a_report_tells_a_bounded_number_and_counts_all() {
    let scene = Scene::new();
    let partition = scene.partition();
    scene.plant(move |tx| {
        for number in 0..1500_u64 {
            let (keyspace, key) = Key::Held(partition, document::ItemNumber(number << 32)).encode();
            tx.put(keyspace, key, vec![0; 9]);
        }
    });
    let report = scene.check();
    assert_eq!((report.told.len(), report.found()), (1000, 1500));
    let repair = repair(&*scene.store, &mut |_| ()).expect("a repair");
    assert_eq!((repair.repaired, repair.after.is_sound()), (1500, true));
}
