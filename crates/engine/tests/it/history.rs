//! The feed of all versions and deletes (T28).

use engine::collection::{Decision, LivingDocument, Target};
use engine::{Error, Event, EventKind, HistoryPage, HistoryStart, Item, Lifecycle, Owner, Position, Scope};
use storage::{Direction, Time};

use crate::collections::{by, date, item, raw};
use crate::world::{START, World};

pub(crate) const MINUTES: u32 = 10;

pub(crate) fn keep(world: &World, minutes: Option<u32>) {
    let owner = Owner::Container(world.current());
    let change = |lifecycle: &mut Lifecycle| lifecycle.history_minutes = minutes;
    world.engine.change_lifecycle(&owner, change).expect("a change");
}

fn page(world: &World, scope: &Scope, start: HistoryStart, max: usize) -> Result<HistoryPage<Item>, Error> {
    let (container, barrier) = (world.current(), world.engine.barrier().expect("a barrier"));
    world.engine.container_history(&container, &container.partitions[0], scope, &barrier, start, max)
}

pub(crate) fn now(world: &World) -> Position {
    page(world, &Scope::default(), HistoryStart::Now, 1).expect("a page").next
}

pub(crate) fn after(world: &World, position: Position) -> (Vec<String>, Position) {
    let page = page(world, &Scope::default(), HistoryStart::After(position), 100).expect("a page");
    (page.events.iter().map(told).collect(), page.next)
}

/// Returns an event in short: what happened, to which id, from which version to which.
fn told(event: &Event<Item>) -> String {
    let version = |item: &Option<Item>| {
        let version = item.as_ref().and_then(|item| item.body.get("v")?.as_i64());
        version.map_or(String::new(), |version| version.to_string())
    };
    let item = event.current.as_ref().or(event.previous.as_ref()).expect("an image");
    let versions = format!("{}>{}", version(&event.previous), version(&event.current));
    format!("{:?} {} {versions} @{}", event.kind, item.id(), event.position.time().seconds() % 1000)
}

