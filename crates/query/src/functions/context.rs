//! The inputs of an evaluation besides items, and its budget.
//!
//! Evaluation is pure but for this: the time of the request, a seed for `RAND`, a budget, and a flag that ends it. Functions are
//! infallible: a function that exceeds a limit records a [`Fault`] here and returns undefined; the executor checks
//! for a fault after each item and turns it into an error.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The default budget of a request, in steps of roughly a row, an element or some dozens of letters: minutes of
/// computing.
pub const DEFAULT_BUDGET: u64 = 500_000_000;

/// The steps between two looks at whether the evaluation is cancelled: some dozens of microseconds.
const STEPS_BETWEEN_LOOKS: u64 = 1024;

/// The default memory of a request for the rows of its page, including those skipped by `OFFSET`.
pub const DEFAULT_MEMORY: usize = 64 << 20;

/// The reason why an evaluation had to stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The query exceeded the budget of one request.
    #[error("The query exceeds the amount of computation that one request may do.")]
    OutOfBudget,
    /// The evaluation was [cancelled](Context::with_cancelled).
    #[error("The query was cancelled.")]
    Cancelled,
    /// The query would exceed its memory for a page.
    #[error(
        "The query needs more than {limit} bytes of memory for {what}: the setting 'query-memory' is how much it may have."
    )]
    OutOfAllowance {
        /// What grew too large.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// The query would build a single value that exceeds the limit.
    #[error("The query needs more than {limit} bytes of memory for {what}.")]
    OutOfMemory {
        /// What grew too large.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A value makes the query impossible to answer.
    #[error("{0}")]
    Refused(String),
}

/// The context of one request's evaluation.
#[derive(Debug)]
pub struct Context {
    /// The time of the request, milliseconds since 1970.
    pub now_millis: u64,
    seed: Cell<u64>,
    memory: usize,
    budget: Cell<u64>,
    fault: RefCell<Option<Fault>>,
    /// The flag of an evaluation that may take long.
    cancelled: Option<Arc<AtomicBool>>,
    pub(crate) patterns: crate::functions::regex::Patterns,
}

impl Context {
    /// Creates a context at a time. The seed decides what `RAND` yields.
    pub fn new(now_millis: u64, seed: u64) -> Context {
        Context {
            now_millis,
            // The generator never leaves the state zero.
            seed: Cell::new(seed | 1),
            memory: DEFAULT_MEMORY,
            budget: Cell::new(DEFAULT_BUDGET),
            fault: RefCell::new(None),
            cancelled: None,
            patterns: crate::functions::regex::Patterns::default(),
        }
    }

    /// Returns the context with another budget.
    #[must_use]
    pub fn with_budget(self, budget: u64) -> Context {
        self.budget.set(budget);
        self
    }

    /// Returns the context with another limit of memory for a page.
    #[must_use]
    pub fn with_memory(self, bytes: usize) -> Context {
        Context { memory: bytes, ..self }
    }

    /// Returns the context of an evaluation that may take long: it ends soon after the flag is set, and offers its
    /// processor to waiting threads from time to time.
    #[must_use]
    pub fn with_cancelled(self, cancelled: Arc<AtomicBool>) -> Context {
        Context { cancelled: Some(cancelled), ..self }
    }

    /// Bytes that may be held for a page.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Returns the fault for exceeding the memory of a page.
    pub(crate) fn out_of_allowance(&self, what: &'static str) -> Fault {
        Fault::OutOfAllowance { what, limit: self.memory }
    }

    /// Charges `steps` to the budget; returns false and records the fault if it is used up or the evaluation cancelled.
    pub fn spend(&self, steps: u64) -> bool {
        let before = self.budget.get();
        let Some(rest) = before.checked_sub(steps) else {
            self.fail(Fault::OutOfBudget);
            return false;
        };
        self.budget.set(rest);
        before / STEPS_BETWEEN_LOOKS == rest / STEPS_BETWEEN_LOOKS || self.may_continue()
    }

    /// Returns whether the evaluation is not cancelled. A thread that computes for long would keep others waiting until
    /// the system's next tick, so it yields here.
    fn may_continue(&self) -> bool {
        let Some(cancelled) = &self.cancelled else { return true };
        if cancelled.load(Ordering::Relaxed) {
            self.fail(Fault::Cancelled);
            return false;
        }
        std::thread::yield_now();
        true
    }

    /// Returns the steps that are left.
    pub(crate) fn left(&self) -> u64 {
        self.budget.get()
    }

    /// Records why the evaluation has to stop. The first fault is kept.
    pub fn fail(&self, fault: Fault) {
        self.budget.set(0);
        self.fault.borrow_mut().get_or_insert(fault);
    }

    /// Returns the recorded fault.
    pub fn fault(&self) -> Option<Fault> {
        self.fault.borrow().clone()
    }

    /// Returns a number in `0.0..1.0`, different at each call.
    pub(crate) fn random(&self) -> f64 {
        let mut state = self.seed.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.seed.set(state);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_evaluation_ends_soon_and_says_why() {
        let cancelled = Arc::new(AtomicBool::new(false));
        let context = Context::new(0, 1).with_cancelled(Arc::clone(&cancelled));
        assert!((0..10 * STEPS_BETWEEN_LOOKS).all(|_| context.spend(1)));
        cancelled.store(true, Ordering::Relaxed);
        assert!((0..STEPS_BETWEEN_LOOKS).any(|_| !context.spend(1)));
        assert_eq!(context.fault(), Some(Fault::Cancelled));
        assert!(!context.spend(1), "it stays ended");
    }
}
