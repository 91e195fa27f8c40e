//! Tests that look below the engine's interface, over several folders; their harness and world are those of `tests/it`.

pub(crate) mod below;
#[expect(dead_code, reason = "the tests of the public interface call more of it")]
#[path = "../../tests/it/container_model.rs"]
mod container_model;
mod date_rules;
#[path = "../../tests/it/model_test.rs"]
pub(crate) mod model_test;
mod order_of_a_view;
mod stored;
mod ttl_modes;
#[expect(dead_code, reason = "the tests of the public interface call more of it")]
#[path = "../../tests/it/world.rs"]
mod world;
