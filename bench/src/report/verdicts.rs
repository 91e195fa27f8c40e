//! The verdicts of interleaved rounds, and what PostgreSQL says about itself.

use std::fmt::Write as _;

use crate::compare::Results;
use crate::verdicts::{Measured, Outcome, SCANNED_ITEMS, Verdict, Verdicts};

pub(super) fn tables(text: &mut String, results: &Results) {
    // The list of bad runs says why they are missing.
    let Some(verdicts) = &results.verdicts else { return };
    table(text, verdicts);
    counters(text, verdicts);
    configuration(text, verdicts);
}

fn table(text: &mut String, verdicts: &Verdicts) {
    let met = verdicts.verdicts.iter().filter(|verdict| verdict.outcome == Outcome::Met).count();
    let _ = write!(
        text,
        "## Aims beside PostgreSQL and the empty loop\n\n**{met} of {} met.** {} interleaved rounds of {:.1} s; the scan looks at \
         {SCANNED_ITEMS} documents, in rounds of at least 2 s. An aim is met if the median of the rounds' ratios is at most the aim \
         and their third quartile at most a tenth more; that of the longest answer, in milliseconds, if no round exceeds it in \
         which other machines left the processors alone. `all` is the ratio over all rounds together, which also shows deferred \
         work that falls into few of them. CPU and latencies of both in microseconds.\n\n\
         | operation | partition | connections | who | beside | measure | aim | median | 3rd quartile | all | ours | theirs | |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        verdicts.verdicts.len(),
        verdicts.rounds,
        verdicts.length.as_secs_f64()
    );
    for verdict in &verdicts.verdicts {
        row(text, verdict);
    }
    text.push('\n');
}

fn row(text: &mut String, verdict: &Verdict) {
    let Verdict { aim, who, beside, measure, at_most, median, third, overall, ours, theirs, outcome } =
        verdict;
    let shown = match outcome {
        Outcome::Met => "met".to_owned(),
        other => format!("**{other}**"),
    };
    let _ = writeln!(
        text,
        "| {} | {} | {} | {who} | {beside} | {} | {at_most:.2} | {median:.2} | {third:.2} | {overall:.2} | {ours:.1} | \
         {theirs:.1} | {shown} |",
        aim.kind.name(),
        aim.partition_items,
        aim.connections,
        measure.name()
    );
}

/// Adds what the same runs took besides CPU.
fn counters(text: &mut String, verdicts: &Verdicts) {
    text.push_str(
        "## Context switches, instructions and bytes written\n\nThe same runs, for one operation, the median of the rounds. \
         Context switches are those of all threads and processes, without those of deferred work; bytes are those written to \
         disks, deferred work included. `-`: not available on this machine.\n\n\
         | operation | partition | connections | who | CPU us | context switches | instructions | bytes written |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for measured in &verdicts.measured {
        let Measured { aim, who, rounds } = measured;
        let [switches, instructions, written] =
            [super::Counter::Switches, super::Counter::Instructions, super::Counter::Written]
                .map(|counter| counter.middle(rounds));
        let mut costs: Vec<f64> = rounds.iter().map(|run| run.server_us).collect();
        costs.sort_by(f64::total_cmp);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {who} | {} | {switches} | {instructions} | {written} |",
            aim.kind.name(),
            aim.partition_items,
            aim.connections,
            super::cell(costs.get(costs.len() / 2).copied())
        );
    }
    text.push('\n');
}

fn configuration(text: &mut String, verdicts: &Verdicts) {
    text.push_str(
        "## PostgreSQL's settings and indexes\n\nAs it reports them: what differs from its defaults (without paths), and the \
         indexes of the tables of the verdicts.\n\n```text\n",
    );
    for line in &verdicts.configuration {
        let _ = writeln!(text, "{line}");
    }
    text.push_str("```\n\n");
}

/// Returns the workloads whose deferred work was not done in time, or of which operations failed.
pub(super) fn unsettled(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for Measured { aim, who, rounds } in results.verdicts.iter().flat_map(|verdicts| &verdicts.measured) {
        let what = format!("verdict: {}, {} connections, {who}", aim.kind.name(), aim.connections);
        let unsettled = rounds.iter().filter(|run| !run.is_settled).count();
        if unsettled > 0 {
            lines.push(format!("{what}: deferred work was not done after a minute in {unsettled} rounds"));
        }
        let failures: u64 = rounds.iter().map(|run| run.failures).sum();
        if let Some(first) = rounds.iter().find_map(|run| run.failure.as_ref()) {
            lines.push(format!("{what}: {failures} operations failed, the first: {first}"));
        }
    }
    lines
}
