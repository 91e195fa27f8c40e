//! Collections of the MongoDB API: their names, their items, and who of them lives.

use std::sync::Arc;

use bson::{Document, RawDocument, Value, ValueRef};
use document::ItemNumber;
use engine::collection::{Decision, Found, Modified, Receipt, Receipts, Target, Verdict};
use engine::{Collection, CollectionDefinition, DefaultTtl, Error};
use storage::Direction;

use crate::world::{START, World};

fn item(id: i32) -> Document {
    Document::new().with("_id", id)
}

fn raw(document: &Document) -> RawDocument {
    RawDocument::from_document(document)
}

impl World {
    fn collection(&self, name: &str) -> Arc<Collection> {
        let made = self.engine.create_collection("db", name, CollectionDefinition::default(), None);
        made.expect("a fresh name")
    }

    fn put(&self, collection: &Arc<Collection>, document: &Document) -> Result<(), Error> {
        let outcome = self.engine.insert(collection, vec![raw(document)], true, None).wait();
        outcome.expect("an answer").remove(0)
    }

    fn modify(
        &self,
        collection: &Arc<Collection>,
        target: Target,
        decision: Decision,
    ) -> Result<Modified, Error> {
        self.engine.modify(collection, target, move |_, _| Ok(decision.into()), None).wait()
    }

    fn get(&self, collection: &Arc<Collection>, id: i32) -> Option<Found> {
        let reading = self.engine.reading(&[collection]).expect("a reading");
        reading.by_id(collection, ValueRef::Int32(id)).expect("a look")
    }

    fn all(&self, collection: &Arc<Collection>, direction: Direction) -> Vec<i32> {
        let reading = self.engine.reading(&[collection]).expect("a reading");
        let (mut all, mut last) = (Vec::new(), None);
        loop {
            let page = reading.natural(collection, last, direction, 3, 1 << 20).expect("a page");
            let Some(found) = page.last() else { return all };
            last = Some(found.number);
            all.extend(page.iter().map(|found| match found.document.get("_id") {
                Some(ValueRef::Int32(id)) => id,
                other => panic!("{other:?}"),
            }));
        }
    }
}

#[test]
fn names_of_one_api_mean_nothing_in_the_other() {
    let mut world = World::new();
    let container = world.container("");
    let collection = world.collection("c");
    world.engine.create_collection_database("kept", None).expect("a fresh name");
    for _ in 0..2 {
        let names = |databases: Vec<Arc<engine::Database>>| -> Vec<String> {
            databases.iter().map(|database| database.name.clone()).collect()
        };
        assert_eq!(names(world.engine.databases()), ["db"]);
        assert_eq!(names(world.engine.collection_databases()), ["db", "kept"]);
        let database = world.engine.database("db").expect("made");
        assert_eq!(world.engine.containers(&database).len(), 1);
        assert_eq!(world.engine.collections("db").len(), 1);
        assert_eq!(world.engine.collection("db", "c").expect("made").rid, collection.rid);
        assert_eq!(world.engine.container(&database, "c").expect("made").rid, container.rid);
        world.restart();
    }
    world.engine.drop_collection_database("db").expect("there");
    assert!(world.engine.collections("db").is_empty());
    assert!(world.engine.database("db").is_ok());
}

#[test]
fn a_database_comes_with_its_first_collection_and_goes_with_its_last() {
    let world = World::new();
    let (first, second) = (world.collection("a"), world.collection("b"));
    let taken = world.engine.create_collection("db", "a", CollectionDefinition::default(), None);
    assert!(matches!(taken, Err(Error::Exists { .. })));
    world.engine.drop_collection(&first).expect("there");
    assert!(matches!(world.engine.drop_collection(&first), Err(Error::NotFound { .. })));
    assert!(matches!(world.put(&second, &item(1)), Ok(())));
    let gone = world.engine.insert(&first, vec![raw(&item(1))], true, None).wait();
    assert!(matches!(gone, Err(Error::OwnerNotFound { .. })));
    world.engine.drop_collection(&second).expect("there");
    assert!(world.engine.collection_databases().is_empty());
}

