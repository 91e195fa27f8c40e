//! What measures and torments a running Bolide share: the server as a process, a client of each of its protocols, the
//! load generator, and the servers that Bolide is compared with.
//!
//! Nothing here comes from the product's own crates, so that a mistake there is not made here a second time.

pub mod client;
pub mod documents;
pub mod drive;
pub mod histogram;
pub mod peer;
pub mod processors;
pub mod steady;
pub mod workload;
