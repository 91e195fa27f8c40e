//! Tests below the engine's interface, over several folders.

pub(crate) mod below;
mod date_rules;
mod order_of_a_view;
mod several_partitions;
mod ttl_modes;
