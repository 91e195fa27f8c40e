//! `bolide-simulator`: many seeds on all given threads, or one seed step by step.
//!
//! ```text
//! bolide-simulator [--seeds 2000] [--start 0] [--steps 120] [--threads 2]   many seeds
//! bolide-simulator --seed 4711 [--steps 120]                                one seed, every step printed
//! bolide-simulator --digests 40 [--steps 120]                               what seeds store and are charged, as numbers
//! ```
//!
//! Fails if a seed fails, and also if one of the situations in `coverage` was never reached.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use simulator::{Coverage, DEFAULT_STEPS, Failure, digest_seed, run_seed, trace_seed};

/// The server's: with the system's allocator a quarter of the time goes into it.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

struct Options {
    seeds: u64,
    start: u64,
    steps: usize,
    threads: usize,
    replay: Option<u64>,
    digests: Option<u64>,
    coverage_required: bool,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
        Ok(Options { replay: Some(seed), steps, .. }) => replay(seed, steps),
        Ok(Options { digests: Some(seeds), steps, .. }) => digests(seeds, steps),
        Ok(options) => run(&options),
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        seeds: 2000,
        start: 0,
        steps: DEFAULT_STEPS,
        threads: 2,
        replay: None,
        digests: None,
        coverage_required: true,
    };
    while let Some(flag) = arguments.next() {
        if flag == "--no-coverage" {
            options.coverage_required = false;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a number"))?;
        let number: u64 = value.parse().map_err(|_| format!("{flag} {value}: not a number"))?;
        match flag.as_str() {
            "--seeds" => options.seeds = number,
            "--start" => options.start = number,
            "--steps" => options.steps = number as usize,
            "--threads" => options.threads = number.clamp(1, 64) as usize,
            "--seed" => options.replay = Some(number),
            "--digests" => options.digests = Some(number),
            _ => return Err(format!("unknown flag {flag}; see the head of main.rs")),
        }
    }
    Ok(options)
}

/// Returns the first seeds, one in a line, as `digests.txt` has them.
fn digests(seeds: u64, steps: usize) -> ExitCode {
    for seed in 0..seeds {
        match digest_seed(seed, steps) {
            Ok(digest) => println!("{seed} {digest:016x}"),
            Err(_) => return replay(seed, steps),
        }
    }
    ExitCode::SUCCESS
}

fn replay(seed: u64, steps: usize) -> ExitCode {
    let (lines, failure) = trace_seed(seed, steps);
    for line in lines {
        println!("{line}");
    }
    match failure {
        None => {
            println!("seed {seed}: ok");
            ExitCode::SUCCESS
        }
        Some(Failure { step, message }) => {
            println!("seed {seed} failed at step {step}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs seeds on several threads, which take them one by one until the first failure.
#[expect(
    clippy::disallowed_methods,
    reason = "the duration of the whole run is told to people, never to the engine"
)]
fn run(options: &Options) -> ExitCode {
    let began = Instant::now();
    let (next, stop) = (AtomicU64::new(options.start), AtomicBool::new(false));
    let end = options.start.saturating_add(options.seeds);
    let work = || {
        let mut coverage = Coverage::default();
        let mut failed = None;
        while failed.is_none() && !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                break;
            }
            match run_seed(seed, options.steps) {
                Ok(reached) => coverage.add(&reached),
                Err(_) => failed = Some(seed),
            }
        }
        if failed.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        (coverage, failed)
    };
    let results: Vec<(Coverage, Option<u64>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a seed's panic is caught")).collect()
    });
    if let Some(seed) = results.iter().filter_map(|(_, failed)| *failed).min() {
        replay(seed, options.steps);
        println!(
            "replay: cargo run --release -p bolide-simulator -- --seed {seed} --steps {}",
            options.steps
        );
        return ExitCode::FAILURE;
    }
    let mut coverage = Coverage::default();
    for (reached, _) in &results {
        coverage.add(reached);
    }
    for (reach, count) in coverage.counts() {
        println!("{count:>9}  {reach:?}");
    }
    println!("{} seeds in {:.1} s", options.seeds, began.elapsed().as_secs_f64());
    let missing = coverage.missing();
    if missing.is_empty() || !options.coverage_required {
        return ExitCode::SUCCESS;
    }
    println!("never reached: {missing:?}");
    ExitCode::FAILURE
}
