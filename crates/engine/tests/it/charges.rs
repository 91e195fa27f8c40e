//! The charges that operations return.

use engine::{Charge, Error, FeedStart, ItemName, Operation, Patch, Precondition, Scope};

use crate::world::{World, body, key, value};

fn create(text: &str) -> Operation {
    Operation::Create { body: body("p", text) }
}

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const IDS: u64 = 6;

/// Returns a body with or without a ttl of its own, of some size; unique values sometimes conflict.
fn draw_body(dice: &mut Dice, id: u64) -> String {
    let ttl = ["", r#","ttl":10"#, r#","ttl":-1"#, r#","ttl":25"#][dice.roll(4) as usize];
    let (a, u, fill) = (dice.roll(3), dice.roll(9), "y".repeat(dice.roll(3) as usize * 900));
    format!(r#""id":"{id}","a":{a},"u":{u},"fill":"{fill}"{ttl}"#)
}

fn draw(dice: &mut Dice) -> Operation {
    let id = dice.roll(IDS);
    let (name, precondition) = (ItemName::Id(id.to_string()), Precondition::None);
    match dice.roll(6) {
        0 => create(&draw_body(dice, id)),
        1 => Operation::Upsert { body: body("p", &draw_body(dice, id)), precondition },
        2 => Operation::Replace { name, body: body("p", &draw_body(dice, id)), precondition },
        3 => {
            let patch = format!(r#"[{{"op":"set","path":"/a","value":{}}}]"#, dice.roll(4));
            let patch = Patch::from_value(&value(&patch)).expect("a patch");
            Operation::Patch { name, patch, precondition }
        }
        4 => Operation::Delete { name, precondition },
        _ => Operation::Read { name, precondition },
    }
}

/// One operation, or some in a transactional batch.
fn draw_request(dice: &mut Dice) -> Vec<Operation> {
    let count = if dice.roll(3) == 0 { 2 + dice.roll(3) } else { 1 };
    (0..count).map(|_| draw(dice)).collect()
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
/// items are deleted instead: all cost the same.
#[test]
fn t21_nothing_costs_more_or_less_because_of_ttl() {
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let unique = r#","uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}"#;
        let (expiring, purged, plain) = (World::new(), World::new(), World::new());
        for world in [&expiring, &purged] {
            world.container(&format!(r#","defaultTtl":20{unique}"#));
        }
        plain.container(unique);
        for step in 0..80 {
            if dice.roll(8) == 0 {
                for world in [&expiring, &purged, &plain] {
                    world.pass(7);
                }
                purged.drain();
                let gone = |id: &String| !expiring.is_living("p", id) && plain.is_living("p", id);
                for id in (0..IDS).map(|id| id.to_string()).filter(gone) {
                    plain.delete("p", &id).expect("it lives there");
                }
            }
            let request = draw_request(&mut dice);
            let expected = told(&plain, request.clone());
            assert_eq!(told(&expiring, request.clone()), expected, "seed {seed} step {step} {request:?}");
            assert_eq!(
                told(&purged, request.clone()),
                expected,
                "purged: seed {seed} step {step} {request:?}"
            );
            let expected = charges_of_reads(&plain);
            assert_eq!(charges_of_reads(&expiring), expected, "seed {seed} step {step}");
            assert_eq!(charges_of_reads(&purged), expected, "purged: seed {seed} step {step}");
        }
    }
}
