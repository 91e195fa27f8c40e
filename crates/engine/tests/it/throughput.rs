//! Enforced throughput: which requests are refused, for how long, and in which containers.

use std::sync::Arc;
use std::time::Duration;

use bson::{Document as BsonDocument, RawDocument};
use engine::{
    Burst, Charge, CollectionDefinition, Container, Enforcement, Engine, Error, ItemName, Operation, Options,
    Owner, Precondition, QueryRequest, Throughput,
};
use storage::{ClockOptions, ManualClock, MemoryStore, Time};

use crate::world::{START, body, definition, key};

/// An engine that enforces throughput, and the clock of its seconds.
struct Enforced {
    engine: Engine,
    clock: Arc<ManualClock>,
}

impl Enforced {
    fn new() -> Enforced {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(START)));
        let mut store = ClockOptions::new(clock.clone());
        store.test_clock = storage::TestClock::Runs;
        let store = Arc::new(MemoryStore::new(store).expect("the store opens"));
        let enforcement = Enforcement::On { clock: clock.clone(), burst: Burst::Off };
        let options = Options { enforcement, ..Options::default() };
        Enforced { engine: Engine::open_with(store, options).expect("the engine opens"), clock }
    }

    fn container(
        &self,
        database: Option<Throughput>,
        own: Option<Throughput>,
        names: [&str; 2],
    ) -> [Arc<Container>; 2] {
        let database = self.engine.create_database("db", database).expect("a new database");
        names.map(|name| {
            self.engine.create_container(&database, definition(name, ""), own).expect("a new container")
        })
    }

    fn read(&self, container: &Container) -> Result<Charge, Error> {
        let name = ItemName::Id("1".into());
        let outcome = self.engine.read(container, &key("p"), &name, &Precondition::None)?;
        Ok(outcome.charge)
    }

    fn create(&self, container: &Arc<Container>, id: usize) -> Result<Charge, Error> {
        let operation = Operation::Create { body: body("p", &format!(r#""id":"{id}""#)) };
        Ok(self.engine.write(container, Some(key("p")), operation).wait()?.charge)
    }

    /// Creates items until one is refused; returns how many were created, and how long the refused one should wait.
    fn exhaust(&self, container: &Arc<Container>, from: usize) -> (usize, u64) {
        for id in from.. {
            match self.create(container, id) {
                Ok(_) => {}
                Err(Error::TooManyRequests { retry_after_ms }) => return (id - from, retry_after_ms),
                Err(other) => panic!("{other}"),
            }
        }
        unreachable!("a second does not last for ever")
    }
}

#[test]
fn every_operation_is_refused_when_the_second_is_spent_and_let_in_when_it_was_told() {
    let world = Enforced::new();
    let [container, other] = world.container(None, Some(Throughput::Manual(400)), ["c", "d"]);
    world.clock.advance(Duration::from_millis(300));
    // 5.30 each, with three terms.
    assert_eq!(world.exhaust(&container, 0), (76, 700));
    assert!(matches!(world.read(&container), Err(Error::TooManyRequests { retry_after_ms: 700 })));
    let query = world.engine.query(&container, &QueryRequest::new(None, 10));
    assert!(matches!(query, Err(Error::TooManyRequests { .. })));
    let scope = engine::Scope::default();
    let feed = world.engine.changes(&container, &scope, &engine::FeedStart::Beginning, 10);
    assert!(matches!(feed, Err(Error::TooManyRequests { .. })));
    let batch = vec![Operation::Create { body: body("p", r#""id":"x""#) }];
    let batch = world.engine.batch(&container, &key("p"), batch).wait().expect_err("refused");
    assert!(matches!(batch.error, Error::TooManyRequests { .. }));
    let emptied = world.engine.delete_partition(&container, &key("p"));
    assert!(matches!(emptied, Err(Error::TooManyRequests { .. })));
    assert_eq!(world.create(&other, 1), Ok(Charge(530)), "another container has its own");
    world.clock.advance(Duration::from_millis(699));
    assert!(world.read(&container).is_err());
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.read(&container), Ok(Charge(100)));
}

#[test]
fn containers_without_an_offer_share_their_databases() {
    let world = Enforced::new();
    let [container, other] = world.container(Some(Throughput::Manual(400)), None, ["c", "d"]);
    world.exhaust(&container, 0);
    assert!(matches!(world.create(&other, 1), Err(Error::TooManyRequests { .. })));
}

#[test]
fn a_new_offer_counts_from_the_next_second_and_partitions_share_it() {
    let world = Enforced::new();
    let [container, _] = world.container(None, Some(Throughput::autoscale(20_000)), ["c", "d"]);
    assert_eq!(container.partitions.len(), 4);
    // A quarter of the maximum.
    assert_eq!(world.exhaust(&container, 0).0, 944);
    let offers = world.engine.offers();
    let offer = offers.iter().find(|offer| offer.resource == container.self_link()).expect("an offer");
    let offer = world.engine.replace_offer(offer.rid, Throughput::autoscale(2000), None, &Precondition::None);
    offer.expect("replaced");
    world.clock.advance(Duration::from_secs(1));
    let database = world.engine.database("db").expect("there");
    let container = world.engine.container(&database, "c").expect("there");
    // Less a small debt of the second before.
    assert_eq!(world.exhaust(&container, 10_000).0, 94);
}

#[test]
fn t29_the_test_clock_moves_no_budget() {
    let world = Enforced::new();
    let [container, _] = world.container(None, Some(Throughput::Manual(400)), ["c", "d"]);
    world.exhaust(&container, 0);
    world.engine.advance_clock(365 * 24 * 3600).expect("a test clock");
    assert!(matches!(world.read(&container), Err(Error::TooManyRequests { retry_after_ms: 1000 })));
}

#[test]
fn a_bulk_insert_stops_where_the_second_is_spent() {
    let world = Enforced::new();
    let collection = world.engine.create_collection("db", "c", CollectionDefinition::default(), None);
    let collection = collection.expect("a new collection");
    let documents = (0..200).map(|id| RawDocument::from_document(&BsonDocument::new().with("_id", id)));
    let outcomes =
        world.engine.insert(&collection, documents.collect(), true, None).wait().expect("an answer");
    // Five units each.
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 80);
    assert!(matches!(outcomes.last(), Some(Err(Error::TooManyRequests { retry_after_ms: 1000 }))));
    assert!(world.engine.admit_collection(&collection).is_err());
    world.clock.advance(Duration::from_secs(1));
    world.engine.admit_collection(&collection).expect("let in").pay(Charge(0));
}

#[test]
fn t20_the_purge_has_nothing_while_users_take_all_and_the_rate_when_they_stop() {
    let world = Enforced::new();
    let [container, _] = world.container(None, Some(Throughput::Manual(400)), ["c", "d"]);
    let budget = world.engine.budget(&Owner::Container(Arc::clone(&container)), &container.partitions[0]);
    for second in 0..5 {
        world.exhaust(&container, second * 1000);
        assert_eq!(budget.left_over(), Some(Charge(0)), "second {second}");
        world.clock.advance(Duration::from_secs(1));
    }
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(budget.left_over(), Some(Charge(40_000)));
    budget.spend_left_over(Charge(50_000));
    assert_eq!(budget.left_over(), Some(Charge(0)));
    assert_eq!(world.exhaust(&container, 9000).0, 76, "users have their whole second");
    assert_eq!(world.engine.next_left_over(), Some(Duration::from_secs(1)));
}

/// T20: expired items wait as long as users take every unit, cost them none, and are removed at the rate that users leave.
#[test]
fn t20_the_purge_spends_only_what_users_leave() {
    let world = Enforced::new();
    let database = world.engine.create_database("db", None).expect("a new database");
    let definition = definition("c", r#","defaultTtl":100"#);
    let container = world.engine.create_container(&database, definition, Some(Throughput::Manual(400)));
    let container = container.expect("a new container");
    let mut created = 0;
    for second in 0..5 {
        created += world.exhaust(&container, second * 1000).0;
        world.clock.advance(Duration::from_secs(1));
    }
    world.engine.advance_clock(100).expect("a test clock");
    let spend_second = || {
        (0..1_000_000)
            .take_while(|_| !matches!(world.read(&container), Err(Error::TooManyRequests { .. })))
            .count()
    };
    let step = || world.engine.purge_step(512).expect("a step");
    spend_second();
    world.clock.advance(Duration::from_secs(1));
    let undisturbed = spend_second();
    for _ in 0..5 {
        let report = step();
        assert_eq!((report.purged_items, report.out_of_units), (0, true), "users left nothing");
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(spend_second(), undisturbed, "no request is refused because of expired items");
    }
    let mut rates = Vec::new();
    while world.engine.purge_status().next_due.is_some() {
        world.clock.advance(Duration::from_secs(1));
        let purged = step().purged_items + step().purged_items;
        assert_eq!(step().purged_items, 0, "one second's units are spent once");
        rates.push(purged);
    }
    // 5.30 each; what one second has spent too much is missing in the next.
    assert!(rates.iter().all(|purged| *purged <= 80), "{rates:?}");
    assert!(rates[1..5].iter().all(|purged| *purged >= 70), "{rates:?}");
    assert_eq!(rates.iter().sum::<u64>(), created as u64);
    // The first second pays what the last step spent too much; then all of the rate is left over.
    let budget = world.engine.budget(&Owner::Container(Arc::clone(&container)), &container.partitions[0]);
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(budget.left_over(), Some(Charge(40_000)));
}
