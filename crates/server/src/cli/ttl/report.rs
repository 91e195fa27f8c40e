//! `bolide ttl report`.

use std::fmt::Write;

use anyhow::Result;
use document::{Object, Value};

use crate::cli::status::{Status, at, number, ttl};
use crate::client::Client;
use crate::format::{bytes, count, counted, date, span};
use crate::namespace::NamespaceArguments;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// The container or collection, as DATABASE/NAME. Default: all of them
    #[arg(value_name = "DATABASE/NAME")]
    name: Option<String>,
    /// The API it belongs to, if both have one of that name
    #[arg(long, value_parser = ["nosql", "mongodb"])]
    api: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(request: &Request, client: &mut Client) -> Result<()> {
    let Some(name) = &request.name else {
        let status = Status::read(client)?;
        if request.json {
            println!("{}", Value::Array(status.containers).to_json());
        } else {
            print!("{}", status.table());
        }
        return Ok(());
    };
    let namespace = NamespaceArguments { name: name.clone(), api: request.api.clone() }.find(client)?;
    let report = client.get_json(&namespace.path("ttl"))?;
    if request.json {
        println!("{}", report.to_json());
    } else {
        let now = number(&client.get_json("/_bolide/clock")?, &["now"]);
        print!("{}", text(&namespace.to_string(), &report, now));
    }
    Ok(())
}

fn text(name: &str, report: &Value, now: u64) -> String {
    let mut text = String::new();
    let tally = |names: &[&str]| {
        let of = |what| number(report, &[names, &[what]].concat());
        format!("{} ({})", counted(of("items"), "item"), bytes(of("bytes")))
    };
    let mut line = |title: &str, value: String| {
        let _ = writeln!(text, "{title:<12}{value}");
    };
    line("container", name.to_owned());
    line("default TTL", ttl(report));
    for rule in at(report, &["dateRules"]).and_then(Value::as_array).unwrap_or_default() {
        let index = at(rule, &["index"]).and_then(Value::as_str).unwrap_or_default();
        let building = if at(rule, &["inForce"]) == Some(&Value::Bool(false)) { ", being built" } else { "" };
        line("date rule", format!("{index}: {}{building}", span(number(rule, &["expireAfterSeconds"]))));
    }
    let lifecycle = at(report, &["lifecycle"]).and_then(Value::as_object).into_iter().flat_map(Object::iter);
    for (name, value) in lifecycle.filter(|(_, value)| !value.is_null()) {
        line("setting", format!("{name}: {}", value.to_json()));
    }
    line("living", tally(&["living"]));
    line("expired", tally(&["backlog"]));
    line("purged", tally(&["purge", "purged"]));
    if let Some(age) = at(report, &["purge", "oldestAgeSeconds"]).and_then(Value::as_i64) {
        line("oldest", format!("expired {} ago, not purged yet", span(age.unsigned_abs())));
    }
    if let Some(due) = at(report, &["purge", "nextDue"]).and_then(Value::as_i64).map(i64::unsigned_abs) {
        let next = match due.checked_sub(now) {
            Some(left) if left > 0 => format!("{}, in {}", date(due), span(left)),
            _ => "at once".to_owned(),
        };
        line("next", next);
    }
    for log in at(report, &["deletionRecord"]).and_then(Value::as_array).unwrap_or_default() {
        line("record", format!("log {}: {} lines", number(log, &["log"]), count(number(log, &["count"]))));
    }
    text
}
