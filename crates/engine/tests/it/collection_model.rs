//! Random operations on a collection beside a plain model without queues, index entries, counters and cutoffs: a list of
//! documents, rules that are evaluated on each, and the law that an expired item never becomes visible again.

use std::sync::Arc;

use bson::{Document, RawDocument, Value};
use engine::collection::{Decision, IndexState, LivingDocument, Target, Workspace};
use engine::{Collection, DefaultTtl, Error, ItemAddress, Owner};
use fastrand::Rng;
use mql::index::IndexSpec;
use storage::Direction;

use crate::collections::{by, id_of, raw};
use crate::model_test::{ModelTest, Step, run};
use crate::world::World;

const IDS: i32 = 9;
const DATE_FIELDS: [&str; 2] = ["d", "e"];

/// An item as the model knows it.
#[derive(Debug, Clone)]
struct Known {
    id: i32,
    document: Document,
    /// Seconds.
    written: i64,
    held: bool,
}

impl Known {
    fn number(&self, field: &str) -> Option<i64> {
        match self.document.get(field) {
            Some(Value::Int32(number)) => Some(i64::from(*number)),
            Some(Value::Int64(number)) => Some(*number),
            Some(Value::Double(number)) if number.fract() == 0.0 => Some(*number as i64),
            _ => None,
        }
    }

    /// T6.
    fn own_ttl(&self) -> Option<i64> {
        self.number("ttl").filter(|ttl| *ttl == -1 || (1..=i64::from(i32::MAX)).contains(ttl))
    }