#[test]
fn a_renamed_collection_keeps_its_items() {
    let mut world = World::new();
    let (first, second) = (world.collection("a"), world.collection("b"));
    world.put(&first, &item(1)).expect("a fresh id");
    world.put(&second, &item(2)).expect("a fresh id");
    assert!(matches!(world.engine.rename_collection(&first, "db", "b", false), Err(Error::Exists { .. })));
    assert!(matches!(world.engine.rename_collection(&first, "db", "a", true), Err(Error::Exists { .. })));
    let renamed = world.engine.rename_collection(&first, "other", "b", false).expect("free");
    assert_eq!((renamed.namespace().as_str(), world.all(&renamed, Direction::Forward)), ("other.b", vec![1]));
    let renamed = world.engine.rename_collection(&renamed, "db", "b", true).expect("may be dropped");
    assert!(world.engine.collection_database("other").is_none());
    world.restart();
    assert_eq!(world.engine.collections("db").len(), 1);
    assert_eq!(world.all(&world.engine.collection("db", "b").expect("there"), Direction::Forward), [1]);
    assert_eq!(renamed.definition, CollectionDefinition::default());
}

#[test]
fn items_come_back_as_they_were_stored_and_in_order() {
    let mut world = World::new();
    let collection = world.collection("c");
    let documents: Vec<Document> = (0..300).map(|id| item(id).with("a", Value::Int64(7))).collect();
    let outcomes = world.engine.insert(&collection, documents.iter().map(raw).collect(), true, None).wait();
    assert_eq!(outcomes, Ok(vec![Ok(()); 300]));
    world.restart();
    let collection = world.engine.collection("db", "c").expect("made");
    assert_eq!(world.all(&collection, Direction::Forward), (0..300).collect::<Vec<_>>());
    assert_eq!(world.all(&collection, Direction::Backward), (0..300).rev().collect::<Vec<_>>());
    assert_eq!(world.get(&collection, 299).expect("there").document, raw(&documents[299]));
    let usage = world.engine.reading(&[&collection]).expect("a reading").usage(&collection).expect("figures");
    assert_eq!(usage.living.items, 300);
}

#[test]
fn an_ordered_insert_ends_at_its_first_error_and_an_unordered_one_does_not() {
    let world = World::new();
    let collection = world.collection("c");
    world.put(&collection, &item(2)).expect("a fresh id");
    let ids = |ids: &[i32]| ids.iter().map(|id| raw(&item(*id))).collect::<Vec<_>>();
    let insert =
        |all, ordered| world.engine.insert(&collection, all, ordered, None).wait().expect("an answer");
    let outcomes = insert(ids(&[1, 2, 3]), true);
    assert!(matches!(outcomes.as_slice(), [Ok(()), Err(Error::DuplicateKey { .. })]), "{outcomes:?}");
    let outcomes = insert(ids(&[3, 2, 4]), false);
    assert!(matches!(outcomes.as_slice(), [Ok(()), Err(Error::DuplicateKey { .. }), Ok(())]), "{outcomes:?}");
    assert_eq!(world.all(&collection, Direction::Forward), [2, 1, 3, 4]);
}

#[test]
fn a_function_sees_the_living_item_and_says_what_becomes_of_it() {
    let world = World::new();
    let collection = world.collection("c");
    let id = || Target::Id(Value::Double(1.0));
    let inserted = world.modify(&collection, id(), Decision::Insert(raw(&item(1)))).expect("free");
    let number = inserted.after.as_ref().expect("an item").number;
    assert!(inserted.before.is_none());
    let changed = item(1).with("x", 1);
    let replaced = world.modify(&collection, Target::Number(number), Decision::Replace(raw(&changed)));
    let replaced = replaced.expect("there");
    assert_eq!(replaced.before.expect("an item").document, raw(&item(1)));
    let version = replaced.after.expect("an item").sequence;
    let same = world.modify(&collection, id(), Decision::Replace(raw(&changed))).expect("there");
    assert_eq!(same.after.expect("an item").sequence, version, "not a write");
    let other = world.modify(&collection, id(), Decision::Replace(raw(&item(2))));
    assert!(matches!(other, Err(Error::Invalid { .. })));
    world.modify(&collection, id(), Decision::Delete).expect("there");
    assert!(world.get(&collection, 1).is_none());
    assert!(world.modify(&collection, Target::Number(ItemNumber(1)), Decision::Delete).is_err());
}