#[test]
fn t28_an_expiry_is_told_at_its_instant_whether_or_not_it_was_removed() {
    let world = World::new();
    world.container(r#","defaultTtl":-1"#);
    keep(&world, Some(MINUTES));
    let begun = now(&world);
    let expiring = world.create("a", r#""id":"expiring","v":1,"ttl":5"#).expect("created");
    world.create("a", r#""id":"other","v":1,"ttl":7"#).expect("created");
    world.pass(6);
    let later = world.create("a", r#""id":"later","v":1"#).expect("created");
    world.pass(2);
    let expected = [
        "Create expiring >1 @0",
        "Create other >1 @0",
        "Expire expiring 1> @5",
        "Create later >1 @6",
        "Expire other 1> @7",
    ];
    assert_eq!(after(&world, begun).0, expected);
    let events = page(&world, &Scope::default(), HistoryStart::After(begun), 100).expect("a page").events;
    let lsns: Vec<_> = events.iter().map(|event| (event.lsn, event.previous_lsn)).collect();
    assert_eq!(lsns[2], (lsns[1].0, Some(expiring.lsn)), "an expiry takes no number");
    assert_eq!(lsns[4].0, later.lsn);

    world.engine.purge_step(100).expect("a step");
    assert_eq!(after(&world, begun).0, expected, "the purge is not seen");
    world.create("a", r#""id":"expiring","v":9,"ttl":1"#).expect("created again");
    world.pass(5);
    world.create("a", r#""id":"expiring","v":10"#).expect("created in the place of an expired one");
    let (events, _) = after(&world, begun);
    assert_eq!(events[5..], ["Create expiring >9 @8", "Expire expiring 9> @9", "Create expiring >10 @13"]);
}

#[test]
fn t28_what_is_older_than_the_retention_is_gone_at_once() {
    let world = World::new();
    world.container("");
    assert!(matches!(page(&world, &Scope::default(), HistoryStart::Now, 1), Err(Error::Invalid { .. })));
    let early = world.engine.barrier().expect("a barrier").position();
    keep(&world, Some(1));
    let start = HistoryStart::After(early);
    assert_eq!(page(&world, &Scope::default(), start, 9).err(), Some(Error::HistoryGone), "not kept then");
    let begun = now(&world);
    world.create("a", r#""id":"1","v":1"#).expect("created");
    world.pass(30);
    let (events, middle) = after(&world, begun);
    assert_eq!(events.len(), 1);
    world.create("a", r#""id":"2","v":1"#).expect("created");
    world.pass(31);
    let start = HistoryStart::After(begun);
    assert_eq!(page(&world, &Scope::default(), start, 9).err(), Some(Error::HistoryGone));
    let kept = page(&world, &Scope::default(), HistoryStart::Oldest, 9).expect("a page").events;
    assert_eq!(kept.len(), 1, "the oldest that is kept is the second");
    keep(&world, Some(60));
    assert_eq!(
        page(&world, &Scope::default(), start, 9).err(),
        Some(Error::HistoryGone),
        "nothing comes back"
    );
    assert_eq!(after(&world, middle).0, ["Create 2 >1 @30"]);
    keep(&world, None);
    keep(&world, Some(60));
    let start = HistoryStart::After(middle);
    assert_eq!(page(&world, &Scope::default(), start, 9).err(), Some(Error::HistoryGone), "it began again");
}

#[test]
fn t28_a_document_written_expired_is_stored_and_expires_behind_its_own_write() {
    let world = World::new();
    let collection = world.collection("c");
    world.index(&collection, &by("at").with("expireAfterSeconds", 0));
    let change = |lifecycle: &mut Lifecycle| lifecycle.history_minutes = Some(MINUTES);
    world.engine.change_lifecycle(&Owner::Collection(collection.clone()), change).expect("a change");
    let read = |start| {
        let barrier = world.engine.barrier().expect("a barrier");
        world.engine.collection_history(&collection, &barrier, start, 100).expect("a page")
    };
    let begun = read(HistoryStart::Now).next;
    world.put(&collection, &item(1).with("at", date(5))).expect("inserted");
    world.put(&collection, &item(2).with("at", date(START + 5))).expect("inserted");
    let expired = Decision::Replace(raw(&item(2).with("at", date(7))));
    world.modify(&collection, Target::Id(2.into()), expired).expect("replaced");
    let events = read(HistoryStart::After(begun)).events;
    let told: Vec<_> = events.iter().map(|event: &Event<LivingDocument>| (event.kind, event.lsn)).collect();
    let (first, second, third) = (told[0].1, told[2].1, told[3].1);
    assert_eq!(
        told,
        [
            (EventKind::Create, first),
            (EventKind::Expire, first),
            (EventKind::Create, second),
            (EventKind::Replace, third),
            (EventKind::Expire, third)
        ]
    );
    assert!(events.is_sorted_by_key(|event| event.position));
    assert_eq!(world.all(&collection, Direction::Forward), [0; 0]);
}

#[test]
fn t28_t34_while_the_clock_is_suspect_nothing_expires_and_the_feed_is_in_order_either_way() {
    for accept in [true, false] {
        let mut world = World::new();
        world.container(r#","defaultTtl":900"#);
        keep(&world, Some(1_000_000));
        let begun = now(&world);
        world.create("a", r#""id":"x","v":1"#).expect("created");
        world.clock.set_wall(Time::from_seconds(START + 90 * 86_400));
        world.restart();
        world.create("a", r#""id":"z","v":1"#).expect("writes go on");
        assert!(!world.is_living("a", "x"), "hidden by the wall clock");
        let (events, next) = after(&world, begun);
        let kinds: Vec<_> = events.iter().map(|event| event.split(" @").next().expect("a kind")).collect();
        assert_eq!(kinds, ["Create x >1", "Create z >1"], "but not expired");
        if accept {
            world.engine.accept_clock().expect("accepted");
        } else {
            world.engine.reject_clock().expect("rejected");
            assert_eq!(after(&world, next).0, [""; 0]);
            world.pass(15 * 60);
        }
        let (events, next) = after(&world, next);
        assert_eq!(events, ["Expire x 1> @900"]);
        world.drain();
        assert_eq!(after(&world, next).0, [""; 0]);
    }
}
