//! The decision about one aim, from the runs of all rounds.

use std::fmt;

use bolide_bench::drive::Figures;

use super::Measured;
use super::aims::{Aim, Measure};

/// How much more than the aim the third quartile may be.
const SPREAD: f64 = 1.1;

/// An aim, the figures that decide it, and the decision.
pub struct Verdict {
    pub aim: Aim,
    /// The name of the peer that is judged, and of the one it is compared with.
    pub who: String,
    pub beside: String,
    pub measure: Measure,
    pub at_most: f64,
    /// The median and the third quartile of the rounds' ratios; of the longest answers in milliseconds.
    pub median: f64,
    pub third: f64,
    /// The ratio over all rounds together: of sums of CPU, else of means; of the longest answers the longest.
    pub overall: f64,
    /// The medians of both peers.
    pub ours: f64,
    pub theirs: f64,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Met,
    MetByMedian,
    Missed,
    /// No round counts.
    Undecided,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Outcome::Met => "met",
            Outcome::MetByMedian => "met by the median, and not by the third quartile",
            Outcome::Missed => "missed",
            Outcome::Undecided => "not decided",
        })
    }
}

/// The runs of two peers, one of each in every round.
pub struct Sides<'a> {
    pub who: &'a str,
    pub ours: &'a [Figures],
    pub beside: &'a str,
    pub theirs: &'a [Figures],
}

impl<'a> Sides<'a> {
    /// Returns the sides of a peer and the one it is compared with.
    pub fn of(ours: &'a Measured, theirs: &'a Measured) -> Sides<'a> {
        Sides { who: &ours.who, ours: &ours.rounds, beside: &theirs.who, theirs: &theirs.rounds }
    }
}

/// Decides an aim about a ratio: by the median, and by the third quartile with some spread.
pub fn ratio(aim: &Aim, measure: Measure, at_most: f64, sides: &Sides<'_>) -> Verdict {
    let [mut ours, mut theirs] =
        [sides.ours, sides.theirs].map(|runs| runs.iter().map(|run| measure.of(run)).collect::<Vec<_>>());
    let mut ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    let overall = total(measure, sides.ours) / total(measure, sides.theirs);
    let [median, third] = [0.5, 0.75].map(|part| quantile(&mut ratios, part));
    Verdict {
        aim: *aim,
        who: sides.who.to_owned(),
        beside: sides.beside.to_owned(),
        measure,
        at_most,
        median,
        third,
        overall,
        ours: quantile(&mut ours, 0.5),
        theirs: quantile(&mut theirs, 0.5),
        outcome: outcome(at_most, median, third),
    }
}

/// Decides the aim about the longest pause: by all rounds in which other machines left the processors alone.
pub fn pause(aim: &Aim, at_most: f64, sides: &Sides<'_>) -> Verdict {
    let quiet = |runs: &[Figures]| {
        let runs = runs.iter().filter(|run| !run.was_disturbed);
        runs.map(|run| Measure::Longest.of(run)).collect::<Vec<_>>()
    };
    let (mut ours, mut theirs) = (quiet(sides.ours), quiet(sides.theirs));
    let [median, third, worst] = [0.5, 0.75, 1.0].map(|part| quantile(&mut ours, part));
    Verdict {
        aim: *aim,
        who: sides.who.to_owned(),
        beside: sides.beside.to_owned(),
        measure: Measure::Longest,
        at_most,
        median,
        third,
        overall: worst,
        ours: worst,
        theirs: quantile(&mut theirs, 1.0),
        outcome: outcome(at_most, worst, worst),
    }
}

/// Returns the mean over all operations, where a mean exists, and else over all rounds.
fn total(measure: Measure, runs: &[Figures]) -> f64 {
    let weight = |run: &Figures| if measure == Measure::Cpu { run.latencies.count() as f64 } else { 1.0 };
    let sum: f64 = runs.iter().map(|run| measure.of(run) * weight(run)).sum();
    sum / runs.iter().map(weight).sum::<f64>()
}

fn outcome(at_most: f64, median: f64, third: f64) -> Outcome {
    if median.is_nan() || third.is_nan() {
        Outcome::Undecided
    } else if median > at_most {
        Outcome::Missed
    } else if third > at_most * SPREAD {
        Outcome::MetByMedian
    } else {
        Outcome::Met
    }
}

/// Returns the value below which that part of the values lies, interpolated between two of them.
pub fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let at = part * last as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bolide_bench::histogram::Histogram;

    use super::super::aims::AIMS;
    use super::*;

    fn run_of(server_us: f64, longest_ms: f64, was_disturbed: bool) -> Figures {
        let mut latencies = Histogram::default();
        latencies.add(Duration::from_micros(50));
        Figures {
            latencies,
            seconds: 1.0,
            server_us,
            client_us: 1.0,
            longest_us: longest_ms * 1e3,
            switches: None,
            instructions: None,
            written_bytes: None,
            is_settled: true,
            was_disturbed,
            failures: 0,
            failure: None,
        }
    }

    #[test]
    fn quantiles_lie_between_values() {
        let mut values = [4.0, 1.0, 3.0, 2.0, 5.0];
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|part| quantile(&mut values, part)), [1.0, 3.0, 4.0, 5.0]);
        assert_eq!(quantile(&mut [1.0, 2.0], 0.75), 1.75);
        assert!(quantile(&mut [], 0.5).is_nan());
    }

    #[test]
    fn an_aim_is_met_by_the_median_and_nearly_by_the_third_quartile() {
        assert_eq!(outcome(1.0, 1.0, 1.1), Outcome::Met);
        assert_eq!(outcome(1.0, 1.0, 1.2), Outcome::MetByMedian);
        assert_eq!(outcome(1.0, 1.01, 1.01), Outcome::Missed);
        assert_eq!(outcome(1.0, f64::NAN, f64::NAN), Outcome::Undecided);
    }

    #[test]
    fn a_ratio_is_formed_within_each_round() {
        let ours = [10.0, 20.0, 60.0].map(|us| run_of(us, 1.0, false));
        let theirs = [10.0, 20.0, 40.0].map(|us| run_of(us, 1.0, false));
        let sides = Sides { who: "a", ours: &ours, beside: "b", theirs: &theirs };
        let verdict = ratio(&AIMS[0], Measure::Cpu, 1.0, &sides);
        assert_eq!((verdict.median, verdict.third, verdict.ours, verdict.theirs), (1.0, 1.25, 20.0, 20.0));
        assert!((verdict.overall - 90.0 / 70.0).abs() < 1e-9);
        assert_eq!(verdict.outcome, Outcome::MetByMedian);
    }

    #[test]
    fn the_longest_pause_of_all_quiet_rounds_decides() {
        let theirs = [run_of(1.0, 9.0, false), run_of(1.0, 5.0, false)];
        let decided = |ours: [Figures; 2]| {
            let sides = Sides { who: "a", ours: &ours, beside: "b", theirs: &theirs };
            let verdict = pause(&AIMS[0], 100.0, &sides);
            (verdict.overall, verdict.theirs, verdict.outcome)
        };
        assert_eq!(
            decided([run_of(1.0, 20.0, false), run_of(1.0, 101.0, false)]),
            (101.0, 9.0, Outcome::Missed)
        );
        assert_eq!(decided([run_of(1.0, 20.0, false), run_of(1.0, 900.0, true)]), (20.0, 9.0, Outcome::Met));
        assert_eq!(decided([(); 2].map(|()| run_of(1.0, 20.0, true))).2, Outcome::Undecided);
    }
}