    fn dates(&self, field: &str) -> Vec<i64> {
        let date = |value: &Value| if let Value::DateTime(millis) = value { Some(*millis) } else { None };
        match self.document.get(field) {
            Some(Value::Array(values)) => values.iter().filter_map(date).collect(),
            Some(value) => date(value).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// T2, T27.
    fn is_expired(&self, rules: &Rules, now_ms: i64) -> bool {
        let now = now_ms.div_euclid(1000);
        let by_ttl = match (self.own_ttl(), rules.default) {
            (_, DefaultTtl::Off) | (Some(-1), _) | (None, DefaultTtl::Never) => false,
            (Some(ttl), _) => now >= self.written + ttl,
            (None, DefaultTtl::Seconds(seconds)) => now >= self.written + i64::from(seconds),
        };
        let by_date = |(field, delay): (&&str, &Option<i64>)| {
            let earliest = self.dates(field).into_iter().min();
            earliest.zip(*delay).is_some_and(|(date, delay)| date + delay * 1000 <= now_ms)
        };
        by_ttl || DATE_FIELDS.iter().zip(&rules.delays).any(by_date)
    }

    /// Returns the values in the index on `a`, as MongoDB orders them; a missing one is null, before numbers.
    fn values(&self, field: &str) -> Vec<Option<i32>> {
        let number = |value: &Value| if let Value::Int32(number) = value { Some(*number) } else { None };
        let mut values = match self.document.get(field) {
            Some(Value::Array(values)) => values.iter().map(number).collect(),
            Some(value) => vec![number(value)],
            None => vec![None],
        };
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// The rules in force.
#[derive(Debug, Clone)]
struct Rules {
    default: DefaultTtl,
    /// Of each of the date fields, seconds.
    delays: [Option<i64>; 2],
}

struct CollectionTest {
    world: World,
    rng: Rng,
    items: Vec<Known>,
    rules: Rules,
    /// Whether the whole collection is held.
    held: bool,
}

impl CollectionTest {
    fn collection(&self) -> Arc<Collection> {
        self.world.engine.collection("db", "c").expect("made at the start")
    }

    fn now_ms(&self) -> i64 {
        self.world.engine.now().expect("a time").millis() as i64
    }

    /// Removes the items that have expired by the rules in force, at this instant.
    fn remove_expired(&mut self) {
        let now = self.now_ms();
        let (rules, held) = (self.rules.clone(), self.held);
        self.items.retain(|item| held || item.held || !item.is_expired(&rules, now));
    }

    /// Takes over the rules that the collection has by now.
    fn learn_rules(&mut self) {
        self.remove_expired();
        let collection = self.collection();
        let list = collection.indexes();
        let seconds = |field: &str| {
            let index = list.named(&format!("{field}_1")).filter(|index| index.state == IndexState::Ready);
            index.and_then(|index| index.spec.expire_after_seconds())
        };
        self.rules.default = match seconds("_ts") {
            None => DefaultTtl::Off,
            Some(-1) => DefaultTtl::Never,
            Some(seconds) => DefaultTtl::Seconds(seconds as u32),
        };
        self.rules.delays = DATE_FIELDS.map(|field| seconds(field).map(i64::from));
        self.remove_expired();
    }

    fn document(&mut self, id: i32) -> Document {
        let mut document = Document::new().with("_id", id).with("n", self.rng.i32(..));
        let rng = &mut self.rng;
        match rng.u8(0..8) {
            0 => document.push("ttl", -1),
            1 => document.push("ttl", i64::from(rng.i32(1..40))),
            2 => document.push("ttl", f64::from(rng.i32(1..40))),
            3 => document
                .push("ttl", rng.choice([Value::Int32(0), Value::Double(2.5), Value::Null]).expect("one")),
            _ => {}
        }
        let now = self.world.engine.now().expect("a time").millis() as i64;
        let date = |rng: &mut Rng| Value::DateTime(now + rng.i64(-30_000..60_000));
        for field in DATE_FIELDS {
            match rng.u8(0..4) {
                0 => document.push(field, date(rng)),
                1 => document.push(field, vec![date(rng), Value::Int32(1), date(rng)]),
                _ => {}
            }
        }
        match rng.u8(0..3) {
            0 => document.push("a", rng.i32(0..5)),
            1 => document.push("a", vec![Value::Int32(rng.i32(0..5)), Value::Int32(rng.i32(0..5))]),
            _ => {}
        }
        if rng.bool() {
            document.push("u", rng.i32(0..8));
        }
        document
    }

    /// Returns whether a living item other than that of the `_id` has the unique value of a document.
    fn is_taken(&self, document: &Document, except: i32) -> bool {
        let value = document.get("u");
        value.is_some() && self.items.iter().any(|item| item.id != except && item.document.get("u") == value)
    }

    fn unique_state(&self) -> Option<IndexState> {
        self.collection().indexes().named("u_1").map(|index| index.state)
    }

    /// Compares an outcome with the expected result of the unique index.
    fn expect_unique(&self, outcome: &Result<(), Error>, taken: bool) -> bool {
        match (outcome, self.unique_state()) {
            (Ok(()), Some(IndexState::Ready)) => assert!(!taken, "a duplicate was let in"),
            (Ok(()), _) => {}
            (Err(Error::DuplicateKey { .. }), Some(_)) => assert!(taken, "no duplicate was refused"),
            (Err(error), _) => panic!("{error}"),
        }
        outcome.is_ok()
    }

    fn insert(&mut self) {
        let id = self.rng.i32(0..IDS);
        let document = self.document(id);
        let there = self.items.iter().any(|item| item.id == id);
        let outcome = self.world.put(&self.collection(), &document);
        if there {
            assert!(matches!(outcome, Err(Error::DuplicateKey { .. })), "{outcome:?}");
        } else if self.is_refused_for_an_expired(&outcome) {
        } else if self.expect_unique(&outcome, self.is_taken(&document, id)) {
            self.add(id, document);
        }
    }

    fn add(&mut self, id: i32, document: Document) {
        let written = self.now_ms().div_euclid(1000);
        self.items.push(Known { id, document, written, held: false });
    }

    /// Whether a write was refused because it would have removed an expired item of a held collection.
    fn is_refused_for_an_expired(&self, outcome: &Result<(), Error>) -> bool {
        self.held && matches!(outcome, Err(Error::Held { .. }))
    }

    /// Changes or deletes an item, or upserts it.
    fn modify(&mut self) {
        let id = self.rng.i32(0..IDS);
        let document = self.document(id);
        let (delete, upsert) = (self.rng.u8(0..3) == 0, self.rng.bool());
        let next = raw(&document);
        let decide = move |found: Option<&LivingDocument>, _| {
            Ok(match found {
                Some(_) if delete => Decision::Delete,
                Some(_) => Decision::Replace(next),
                None if upsert => Decision::Insert(next),
                None => Decision::Keep,
            }
            .into())
        };
        let outcome =
            self.world.engine.modify(&self.collection(), Target::Id(Value::Int32(id)), decide, None).wait();
        let at = self.items.iter().position(|item| item.id == id);
        if let Ok(modified) = &outcome {
            let before = modified.before.as_ref().map(|found| found.document.clone());
            assert_eq!(before, at.map(|at| raw(&self.items[at].document)), "item {id} before the change");
        }
        if at.is_some_and(|at| self.held || self.items[at].held) {
            assert!(matches!(outcome, Err(Error::Held { .. })), "{outcome:?}");
            return;
        }
        let refused = outcome.as_ref().map(drop).map_err(Clone::clone);
        if self.is_refused_for_an_expired(&refused) {
            return;
        }
        match at {
            Some(at) if delete => {
                outcome.expect("a delete is not refused");
                self.items.remove(at);
            }
            None if !upsert => drop(outcome.expect("nothing to do")),
            at => {
                let taken = self.is_taken(&document, id);
                if self.expect_unique(&outcome.map(drop), taken) {
                    match at {
                        Some(at) => {
                            let written = self.now_ms().div_euclid(1000);
                            self.items[at] = Known { id, document, written, held: false };
                        }
                        None => self.add(id, document),
                    }
                }
            }
        }
    }

    /// A transaction of a few writes, in which time may pass and others may write.
    fn transaction(&mut self) {
        let collection = self.collection();
        let mut workspace = self.world.engine.begin().expect("begins");
        let mut touched: Vec<i32> = Vec::new();
        for _ in 0..self.rng.usize(1..5) {
            let id = self.rng.i32(0..IDS);
            let document = (self.rng.u8(0..4) > 0).then(|| self.document(id));
            if draft(&mut workspace, &collection, id, document.as_ref()) {
                touched.push(id);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        let reading = workspace.reading(&[&collection]).expect("a reading");
        let wanted: Vec<(i32, Option<Document>)> = touched
            .into_iter()
            .map(|id| {
                let found = reading.by_id(&collection, Value::Int32(id).view()).expect("a look");
                (id, found.map(|found| found.document.to_document()))
            })
            .collect();
        // What the transaction rests on: where it wrote, what was there.
        let rests_on = |test: &CollectionTest, id: i32| {
            let item = test.items.iter().find(|item| item.id == id);
            item.map(|item| (item.document.clone(), item.written))
        };
        let before: Vec<_> = wanted.iter().map(|(id, _)| rests_on(self, *id)).collect();
        match self.rng.u8(0..4) {
            0 => self.pass(),
            1 => self.modify(),
            2 => self.insert(),
            _ => {}
        }
        self.remove_expired();
        let changes = wanted.iter().zip(&before).filter(|((id, _), before)| rests_on(self, *id) != **before);
        // An item that the transaction itself has created and deleted can cause no conflict.
        let must_conflict = changes.clone().any(|((_, next), before)| next.is_some() || before.is_some());
        let may_conflict = changes.count() > 0;
        match self.world.engine.commit(workspace, None).wait() {
            Ok(_) => {
                assert!(!must_conflict, "a conflict was not seen");
                let nothing = |(next, before): &(&(i32, Option<Document>), &Option<_>)| {
                    next.1.is_none() && before.is_none()
                };
                let kept: Vec<_> = wanted.iter().zip(&before).filter(|it| !nothing(it)).collect();
                let wanted = kept.into_iter().map(|(next, _)| next.clone()).collect();
                self.apply(wanted);
            }
            Err(Error::Conflict { .. }) => {
                // A document that had expired when it was written is not seen here, but it had keys.
                let unseen = wanted.iter().any(|(_, document)| document.is_none());
                let taken = wanted.iter().any(|(id, document)| {
                    document.as_ref().is_some_and(|document| self.is_taken(document, *id))
                });
                assert!(may_conflict || taken || unseen, "a conflict that is none");
            }
            Err(Error::Held { .. }) => assert!(self.held, "only an expired item can be in the way by now"),
            Err(error) => panic!("{error}"),
        }
    }

    fn apply(&mut self, wanted: Vec<(i32, Option<Document>)>) {
        let written = self.now_ms().div_euclid(1000);
        for (id, _) in wanted.iter().filter(|(_, document)| document.is_none()) {
            self.items.retain(|item| item.id != *id);
        }
        // New items come after all others, in the order of their first insert in the draft, which `order` does not have;
        // the listing is compared as a set after transactions.
        for (id, document) in wanted {
            let Some(document) = document else { continue };
            match self.items.iter_mut().find(|item| item.id == id) {
                Some(item) if item.document == document => {}
                Some(item) => *item = Known { id, document, written, held: false },
                None => self.items.push(Known { id, document, written, held: false }),
            }
        }
    }

    fn pass(&mut self) {
        let seconds = self.rng.u64(0..20);
        self.world.pass(seconds);
        self.remove_expired();
    }

    /// Makes, drops or changes an index.
    fn change_indexes(&mut self) {
        let collection = self.collection();
        let name = *self.rng.choice(&["_ts", "d", "e", "a", "u"]).expect("one");
        let seconds = if name == "_ts" && self.rng.bool() { -1 } else { self.rng.i32(1..40) };
        let mut spec = match name {
            "_ts" | "d" | "e" => by(name).with("expireAfterSeconds", seconds),
            "u" => by(name).with("unique", true).with("sparse", true),
            _ => by(name),
        };
        if name == "e" {
            let filter = Document::new().with("n", Document::new().with("$exists", true));
            spec.push("partialFilterExpression", filter);
        }
        let spec = IndexSpec::parse(spec.view()).expect("a valid specification");
        let list = collection.indexes();
        self.remove_expired();
        let engine = &self.world.engine;
        match list.named(&format!("{name}_1")) {
            None => drop(engine.create_indexes(&collection, vec![spec]).expect("made")),
            Some(index) if self.rng.bool() => {
                engine.drop_indexes(&collection, &[index.number]).expect("dropped");
            }
            Some(index) if name != "u" && name != "a" => {
                assert_eq!(engine.change_index(&collection, index.number, spec), Ok(index.number));
            }
            Some(_) => {}
        }
        self.learn_rules();
    }

    /// A step of the builds, by a caller that waits for them.
    fn build(&mut self) {
        let collection = self.collection();
        let numbers: Vec<u32> = collection.indexes().iter().map(|index| index.number).collect();
        let limit = self.rng.usize(1..4);
        match self.world.engine.build_indexes_step(&collection, &numbers, limit) {
            Ok(_) => {}
            Err(Error::DuplicateKey { .. }) => {
                let is_duplicate = |item: &Known| self.is_taken(&item.document, item.id);
                assert!(self.items.iter().any(is_duplicate), "a build ended without a duplicate");
            }
            Err(error) => panic!("{error}"),
        }
        self.learn_rules();
    }

    /// Holds an item or the collection, or lifts a hold (T31).
    fn hold(&mut self) {
        let owner = Owner::Collection(self.collection());
        if self.rng.u8(0..4) == 0 {
            self.held = !self.held;
            let hold = self.held.then(|| "a case".to_owned());
            self.world.engine.change_lifecycle(&owner, |settings| settings.hold = hold).expect("a change");
            return;
        }
        let id = self.rng.i32(0..IDS);
        let address = ItemAddress::DocumentId(Value::Int32(id));
        let item = self.items.iter().position(|item| item.id == id);
        if self.rng.bool() {
            let outcome = self.world.engine.hold_item(&owner, &address, "a case");
            match item {
                Some(at) => {
                    outcome.expect("it lives");
                    self.items[at].held = true;
                }
                None => assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}"),
            }
        } else {
            let outcome = self.world.engine.lift_item(&owner, &address);
            match item.filter(|at| self.items[*at].held) {
                _ if self.held => assert!(matches!(outcome, Err(Error::Held { .. })), "{outcome:?}"),
                Some(at) => {
                    outcome.expect("it is held");
                    self.items[at].held = false;
                    // The lift may have had to wait for the purge, and that builds indexes too.
                    self.learn_rules();
                }
                None => assert!(matches!(outcome, Err(Error::NotFound { .. })), "{outcome:?}"),
            }
        }
    }

    fn purge(&mut self) {
        self.world.purge_some(self.rng.usize(1..5));
        self.learn_rules();
    }

    /// Compares which items are living and held, and what they are.
    fn compare_items(&self) {
        let collection = self.collection();
        let mut seen = self.world.all(&collection, Direction::Forward);
        let mut known: Vec<i32> = self.items.iter().map(|item| item.id).collect();
        seen.sort_unstable();
        known.sort_unstable();
        assert_eq!(seen, known, "who lives");
        let reading = self.world.engine.reading(&[&collection]).expect("a reading");
        for item in &self.items {
            let found = reading.by_id(&collection, Value::Int32(item.id).view()).expect("a look");
            assert_eq!(found.expect("it lives").document, raw(&item.document));
        }
        let held = self.world.engine.held_items(&Owner::Collection(collection.clone()), None);
        let mut held: Vec<String> =
            held.expect("a list").iter().map(|held| format!("{:?}", held.address)).collect();
        let address = |item: &Known| format!("{:?}", ItemAddress::DocumentId(Value::Int32(item.id)));
        let mut wanted: Vec<String> = self.items.iter().filter(|item| item.held).map(address).collect();
        held.sort();
        wanted.sort();
        assert_eq!(held, wanted, "who is held");
    }

    /// Compares figures, and the order of the entries of the index on `a`.
    fn compare_index(&self) {
        let collection = self.collection();
        let reading = self.world.engine.reading(&[&collection]).expect("a reading");
        let usage = reading.usage(&collection).expect("figures");
        let bytes: usize = self.items.iter().map(|item| raw(&item.document).as_bytes().len()).sum();
        assert_eq!((usage.living.items, usage.living.bytes), (self.items.len() as u64, bytes as u64));
        let list = reading.indexes(&collection).expect("a list");
        for index in list.iter().filter(|index| index.is_searchable() && index.spec.name() == "a_1") {
            let hits = self.world.hits(&collection, index.number, Direction::Forward);
            let mut wanted: Vec<(Option<i32>, i32)> = self
                .items
                .iter()
                .flat_map(|item| item.values("a").into_iter().map(|a| (a, item.id)))
                .collect();
            wanted.sort_by_key(|(value, _)| *value);
            let value = |id: i32| self.items.iter().find(|item| item.id == id).expect("known").values("a");
            assert_eq!(hits.len(), wanted.len());
            assert!(
                hits.iter().zip(&wanted).all(|(id, (wanted, _))| value(*id).contains(wanted)),
                "{hits:?}"
            );
        }
    }

    fn check(&self) {
        let check = self.world.engine.check_collection(&self.collection()).expect("a check");
        assert_eq!(check.faults, Vec::<String>::new());
    }
}

impl ModelTest for CollectionTest {
    const SEEDS: u64 = 24;
    const LENGTH: usize = 320;
    const STEPS: &'static [Step<Self>] = &[
        (8, "insert", Self::insert),
        (7, "modify", Self::modify),
        (2, "transaction", Self::transaction),
        (3, "pass", Self::pass),
        (2, "change an index", Self::change_indexes),
        (3, "build", Self::build),
        (2, "purge", Self::purge),
        (3, "hold or lift", Self::hold),
        (1, "restart", |test| test.world.restart()),
        (2, "check", |test| test.check()),
    ];

    fn start(_: u64, rng: Rng) -> CollectionTest {
        let world = World::new();
        world.collection("c");
        let rules = Rules { default: DefaultTtl::Off, delays: [None, None] };
        CollectionTest { world, rng, items: Vec::new(), rules, held: false }
    }

    fn compare(&mut self) {
        self.remove_expired();
        self.compare_items();
        self.compare_index();
    }

    fn finish(&mut self) {
        while self.world.engine.purge_step(50).expect("a step").other_entries > 0 {
            self.learn_rules();
        }
        self.learn_rules();
        self.compare();
        self.check();
    }
}

/// Writes into a draft: a document, or that the item goes. False if it was refused or there was nothing to do.
fn draft(
    workspace: &mut Workspace,
    collection: &Arc<Collection>,
    id: i32,
    document: Option<&Document>,
) -> bool {
    let next = document.map(RawDocument::from_document);
    let decide = move |found: Option<&LivingDocument>, _| {
        Ok(match (found, next) {
            (Some(found), next) => {
                assert_eq!(id_of(found), id);
                next.map_or(Decision::Delete, Decision::Replace)
            }
            (None, Some(next)) => Decision::Insert(next),
            (None, None) => Decision::Keep,
        }
        .into())
    };
    match workspace.modify(collection, &Target::Id(Value::Int32(id)), decide) {
        Ok(modified) => modified.is_write(),
        Err(Error::DuplicateKey { .. } | Error::Held { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// T2, T6, T13, T15, T16, T18, T22, T27.
#[test]
fn t13_t15_t27_a_collection_lives_as_the_model_does() {
    run::<CollectionTest>();
}
