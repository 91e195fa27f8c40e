//! `bolide clock`: the time of a running server, and decisions about a suspect clock (T34). Exits with status 1 while
//! it is suspect.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use document::{Object, Value};

use super::status::{at, number};
use crate::client::{Client, Endpoint};
use crate::format::{date, span};
use crate::settings::Settings;

const PATH: &str = "/_bolide/clock";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Accept the time to which a suspect clock has leapt: items that have expired by it are purged
    Accept,
    /// Reject it: time continues from the last trusted one, and items that expired only because of the leap stay
    Reject,
    /// Advance the clock of a server started with --test-clock
    Advance {
        /// By how many seconds; the clock never goes back
        seconds: u64,
    },
}

/// Prints the time, or performs the task and prints its result.
pub(crate) fn run(request: &Request, settings: &Settings) -> Result<ExitCode> {
    let mut client = Client::new(&Endpoint::from_settings(settings)?)?;
    let before = client.get_json(PATH)?;
    let leap = suspicion(&before).map(|suspect| at(suspect, &["leap"]).and_then(Value::as_str).unwrap_or(""));
    let is_undecided = leap.is_some();
    let clock = match &request.task {
        Some(Task::Accept) if is_undecided => told(&mut client, "accept", true)?,
        Some(Task::Reject) if is_undecided => told(&mut client, "reject", true)?,
        Some(Task::Advance { seconds }) => told(&mut client, "advanceSeconds", count(*seconds))?,
        // There is nothing to decide.
        Some(Task::Accept | Task::Reject) | None => before.clone(),
    };
    if request.json {
        println!("{}", clock.to_json());
    } else {
        if let Some(task) = &request.task {
            println!("{}", done(task, leap));
        }
        print!("{}", described(&clock));
    }
    Ok(if suspicion(&clock).is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn told(client: &mut Client, member: &str, value: impl Into<Value>) -> Result<Value> {
    let mut body = Object::new();
    body.insert(member, value);
    client.post_json(PATH, &Value::Object(body))
}

/// Converts a count to JSON; the server refuses numbers that are too large.
fn count(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Describes the result of a task; `leap` is what made the clock suspect before it.
fn done(task: &Task, leap: Option<&str>) -> String {
    let text = match (task, leap) {
        (Task::Advance { seconds }, _) => {
            return format!("advanced the clock by {}", span(*seconds));
        }
        (Task::Accept | Task::Reject, None) => "the clock is not suspect; nothing changed",
        (Task::Accept, Some("behind")) => "accepted the system clock; time slows down until they agree",
        (Task::Accept, Some(_)) => "accepted the new time; items that have expired by it are purged",
        (Task::Reject, Some("behind")) => "rejected the system clock; time continues without it",
        (Task::Reject, Some(_)) => "rejected the leap; time continues from the last trusted one",
    };
    text.to_owned()
}

/// Returns why the server does not trust its machine's clock.
fn suspicion(clock: &Value) -> Option<&Value> {
    at(clock, &["suspect"]).filter(|suspect| !suspect.is_null())
}

/// Returns the reason in the server's words.
pub(super) fn reason(suspect: &Value) -> &str {
    at(suspect, &["reason"]).and_then(Value::as_str).unwrap_or("the system clock has leapt")
}

fn described(clock: &Value) -> String {
    let mut text = format!("now         {}\n", date(number(clock, &["now"])));
    if let Some(offset) = at(clock, &["offset"]).and_then(Value::as_str) {
        let _ = writeln!(text, "offset      {offset}");
    }
    if at(clock, &["testClock"]) == Some(&Value::Bool(true)) {
        let advanced = span(number(clock, &["advancedSeconds"]));
        let stopped = at(clock, &["stopped"]) == Some(&Value::Bool(true));
        let stopped = if stopped { "; it stands still until it is advanced" } else { "" };
        let _ = writeln!(text, "test clock  advanced by {advanced} in total{stopped}");
    }
    let Some(suspect) = suspicion(clock) else { return text };
    let _ = writeln!(text, "trusted     {}", date(number(clock, &["trusted"])));
    let _ = writeln!(text, "SUSPECT     {}: it shows {}.", reason(suspect), date(number(suspect, &["wall"])));
    text.push_str(
        "            Nothing is destroyed until you decide. Is that the time? Then: bolide clock accept\n            \
         Is it not? Set the system clock, then: bolide clock reject\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspect_clock_is_told_with_what_to_do() {
        let shown = |json: &str| described(&document::parse_json(json.as_bytes()).unwrap());
        let suspect = r#"{"now":1700000000,"testClock":false,"advancedSeconds":0,"trusted":1690000000,
            "offsetSeconds":0.0,"offset":"in step with the system clock",
            "suspect":{"leap":"start","wall":1700000000,"aheadSeconds":10000000,
                "reason":"at its start the server found the system clock 115 d 17 h ahead"}}"#;
        let expected = "\
now         2023-11-14 22:13:20 UTC
offset      in step with the system clock
trusted     2023-07-22 04:26:40 UTC
SUSPECT     at its start the server found the system clock 115 d 17 h ahead: it shows 2023-11-14 22:13:20 UTC.
            Nothing is destroyed until you decide. Is that the time? Then: bolide clock accept
            Is it not? Set the system clock, then: bolide clock reject
";
        assert_eq!(shown(suspect), expected);
        let well = r#"{"now":1700000000,"testClock":true,"advancedSeconds":3600,"trusted":1700000000,"suspect":null}"#;
        assert_eq!(
            shown(well),
            "now         2023-11-14 22:13:20 UTC\ntest clock  advanced by 1 h in total\n"
        );
        let stopped = well.replace("true,", "true,\"stopped\":true,");
        assert!(shown(&stopped).ends_with("1 h in total; it stands still until it is advanced\n"));
    }
}
