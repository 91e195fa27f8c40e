//! A damaged expired item is absent for requests: no read shows it, its id and its unique values are free, and the feed
//! of all versions continues without it.

use std::time::Duration;

use document::{Document, PartitionKey};
use storage::Keyspace;

use super::damage_tests::{ITEMS, Scene, archived, collection, container, lose_counter, raw};
use crate::access::gate::View;
use crate::keys;
use crate::maintenance::check::{check, repair};
use crate::types::request::Scope;
use crate::{
    Effect, Engine, Error, EventKind, HistoryStart, ItemName, Operation, Outcome, Owner, Precondition,
};

/// The item that is damaged.
const DAMAGED: usize = 1;

/// Returns a scene whose items have all expired and are still there, of which the second was damaged before.
fn expired(make: fn(&Engine) -> Owner, damage: fn(&Scene, &[u8], &[u8])) -> Scene {
    let scene = Scene::new(make);
    scene.fill(0..ITEMS);
    let (key, value) = scene.entries(Keyspace::Item).remove(DAMAGED);
    damage(&scene, &key, &value);
    scene.clock.advance(Duration::from_secs(200));
    scene
}

fn cut_body(scene: &Scene, key: &[u8], value: &[u8]) {
    let (key, cut) = (key.to_vec(), value[..value.len() - 3].to_vec());
    scene.plant(move |tx| tx.put(Keyspace::Item, key, cut));
}

fn no_header(scene: &Scene, key: &[u8], _: &[u8]) {
    let key = key.to_vec();
    scene.plant(move |tx| tx.put(Keyspace::Item, key, "?"));
}

fn no_counter(scene: &Scene, key: &[u8], _: &[u8]) {
    lose_counter(scene, key);
}

fn no_item(scene: &Scene, key: &[u8], _: &[u8]) {
    let key = key.to_vec();
    scene.plant(move |tx| tx.remove(Keyspace::Item, key));
}

