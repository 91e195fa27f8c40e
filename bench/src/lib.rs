//! The common parts of benchmarks and reliability checks: the server as a process, a client of each of its protocols, the
//! load generator, and the servers that Bolide is compared with.
//!
//! Nothing here comes from the product's own crates, so that a mistake there is not repeated here.

pub mod churn;
pub mod client;
pub mod counters;
pub mod documents;
pub mod drive;
pub mod histogram;
pub mod peer;
pub mod processors;
pub mod steady;
pub mod workload;
