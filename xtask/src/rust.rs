//! The parts that are plain cargo: format, lints, tests, simulator.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::Tier;
use crate::paths;
use crate::process::{self, Finished};
use crate::proof;
use crate::report::{Outcome, Part, Report, count_before};
use crate::server::Build;

const BUILD_TIMEOUT: Duration = Duration::from_mins(45);
const TEST_TIMEOUT: Duration = Duration::from_mins(45);
const LONG_TIMEOUT: Duration = Duration::from_hours(4);

/// The number of seeds, and the deadline for all. Each seed tests the whole contract, with feeds, holds, evidence and
/// collections; two quiet cores take less than a minute for the short tier's.
const SEEDS: u64 = 2_000;
const SEEDS_TIMEOUT: Duration = Duration::from_mins(20);
const LONG_SEEDS: u64 = 50_000;

/// Leaves out the allocator of servers that are measured, which takes longer to compile than any other dependency.
const WITHOUT_ALLOCATOR: &str = "--no-default-features";

/// The module of the tests in which openssl shakes hands.
const TLS_TESTS: &str = "tls::";

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(paths::root());
    command
}

pub(crate) fn format(report: &mut Report) {
    report.part("format", || {
        let main = process::run(&mut cargo(&["fmt", "--all", "--check"]), BUILD_TIMEOUT)?;
        let mut good = main.success;
        for own in ["compat/rust", "compat/mongo/rust", "fuzz", "bench", "bench/baselines", "proof"] {
            let own = paths::root().join(own);
            good &= process::run(cargo(&["fmt", "--check"]).current_dir(own), BUILD_TIMEOUT)?.success;
        }
        Ok(verdict(good, ""))
    });
}

fn lint() -> Result<Outcome> {
    let arguments =
        ["clippy", "--workspace", "--all-targets", WITHOUT_ALLOCATOR, "--locked", "--", "-D", "warnings"];
    let mut good = process::run(&mut cargo(&arguments), BUILD_TIMEOUT)?.success;
    // Workspaces of their own, which nothing else here builds. They reuse the output in the common folder; and without
    // linking they need no fuzzer, which would otherwise be compiled first.
    for own in ["fuzz", "bench", "proof"] {
        let mut own_lints =
            cargo(&["clippy", "--workspace", WITHOUT_ALLOCATOR, "--locked", "--", "-D", "warnings"]);
        own_lints
            .current_dir(paths::root().join(own))
            .env("CARGO_TARGET_DIR", paths::target())
            .env("CUSTOM_LIBFUZZER_PATH", paths::target().join("libfuzzer.a"));
        good &= process::run(&mut own_lints, BUILD_TIMEOUT)?.success;
    }
    Ok(verdict(good, ""))
}

/// Returns the parts that cargo alone compiles and runs, the longest first.
pub(crate) fn parts() -> Vec<Part<'static>> {
    let mut parts = vec![
        Part { name: "lints", run: Box::new(lint) },
        Part { name: "rust tests", run: Box::new(short_tests) },
        Part { name: "harness tests", run: Box::new(harness_tests) },
    ];
    if !process::available("openssl") {
        let missing = || Ok(Outcome::Missing("openssl is not installed".to_owned()));
        parts.push(Part { name: "rust tests of TLS", run: Box::new(missing) });
    }
    parts
}

fn short_tests() -> Result<Outcome> {
    let mut command = cargo(&["test", "--workspace", WITHOUT_ALLOCATOR, "--locked", "--no-fail-fast"]);
    if !process::available("openssl") {
        command.args(["--", "--skip", TLS_TESTS]);
    }
    counted(&process::run(&mut command, TEST_TIMEOUT)?)
}

fn harness_tests() -> Result<Outcome> {
    // Workspaces of their own; the proofs are built by the same profile in the same place anyway.
    let mut proof = cargo(&["test", "--release", "--locked"]);
    proof.current_dir(paths::root().join("proof")).env("CARGO_TARGET_DIR", proof::target());
    let mut bench = cargo(&["test", "--locked", "--package", "bolide-bench"]);
    bench.current_dir(paths::root().join("bench")).env("CARGO_TARGET_DIR", paths::target().join("bench"));
    let (proof, bench) = (process::run(&mut proof, TEST_TIMEOUT)?, process::run(&mut bench, TEST_TIMEOUT)?);
    counted(&Finished { success: proof.success && bench.success, output: proof.output + &bench.output })
}

/// Runs the tests that are too large for the short tier.
pub(crate) fn long_tests(report: &mut Report) {
    if any_ignored() {
        report.part("rust tests, long", || {
            let arguments =
                ["test", "--release", "--workspace", "--locked", "--no-fail-fast", "--", "--ignored"];
            counted(&process::run(&mut cargo(&arguments), LONG_TIMEOUT)?)
        });
    }
    report.part("models of the writer", || {
        let mut models = cargo(&["test", "--release", "--locked", "model"]);
        models.current_dir(paths::root().join("proof/model"));
        counted(&process::run(&mut models, LONG_TIMEOUT)?)
    });
}

/// Returns `true` if a test is marked as too big for the short tier.
fn any_ignored() -> bool {
    let sources = paths::files(&paths::root().join("crates"), &["rs"]);
    sources.iter().any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("#[ignore")))
}

/// Adds up the `test result` lines of all test binaries.
pub(crate) fn counted(finished: &Finished) -> Result<Outcome> {
    let results = finished.output.lines().filter(|line| line.starts_with("test result:"));
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    for line in results {
        passed += count_before(line, "passed");
        failed += count_before(line, "failed");
        ignored += count_before(line, "ignored");
    }
    anyhow::ensure!(passed + failed > 0 || !finished.success, "no test ran");
    Ok(verdict(finished.success, &format!("{passed} passed, {failed} failed, {ignored} ignored")))
}

pub(crate) fn simulator(report: &mut Report, tier: Tier) {
    report.part("simulator", || {
        let (seeds, timeout) = match tier {
            Tier::Short => (SEEDS, SEEDS_TIMEOUT),
            Tier::Long => (LONG_SEEDS, LONG_TIMEOUT),
        };
        let mut simulator = Command::new(tier.build().program("bolide-simulator"));
        simulator.args(["--seeds", &seeds.to_string()]).current_dir(paths::root());
        let finished = process::run(&mut simulator, timeout)?;
        // The program prints how many seeds it ran and how long they took.
        Ok(verdict(finished.success, finished.output.lines().last().unwrap_or("it says nothing")))
    });
    if tier == Tier::Long {
        report.part("planted bugs", || {
            let arguments = ["build", "--release", "--locked", "--bin", "planted-bugs"];
            ensure!(process::run(&mut cargo(&arguments), BUILD_TIMEOUT)?.success, "it does not build");
            let mut planted = Command::new(Build::Release.program("planted-bugs"));
            let finished = process::run(planted.current_dir(paths::root()), LONG_TIMEOUT)?;
            let survived = finished.output.lines().filter(|line| line.ends_with("SURVIVED")).count();
            Ok(verdict(finished.success, &format!("{survived} survived")))
        });
    }
}

/// Returns passed or failed, with the same text.
pub(crate) fn verdict(success: bool, text: &str) -> Outcome {
    if success { Outcome::Passed(text.to_owned()) } else { Outcome::Failed(text.to_owned()) }
}
