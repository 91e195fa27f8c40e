//! The runs that went badly.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::verdicts;
use crate::compare::{Results, Section};

/// Rounds that differ by more than this from the median are reported.
const UNSTEADY: f64 = 0.35;

/// The load average above which other programs use the machine.
const QUIET: f64 = 2.0;

/// Adds everything that went badly: missing peers, failures, unsteady rounds, a generator that may have been the
/// bottleneck.
pub(super) fn list(text: &mut String, results: &Results, load_before: &str) {
    text.push_str("## Runs that went badly\n\n");
    let mut lines: BTreeSet<String> = results.missing.iter().cloned().collect();
    let load: f64 = load_before.split(',').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    if load > QUIET {
        lines.insert(format!(
            "all of them: the machine was busy with other things (load average {load_before} before the first run), so \
             throughput, latencies, start-up times and what users felt of the mass expiry are not the servers' own"
        ));
    }
    for run in &results.runs {
        let what = format!(
            "{}, {} bytes, {} connections{}, {}",
            run.kind.name(),
            run.size,
            run.connections,
            match run.section {
                Section::OpenLoop => ", open loop",
                Section::Large => ", more than the cache",
                Section::Transport => ", servers alike",
                Section::Cold => ", after a cold start",
                _ => "",
            },
            run.peer
        );
        if let Some(failure) = &run.failure {
            lines.insert(format!("{what}: failed: {failure}"));
        }
        let failures: u64 = run.rounds.iter().map(|figures| figures.failures).sum();
        if let Some(first) = run.rounds.iter().find_map(|figures| figures.failure.as_ref()) {
            lines.insert(format!("{what}: {failures} operations failed, the first: {first}"));
        }
        if run.rounds.iter().any(|figures| !figures.is_settled) {
            lines.insert(format!(
                "{what}: deferred work was not done after a minute, and is missing in the figures"
            ));
        }
        let Some(middle) = run.middle() else { continue };
        let costs = run.rounds.iter().map(|figures| figures.server_us);
        if let Some(worst) = costs.clone().find(|us| (us / middle.server_us - 1.0).abs() > UNSTEADY) {
            lines.insert(format!(
                "{what}: unsteady: {worst:.1} us of CPU in one round and {:.1} in the middle one",
                middle.server_us
            ));
        }
        if run.section == Section::Main && middle.client_us > middle.server_us * 2.0 {
            lines.insert(format!(
                "{what}: the generator took {:.1} us for each operation, the server {:.1}: it had the larger part of the \
                 machine, so throughput says little",
                middle.client_us, middle.server_us
            ));
        }
    }
    lines.extend(verdicts::unsettled(results));
    if lines.is_empty() {
        text.push_str("None.\n");
    }
    for line in lines {
        let _ = writeln!(text, "- {}", line.replace(['\n', '\r'], " "));
    }
}
