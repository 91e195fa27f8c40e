//! What the server tells of itself: figures of both front ends in one registry, Prometheus' text format, the log of slow
//! operations, and the events of the audit log.
//!
//! A front end registers once, with the names of its operations; from then on a request that ends costs a few relaxed additions
//! to counters that are there already ([`FrontEnd::record`]). Nothing is allocated, hashed or locked, and no label comes from a
//! client: the names are those of our own tables, everything else is `unknown`. Figures that somebody else keeps (the store, the
//! purge, the process) are asked for when a page is written and cost nothing meanwhile.
//!
//! This room knows no protocol, no engine and no clock: durations and instants are handed in.

mod audit;
mod buckets;
mod front_end;
mod outcome;
mod page;
mod parse;
mod registry;
mod slow;

pub use audit::{AuditEvent, AuditMemory, AuditOutcome, AuditSink};
pub use front_end::{Connected, Ending, FrontEnd, OperationId};
pub use outcome::Outcome;
pub use page::{Family, Kind, Page};
pub use parse::{ParsedFamily, Sample, parse};
pub use registry::{Observed, Process, Registry};
pub use slow::{SlowLog, SlowOperation, Texts};
