//! The charges that operations return.

use engine::{Charge, Error, FeedStart, ItemName, Operation, Patch, Precondition, Scope};

use fastrand::Rng;

use crate::model_test::{ModelTest, Step, run};
use crate::world::{World, body, key, value};

fn create(text: &str) -> Operation {
    Operation::Create { body: body("p", text) }
}

const IDS: u64 = 6;

/// A body with or without a ttl of its own, of some size; unique values meet now and then.
fn draw_body(random: &mut Rng, id: u64) -> String {
    let ttl = ["", r#","ttl":10"#, r#","ttl":-1"#, r#","ttl":25"#][random.u64(..4) as usize];
    let (a, u, fill) = (random.u64(..3), random.u64(..9), "y".repeat(random.u64(..3) as usize * 900));
    format!(r#""id":"{id}","a":{a},"u":{u},"fill":"{fill}"{ttl}"#)
}

fn draw(random: &mut Rng) -> Operation {
    let id = random.u64(..IDS);
    let (name, precondition) = (ItemName::Id(id.to_string()), Precondition::None);
    match random.u64(..6) {
        0 => create(&draw_body(random, id)),
        1 => Operation::Upsert { body: body("p", &draw_body(random, id)), precondition },
        2 => Operation::Replace { name, body: body("p", &draw_body(random, id)), precondition },
        3 => {
            let patch = format!(r#"[{{"op":"set","path":"/a","value":{}}}]"#, random.u64(..4));
            let patch = Patch::from_value(&value(&patch)).expect("a patch");
            Operation::Patch { name, patch, precondition }
        }
        4 => Operation::Delete { name, precondition },
        _ => Operation::Read { name, precondition },
    }
}

/// One operation, or some in a transactional batch.
fn draw_request(random: &mut Rng) -> Vec<Operation> {
    let count = if random.u64(..3) == 0 { 2 + random.u64(..3) } else { 1 };
    (0..count).map(|_| draw(random)).collect()
}

/// The charge of each operation of a request, or the one that failed and its error.
type Told = Result<Vec<Charge>, (Option<usize>, std::mem::Discriminant<Error>)>;

fn told(world: &World, mut request: Vec<Operation>) -> Told {
    if request.len() == 1 {
        let outcome = world.run("p", request.remove(0));
        return outcome
            .map(|outcome| vec![outcome.charge])
            .map_err(|error| (None, std::mem::discriminant(&error)));
    }
    let outcomes = world.engine.batch(&world.current(), &key("p"), request).wait();
    outcomes
        .map(|outcomes| outcomes.iter().map(|outcome| outcome.charge).collect())
        .map_err(|failure| (failure.index, std::mem::discriminant(&failure.error)))
}

fn charges_of_reads(world: &World) -> Vec<Charge> {
    let queries = [
        None,
        Some("SELECT * FROM c WHERE c.a = 1"),
        Some("SELECT VALUE COUNT(1) FROM c"),
        Some("SELECT c.id FROM c ORDER BY c.a DESC"),
        Some("SELECT * FROM c WHERE c.id = '3'"),
    ];
    let mut charges: Vec<Charge> = queries.iter().map(|query| world.page(*query, 100, None).charge).collect();
    let feed = world.engine.changes(&world.current(), &Scope::default(), &FeedStart::Beginning, 100);
    charges.push(feed.expect("a page").charge);
    charges
}

/// The same operations, alone and in batches, where items expire, with and without purge, and where TTL is off and the same
/// items are deleted instead.
struct ChargeTest {
    random: Rng,
    expiring: World,
    purged: World,
    plain: World,
}

impl ChargeTest {
    fn pass(&mut self) {
        let ChargeTest { expiring, purged, plain, .. } = self;
        for world in [&*expiring, purged, plain] {
            world.pass(7);
        }
        purged.drain();
        let gone = |id: &String| !expiring.is_living("p", id) && plain.is_living("p", id);
        for id in (0..IDS).map(|id| id.to_string()).filter(gone) {
            plain.delete("p", &id).expect("it lives there");
        }
    }

    fn request(&mut self) {
        let request = draw_request(&mut self.random);
        let expected = told(&self.plain, request.clone());
        assert_eq!(told(&self.expiring, request.clone()), expected, "{request:?}");
        assert_eq!(told(&self.purged, request.clone()), expected, "purged: {request:?}");
    }
}

impl ModelTest for ChargeTest {
    const SEEDS: u64 = 20;
    const LENGTH: usize = 90;
    const STEPS: &'static [Step<Self>] = &[(1, "pass", Self::pass), (8, "request", Self::request)];

    fn start(_: u64, random: Rng) -> ChargeTest {
        let unique = r#","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}"#;
        let (expiring, purged, plain) = (World::new(), World::new(), World::new());
        for world in [&expiring, &purged] {
            world.container(&format!(r#","defaultTtl":20{unique}"#));
        }
        plain.container(unique);
        ChargeTest { random, expiring, purged, plain }
    }

    fn compare(&mut self) {
        let expected = charges_of_reads(&self.plain);
        assert_eq!(charges_of_reads(&self.expiring), expected);
        assert_eq!(charges_of_reads(&self.purged), expected, "purged");
    }
}

/// All cost the same.
#[test]
fn t21_nothing_costs_more_or_less_because_of_ttl() {
    run::<ChargeTest>();
}
