//! What measures and torments a running Bolide share: the server as a process, and a client of each of its protocols.
//!
//! Nothing here comes from the product's own crates, so that a mistake there is not made here a second time.

pub mod client;
