//! The work of a query, passed from the handler to metrics and log.

use engine::{IndexUse, QueryMetrics};

/// The work of a query.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) metrics: QueryMetrics,
    pub(crate) index: IndexUse,
}
