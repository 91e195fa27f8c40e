//! The whole engine under one seed: random operations, policies, clocks and crashes, checked after each step against a plain
//! model of TTL.md.
//!
//! Modules:
//! - `model`, `clock`, `real_time`: the expected behaviour. They share no code with the engine and depend on nothing but
//!   `std`.
//! - `operation`: the steps, drawn from the seed.
//! - `world`: the real engine over a memory store, with a disk that survives crashes and clocks that are moved by hand;
//!   its `translate`, `body` and `calendar` convert between the types of the model and of the engine.
//! - `run`: the world, its twin without purge and the model, step by step side by side.
//! - `evidence_check`, `deletion_records`: the evidence of expired items, against the expiries of the model.
//! - `budget`, `documents`: short workloads of their own (`workload`), under enforced throughput and in the MongoDB
//!   form.
//! - `steady`: the purge beside a stream of inserts, at its own pace.
//! - `check`: the comparison. `coverage`, `situation`: whether the seeds reached the situations in which bugs show.
//! - `digest`: the stored bytes and charges of a seed, as a number that refactorings must not change.
//! - `bugs`: defects that the binary `planted-bugs` plants into a copy of the engine, each of which must be caught.
//!
//! ```text
//! cargo run --release -p bolide-simulator                          2,000 seeds, and every situation reached
//! cargo run --release -p bolide-simulator -- --seed 4711           one seed, step by step
//! cargo run --release -p bolide-simulator --bin planted-bugs       the long tier's proof that bugs are caught
//! ```
//!
//! This crate starts no thread, reads no clock and draws no number that does not come from the seed, so a seed that fails fails
//! again in the same step.

mod body;
mod budget;
pub mod bugs;
mod calendar;
mod check;
mod clock;
mod coverage;
mod deletion_records;
mod digest;
mod documents;
mod evidence_check;
mod model;
mod operation;
mod real_time;
mod run;
mod situation;
pub mod steady;
mod workload;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use coverage::{Coverage, CoveragePoint};
use digest::Digest;
pub use run::Failure;
use run::Run;
use workload::SeedResult;

/// The default number of steps of a seed.
pub const DEFAULT_STEPS: usize = 120;

/// Each of the short workloads takes this part of the steps.
const SHORT_LIFE_PART: usize = 3;

/// Runs a seed; returns the situations it reached, or its failure.
pub fn run_seed(seed: u64, steps: usize) -> Result<Coverage, Failure> {
    let (_, coverage, failure) = run(seed, steps, false);
    failure.map_or(Ok(coverage), Err)
}

/// Runs a seed and returns a trace of every step.
pub fn trace_seed(seed: u64, steps: usize) -> (Vec<String>, Option<Failure>) {
    let (trace, _, failure) = run(seed, steps, true);
    (trace, failure)
}

/// Runs a seed and returns the digest of its stored bytes and charges.
pub fn digest_seed(seed: u64, steps: usize) -> Result<u64, Failure> {
    let (trace, _, failure) = run(seed, steps, true);
    failure.map_or_else(|| Ok(Digest::of_trace(&trace)), Err)
}

fn run(seed: u64, steps: usize, traced: bool) -> SeedResult {
    let (mut trace, mut coverage, failure) = run_world(seed, steps, traced);
    if failure.is_some() {
        return (trace, coverage, failure);
    }
    for life in [budget::run, documents::run] {
        let (more, reached, failure) = catch_panic(seed, steps / SHORT_LIFE_PART, life);
        if traced {
            trace.extend(more);
        }
        coverage.add(&reached);
        if failure.is_some() {
            return (trace, coverage, failure);
        }
    }
    (trace, coverage, None)
}

/// Runs a short workload; a panic in it counts as a failure.
fn catch_panic(seed: u64, steps: usize, life: fn(u64, usize) -> SeedResult) -> SeedResult {
    catch_unwind(|| life(seed, steps)).unwrap_or_else(|panic| {
        let failure = Failure { step: 0, message: panic_text(&*panic) };
        (Vec::new(), Coverage::default(), Some(failure))
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    format!("a panic: {}", text.unwrap_or_default())
}

fn run_world(seed: u64, steps: usize, traced: bool) -> SeedResult {
    let mut run = match Run::new(seed, traced) {
        Ok(run) => run,
        Err(message) => return (Vec::new(), Coverage::default(), Some(Failure { step: 0, message })),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| run.take_steps(steps)));
    let failure = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(Failure { step: run.steps_taken(), message: panic_text(&*panic) }),
    };
    let coverage = run.situation.coverage.clone();
    (run.into_trace(), coverage, failure)
}
