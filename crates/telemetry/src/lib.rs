//! Metrics of both front ends in one registry, the Prometheus text format, the log of slow operations, and the events
//! of the audit log.
//!
//! A front end registers once, with the names of its operations; from then on a finished request costs a few relaxed
//! additions to existing counters ([`FrontEnd::record`]). Nothing is allocated, hashed or locked, and no label comes
//! from a client: the names are those of the front end's own table, everything else is `unknown`. Metrics kept
//! elsewhere (by the store, the purge, the process) are collected when a page is written and cost nothing meanwhile.
//!
//! This crate knows no protocol, no engine and no clock: callers pass durations and instants.

mod audit;
mod buckets;
mod front_end;
mod outcome;
mod page;
mod parse;
mod registry;
mod slow;

pub use audit::{AuditEvent, AuditOutcome, AuditSink, MemoryAuditSink};
pub use front_end::{FrontEnd, OpenConnection, OperationId, RequestSummary};
pub use outcome::Outcome;
pub use page::{Family, Kind, Page};
pub use parse::{ParsedFamily, Sample, parse};
pub use registry::{MetricsSource, Process, Registry};
pub use slow::{SlowLog, SlowOperation, Texts};
