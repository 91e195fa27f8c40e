//! Exports: every living item once, page by page, whatever happens between two pages.

use engine::{Error, ExportPage, Exported, Owner, Precondition, Throughput};

use crate::collections::{item, raw};
use crate::world::{World, definition};

/// Returns the next page: ids, and the token to continue from.
fn page(
    world: &World,
    owner: &Owner,
    after: Option<&str>,
    max_bytes: usize,
) -> (Vec<String>, Option<String>) {
    let ExportPage { living, next, .. } = world.engine.export_page(owner, after, max_bytes).expect("a page");
    let Exported::Items(items) = living else { panic!("a container has items") };
    (items.iter().map(|item| item.id().to_owned()).collect(), next)
}

/// Returns all pages from a token on.
fn rest(world: &World, owner: &Owner, mut after: Option<String>, max_bytes: usize) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let (ids, next) = page(world, owner, after.as_deref(), max_bytes);
        all.extend(ids);
        after = next;
        if after.is_none() {
            return all;
        }
    }
}

#[test]
fn an_item_is_exported_once_whatever_is_written_between_two_pages() {
    let world = World::new();
    world.container("");
    for n in 0..10 {
        world.create("a", &format!(r#""id":"{n}""#)).expect("new");
    }
    let owner = world.owner();
    assert_eq!(rest(&world, &owner, None, 1), (0..10).map(|n| n.to_string()).collect::<Vec<_>>());
    let (first, next) = page(&world, &owner, None, 1);
    assert_eq!(first, ["0"]);
    world.replace("a", "0", r#""id":"0","again":true"#).expect("it lives");
    world.delete("a", "3").expect("it lives");
    world.create("a", r#""id":"new""#).expect("new");
    assert_eq!(rest(&world, &owner, next, 40), ["1", "2", "4", "5", "6", "7", "8", "9", "new"]);
}

#[test]
fn t14_expired_items_are_not_exported_and_no_token_names_them() {
    let tokens = |purged: bool| {
        let world = World::new();
        world.container(r#","defaultTtl":-1"#);
        for n in 0..6 {
            let ttl = if n % 2 == 0 { r#","ttl":10"# } else { "" };
            world.create("a", &format!(r#""id":"{n}"{ttl}"#)).expect("new");
        }
        world.pass(10);
        if purged {
            world.engine.purge_step(100).expect("a step");
        }
        let owner = world.owner();
        assert_eq!(rest(&world, &owner, None, 1), ["1", "3", "5"]);
        let (_, first) = page(&world, &owner, None, 1);
        let (_, second) = page(&world, &owner, first.as_deref(), 1);
        (first, second)
    };
    assert_eq!(tokens(false), tokens(true));
}

#[test]
fn t33_an_export_restarts_no_countdown() {
    let world = World::new();
    world.container(r#","defaultTtl":10"#);
    world
        .engine
        .change_lifecycle(&world.owner(), |settings| settings.sliding = true)
        .expect("a valid setting");
    world.create("a", r#""id":"x""#).expect("new");
    world.pass(6);
    assert_eq!(rest(&world, &world.owner(), None, 100), ["x"]);
    world.pass(6);
    assert!(!world.is_living("a", "x"));
}

#[test]
fn all_partitions_are_exported_and_collections_to_the_byte() {
    let world = World::new();
    let database = world.engine.database("db").expect("made at the start");
    let many = Some(Throughput::Manual(30_000));
    let container = world.engine.create_container(&database, definition("c", ""), many).expect("new");
    assert!(container.partitions.len() > 1);
    for n in 0..30 {
        world.create(&format!("k{n}"), &format!(r#""id":"{n}""#)).expect("new");
    }
    let mut all = rest(&world, &world.owner(), None, 200);
    all.sort_by_key(|id| id.parse::<u32>().expect("a number"));
    assert_eq!(all, (0..30).map(|n| n.to_string()).collect::<Vec<_>>());

    let collection = world.collection("coll");
    let documents: Vec<_> = (0..5).map(|n| raw(&item(n).with("text", "x".repeat(100)))).collect();
    world.engine.insert(&collection, documents.clone(), true, None).wait().expect("an answer");
    let owner = Owner::Collection(collection);
    let page = world.engine.export_page(&owner, None, 250).expect("a page");
    let Exported::Documents(first) = page.living else { panic!("a collection has documents") };
    assert_eq!(first, documents[..2]);
    let page = world.engine.export_page(&owner, page.next.as_deref(), 10_000).expect("a page");
    let Exported::Documents(second) = page.living else { panic!("a collection has documents") };
    assert_eq!((second.as_slice(), page.next), (&documents[2..], None));
}

#[test]
fn a_token_of_a_container_that_was_made_again_is_refused() {
    let world = World::new();
    world.container("");
    for n in 0..3 {
        world.create("a", &format!(r#""id":"{n}""#)).expect("new");
    }
    let (_, next) = page(&world, &world.owner(), None, 1);
    world.engine.delete_container(&world.current(), &Precondition::None).expect("it is there");
    world.container("");
    let next = next.expect("more");
    let refused = world.engine.export_page(&world.owner(), Some(&next), 1);
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{next}: {refused:?}");
    for token in
        ["", "1", "x.y", "1.2.3", "-1.1", &next[1..], &next[..next.len() - 1], &next.replacen('A', "B", 1)]
    {
        let refused = world.engine.export_page(&world.owner(), Some(token), 1);
        assert!(matches!(refused, Err(Error::InvalidContinuation { .. })), "{token}: {refused:?}");
    }
}