fn body(number: usize) -> Document {
    let text = format!(r#"{{"id":"{number}","pk":"p","n":{number}}}"#);
    Document::from_json(text.as_bytes()).expect("JSON")
}

fn write(scene: &Scene, operation: Operation) -> Result<Outcome, Error> {
    let Owner::Container(container) = &scene.owner else { panic!("a container") };
    let key = PartitionKey::from_header(r#"["p"]"#).expect("a key");
    scene.engine.write(container, Some(key), operation).wait()
}

/// Writes a living item with the same id and the same unique value.
fn create(scene: &Scene) -> Result<(), Error> {
    match &scene.owner {
        Owner::Container(_) => {
            let made = write(scene, Operation::Create { body: body(DAMAGED) })?;
            assert_eq!(made.effect, Effect::Created);
            Ok(())
        }
        Owner::Collection(collection) => {
            let text = format!(r#"{{"_id":{DAMAGED},"at":{{"$date":"2033-01-01T00:00:00Z"}}}}"#);
            let mut made = scene.engine.insert(collection, vec![raw(&text)], true, None).wait()?;
            made.remove(0).map(drop)
        }
    }
}

fn read(scene: &Scene) -> Result<Outcome, Error> {
    let Owner::Container(container) = &scene.owner else { panic!("a container") };
    let key = PartitionKey::from_header(r#"["p"]"#).expect("a key");
    let name = ItemName::Id(DAMAGED.to_string());
    scene.engine.read(container, &key, &name, &Precondition::None)
}

#[test]
fn t15_the_place_of_an_expired_item_that_is_damaged_is_free() {
    for make in [container as fn(&Engine) -> Owner, archived, collection] {
        for damage in [cut_body as fn(&Scene, &[u8], &[u8]), no_counter] {
            let mut scene = expired(make, damage);
            let (key, _) = scene.entries(Keyspace::Item).remove(DAMAGED);
            let number = keys::item_number(&key).expect("a number").0;
            create(&scene).expect("its id and its unique value are free");
            if matches!(scene.owner, Owner::Container(_)) {
                read(&scene).expect("the new one");
                let again = write(&scene, Operation::Create { body: body(DAMAGED) });
                assert!(matches!(again, Err(Error::Exists { .. })), "{again:?}");
            }
            // Later the new item expires as well, or stays; the damaged one is set aside in either case, and
            // reported.
            let expires = matches!(scene.owner, Owner::Container(_));
            assert_eq!(scene.purge(), ITEMS as u64 - 1 + u64::from(expires));
            assert_eq!((scene.set_aside(), scene.named()), (1, vec![number]));
            scene.restart();
            if expires {
                create(&scene).expect("free again");
            }
            assert_eq!(scene.set_aside(), 1);
        }
    }
}

/// The bytes come back, as from a backup: the item that has taken the name keeps it, and the old one is removed
/// without a trace.
#[test]
fn t22_a_damaged_item_that_can_be_read_again_leaves_its_place_to_the_later_one() {
    for make in [container as fn(&Engine) -> Owner, archived, collection] {
        let mut scene = Scene::new(make);
        scene.fill(0..ITEMS);
        let (key, value) = scene.entries(Keyspace::Item).remove(DAMAGED);
        cut_body(&scene, &key, &value);
        scene.clock.advance(Duration::from_secs(200));
        create(&scene).expect("the place is free");
        scene.plant(move |tx| tx.put(Keyspace::Item, key, value));
        let told = check(&*scene.store, &mut |_| ()).expect("an inspection");
        assert!(told.is_sound(), "{:#?}", told.told);
        let repaired = repair(&*scene.store, &mut |_| ()).expect("a repair");
        assert!(repaired.after.is_sound(), "{:#?}", repaired.after.told);
        scene.restart();
        while scene.engine.purge_step(2).expect("a step").purged_items > 0 {}
        assert_eq!((scene.set_aside(), scene.entries(Keyspace::Item).len()), (0, 1));
        assert_eq!(scene.entries(Keyspace::Id).len(), 1, "the later one is still found");
        if matches!(scene.owner, Owner::Container(_)) {
            read(&scene).expect("the later one");
            let taken = write(&scene, Operation::Create { body: body(DAMAGED) });
            assert!(matches!(taken, Err(Error::Exists { .. })), "{taken:?}");
        }
        let after = check(&*scene.store, &mut |_| ()).expect("an inspection");
        assert!(after.is_sound(), "{:#?}", after.told);
    }
}

/// A replace keeps its item's number, so an earlier item may have taken the name with a later version.
#[test]
fn t15_a_replaced_item_may_take_the_unique_value_of_an_expired_one_that_is_damaged() {
    let mut scene = Scene::new(container);
    scene.fill(0..ITEMS);
    let (key, value) = scene.entries(Keyspace::Item).remove(DAMAGED);
    no_counter(&scene, &key, &value);
    let replace = |body| {
        let (name, precondition) = (ItemName::Id("0".to_owned()), Precondition::None);
        write(&scene, Operation::Replace { name, body, precondition }).expect("it lives")
    };
    scene.clock.advance(Duration::from_mins(1));
    replace(body(0));
    scene.clock.advance(Duration::from_mins(1));
    let text = format!(r#"{{"id":"0","pk":"p","n":{DAMAGED}}}"#);
    replace(Document::from_json(text.as_bytes()).expect("JSON"));
    let repaired = repair(&*scene.store, &mut |_| ()).expect("a repair");
    assert!(repaired.after.is_sound(), "{:#?}", repaired.after.told);
    scene.restart();
    assert_eq!((scene.purge_due(), scene.set_aside()), (ITEMS as u64 - 1, 0));
    let taken = write(&scene, Operation::Create { body: body(DAMAGED) });
    assert!(matches!(taken, Err(Error::UniqueKeyTaken { .. })), "{taken:?}");
    let after = check(&*scene.store, &mut |_| ()).expect("an inspection");
    assert!(after.is_sound(), "{:#?}", after.told);
}

#[test]
fn t15_where_the_header_cannot_be_read_a_write_names_the_item_and_the_repair() {
    for make in [container as fn(&Engine) -> Owner, collection] {
        let scene = expired(make, no_header);
        let before: Vec<_> = Keyspace::ALL.map(|keyspace| scene.entries(keyspace)).to_vec();
        let Err(Error::Corrupt(text)) = create(&scene) else { panic!("it is damaged") };
        let named = if matches!(scene.owner, Owner::Container(_)) { "item '1' " } else { "document 1 " };
        assert!(text.starts_with(named) && text.ends_with("run bolide check --repair"), "{text}");
        let after: Vec<_> = Keyspace::ALL.map(|keyspace| scene.entries(keyspace)).to_vec();
        assert_eq!(before, after, "nothing was changed");
    }
}

#[test]
fn t14_an_expired_item_that_is_damaged_is_not_there_and_a_living_one_is_an_error() {
    let scene = expired(container, cut_body);
    assert!(matches!(read(&scene), Err(Error::NotFound { .. })));
    let (name, precondition) = (ItemName::Id(DAMAGED.to_string()), Precondition::None);
    let delete = Operation::Delete { name: name.clone(), precondition: precondition.clone() };
    assert!(matches!(write(&scene, delete), Err(Error::NotFound { .. })));
    let replace = Operation::Replace { name, body: body(DAMAGED), precondition };
    assert!(matches!(write(&scene, replace), Err(Error::NotFound { .. })));
    let upsert = Operation::Upsert { body: body(DAMAGED), precondition: Precondition::None };
    assert_eq!(write(&scene, upsert).expect("created").effect, Effect::Created);

    let scene = Scene::new(container);
    scene.fill(0..ITEMS);
    let (key, value) = scene.entries(Keyspace::Item).remove(DAMAGED);
    cut_body(&scene, &key, &value);
    let delete =
        Operation::Delete { name: ItemName::Id(DAMAGED.to_string()), precondition: Precondition::None };
    for outcome in
        [read(&scene), write(&scene, delete), write(&scene, Operation::Create { body: body(DAMAGED) })]
    {
        let Err(Error::Corrupt(text)) = outcome else { panic!("it lives and cannot be read: {outcome:?}") };
        assert!(text.starts_with("item '1' ") && text.ends_with("run bolide check --repair"), "{text}");
    }
}

#[test]
fn an_index_entry_of_an_item_whose_header_cannot_be_read_names_the_item() {
    let scene = Scene::new(container);
    scene.fill(0..ITEMS);
    let (key, value) = scene.entries(Keyspace::Item).remove(DAMAGED);
    no_header(&scene, &key, &value);
    let number = keys::item_number(&key).expect("a number");
    let view = View::open(&*scene.store, scene.partition()).expect("a view");
    let Err(Error::Corrupt(text)) = view.is_number_living(number) else { panic!("it is damaged") };
    assert!(text.starts_with(&format!("item {}: ", number.0)), "{text}");
}

#[test]
fn t28_a_damaged_item_does_not_stop_the_readers_of_the_feed() {
    for damage in [cut_body as fn(&Scene, &[u8], &[u8]), no_header, no_item] {
        let scene = expired(archived, damage);
        let Owner::Container(container) = &scene.owner else { panic!("a container") };
        let told = || {
            let barrier = scene.engine.barrier().expect("a barrier");
            let (start, partition) = (HistoryStart::Oldest, scene.partition());
            let page =
                scene.engine.container_history(container, partition, &Scope::default(), &barrier, start, 100);
            let page = page.expect("a page");
            assert!(!page.more);
            let tell = |event: &crate::Event<crate::Item>| {
                let item = event.current.as_ref().or(event.previous.as_ref()).expect("an image");
                (event.kind, item.id().to_owned())
            };
            page.events.iter().map(tell).collect::<Vec<_>>()
        };
        let of = |kind, numbers: &[usize]| -> Vec<(EventKind, String)> {
            numbers.iter().map(|number| (kind, number.to_string())).collect()
        };
        let expected =
            [of(EventKind::Create, &[0, 1, 2, 3, 4]), of(EventKind::Expire, &[0, 2, 3, 4])].concat();
        assert_eq!(told(), expected, "before the purge");
        while scene.engine.purge_step(2).expect("a step").purged_items > 0 {}
        assert_eq!(scene.set_aside(), 1);
        assert_eq!(told(), expected, "after it");
        let later = Operation::Create { body: body(9) };
        write(&scene, later).expect("created");
        assert_eq!(told(), [expected, of(EventKind::Create, &[9])].concat());
    }
}
