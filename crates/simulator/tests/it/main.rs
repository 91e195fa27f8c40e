//! Runs some seeds with assertions on, and checks that a seed always takes the same steps. The optimised program runs thousands of
//! seeds and checks that they reach every situation.

use simulator::steady::{self, UserLoad};
use simulator::{digest_seed, trace_seed};

const SEEDS: u64 = 20;
const STEPS: usize = 80;

/// Whatever is moved, renamed or merged: the same bytes in the store and the same charges. Recorded with
/// `bolide-simulator --digests 20 --steps 80`.
#[test]
fn seeds_agree_with_the_model_and_store_and_are_charged_what_is_recorded() {
    let recorded = include_str!("../../digests.txt");
    let mut lines = recorded.lines();
    let mut differ = Vec::new();
    for seed in 0..SEEDS {
        let digest = digest_seed(seed, STEPS).unwrap_or_else(|failure| {
            panic!(
                "step {}: {}\nreplay: cargo run -p bolide-simulator -- --seed {seed} --steps {STEPS}",
                failure.step, failure.message
            )
        });
        let line = format!("{seed} {digest:016x}");
        if lines.next() != Some(&line) {
            differ.push(line);
        }
    }
    assert_eq!(lines.next(), None, "a digest for each seed");
    assert!(
        differ.is_empty(),
        "stored or charged differently; if that is wanted, record:\n{}",
        differ.join("\n")
    );
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

#[test]
fn t20_the_backlog_is_bounded_under_steady_load() {
    for seed in 0..3 {
        let load = UserLoad::of_seed(seed);
        let waited = steady::run(load, 90).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        // At most what was inserted a ttl before the end can have been removed, and most of it must have been.
        assert!(waited.purged as f64 > load.inserts * 60.0, "seed {seed}: {load:?}, {waited:?}");
    }
}

#[test]
fn t20_a_stream_beyond_what_is_granted_is_noticed_by_the_check() {
    let load = UserLoad { inserts: 400.0, writing: 0.9, idle_processors: 0.0 };
    let found = steady::run(load, 90).expect_err("a quarter of the writer's time removes 100 a second");
    assert!(found.contains("living"), "{found}");
}
