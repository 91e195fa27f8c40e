//! `bolide ttl forecast`, `bolide ttl dry-run`.

use std::fmt::Write;

use anyhow::{Result, bail};
use document::Value;

use crate::cli::status::{at, number};
use crate::client::{Client, escaped};
use crate::format::{Align, bytes, count, counted, date, table};
use crate::namespace::NamespaceArguments;

/// The longest bar.
const BAR_CELLS: u64 = 40;

/// The partial cells that a bar can end with.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Arguments of `forecast`.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// The interval
    #[arg(long, value_parser = ["minute", "hour", "day"], default_value = "hour")]
    by: String,
    /// The number of intervals
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1440))]
    count: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `dry-run`.
#[derive(Debug, clap::Args)]
pub(crate) struct DryRun {
    #[command(flatten)]
    namespace: NamespaceArguments,
    /// The default time to live to try: seconds, -1 for "as each item defines", or off
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    default_ttl: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(request: &Request, client: &mut Client) -> Result<()> {
    let namespace = request.namespace.find(client)?;
    let path = format!("{}&forecast={}&count={}", namespace.path("ttl"), request.by, request.count);
    let answer = client.get_json(&path)?;
    let Some(forecast) = answer.get("forecast") else { bail!("the server returned no forecast") };
    if request.json {
        println!("{}", forecast.to_json());
    } else {
        print!("{}", histogram(&namespace.to_string(), forecast));
    }
    Ok(())
}

fn histogram(name: &str, forecast: &Value) -> String {
    let intervals = at(forecast, &["intervals"]).and_then(Value::as_array).unwrap_or_default();
    let most = intervals.iter().map(|interval| number(interval, &["items"])).max().unwrap_or(0);
    let rows = intervals.iter().map(|interval| {
        let items = number(interval, &["items"]);
        vec![
            date(number(interval, &["from"])),
            count(items),
            bytes(number(interval, &["bytes"])),
            bar(items, most),
        ]
    });
    let word = at(forecast, &["interval"]).and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("Expiry of {name} in each {word} from\n\n");
    let head = [("", Align::Left), ("items", Align::Right), ("size", Align::Right), ("", Align::Left)];
    text.push_str(&table(&head, &rows.collect::<Vec<_>>()));
    text.push('\n');
    for (name, words) in
        [("overdue", "expired, not purged yet"), ("later", "expire later"), ("never", "never expire")]
    {
        let (items, size) = (number(forecast, &[name, "items"]), number(forecast, &[name, "bytes"]));
        let _ = writeln!(text, "{} ({}) {words}", counted(items, "item"), bytes(size));
    }
    if at(forecast, &["exact"]) == Some(&Value::Bool(false)) {
        text.push_str("Several rules apply: an item is counted under each of its rules.\n");
    }
    text
}

/// Formats a bar of eighths of a cell; any nonzero value is visible.
fn bar(items: u64, most: u64) -> String {
    if items == 0 || most == 0 {
        return String::new();
    }
    let eighths = (u128::from(items) * u128::from(BAR_CELLS) * 8 / u128::from(most)).max(1) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

pub(super) fn dry_run(request: &DryRun, client: &mut Client) -> Result<()> {
    let namespace = request.namespace.find(client)?;
    let path =
        format!("{}&defaultTtl={}", namespace.path("ttl"), escaped(&request.default_ttl).replace("%2D", "-"));
    let answer = client.get_json(&path)?;
    let Some(told) = answer.get("dryRun") else { bail!("the server returned no dry run") };
    if request.json {
        println!("{}", told.to_json());
        return Ok(());
    }
    let of = |name: &str| {
        let (items, size) = (number(told, &[name, "items"]), number(told, &[name, "bytes"]));
        format!("{} ({})", counted(items, "item"), bytes(size))
    };
    let at_most = if at(told, &["exact"]) == Some(&Value::Bool(false)) { "at most " } else { "" };
    println!("With a default TTL of {} for {namespace} (dry run):", request.default_ttl);
    println!("{at_most}{} would expire at once, {} would stay", of("expiringAtOnce"), of("livingThen"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(0, 10), "");
        assert_eq!(bar(10, 10), "█".repeat(40));
        assert_eq!(bar(5, 10), "█".repeat(20));
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(u64::MAX, u64::MAX).chars().count(), 40);
    }

    #[test]
    fn a_forecast_is_a_row_for_each_interval() {
        let forecast = r#"{"interval":"day","exact":true,"overdue":{"items":0,"bytes":0},"intervals":[
            {"from":0,"items":1,"bytes":31},{"from":86400,"items":2,"bytes":62}],
            "later":{"items":10,"bytes":310},"never":{"items":0,"bytes":0}}"#;
        let text = histogram("db/c", &document::parse_json(forecast.as_bytes()).unwrap());
        assert!(text.contains("1970-01-01 00:00:00 UTC      1  31 B  ████████████████████\n"), "{text}");
        assert!(text.contains("1970-01-02 00:00:00 UTC      2  62 B  ████"), "{text}");
        assert!(text.contains("10 items (310 B) expire later\n"), "{text}");
    }
}
