//! Queries of MongoDB's language on one collection: choosing an access path, and scanning along it.
//!
//! ```text
//!  filter, sort, hint --plan--> AccessPath --DocumentScan--> living documents, or rows of a pipeline (OpenScans)
//! ```
//!
//! [`planner`] counts living entries to choose between indexes; [`scan`] reads documents along the chosen [`access_path`] and can
//! pause between two requests of a cursor. Every document that a scan returns has passed the gate. The front end has the pipelines,
//! the cursors and the metering of requests.

mod access_path;
mod open_scans;
mod planner;
mod scan;
#[cfg(test)]
mod tests;

pub use access_path::{AccessPath, IndexScan};
pub use open_scans::OpenScans;
pub use planner::{Plan, PlanRequest, PlannedIndex, named_id, plan};
pub use scan::{DocumentScan, Examined};
