//! Browsing items as an operator does: only living ones, page by page, each with the instant of its expiry.

use document::ItemNumber;
use engine::{BrowsePosition, ItemAddress, Owner, Throughput};

use super::collections::{by, date, item};
use super::world::{START, World, definition};

fn names(items: &[engine::BrowsedItem]) -> Vec<String> {
    let name = |seen: &engine::BrowsedItem| match &seen.address {
        ItemAddress::Id(_, id) => id.clone(),
        ItemAddress::DocumentId(id) => format!("{id:?}"),
    };
    items.iter().map(name).collect()
}

/// Returns all pages together, and how many there were.
fn all_pages(world: &World, owner: &Owner, max_items: usize) -> (Vec<String>, usize) {
    let (mut all, mut pages, mut after): (Vec<String>, usize, Option<BrowsePosition>) = (Vec::new(), 0, None);
    loop {
        let page = world.engine.browse(owner, after, max_items).expect("a page");
        all.extend(names(&page.items));
        pages += 1;
        match page.next {
            Some(place) => after = Some(place.to_string().parse().expect("a place comes back as it was")),
            None => return (all, pages),
        }
    }
}

#[test]
fn t14_pages_show_living_items_once_and_each_with_its_expiry() {
    let world = World::new();
    world.container(r#","defaultTtl":100"#);
    for id in 0..20 {
        let ttl = if id % 4 == 0 { r#","ttl":10"# } else { "" };
        world.create("a", &format!(r#""id":"{id:02}"{ttl}"#)).expect("new");
    }
    let owner = world.owner();
    assert_eq!(all_pages(&world, &owner, 7).0.len(), 20);
    let expiries = |page: &engine::Browsed| {
        page.items.iter().filter_map(|seen| seen.expiry).map(storage::Time::seconds).collect::<Vec<_>>()
    };
    let first = world.engine.browse(&owner, None, 2).expect("a page");
    assert_eq!(expiries(&first), [START + 10, START + 100]);

    world.pass(10);
    let living: Vec<String> = (0..20).filter(|id| id % 4 != 0).map(|id| format!("{id:02}")).collect();
    for max_items in [1, 5, 15, 16, 100] {
        let (all, pages) = all_pages(&world, &owner, max_items);
        assert_eq!(all, living, "{max_items}");
        assert!(pages <= living.len().div_ceil(max_items) + 1, "{pages} pages of {max_items}");
    }
    let before = all_pages(&world, &owner, 5);
    world.drain();
    assert_eq!(all_pages(&world, &owner, 5).0, before.0, "no reader can tell whether the purge has run");
    world.pass(90);
    assert_eq!(all_pages(&world, &owner, 5).0, Vec::<String>::new());
}

#[test]
fn the_newest_come_first_and_a_number_is_one_items_for_ever() {
    let world = World::new();
    world.container(r#","defaultTtl":100"#);
    for id in ["a", "b", "c"] {
        world.create("k", &format!(r#""id":"{id}""#)).expect("new");
    }
    world.replace("k", "a", r#""id":"a","n":2"#).expect("there");
    let owner = world.owner();
    let latest = world.engine.latest(&owner, 2).expect("a page");
    assert_eq!(names(&latest.items), ["a", "c"]);
    let number = latest.items[0].number;
    let seen = world.engine.look_at(&owner, &[ItemNumber(u64::MAX), number]).expect("a look");
    assert_eq!(names(&seen.items), ["a"]);
    assert_eq!(seen.items[0].etag(), world.read("k", "a").expect("there").etag.to_string());
    world.delete("k", "a").expect("there");
    world.create("k", r#""id":"a""#).expect("new");
    assert!(world.engine.look_at(&owner, &[number]).expect("a look").items.is_empty());
}

#[test]
fn several_physical_partitions_follow_each_other() {
    let world = World::new();
    let database = world.engine.database("db").expect("made at the start");
    let throughput = Some(Throughput::Manual(30_000));
    let container = world.engine.create_container(&database, definition("c", ""), throughput).expect("new");
    assert!(container.partitions.len() > 1);
    for id in 0..30 {
        world.create(&format!("k{id}"), &format!(r#""id":"{id:02}""#)).expect("new");
    }
    let owner = world.owner();
    for max_items in [1, 4, 10, 30, 31] {
        let mut all = all_pages(&world, &owner, max_items).0;
        all.sort();
        assert_eq!(all, (0..30).map(|id| format!("{id:02}")).collect::<Vec<_>>(), "{max_items}");
    }
}

#[test]
fn t27_documents_are_seen_with_the_first_of_their_expiries() {
    let world = World::new();
    let collection = world.collection("m");
    world.index(&collection, &by("at").with("expireAfterSeconds", 5));
    world.put(&collection, &item(1).with("at", date(START + 20))).expect("new");
    world.put(&collection, &item(2)).expect("new");
    let owner = Owner::Collection(collection);
    let seen = world.engine.browse(&owner, None, 10).expect("a page").items;
    let expiries: Vec<_> = seen.iter().map(|seen| seen.expiry.map(storage::Time::seconds)).collect();
    assert_eq!(expiries, [Some(START + 25), None]);
    world.pass(25);
    assert_eq!(world.engine.browse(&owner, None, 10).expect("a page").items.len(), 1);
}