#[test]
fn t15_a_dead_item_is_not_there_for_writes_and_leaves_nothing() {
    let world = World::new();
    let collection = world.collection("c");
    world.engine.set_default_ttl(&collection, DefaultTtl::Seconds(10)).expect("a change");
    world.put(&collection, &item(1)).expect("free");
    world.put(&collection, &item(2).with("ttl", 5)).expect("free");
    world.put(&collection, &item(3).with("ttl", -1)).expect("free");
    world.put(&collection, &item(4).with("ttl", "5")).expect("free");
    world.pass(5);
    assert_eq!(world.all(&collection, Direction::Forward), [1, 3, 4]);
    world.put(&collection, &item(2)).expect("free again");
    world.pass(5);
    assert_eq!(world.all(&collection, Direction::Forward), [3, 2]);
    let seen = world.engine.modify(
        &collection,
        Target::Id(Value::Int32(1)),
        |found, _| Ok(if found.is_some() { Decision::Delete } else { Decision::Keep }.into()),
        None,
    );
    assert!(seen.wait().expect("kept").before.is_none());
    let usage = world.engine.reading(&[&collection]).expect("a reading").usage(&collection).expect("figures");
    assert_eq!((usage.living.items, usage.dead.items), (2, 2));
    let report = world.engine.purge_step(100).expect("a step");
    assert_eq!(report.purged_items, 2);
    assert_eq!(world.all(&collection, Direction::Forward), [3, 2]);
}

fn receipt(number: i64, statement: i32) -> Receipt {
    Receipt { session: b"session".to_vec(), number, statement }
}

#[test]
fn a_statement_that_has_run_is_answered_and_not_run_again() {
    let mut world = World::new();
    let collection = world.collection("c");
    let modify = |world: &World, number, statement, decision: Decision| {
        let collection = world.engine.collection("db", "c").expect("made");
        let answer = Some(raw(&Document::new().with("n", statement)));
        let decide = move |_: Option<&Found>, _| Ok(Verdict { decision, answer });
        let target = Target::Id(Value::Int32(1));
        world.engine.modify(&collection, target, decide, Some(receipt(number, statement))).wait()
    };
    let insert = || Decision::Insert(raw(&item(1)));
    let first = modify(&world, 5, 0, insert()).expect("free");
    assert!(first.is_write() && !first.repeated);
    world.restart();
    let again = modify(&world, 5, 0, insert()).expect("repeated");
    assert!(again.repeated && again.after.is_none());
    assert_eq!(again.answer, first.answer);
    assert!(matches!(modify(&world, 4, 0, insert()), Err(Error::TooOld { number: 4, last: 5 })));
    assert!(!modify(&world, 5, 1, Decision::Keep).expect("kept").is_write());
    assert!(
        !modify(&world, 5, 1, Decision::Delete).expect("there").repeated,
        "what wrote nothing may run again"
    );
    modify(&world, 6, 0, insert()).expect("free");
    assert!(matches!(modify(&world, 5, 0, insert()), Err(Error::TooOld { .. })));
    let _ = collection;
}

#[test]
fn a_repeated_insert_goes_on_where_it_was() {
    let world = World::new();
    let collection = world.collection("c");
    let insert = |ids: std::ops::Range<i32>, number| {
        let receipts = Receipts { session: vec![7], number, statements: ids.clone().collect() };
        let documents = ids.map(|id| raw(&item(id))).collect();
        world.engine.insert(&collection, documents, true, Some(receipts)).wait().expect("an answer")
    };
    assert!(insert(0..300, 1).iter().all(Result::is_ok));
    let outcomes = insert(0..400, 1);
    assert_eq!((outcomes.len(), outcomes.iter().all(Result::is_ok)), (400, true));
    assert_eq!(world.all(&collection, Direction::Forward), (0..400).collect::<Vec<_>>());
    assert!(matches!(insert(0..1, 2).as_slice(), [Err(Error::DuplicateKey { .. })]));
}

#[test]
fn t29_sessions_are_forgotten_half_an_hour_of_real_time_after_their_last_use() {
    let world = World::new();
    let collection = world.collection("c");
    let insert = |first: i32, number| {
        let statements: Vec<i32> = (first..first + 200).collect();
        let documents = statements.iter().map(|id| raw(&item(*id))).collect();
        let receipts = Receipts { session: vec![7], number, statements };
        world.engine.insert(&collection, documents, true, Some(receipts)).wait().expect("an answer")
    };
    assert!(insert(0, 9).iter().all(Result::is_ok));
    let due = world.engine.purge_step(50).expect("a step").next_due.expect("a session to forget");
    assert_eq!(due.seconds() / 60, START / 60 + 31);
    world.pass(29 * 60);
    assert!(insert(200, 9).iter().all(Result::is_ok), "used again");
    world.pass(30 * 60);
    assert!(insert(0, 9).iter().all(Result::is_ok), "still known");
    world.pass(32 * 60);
    while world.engine.purge_step(50).expect("a step").next_due.is_some() {}
    assert!(matches!(insert(0, 1).as_slice(), [Err(Error::DuplicateKey { .. })]), "a new session");
}
