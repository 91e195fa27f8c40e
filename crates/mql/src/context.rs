//! The inputs of an evaluation from outside: the time of the request, randomness, and a bound on the work.
//!
//! One context serves one request, so that one request sees one time (T16).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bson::Timestamp;

use crate::error::{Code, Error, Result};
use crate::scratch::Scratch;

/// The most steps of a request before it is stopped, far beyond what any sensible request needs.
const STEPS_MAX: u64 = 5_000_000_000;
/// The default limit of bytes that one stage of a pipeline keeps.
pub const STAGE_BYTES_MAX: usize = 100 * 1024 * 1024;
/// The number of steps between two checks for cancellation.
const STEPS_BETWEEN_LOOKS: u64 = 1024;

/// The context of one request.
#[derive(Debug)]
pub struct Context {
    /// The request's time, milliseconds since 1970: `$$NOW`, `$currentDate`.
    pub now_millis: i64,
    /// The request's logical time: `$$CLUSTER_TIME`, `$currentDate` of type timestamp.
    pub timestamp: Timestamp,
    keeps_empty_timestamps: bool,
    seed: Cell<u64>,
    steps: Cell<u64>,
    steps_max: u64,
    /// How many bytes one stage of a pipeline keeps at most.
    pub(crate) stage_bytes_max: usize,
    /// The scratch files for rows that exceed that; none if stages may not spill.
    pub(crate) scratch: Option<Arc<dyn Scratch>>,
    cancelled: Arc<AtomicBool>,
    yields: bool,
}

impl Context {
    /// Creates a context at a time, with a seed for everything random. Setting `cancelled` ends what runs with error 50.
    pub fn new(now_millis: i64, timestamp: Timestamp, seed: u64, cancelled: Arc<AtomicBool>) -> Context {
        Context {
            now_millis,
            timestamp,
            keeps_empty_timestamps: false,
            seed: Cell::new(seed),
            steps: Cell::new(0),
            steps_max: STEPS_MAX,
            stage_bytes_max: STAGE_BYTES_MAX,
            scratch: None,
            cancelled,
            yields: false,
        }
    }

    /// Returns the context of an evaluation that may take long, and that no commit waits for: it offers its processor to
    /// waiting threads from time to time, which would have to wait until the system's next tick.
    #[must_use]
    pub fn yielding(self) -> Context {
        Context { yields: true, ..self }
    }

    /// Returns a context for evaluation that is small by its nature: at a time, never cancelled.
    pub fn at(now_millis: i64) -> Context {
        let timestamp =
            Timestamp { seconds: (now_millis / 1000).clamp(0, u32::MAX.into()) as u32, increment: 1 };
        Context::new(now_millis, timestamp, 1, Arc::default())
    }

    /// Returns the context with timestamps of zero kept as they are, for clients that restore documents.
    #[must_use]
    pub fn keeping_empty_timestamps(self) -> Context {
        Context { keeps_empty_timestamps: true, ..self }
    }

    /// Returns the replacement of a top-level timestamp of zero; none if it is kept.
    pub(crate) fn time_for_empty(&self) -> Option<Timestamp> {
        (!self.keeps_empty_timestamps).then_some(self.timestamp)
    }

    /// Returns the context with another bound on the work.
    #[must_use]
    pub fn with_steps_max(self, steps_max: u64) -> Context {
        Context { steps_max, ..self }
    }

    /// Returns the context with another bound on the memory of a stage.
    #[must_use]
    pub fn with_stage_bytes_max(self, stage_bytes_max: usize) -> Context {
        Context { stage_bytes_max, ..self }
    }

    /// Sets the scratch files for rows that exceed that bound.
    pub fn set_scratch(&mut self, scratch: Option<Arc<dyn Scratch>>) {
        self.scratch = scratch;
    }

    /// Counts work; an error once the request is cancelled or has done too much.
    pub fn spend(&self, steps: u64) -> Result<()> {
        let before = self.steps.get();
        let after = before.saturating_add(steps);
        self.steps.set(after);
        if before / STEPS_BETWEEN_LOOKS == after / STEPS_BETWEEN_LOOKS {
            return Ok(());
        }
        if self.cancelled.load(Ordering::Relaxed) || after > self.steps_max {
            return Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"));
        }
        if self.yields {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Returns the next random number (splitmix64).
    pub fn random(&self) -> u64 {
        let seed = self.seed.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.seed.set(seed);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_request_ends_soon() {
        let cancelled = Arc::new(AtomicBool::new(false));
        let context = Context::new(0, Timestamp { seconds: 0, increment: 0 }, 1, Arc::clone(&cancelled));
        assert_eq!(context.spend(10_000), Ok(()));
        cancelled.store(true, Ordering::Relaxed);
        let ended = (0..STEPS_BETWEEN_LOOKS).map(|_| context.spend(1)).find(Result::is_err);
        assert_eq!(ended.expect("an end").expect_err("an error").code, Code::MAX_TIME_MS_EXPIRED);
    }

    #[test]
    fn work_is_bounded() {
        assert!(Context::at(0).spend(u64::MAX).is_err());
        assert!(Context::at(0).with_steps_max(5_000).spend(4_000).is_ok());
        assert!(Context::at(0).with_steps_max(5_000).spend(6_000).is_err());
    }
}
