//! Diagnostics of the front end: statistics, the use of indexes, fail points for test suites.

pub(crate) mod fail_points;
pub(crate) mod index_uses;
pub(crate) mod operation_kind;
pub(crate) mod recent_log;
pub(crate) mod statistics;
pub(crate) mod usage;
