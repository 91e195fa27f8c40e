//! The harness of model tests: random steps of the engine and of a plain model beside it, compared after each.
//!
//! A test supplies its setting, its model, the steps that may come next and what is compared ([`ModelTest`]). [`run`]
//! draws the steps, from each of the test's seeds. Clock, reopening and crashes are those of the `World`: a step moves
//! them as it calls the engine.
//!
//! ```text
//! seed --> start --> step --> compare --> step --> compare --> ... --> finish --> reached
//! ```
//!
//! A failure prints its seed and the last steps. `BOLIDE_SEED` runs one seed; `BOLIDE_SEEDS` says how many are run, or
//! which: `1000..2000`. Tests that draw no steps use the loop alone ([`each_seed`]). The tests in `src` include this
//! file too.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use fastrand::Rng;

/// A kind of step: how often it comes beside the others, its name, and what it does to engine and model.
pub(crate) type Step<T> = (u32, &'static str, fn(&mut T));

/// A situation without which a test shows nothing: its name, how often a seed was in it, and the least for all seeds
/// together.
pub(crate) type Reached = (&'static str, usize, usize);

/// How many steps a failure names.
const STEPS_SHOWN: usize = 12;

/// An engine in some setting, with a model of what it must show.
pub(crate) trait ModelTest: Sized + 'static {
    const SEEDS: u64;
    /// How many steps follow the start.
    const LENGTH: usize;
    const STEPS: &'static [Step<Self>];

    /// Returns the setting of a seed. The generator is for what the steps draw themselves.
    fn start(seed: u64, random: Rng) -> Self;

    /// Compares engine and model. Runs after each step.
    fn compare(&mut self);

    /// Compares what shows only at the end.
    fn finish(&mut self) {}

    fn reached(&self) -> Vec<Reached> {
        Vec::new()
    }
}

/// Runs a test from each of its seeds.
pub(crate) fn run<T: ModelTest>() {
    let mut total: Vec<Reached> = Vec::new();
    let seeds = each_seed(T::SEEDS, |seed| {
        let reached = run_seed::<T>(seed);
        total.resize(reached.len(), ("", 0, 0));
        for (total, (name, count, least)) in total.iter_mut().zip(reached) {
            *total = (name, total.1 + count, least);
        }
    });
    eprintln!("reached {total:?}");
    let missed = total.iter().find(|(_, count, least)| count < least);
    assert!(seeds < T::SEEDS || missed.is_none(), "too few to show anything: {missed:?}");
}

fn run_seed<T: ModelTest>(seed: u64) -> Vec<Reached> {
    let mut random = Rng::with_seed(seed);
    let mut trace = Trace::default();
    let mut test = T::start(seed, random.fork());
    for _ in 0..T::LENGTH {
        let (_, name, step) = draw(T::STEPS, &mut random);
        trace.0.push(name);
        step(&mut test);
        test.compare();
    }
    trace.0.push("the end");
    test.finish();
    test.reached()
}

fn draw<T>(steps: &[Step<T>], random: &mut Rng) -> Step<T> {
    let sum: u32 = steps.iter().map(|(weight, ..)| weight).sum();
    let mut number = random.u32(..sum);
    let drawn = steps.iter().find(|(weight, ..)| {
        let is_drawn = number < *weight;
        number = number.wrapping_sub(*weight);
        is_drawn
    });
    *drawn.expect("less than the sum")
}

/// The steps of a seed, printed if the last one panics.
#[derive(Default)]
struct Trace(Vec<&'static str>);

impl Drop for Trace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let shown = &self.0[self.0.len().saturating_sub(STEPS_SHOWN)..];
            eprintln!("failed at step {}, the last of: {}", self.0.len(), shown.join(", "));
        }
    }
}

/// Runs a test for so many seeds, unless the environment names others; prints the seed that fails. Returns how many
/// seeds it ran.
pub(crate) fn each_seed(seeds: u64, mut test: impl FnMut(u64)) -> u64 {
    let seeds = chosen_seeds().unwrap_or(0..seeds);
    for seed in seeds.clone() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("BOLIDE_SEED={seed} shows it again");
            resume_unwind(panic);
        }
    }
    seeds.end - seeds.start
}

/// Returns the seeds that `BOLIDE_SEED` or `BOLIDE_SEEDS` names.
fn chosen_seeds() -> Option<Range<u64>> {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    if let Ok(seed) = std::env::var("BOLIDE_SEED") {
        return Some(number(&seed)..number(&seed) + 1);
    }
    let seeds = std::env::var("BOLIDE_SEEDS").ok()?;
    Some(match seeds.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&seeds),
    })
}
