//! All figures of all runs as a table for programs.

use std::fmt::Write as _;

use bolide_bench::drive::Figures;

use crate::compare::Results;

/// The size of documents and of partitions in runs that do not say otherwise.
const VERDICT_BYTES: usize = 1024;
const PARTITION_ITEMS: u64 = 100;

const HEAD: &str = "section\toperation\tbytes\tconnections\twho\tround\tserver_us\tclient_us\tper_second\tp50_us\tp99_us\tp999_us\t\
                    max_us\tlongest_us\tswitches\tinstructions\twritten_bytes\tsettled\tdisturbed\tpartition_items\n";

/// What a row is about.
struct Row<'a> {
    section: &'a str,
    operation: &'a str,
    bytes: usize,
    connections: usize,
    who: &'a str,
    partition_items: u64,
}

pub(super) fn table(results: &Results) -> String {
    let mut text = HEAD.to_owned();
    for run in &results.runs {
        let row = Row {
            section: &format!("{:?}", run.section),
            operation: run.kind.name(),
            bytes: run.size,
            connections: run.connections,
            who: &run.peer,
            partition_items: PARTITION_ITEMS,
        };
        rounds(&mut text, &row, &run.rounds);
    }
    for measured in results.verdicts.iter().flat_map(|verdicts| &verdicts.measured) {
        let row = Row {
            section: "Verdicts",
            operation: measured.aim.kind.name(),
            bytes: VERDICT_BYTES,
            connections: measured.aim.connections,
            who: &measured.who,
            partition_items: measured.aim.partition_items,
        };
        rounds(&mut text, &row, &measured.rounds);
    }
    text
}

fn rounds(text: &mut String, row: &Row<'_>, rounds: &[Figures]) {
    let Row { section, operation, bytes, connections, who, partition_items } = row;
    let known = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
    for (round, figures) in rounds.iter().enumerate() {
        let [p50, p99, p999, max] =
            [50.0, 99.0, 99.9, 100.0].map(|percent| figures.latencies.percentile(percent));
        let _ = writeln!(
            text,
            "{section}\t{operation}\t{bytes}\t{connections}\t{who}\t{round}\t{:.2}\t{:.2}\t{:.0}\t{p50:.0}\t{p99:.0}\t{p999:.0}\t\
             {max:.0}\t{:.0}\t{}\t{}\t{}\t{}\t{}\t{partition_items}",
            figures.server_us,
            figures.client_us,
            figures.per_second(),
            figures.longest_us,
            known(figures.switches),
            known(figures.instructions),
            known(figures.written_bytes),
            u8::from(figures.is_settled),
            u8::from(figures.was_disturbed)
        );
    }
}
