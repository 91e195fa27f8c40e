//! Compares a run with the report before it, by ratios to PostgreSQL, which do not depend on machine and load.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::compare::{Results, Section};

/// Ratios that differ by more than this are reported.
const NOISE: f64 = 0.3;
const YARDSTICK: &str = "postgresql";

type Costs = BTreeMap<(String, String), Vec<f64>>;

/// Returns the changes, as the last part of the report.
pub(super) fn compare(last: &Path, results: &Results) -> String {
    let Ok(text) = std::fs::read_to_string(last) else { return String::new() };
    let (before, now) = (ratios(&read(&text)), ratios(&current(results)));
    let (mut same, mut others) = (0, String::new());
    for ((operation, who), ratio) in &now {
        let Some(last) = before.get(&(operation.clone(), who.clone())) else { continue };
        if (ratio / last - 1.0).abs() > NOISE {
            let _ = writeln!(
                others,
                "- {operation}, {who}: {ratio:.2} of PostgreSQL's CPU; in the report before {last:.2}"
            );
        } else {
            same += 1;
        }
    }
    let noise = NOISE * 100.0;
    format!(
        "\n## Beside the report before\n\n{same} of {} ratios to PostgreSQL's CPU are within {noise:.0} % of it.\n\n{others}",
        now.len()
    )
}

fn current(results: &Results) -> Costs {
    let mut costs = Costs::new();
    for run in results.runs.iter().filter(|run| run.section == Section::Main) {
        let figures = run.rounds.iter().map(|figures| figures.server_us);
        costs.entry((run.kind.name().to_owned(), run.peer.clone())).or_default().extend(figures);
    }
    costs
}

/// Returns the costs in a table that an earlier run has written.
fn read(text: &str) -> Costs {
    let mut costs = Costs::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        if let ["Main", operation, _, _, who, _, server_us, ..] = cells.as_slice()
            && let Ok(us) = server_us.parse()
        {
            costs.entry(((*operation).to_owned(), (*who).to_owned())).or_default().push(us);
        }
    }
    costs
}

fn ratios(costs: &Costs) -> BTreeMap<(String, String), f64> {
    let mut found = BTreeMap::new();
    for ((operation, who), rounds) in costs.iter().filter(|((_, who), _)| who != YARDSTICK) {
        if let Some(yardstick) = costs.get(&(operation.clone(), YARDSTICK.to_owned())) {
            found.insert((operation.clone(), who.clone()), middle(rounds) / middle(yardstick));
        }
    }
    found
}

fn middle(rounds: &[f64]) -> f64 {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_read_back_from_a_table() {
        let table = "section\toperation\tbytes\tconnections\twho\tround\tserver_us\n\
                     Main\tinsert\t1024\t16\tbolide rest\t0\t90.00\t1\n\
                     Main\tinsert\t1024\t16\tpostgresql\t0\t100.00\t1\n\
                     Main\tinsert\t1024\t16\tpostgresql\t1\t120.00\t1\n\
                     Sizes\tinsert\t256\t16\tbolide rest\t0\t10.00\t1\n";
        let ratios = ratios(&read(table));
        assert_eq!(ratios.len(), 1);
        assert_eq!(ratios[&("insert".to_owned(), "bolide rest".to_owned())], 0.75);
    }
}
