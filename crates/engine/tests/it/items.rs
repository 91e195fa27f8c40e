//! Limits of operations on items, alone and in batches. The scripts test what the operations do.

use engine::{Error, Operation};

use crate::world::{World, body, key};

#[test]
fn a_patch_condition_that_computes_too_much_is_refused_and_not_taken_for_false() {
    let world = World::new();
    world.container("");
    let list: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    world.create("a", &format!(r#""id":"x","l":[{}]"#, list.join(","))).expect("created");
    let patch = |condition: &str| {
        let operations = r#"[{"op":"set","path":"/v","value":9}]"#;
        world.patch(
            "a",
            "x",
            &format!(r#"{{"condition":"from c where {condition}","operations":{operations}}}"#),
        )
    };
    let product = "EXISTS(SELECT VALUE 1 FROM a IN c.l JOIN b IN c.l JOIN d IN c.l WHERE a + b + d < 0)";
    for condition in [product.to_owned(), format!("NOT {product}"), vec!["c.l = c.l"; 5_000].join(" AND ")] {
        let outcome = patch(&condition);
        assert!(matches!(outcome, Err(Error::Fault(_))), "{outcome:?}");
    }
    assert!(world.read("a", "x").expect("read").body.get("v").is_none());
    patch(&vec!["c.l = c.l"; 100].join(" AND ")).expect("that much is allowed");
}

fn create(id: &str) -> Operation {
    Operation::Create { body: body("a", &format!(r#""id":"{id}""#)) }
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
