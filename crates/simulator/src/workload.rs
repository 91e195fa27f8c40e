//! The harness of the short workloads: a seed's steps in a world of its own.

use crate::coverage::Coverage;
use crate::run::Failure;

/// The result of a seed: its trace, its coverage, and its failure.
pub(crate) type SeedResult = (Vec<String>, Coverage, Option<Failure>);

/// Runs the steps of a short workload; a failure names its step.
pub(crate) fn run_steps<L>(
    place: &str,
    born: Result<L, String>,
    steps: usize,
    take_step: fn(&mut L) -> Result<(), String>,
    tell: fn(L) -> (Vec<String>, Coverage),
) -> SeedResult {
    let failed = |step, message| Some(Failure { step, message: format!("{place}: {message}") });
    let mut life = match born {
        Ok(life) => life,
        Err(message) => return (Vec::new(), Coverage::default(), failed(0, message)),
    };
    let mut failure = None;
    for step in 1..=steps {
        if let Err(message) = take_step(&mut life) {
            failure = failed(step, message);
            break;
        }
    }
    let (trace, coverage) = tell(life);
    (trace, coverage, failure)
}
