//! Collections of the MongoDB API: their names, their items, and which of those are living.

use std::sync::Arc;

use bson::{Document, RawDocument, Value, ValueRef};
use document::ItemNumber;
use engine::collection::{Decision, LivingDocument, Modified, Receipt, Receipts, Target, Verdict};
use engine::{Collection, CollectionDefinition, Error};
use mql::index::IndexSpec;
use storage::Direction;

use crate::world::{START, World};

pub(crate) fn item(id: i32) -> Document {
    Document::new().with("_id", id)
}

pub(crate) fn raw(document: &Document) -> RawDocument {
    RawDocument::from_document(document)
}

pub(crate) fn id_of(found: &LivingDocument) -> i32 {
    match found.document.get("_id") {
        Some(ValueRef::Int32(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// Returns an index on one field.
pub(crate) fn by(field: &str) -> Document {
    Document::new().with("key", Document::new().with(field, 1)).with("name", format!("{field}_1"))
}

pub(crate) fn date(seconds: u64) -> Value {
    Value::DateTime(seconds as i64 * 1000)
}

impl World {
    pub(crate) fn collection(&self, name: &str) -> Arc<Collection> {
        let made = self.engine.create_collection("db", name, CollectionDefinition::default(), None);
        made.expect("a fresh name")
    }

    pub(crate) fn put(&self, collection: &Arc<Collection>, document: &Document) -> Result<(), Error> {
        let outcome = self.engine.insert(collection, vec![raw(document)], true, None).wait();
        outcome.expect("an answer").remove(0).map(drop)
    }

    pub(crate) fn modify(
        &self,
        collection: &Arc<Collection>,
        target: Target,
        decision: Decision,
    ) -> Result<Modified, Error> {
        self.engine.modify(collection, target, move |_, _| Ok(decision.into()), None).wait()
    }

    /// Makes an index and waits for its build.
    pub(crate) fn index(&self, collection: &Arc<Collection>, spec: &Document) -> u32 {
        self.try_index(collection, spec).expect("an index")
    }

    pub(crate) fn try_index(&self, collection: &Arc<Collection>, spec: &Document) -> Result<u32, Error> {
        let spec = IndexSpec::parse(spec.view()).expect("a valid specification");
        let numbers = self.engine.create_indexes(collection, vec![spec])?;
        while !self.engine.build_indexes_step(collection, &numbers, 2)?.done {}
        Ok(numbers[0])
    }

    /// Returns the numbers of the items in an index, in its order.
    pub(crate) fn hits(&self, collection: &Arc<Collection>, number: u32, direction: Direction) -> Vec<i32> {
        let reading = self.engine.reading(&[collection]).expect("a reading");
        let (mut all, mut last) = (Vec::new(), None);
        loop {
            let page =
                reading.index(collection, number, (&[], &[]), last.as_ref(), direction, 2).expect("a page");
            let Some(hit) = page.last() else { return all };
            last = Some(hit.clone());
            for hit in page {
                let found = reading.by_number(collection, hit.number).expect("a look").expect("it lives");
                all.push(id_of(&found));
            }
        }
    }

    pub(crate) fn get(&self, collection: &Arc<Collection>, id: i32) -> Option<LivingDocument> {
        let reading = self.engine.reading(&[collection]).expect("a reading");
        reading.by_id(collection, ValueRef::Int32(id)).expect("a look")
    }

    pub(crate) fn all(&self, collection: &Arc<Collection>, direction: Direction) -> Vec<i32> {
        let reading = self.engine.reading(&[collection]).expect("a reading");
        let (mut all, mut last) = (Vec::new(), None);
        loop {
            let page = reading.natural(collection, last, direction, 3, 1 << 20).expect("a page");
            let Some(found) = page.last() else { return all };
            last = Some(found.number);
            all.extend(page.iter().map(id_of));
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
    let outcomes = outcomes.expect("an answer");
    assert!(outcomes.len() == 300 && outcomes.iter().all(Result::is_ok), "{outcomes:?}");
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
    assert!(matches!(outcomes.as_slice(), [Ok(_), Err(Error::DuplicateKey { .. })]), "{outcomes:?}");
    let outcomes = insert(ids(&[3, 2, 4]), false);
    assert!(matches!(outcomes.as_slice(), [Ok(_), Err(Error::DuplicateKey { .. }), Ok(_)]), "{outcomes:?}");
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
        let decide = move |_: Option<&LivingDocument>, _| Ok(Verdict { decision, answer });
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

#[test]
fn an_index_is_built_over_what_is_there_and_kept_from_then_on() {
    let mut world = World::new();
    let collection = world.collection("c");
    for id in 0..9 {
        world.put(&collection, &item(id).with("a", 10 - id)).expect("free");
    }
    let spec = IndexSpec::parse(by("a").view()).expect("valid");
    let number = world.engine.create_indexes(&collection, vec![spec.clone()]).expect("made")[0];
    world.engine.build_indexes_step(&collection, &[number], 2).expect("a step");
    world.restart();
    let collection = world.engine.collection("db", "c").expect("made");
    assert!(!collection.indexes().get(number).expect("there").is_searchable());
    world.put(&collection, &item(20).with("a", 4)).expect("free");
    world
        .modify(&collection, Target::Id(Value::Int32(8)), Decision::Replace(raw(&item(8).with("a", 99))))
        .expect("there");
    world
        .modify(&collection, Target::Id(Value::Int32(0)), Decision::Replace(raw(&item(0).with("a", 0))))
        .expect("there");
    while world.engine.purge_step(2).expect("a step").next_due.is_some() {}
    assert!(collection.indexes().get(number).expect("there").is_searchable(), "the background has gone on");
    assert_eq!(world.hits(&collection, number, Direction::Forward), [0, 7, 6, 20, 5, 4, 3, 2, 1, 8]);
    world.modify(&collection, Target::Id(Value::Int32(8)), Decision::Delete).expect("there");
    let mut backward = world.hits(&collection, number, Direction::Forward);
    backward.reverse();
    assert_eq!(world.hits(&collection, number, Direction::Backward), backward);
    assert_eq!(world.hits(&collection, 0, Direction::Forward), [0, 1, 2, 3, 4, 5, 6, 7, 20], "by _id");
    assert_eq!(world.engine.create_indexes(&collection, vec![spec]).expect("there already"), [number]);
    world.engine.drop_indexes(&collection, &[number]).expect("there");
    assert!(collection.indexes().named("a_1").is_none());
    while world.engine.purge_step(2).expect("a step").next_due.is_some() {}
    assert_eq!(world.hits(&collection, number, Direction::Forward), [0; 0], "cleared away");
}

#[test]
fn t27_a_date_index_over_existing_items_expires_them_when_it_is_complete() {
    let mut world = World::new();
    let collection = world.collection("c");
    let plain = world.index(&collection, &by("b"));
    for id in 0..6 {
        world
            .put(&collection, &item(id).with("d", date(START + id as u64 * 100)).with("b", id))
            .expect("free");
    }
    world.put(&collection, &item(7).with("d", "no date").with("ttl", -1)).expect("free");
    let before = world.get(&collection, 5).expect("there").sequence;
    world.pass(1250);
    let spec = IndexSpec::parse(by("d").with("expireAfterSeconds", 1000).view()).expect("valid");
    let numbers = world.engine.create_indexes(&collection, vec![spec]).expect("made");
    world.engine.build_indexes_step(&collection, &numbers, 3).expect("a step");
    assert_eq!(world.all(&collection, Direction::Forward).len(), 7, "not in force yet");
    world.restart();
    let collection = world.engine.collection("db", "c").expect("made");
    while !world.engine.build_indexes_step(&collection, &numbers, 3).expect("a step").done {}
    assert_eq!(world.all(&collection, Direction::Forward), [3, 4, 5, 7]);
    assert_eq!(world.hits(&collection, plain, Direction::Forward), [7, 3, 4, 5], "other indexes know it too");
    assert_eq!(world.get(&collection, 5).expect("there").sequence, before, "it was not written");
    world.pass(100);
    let usage = world.engine.reading(&[&collection]).expect("a reading").usage(&collection).expect("figures");
    assert_eq!((usage.living.items, usage.expired.items), (3, 4));

    let spec = IndexSpec::parse(by("d").with("expireAfterSeconds", 100_000).view()).expect("valid");
    assert_eq!(world.engine.change_index(&collection, numbers[0], spec), Ok(numbers[0]));
    assert_eq!(world.all(&collection, Direction::Forward), [4, 5, 7], "nothing comes back (T13)");
    world.pass(90_000);
    assert_eq!(world.all(&collection, Direction::Forward), [4, 5, 7]);
    world.engine.drop_indexes(&collection, &numbers).expect("there");
    world.pass(200_000);
    assert_eq!(world.all(&collection, Direction::Forward), [4, 5, 7]);
    while world.engine.purge_step(9).expect("a step").next_due.is_some() {}
    assert_eq!(world.all(&collection, Direction::Forward), [4, 5, 7]);
    let usage = world.engine.reading(&[&collection]).expect("a reading").usage(&collection).expect("figures");
    assert_eq!((usage.living.items, usage.expired.items), (3, 0));
}

/// Checks that no entry is missing, and none is left over.
fn assert_whole(world: &World, collection: &Arc<Collection>) {
    let check = world.engine.check_collection(collection).expect("a check");
    assert_eq!(check.faults, Vec::<String>::new());
    assert_eq!(check.items as usize, world.all(collection, Direction::Forward).len());
}

/// An entry on `_id` does not show whether its item is living. A reader that needs the items gets them with the entries: each is loaded
/// once.
#[test]
fn a_scan_along_id_loads_each_item_once() {
    let world = World::new();
    let collection = world.collection("a");
    for number in 0..5 {
        world.put(&collection, &item(number)).expect("free");
    }
    let reading = world.engine.reading(&[&collection]).expect("a reading");
    let hits = reading.index_with_items(&collection, 0, (&[], &[]), None, Direction::Forward, 10);
    let hits = hits.expect("entries");
    let loaded: Vec<i32> = hits.iter().filter_map(|(_, found)| found.as_ref()).map(id_of).collect();
    assert_eq!(loaded, [0, 1, 2, 3, 4]);
    assert_eq!(reading.metrics().loaded_items, 5);
}

#[test]
fn a_claim_of_an_open_transaction_rings_when_it_ends() {
    let world = World::new();
    let collection = world.collection("a");
    world.put(&collection, &item(1)).expect("free");
    let rung = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let asked = |id: i32| {
        let rung = Arc::clone(&rung);
        world.engine.when_released(&collection, &Target::Id(id.into()), move || {
            rung.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        })
    };
    let count = || rung.load(std::sync::atomic::Ordering::Relaxed);
    let mut workspace = world.engine.begin().expect("begins");
    workspace.insert(&collection, raw(&item(2))).expect("free");
    assert!(world.engine.has_claims() && world.engine.is_claimed(&collection, &Target::Id(2.into())));
    assert!(asked(1).is_none());
    let waits = [asked(2), asked(2)];
    assert!(waits.iter().all(Option::is_some));
    assert_eq!(count(), 0);
    drop(workspace);
    assert_eq!(count(), 2);
    assert!(asked(2).is_none() && !world.engine.has_claims());
    let mut workspace = world.engine.begin().expect("begins");
    workspace.insert(&collection, raw(&item(2))).expect("free again");
    let wait = asked(2);
    assert!(wait.is_some());
    world.engine.commit(workspace, None).wait().expect("commits");
    assert_eq!(count(), 3);
}

#[test]
fn of_two_open_transactions_that_write_one_document_the_second_conflicts_at_once() {
    let world = World::new();
    let collection = world.collection("a");
    let mut first = world.engine.begin().expect("begins");
    let mut second = world.engine.begin().expect("begins");
    first.insert(&collection, raw(&item(1))).expect("free");
    assert!(matches!(second.insert(&collection, raw(&item(1))), Err(Error::Conflict { .. })));
    second.insert(&collection, raw(&item(2))).expect("another document");
    drop(first);
    let mut third = world.engine.begin().expect("begins");
    third.insert(&collection, raw(&item(1))).expect("free again");
    world.engine.commit(third, None).wait().expect("commits");
    assert_eq!(world.all(&collection, Direction::Forward).len(), 1);
}

#[test]
fn a_transaction_sees_its_own_writes_and_commits_all_of_them() {
    let world = World::new();
    let (first, second) = (world.collection("a"), world.collection("b"));
    let unique = world.index(&first, &by("u").with("unique", true));
    world.put(&first, &item(1).with("u", 1)).expect("free");
    world.put(&first, &item(2).with("u", 2)).expect("free");
    let mut workspace = world.engine.begin().expect("begins");
    let replace = |document: &Document| {
        let decision = Decision::Replace(raw(document));
        move |_: Option<&LivingDocument>, _| Ok(decision.into())
    };
    let id = |id: i32| Target::Id(Value::Int32(id));
    // The two items exchange their keys.
    workspace.modify(&first, &id(1), replace(&item(1).with("u", 3))).expect("free");
    assert!(matches!(
        workspace.modify(&first, &id(1), replace(&item(1).with("u", 2))),
        Err(Error::DuplicateKey { .. })
    ));
    workspace.modify(&first, &id(2), replace(&item(2).with("u", 1))).expect("free");
    workspace.modify(&first, &id(1), replace(&item(1).with("u", 2))).expect("free");
    workspace.insert(&second, raw(&item(7))).expect("free");
    workspace.insert(&second, raw(&item(8))).expect("free");
    workspace.modify(&second, &id(8), |_, _| Ok(Decision::Delete.into())).expect("there");
    assert!(matches!(workspace.insert(&second, raw(&item(7))), Err(Error::DuplicateKey { .. })));

    let reading = workspace.reading(&[&first, &second]).expect("a reading");
    let hits = reading.index(&first, unique, (&[], &[]), None, Direction::Forward, 9).expect("a page");
    assert_eq!(hits.len(), 2);
    let at = |number| reading.by_number(&first, number).expect("a look").map(|found| id_of(&found));
    assert_eq!((at(hits[0].number), at(hits[1].number)), (Some(2), Some(1)));
    assert!(reading.by_id(&second, ValueRef::Int32(7)).expect("a look").is_some());
    assert!(world.get(&second, 7).is_none(), "no other reader sees it");

    world.engine.commit(workspace, None).wait().expect("no conflict");
    assert_eq!(world.hits(&first, unique, Direction::Forward), [2, 1]);
    assert_eq!(world.all(&second, Direction::Forward), [7]);
    assert_whole(&world, &first);
    assert_whole(&world, &second);
}

#[test]
fn t16_a_transaction_conflicts_with_concurrent_changes_deletes_expiries_and_inserts() {
    let world = World::new();
    let collection = world.collection("c");
    world.index(&collection, &by("_ts").with("expireAfterSeconds", -1));
    world.index(&collection, &by("u").with("unique", true).with("sparse", true));
    let touch = |id: i32| {
        let mut workspace = world.engine.begin().expect("begins");
        let next = raw(&item(id).with("touched", true));
        let decide = move |found: Option<&LivingDocument>, _| {
            assert!(found.is_some());
            Ok(Decision::Replace(next).into())
        };
        workspace.modify(&collection, &Target::Id(Value::Int32(id)), decide).expect("there");
        workspace
    };
    let conflicts = |workspace| {
        let outcome = world.engine.commit(workspace, None).wait();
        assert!(matches!(outcome, Err(Error::Conflict { .. })), "{outcome:?}");
    };
    for id in 1..4 {
        world.put(&collection, &item(id).with("ttl", 100)).expect("free");
    }
    let (changed, gone, expires) = (touch(1), touch(2), touch(3));
    let replacement = Decision::Replace(raw(&item(1).with("x", 1)));
    world.modify(&collection, Target::Id(Value::Int32(1)), replacement).expect("there");
    world.modify(&collection, Target::Id(Value::Int32(2)), Decision::Delete).expect("there");
    world.put(&collection, &item(2)).expect("free again");
    conflicts(changed);
    conflicts(gone);
    world.pass(100);
    conflicts(expires);

    let insert = |document: Document| {
        let mut workspace = world.engine.begin().expect("begins");
        workspace.insert(&collection, raw(&document)).expect("free");
        workspace
    };
    let (same_id, same_key) = (insert(item(10)), insert(item(11).with("u", 1)));
    world.put(&collection, &item(10).with("u", 1)).expect("free");
    conflicts(same_id);
    conflicts(same_key);
    world.engine.commit(insert(item(12)), Some(receipt(3, -1))).wait().expect("no conflict");
    world.engine.commit(insert(item(13)), Some(receipt(3, -1))).wait().expect("made already");
    assert_eq!(world.all(&collection, Direction::Forward), [1, 2, 10, 12]);
    assert_whole(&world, &collection);
}

#[test]
fn t16_a_transaction_conflicts_if_what_it_was_shown_expires_before_it_commits() {
    let world = World::new();
    let (read, other) = (world.collection("read"), world.collection("other"));
    let ttl = world.index(&read, &by("_ts").with("expireAfterSeconds", -1));
    let shown = |id: i32, writes: bool| {
        let mut workspace = world.engine.begin().expect("begins");
        let reading = workspace.reading(&[&read]).expect("a reading");
        let found = reading.by_id(&read, ValueRef::Int32(id)).expect("a look").expect("there");
        reading.rely_on(&read, found.number).expect("a look");
        if writes {
            workspace.insert(&other, raw(&item(100 + id))).expect("free");
        }
        workspace
    };
    let commit = |workspace| world.engine.commit(workspace, None).wait();
    for (id, seconds) in [(1, 100), (2, 100), (3, 100), (4, 10_000), (5, -1)] {
        world.put(&read, &item(id).with("ttl", seconds)).expect("free");
    }
    // An item that another writer changes or deletes is no conflict for a transaction that has only read it.
    let (expires, only_reads, deleted) = (shown(1, true), shown(2, false), shown(3, true));
    world.modify(&read, Target::Id(Value::Int32(3)), Decision::Delete).expect("there");
    commit(deleted).expect("no conflict");
    world.pass(100);
    let outcome = commit(expires);
    assert!(matches!(outcome, Err(Error::Conflict { .. })), "{outcome:?}");
    commit(only_reads).expect("nothing was written");
    commit(shown(4, true)).expect("it lives");
    // A write that keeps the item that it finds has read it, too.
    let mut keeps = world.engine.begin().expect("begins");
    let target = Target::Id(Value::Int32(4));
    keeps.modify(&read, &target, |_, _| Ok(Decision::Keep.into())).expect("there");
    keeps.insert(&other, raw(&item(50))).expect("free");
    // A new rule is a conflict, whether or not it expires the item.
    let unexpiring = shown(5, true);
    let spec = IndexSpec::parse(by("_ts").with("expireAfterSeconds", 20_000).view()).expect("valid");
    world.engine.change_index(&read, ttl, spec).expect("a change");
    assert!(matches!(commit(unexpiring), Err(Error::Conflict { .. })));
    world.pass(10_000);
    assert!(matches!(commit(keeps), Err(Error::Conflict { .. })));
    assert_whole(&world, &other);
    // What it has written itself is new with the commit.
    let mut own = world.engine.begin().expect("begins");
    own.insert(&read, raw(&item(60).with("ttl", 5))).expect("free");
    let reading = own.reading(&[&read]).expect("a reading");
    let found = reading.by_id(&read, ValueRef::Int32(60)).expect("a look").expect("there");
    reading.rely_on(&read, found.number).expect("a look");
    world.pass(10);
    commit(own).expect("no conflict");
}

#[test]
fn a_collection_made_after_the_transaction_began_is_empty_in_it() {
    let world = World::new();
    let mut workspace = world.engine.begin().expect("begins");
    let collection = world.collection("c");
    world.index(&collection, &by("a"));
    world.put(&collection, &item(1)).expect("free");
    let reading = workspace.reading(&[&collection]).expect("a reading");
    assert!(reading.by_id(&collection, ValueRef::Int32(1)).expect("a look").is_none());
    workspace.insert(&collection, raw(&item(2))).expect("free");
    world.engine.commit(workspace, None).wait().expect("no conflict");
    assert_eq!(world.all(&collection, Direction::Forward), [1, 2]);
    assert_whole(&world, &collection);
}

#[test]
fn figures_of_indexes_count_the_living() {
    let world = World::new();
    let collection = world.collection("c");
    world.index(&collection, &by("_ts").with("expireAfterSeconds", 50));
    let number = world.index(&collection, &by("a").with("sparse", true));
    let pair = || Value::Array(vec![Value::Int32(1), Value::Int32(2)]);
    for id in 0..10 {
        let document = if id % 2 == 0 { item(id).with("a", pair()) } else { item(id).with("ttl", 5) };
        world.put(&collection, &document).expect("free");
    }
    assert!(collection.indexes().get(number).is_some());
    world.pass(5);
    let reading = world.engine.reading(&[&collection]).expect("a reading");
    let usage = reading.index_usage(&collection).expect("figures");
    assert_eq!(usage.iter().map(|usage| usage.entries).collect::<Vec<_>>(), [5, 0, 10]);
    assert!(reading.indexes(&collection).expect("a list").get(number).expect("there").multikey);
    let check = world.engine.check_collection(&collection).expect("a check");
    assert_eq!((check.items, check.entries[&number]), (5, 10));
    assert_whole(&world, &collection);
}

#[test]
fn changes_come_in_the_order_of_writing_and_only_of_the_living() {
    let world = World::new();
    let collection = world.collection("c");
    world.index(&collection, &by("_ts").with("expireAfterSeconds", -1));
    for id in 1..5 {
        world.put(&collection, &item(id).with("ttl", if id == 3 { 5 } else { -1 })).expect("free");
    }
    let replacement = Decision::Replace(raw(&item(1).with("x", 1)));
    world.modify(&collection, Target::Id(Value::Int32(1)), replacement).expect("there");
    world.modify(&collection, Target::Id(Value::Int32(4)), Decision::Delete).expect("there");
    world.pass(5);
    let changes = |after| {
        let reading = world.engine.reading(&[&collection]).expect("a reading");
        let (mut all, mut last) = (Vec::new(), after);
        loop {
            let page = reading.changes(&collection, last, 1, 1 << 20).expect("a page");
            let Some(found) = page.last() else { return (all, reading.last_change()) };
            last = found.sequence;
            all.extend(page.iter().map(|found| (id_of(found), found.is_first_version())));
        }
    };
    let (all, last) = changes(document::Sequence(0));
    assert_eq!(all, [(2, true), (1, false)]);
    world.put(&collection, &item(6)).expect("free");
    assert_eq!(changes(last).0, [(6, true)]);
}

#[test]
fn a_database_made_by_itself_stays_and_has_a_throughput() {
    let mut world = World::new();
    let rate = Some(engine::Throughput::Manual(400));
    world.engine.create_collection_database("own", rate).expect("a fresh name");
    let collection = world.engine.create_collection("own", "c", CollectionDefinition::default(), rate);
    world.engine.drop_collection(&collection.expect("made")).expect("there");
    world.collection("c");
    world.engine.change_collection_database("db", None).expect("there");
    world.restart();
    assert_eq!(world.engine.collection_database("own").expect("kept").throughput(), rate);
    world.engine.drop_collection(&world.engine.collection("db", "c").expect("there")).expect("there");
    assert!(world.engine.collection_database("db").is_some());
}

#[test]
fn definitions_come_back_as_they_were_given() {
    let mut world = World::new();
    let collation = Document::new().with("locale", "de").with("strength", 2);
    let definition = CollectionDefinition {
        uuid: [7; 16],
        options: raw(&Document::new().with("capped", true)),
        collation: bson::Collation::parse(collation.view()).expect("valid"),
        shard_key: Some("a".into()),
    };
    let made = world.engine.create_collection("db", "c", definition.clone(), None).expect("made");
    world.put(&made, &Document::new().with("_id", "x")).expect("free");
    assert!(matches!(world.put(&made, &Document::new().with("_id", "X")), Err(Error::DuplicateKey { .. })));
    world.restart();
    let found = world.engine.collection("db", "c").expect("there");
    assert_eq!(found.definition, definition);
}

#[test]
fn collections_and_indexes_of_older_stores_keep_the_order_of_their_keys() {
    let mut world = World::new();
    let before = Document::new().with("locale", "sv").with("version", "57.1");
    let before = bson::Collation::parse_stored(before.view()).expect("of a store before format 9");
    let definition = CollectionDefinition { collation: before.clone(), ..CollectionDefinition::default() };
    let made = world.engine.create_collection("db", "c", definition, None).expect("made");
    let words = ["z", "å", "a"];
    for (id, word) in (1..).zip(words) {
        world.put(&made, &Document::new().with("_id", id).with("word", word)).expect("free");
    }
    let spec = |collation: Document, name: &str| {
        let key = Document::new().with("word", 1);
        Document::new().with("key", key).with("name", name).with("collation", collation)
    };
    let old = IndexSpec::parse_stored(spec(before.to_stored(), "old").view()).expect("as it was stored");
    let numbers = world.engine.create_indexes(&made, vec![old]).expect("made");
    while !world.engine.build_indexes_step(&made, &numbers, 2).expect("built").done {}
    let again = spec(Document::new().with("locale", "sv"), "old");
    assert_eq!(
        world.index(&made, &again),
        numbers[0],
        "an application makes sure of its indexes at each start"
    );
    let new = world.index(&made, &spec(Document::new().with("locale", "sv").with("strength", 2), "new"));
    for _ in 0..2 {
        let found = world.engine.collection("db", "c").expect("there");
        assert_eq!(found.definition.collation, before);
        assert_eq!(world.hits(&found, numbers[0], Direction::Forward), [3, 2, 1], "a å z");
        assert_eq!(world.hits(&found, new, Direction::Forward), [3, 1, 2], "a z å");
        world.restart();
    }
}

/// `skies` becomes `ski` by the rules of older stores, and `sky` by the present ones.
#[test]
fn text_indexes_of_older_stores_keep_their_terms() {
    let mut world = World::new();
    let spec = Document::new().with("key", Document::new().with("t", "text")).with("name", "t");
    let old = IndexSpec::parse_stored(spec.view()).expect("of a store before format 10");
    let new = IndexSpec::parse(spec.view()).expect("a new one");
    let mut numbers = Vec::new();
    for (name, spec) in [("old", old), ("new", new)] {
        let made =
            world.engine.create_collection("db", name, CollectionDefinition::default(), None).expect("made");
        for (id, word) in [(1, "skies"), (2, "skj")] {
            world.put(&made, &Document::new().with("_id", id).with("t", word)).expect("free");
        }
        let made_indexes = world.engine.create_indexes(&made, vec![spec]).expect("made");
        while !world.engine.build_indexes_step(&made, &made_indexes, 2).expect("built").done {}
        numbers.push((name, made_indexes[0]));
    }
    for id in [3, 4] {
        world.restart();
        for (name, number) in &numbers {
            let found = world.engine.collection("db", name).expect("there");
            assert_eq!(world.index(&found, &spec), *number, "an application makes sure of its indexes");
            world.put(&found, &Document::new().with("_id", id).with("t", "skies")).expect("free");
            let hits = world.hits(&found, *number, Direction::Forward);
            let skies: Vec<i32> = [1].into_iter().chain(3..=id).collect();
            let expected =
                if *name == "old" { [&skies[..], &[2]].concat() } else { [&[2], &skies[..]].concat() };
            assert_eq!(hits, expected, "{name}");
        }
    }
}
