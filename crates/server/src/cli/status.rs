//! `bolide status`: the health of a running server. Exits with status 1 if it is unhealthy: not ready, its clock
//! suspect, its store not writable, its purge short of capacity, or a retention promise missed.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use document::{Object, Value};
use hyper::StatusCode;

use super::clock::reason;
use crate::client::{Client, Endpoint, refusal};
use crate::format::{Align, bytes, count, counted, date, span, table};
use crate::settings::Settings;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Only check whether requests will succeed; print nothing, and exit with status 1 if they will not. For health
    /// checks
    #[arg(long, conflicts_with = "json")]
    ready: bool,
}

/// Queries the server and prints its status.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    if request.ready {
        return Ok(if is_ready(&mut client)? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let status = Status::read(&mut client)?;
    let problems = status.problems();
    if request.json {
        println!("{}", status.json(&problems));
    } else {
        print!("{}", status.text(client.url(), &problems));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_ready(client: &mut Client) -> Result<bool> {
    match client.get_json("/ready") {
        Ok(_) => Ok(true),
        Err(error) if refusal(&error).is_some_and(|it| it.status == StatusCode::SERVICE_UNAVAILABLE) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The status that a server reports.
pub(crate) struct Status {
    ready: bool,
    /// The answer of `/_bolide/status`.
    pub(crate) server: Value,
    /// The answer of `/_bolide/containers`.
    pub(crate) containers: Vec<Value>,
}

impl Status {
    pub(crate) fn read(client: &mut Client) -> Result<Status> {
        let ready = is_ready(client)?;
        let server = client.get_json("/_bolide/status")?;
        let containers = client.get_json("/_bolide/containers")?;
        let containers = containers.get("containers").and_then(Value::as_array).unwrap_or_default().to_vec();
        Ok(Status { ready, server, containers })
    }

    /// Returns the problems, each as a sentence.
    pub(crate) fn problems(&self) -> Vec<String> {
        let server = &self.server;
        let mut problems = Vec::new();
        let [free, kept] = ["freeBytes", "reservedBytes"].map(|name| number(server, &["store", name]));
        if free < kept {
            problems.push(format!(
                "disk space is low: {} free, {} reserved; only writes that free space are accepted",
                bytes(free),
                bytes(kept)
            ));
        }
        if at(server, &["store", "stopped"]).and_then(Value::as_bool) == Some(true) {
            problems.push("the store takes no writes after a failed commit: restart the server".to_owned());
        }
        if at(server, &["store", "mergingFails"]).and_then(Value::as_bool) == Some(true) {
            problems.push(
                "compaction fails and is retried, see the log for the cause; writes are refused if it keeps failing"
                    .to_owned(),
            );
        }
        if let Some(suspect) = at(server, &["clock", "suspect"]).filter(|suspect| !suspect.is_null()) {
            problems.push(format!(
                "the clock is suspect: {}; nothing is purged until you accept or reject it, see bolide clock",
                reason(suspect)
            ));
        }
        if !self.ready && problems.is_empty() {
            problems.push("the server is not ready".to_owned());
        }
        let missed = number(server, &["purge", "missedBounds"]);
        if missed > 0 {
            let missed = counted(missed, "time");
            problems.push(format!(
                "expired items were not removed within maxPurgeDelay: {missed} since the start"
            ));
        }
        let set_aside = number(server, &["purge", "setAside"]);
        if set_aside > 0 {
            problems.push(format!(
                "{} damaged and cannot be purged: stop the server and run bolide check for details",
                if set_aside == 1 {
                    "1 expired item is".to_owned()
                } else {
                    format!("{} expired items are", count(set_aside))
                }
            ));
        }
        if at(server, &["purge", "pace", "capacityIsShort"]).and_then(Value::as_bool) == Some(true) {
            let [expiring, purging] = ["expiringPerSecond", "purgingPerSecond"]
                .map(|name| number(server, &["purge", "pace", name]));
            problems.push(format!(
                "the purge is short of capacity: {} expire in a second, {} are removed; write less, use a faster machine or \
                 raise purge-share",
                counted(expiring, "item"),
                count(purging)
            ));
        }
        let waiting = number(server, &["purge", "waitingForArchive"]);
        if waiting > 0 && number(server, &["purge", "archiveFailures"]) > 0 {
            let whose = if waiting == 1 {
                "a container or collection".to_owned()
            } else {
                format!("{} containers and collections", count(waiting))
            };
            problems.push(format!("the purge of {whose} waits for an archive that cannot be written"));
        }
        problems
    }

    fn json(&self, problems: &[String]) -> String {
        let mut all = Object::new();
        all.insert("ready", Value::Bool(self.ready));
        all.insert("problems", Value::Array(problems.iter().cloned().map(Value::String).collect()));
        for (name, value) in self.server.as_object().into_iter().flat_map(Object::iter) {
            // The list includes their number, too.
            let name = if name == "containers" { "containerCount" } else { name };
            all.insert(name, value.clone());
        }
        all.insert("containers", Value::Array(self.containers.clone()));
        Value::Object(all).to_json()
    }

    fn text(&self, url: &str, problems: &[String]) -> String {
        let (server, mut text) = (&self.server, String::new());
        let version = at(server, &["version"]).and_then(Value::as_str).unwrap_or("?");
        let ready = if self.ready { "ready" } else { "NOT READY" };
        let _ = writeln!(text, "server      {url}, Bolide {version}, {ready}");
        let now = number(server, &["clock", "now"]);
        let kind = if at(server, &["clock", "testClock"]) == Some(&Value::Bool(true)) {
            ", a test clock"
        } else {
            ""
        };
        let _ = writeln!(text, "clock       {}{kind}", date(now));
        if let Some(offset) = at(server, &["clock", "offset"]).and_then(Value::as_str) {
            let _ = writeln!(text, "offset      {offset}");
        }
        let _ = writeln!(
            text,
            "store       {} on disk, of that {} journal; {}",
            bytes(number(server, &["store", "diskBytes"])),
            bytes(number(server, &["store", "journalBytes"])),
            counted(number(server, &["store", "commits"]), "commit"),
        );
        let _ = writeln!(text, "purge       {}", self.purge(now));
        if let Some(open) = at(server, &["connections"]) {
            let [http, direct, mongodb] =
                ["http", "direct", "mongodb"].map(|name| count(number(open, &[name])));
            let _ = writeln!(text, "connections {http} HTTP, {direct} in direct mode, {mongodb} MongoDB");
        }
        let _ = writeln!(
            text,
            "containers  {} in {}",
            count(self.containers.len() as u64),
            counted(self.databases(), "database")
        );
        for problem in problems {
            let _ = writeln!(text, "PROBLEM     {problem}");
        }
        if !self.containers.is_empty() {
            let _ = write!(text, "\n{}", self.table());
        }
        text
    }

    fn purge(&self, now: u64) -> String {
        let purge = at(&self.server, &["purge"]).unwrap_or(&Value::Null);
        let state = if at(purge, &["paused"]) == Some(&Value::Bool(true)) { "PAUSED, " } else { "" };
        let backlog = counted(number(purge, &["backlog", "items"]), "expired item");
        let purged = count(number(purge, &["purgedItems"]));
        let next = match at(purge, &["nextDue"]).and_then(Value::as_i64) {
            Some(due) if due.unsigned_abs() <= now => ", next due at once".to_owned(),
            Some(due) => format!(", next due in {}", span(due.unsigned_abs().saturating_sub(now))),
            None => String::new(),
        };
        format!("{state}{backlog} to purge, {purged} purged since the start{next}")
    }

    /// Returns the number of databases that contain anything.
    fn databases(&self) -> u64 {
        let name = |container: &Value| {
            let text = |name| at(container, &[name]).and_then(Value::as_str).unwrap_or_default().to_owned();
            (text("api"), text("database"))
        };
        self.containers.iter().map(name).collect::<std::collections::BTreeSet<_>>().len() as u64
    }

    /// Formats the containers, one row each.
    pub(crate) fn table(&self) -> String {
        use Align::{Left, Right};
        let head = [("api", Left), ("container", Left), ("default TTL", Right), ("living", Right)];
        let head = [&head[..], &[("size", Right), ("expired", Right), ("purged", Right)]].concat();
        let rows = self.containers.iter().map(|container| {
            let text = |name| at(container, &[name]).and_then(Value::as_str).unwrap_or_default();
            vec![
                text("api").to_owned(),
                format!("{}/{}", text("database"), text("container")),
                ttl(container),
                count(number(container, &["living", "items"])),
                bytes(number(container, &["living", "bytes"])),
                count(number(container, &["backlog", "items"])),
                count(number(container, &["purged", "items"])),
            ]
        });
        table(&head, &rows.collect::<Vec<_>>())
    }
}

/// Describes the rule of a container briefly.
pub(crate) fn ttl(container: &Value) -> String {
    let default = match at(container, &["defaultTtl"]).and_then(Value::as_i64) {
        None => "off".to_owned(),
        Some(-1) => "by item".to_owned(),
        Some(seconds) => span(seconds.unsigned_abs()),
    };
    match number(container, &["dateRules"]) {
        0 => default,
        rules => counted(rules, "date index").replace("indexs", "indexes"),
    }
}

/// Returns the value at a path of names.
pub(crate) fn at<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().try_fold(value, |value, name| value.get(name))
}

/// Returns the number at a path of names; 0 if there is none.
pub(crate) fn number(value: &Value, names: &[&str]) -> u64 {
    at(value, names).and_then(Value::as_i64).map_or(0, |number| u64::try_from(number).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(server: &str, ready: bool) -> Status {
        let server = document::parse_json(server.as_bytes()).unwrap();
        Status { ready, server, containers: Vec::new() }
    }

    #[test]
    fn what_is_not_well_is_told() {
        for (server, ready, problem) in [
            ("{}", true, None),
            (r#"{"clock":{"suspect":null},"store":{"writable":true}}"#, true, None),
            ("{}", false, Some("not ready")),
            (
                r#"{"clock":{"suspect":{"reason":"it leapt 2 h ahead"}}}"#,
                true,
                Some("suspect: it leapt 2 h ahead;"),
            ),
            (r#"{"store":{"writable":false,"stopped":true}}"#, false, Some("restart")),
            (r#"{"store":{"mergingFails":true}}"#, true, Some("compaction fails")),
            (r#"{"store":{"freeBytes":1,"reservedBytes":2}}"#, true, Some("disk space is low")),
            (r#"{"purge":{"missedBounds":2}}"#, true, Some("2 times")),
            (r#"{"purge":{"setAside":1}}"#, true, Some("1 expired item is damaged")),
            (r#"{"purge":{"setAside":3}}"#, true, Some("3 expired items are damaged")),
            (r#"{"purge":{"pace":{"capacityIsShort":false,"expiringPerSecond":9}}}"#, true, None),
            (
                r#"{"purge":{"pace":{"capacityIsShort":true,"expiringPerSecond":4400,"purgingPerSecond":1200}}}"#,
                true,
                Some("short of capacity: 4,400 items expire in a second, 1,200 are removed;"),
            ),
            (
                r#"{"purge":{"waitingForArchive":1,"archiveFailures":3}}"#,
                true,
                Some("of a container or collection waits"),
            ),
            (
                r#"{"purge":{"waitingForArchive":2,"archiveFailures":3}}"#,
                true,
                Some("of 2 containers and collections waits"),
            ),
        ] {
            let problems = status(server, ready).problems();
            assert_eq!(problems.len(), usize::from(problem.is_some()), "{server}: {problems:?}");
            assert!(problem.is_none_or(|text| problems[0].contains(text)), "{server}: {problems:?}");
        }
    }
}
