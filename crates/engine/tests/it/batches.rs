//! Transactional batches: all or nothing, in one commit.

use engine::{Effect, Error, ItemName, Operation, Precondition};

use crate::world::{World, body, key};

fn create(id: &str) -> Operation {
    Operation::Create { body: body("a", &format!(r#""id":"{id}""#)) }
}

fn read(id: &str) -> Operation {
    Operation::Read { name: ItemName::Id(id.into()), precondition: Precondition::None }
}

#[test]
fn a_batch_is_one_commit_and_sees_its_own_writes() {
    let world = World::new();
    let container = world.container("");
    let before = world.engine.last_sequence();
    let delete = Operation::Delete { name: ItemName::Id("x".into()), precondition: Precondition::None };
    let operations = vec![create("x"), read("x"), create("y"), delete];
    let outcomes = world.engine.batch(&container, &key("a"), operations).wait().expect("committed");
    let effects: Vec<Effect> = outcomes.iter().map(|outcome| outcome.effect).collect();
    assert_eq!(effects, [Effect::Created, Effect::Read, Effect::Created, Effect::Deleted]);
    assert_eq!(world.engine.last_sequence(), before + 1, "one LSN for the whole batch");
    assert!(!world.is_alive("a", "x") && world.is_alive("a", "y"));
}

#[test]
fn a_failing_operation_undoes_its_neighbours_and_is_named() {
    let world = World::new();
    let container = world.container("");
    world.create("a", r#""id":"taken""#).expect("created");
    let before = world.engine.last_sequence();
    let operations = vec![create("x"), create("taken"), create("y")];
    let error = world.engine.batch(&container, &key("a"), operations).wait().expect_err("a conflict");
    assert_eq!(error.index, Some(1));
    assert!(matches!(error.error, Error::Exists { .. }));
    assert!(!world.is_alive("a", "x"));
    assert_eq!(world.engine.last_sequence(), before);
    assert_eq!(world.counts(), (1, 0));
}

/// T5, T15 inside a batch.
#[test]
fn t5_t15_hold_inside_a_batch() {
    let world = World::new();
    let container = world.container(r#","defaultTtl":10"#);
    world.create("a", r#""id":"dead""#).expect("created");
    world.pass(10);
    let bad = Operation::Create { body: body("a", r#""id":"z","ttl":0"#) };
    let error =
        world.engine.batch(&container, &key("a"), vec![create("x"), bad]).wait().expect_err("bad ttl");
    assert_eq!((error.index, error.error), (Some(1), Error::InvalidTtl { text: "0".into() }));
    let error = world.engine.batch(&container, &key("a"), vec![read("dead")]).wait().expect_err("dead");
    assert!(matches!(error.error, Error::NotFound { .. }));
    world
        .engine
        .batch(&container, &key("a"), vec![create("dead"), read("dead")])
        .wait()
        .expect("free at once");
}

#[test]
fn the_answer_to_a_batch_is_bounded() {
    let world = World::new();
    let container = world.container("");
    world.create("a", &format!(r#""id":"big","v":"{}""#, "x".repeat(1_500_000))).expect("created");
    let reads = |count| (0..count).map(|_| read("big")).collect();
    assert!(world.engine.batch(&container, &key("a"), reads(2)).wait().is_ok());
    let error = world.engine.batch(&container, &key("a"), reads(3)).wait().expect_err("too much");
    assert!(matches!(error.error, Error::TooLarge { .. }) && error.index.is_none());
}

#[test]
fn size_limits_of_a_batch() {
    let world = World::new();
    let container = world.container("");
    for (count, message) in
        [(0, "Batch request has no operations."), (101, "more operations than what is supported.")]
    {
        let operations = (0..count).map(|n| create(&n.to_string())).collect();
        let error = world.engine.batch(&container, &key("a"), operations).wait().expect_err("refused");
        assert!(error.error.to_string().contains(message), "{}", error.error);
        assert_eq!(error.index, None);
    }
}
