//! Formats two samples as a page of text.

use std::fmt::Write;

use document::Value;

use super::sample::{Figures, Operation, Sample};
use crate::cli::status::{at, number};
use crate::format::{Align, bytes, count, counted, date, span, table};
use crate::namespace::Namespace;

/// Formats the changes between two samples, and the current state.
pub(super) fn page(url: &str, before: &Sample, now: &Sample, rows: usize) -> String {
    let seconds = now.taken.duration_since(before.taken).as_secs_f64().max(0.001);
    let operations: Vec<(&Operation, Figures)> = now
        .metrics
        .operations
        .iter()
        .map(|(name, figures)| (name, figures.since(before.metrics.operations.get(name))))
        .collect();
    let all = operations.iter().fold(Figures::default(), |sum, (_, figures)| sum.plus(figures));
    let mut text = head(url, now);
    let rate = |figure: &str| {
        let grown = now.metrics.figure(figure) - before.metrics.figure(figure);
        // The counters of a restarted server begin at zero.
        grown.max(0.0) / seconds
    };
    let server = &now.status.server;
    let mut line = |title: &str, value: String| {
        let _ = writeln!(text, "{title:<12}{value}");
    };
    line(
        "requests",
        format!(
            "{:.1}/s, of those {:.1}/s failed; {:.1} RU/s; {}",
            all.requests / seconds,
            all.failed / seconds,
            all.units / seconds,
            counted(now.metrics.figure("bolide_connections_open") as u64, "connection")
        ),
    );
    line("latency", latency(&all));
    line("purge", purge(server, rate("bolide_purged_items_total")));
    line(
        "store",
        format!(
            "{} on disk, {:.1} commits/s, {:.1} transactions/s",
            bytes(number(server, &["store", "diskBytes"])),
            rate("bolide_store_commits_total"),
            rate("bolide_store_jobs_total")
        ),
    );
    for problem in now.status.problems() {
        line("PROBLEM", problem);
    }
    let _ = write!(text, "\n{}", by_operation(operations, seconds, rows));
    let _ = write!(text, "\n{}", by_container(before, now, seconds, rows));
    text
}

fn head(url: &str, now: &Sample) -> String {
    let server = &now.status.server;
    let version = at(server, &["version"]).and_then(Value::as_str).unwrap_or("?");
    let time = date(number(server, &["clock", "now"]));
    let suspect = at(server, &["clock", "suspect"]).is_some_and(|suspect| !suspect.is_null());
    let clock = if suspect { ", SUSPECT" } else { "" };
    let offset = at(server, &["clock", "offset"]).and_then(Value::as_str);
    let offset = offset.map(|offset| format!(", {offset}")).unwrap_or_default();
    format!("Bolide {version}   {url}   {time}{offset}{clock}\n\n")
}

fn latency(figures: &Figures) -> String {
    let told = [("half", 0.5), ("95%", 0.95), ("99%", 0.99)]
        .map(|(name, share)| format!("{name} {}", within(figures.quantile(share))));
    told.join(", ")
}

/// Formats the bound of a quantile, as read from a histogram.
fn within(bound: Option<f64>) -> String {
    match bound {
        None => "-".to_owned(),
        Some(bound) if bound.is_infinite() => "slower".to_owned(),
        Some(bound) if bound < 1.0 => format!("≤ {} ms", bound * 1000.0),
        Some(bound) => format!("≤ {bound} s"),
    }
}

fn purge(server: &Value, rate: f64) -> String {
    let purge = at(server, &["purge"]).unwrap_or(&Value::Null);
    let paused = if at(purge, &["paused"]) == Some(&Value::Bool(true)) { "PAUSED, " } else { "" };
    let oldest = at(purge, &["oldestAgeSeconds"]).and_then(Value::as_i64);
    let oldest =
        oldest.map(|age| format!(", the oldest for {}", span(age.unsigned_abs()))).unwrap_or_default();
    let backlog = counted(number(purge, &["backlog", "items"]), "item");
    format!("{paused}{rate:.1} items/s; {backlog} expired and not purged{oldest}")
}

fn by_operation(mut operations: Vec<(&Operation, Figures)>, seconds: f64, rows: usize) -> String {
    use Align::{Left, Right};
    operations.retain(|(_, figures)| figures.requests > 0.0);
    operations.sort_by(|(_, one), (_, two)| two.requests.total_cmp(&one.requests));
    let rows = operations.iter().take(rows).map(|((api, operation), figures)| {
        vec![
            api.clone(),
            operation.clone(),
            format!("{:.1}", figures.requests / seconds),
            format!("{:.1}", figures.failed / seconds),
            format!("{:.1}", figures.units / seconds),
            within(figures.quantile(0.5)),
            within(figures.quantile(0.99)),
        ]
    });
    let head = [("api", Left), ("operation", Left), ("per s", Right), ("failed/s", Right)];
    let head = [&head[..], &[("RU/s", Right), ("half", Right), ("99%", Right)]].concat();
    table(&head, &rows.collect::<Vec<_>>())
}

/// Lists the largest containers, those with the most to purge first.
fn by_container(before: &Sample, now: &Sample, seconds: f64, rows: usize) -> String {
    use Align::{Left, Right};
    let mut containers: Vec<&Value> = now.status.containers.iter().collect();
    let weight = |container: &&Value| {
        let of = |what| number(container, &[what, "items"]);
        std::cmp::Reverse((of("backlog"), of("living")))
    };
    containers.sort_by_key(weight);
    let rate = |container: &Value, what: &str| {
        let namespace = Namespace::of(container);
        let earlier = before.status.containers.iter().find(|other| Namespace::of(other) == namespace);
        let earlier = earlier.map_or(0, |earlier| number(earlier, &[what, "items"]));
        (number(container, &[what, "items"]) as f64 - earlier as f64) / seconds
    };
    let rows = containers.into_iter().take(rows).map(|container| {
        vec![
            at(container, &["api"]).and_then(Value::as_str).unwrap_or_default().to_owned(),
            Namespace::of(container).to_string(),
            count(number(container, &["living", "items"])),
            format!("{:+.1}", rate(container, "living")),
            bytes(number(container, &["living", "bytes"])),
            count(number(container, &["backlog", "items"])),
            format!("{:.1}", rate(container, "purged").max(0.0)),
        ]
    });
    let head = [("api", Left), ("container", Left), ("living", Right), ("per s", Right)];
    let head = [&head[..], &[("size", Right), ("expired", Right), ("purged/s", Right)]].concat();
    table(&head, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_told_in_the_unit_that_fits() {
        let told = [None, Some(0.0025), Some(0.5), Some(2.5), Some(f64::INFINITY)].map(within);
        assert_eq!(told, ["-", "≤ 2.5 ms", "≤ 500 ms", "≤ 2.5 s", "slower"]);
    }
}
