//! The part of a request that its statements take into the store's transaction: logical time, randomness, cancellation.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bson::{ObjectId, Timestamp, ValueRef};
use mql::Context;
use storage::Time;

use crate::protocol::random;
use crate::service::Service;
use crate::service::call::Call;

/// The seeds of a context and of new ids.
#[derive(Debug, Clone)]
pub(crate) struct ContextSeed {
    timestamp: Timestamp,
    /// `bypassEmptyTsReplacement`.
    keeps_empty_timestamps: bool,
    seed: u64,
    cancelled: Arc<AtomicBool>,
    /// The id of a document that an upsert inserts without one of its own.
    pub(crate) id: ObjectId,
}

impl ContextSeed {
    /// Returns the seeds of a command.
    pub(crate) fn of(call: &Call) -> ContextSeed {
        ContextSeed {
            timestamp: call.timestamp,
            keeps_empty_timestamps: matches!(
                call.body.get("bypassEmptyTsReplacement"),
                Some(ValueRef::Bool(true))
            ),
            seed: random::seed(),
            cancelled: Arc::clone(&call.cancellation.flag),
            id: new_id(&call.service, call.now),
        }
    }

    /// Returns the context of an evaluation at the time of the store's transaction.
    pub(crate) fn context(&self, now: Time) -> Context {
        let millis = i64::try_from(now.millis()).unwrap_or(i64::MAX);
        let context = Context::new(millis, self.timestamp, self.seed, Arc::clone(&self.cancelled));
        if self.keeps_empty_timestamps { context.keeping_empty_timestamps() } else { context }
    }
}

/// Returns an id for a document that came without one.
pub(crate) fn new_id(service: &Service, now: Time) -> ObjectId {
    let seconds = u32::try_from(now.seconds()).unwrap_or(u32::MAX);
    service.object_id(seconds)
}
