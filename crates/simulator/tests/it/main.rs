//! The short tier: some seeds, and that a seed always takes the same way.

use simulator::{Coverage, run_seed, trace_seed};

const SEEDS: u64 = 140;
const STEPS: usize = 80;

#[test]
fn seeds_agree_with_the_model_and_reach_every_situation() {
    let mut coverage = Coverage::default();
    for seed in 0..SEEDS {
        match run_seed(seed, STEPS) {
            Ok(reached) => coverage.add(&reached),
            Err(failure) => panic!(
                "step {}: {}\nreplay: cargo run -p bolide-simulator -- --seed {seed} --steps {STEPS}",
                failure.step, failure.message
            ),
        }
    }
    assert_eq!(coverage.missing(), [], "never reached in {SEEDS} seeds");
}

#[test]
fn the_same_seed_leaves_the_same_trace() {
    for seed in 0..10 {
        let (first, second) = (trace_seed(seed, STEPS), trace_seed(seed, STEPS));
        assert_eq!(first, second, "seed {seed}");
        assert!(first.0.len() >= STEPS, "seed {seed}: a line for each step");
    }
}

#[test]
fn different_seeds_go_different_ways() {
    assert_ne!(trace_seed(1, STEPS).0, trace_seed(2, STEPS).0);
}
