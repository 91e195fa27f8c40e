//! The dependencies: licences, bans, sources and published weaknesses, judged by `cargo deny` after `deny.toml`.
//!
//! The tool has one version, so that all machines get the same result. A machine that lacks it builds it once into the
//! target folder, which outlives a test run wherever build output does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Result;

use crate::paths;
use crate::process;
use crate::report::{Outcome, Part};
use crate::rust::verdict;

const VERSION: &str = "0.20.2";
const TIMEOUT: Duration = Duration::from_mins(5);

pub(crate) fn parts() -> Vec<Part<'static>> {
    vec![
        Part { name: "dependencies", run: Box::new(|| with_tool(dependencies)) },
        Part { name: "published weaknesses", run: Box::new(|| with_tool(weaknesses)) },
    ]
}

/// Runs a check with the tool; the first of both parts builds it.
fn with_tool(check: fn(&Path) -> Result<Outcome>) -> Result<Outcome> {
    static TOOL: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match TOOL.get_or_init(|| find().map_err(|error| format!("{error:#}"))) {
        Ok(tool) => check(tool),
        Err(error) => Ok(Outcome::Missing(format!("no cargo-deny {VERSION}\n{error}"))),
    }
}

fn dependencies(tool: &Path) -> Result<Outcome> {
    let ours = judge(tool, &paths::root(), &["bans", "licenses", "sources"])?;
    // The server links nothing of the Rust clients' trees; they only have to come from the allowed sources.
    let mut clients = true;
    for suite in ["rust", "mongo/rust"] {
        clients &= judge(tool, &paths::compat(suite), &["sources"])?;
    }
    Ok(verdict(ours && clients, "bans, licences, sources"))
}

fn weaknesses(tool: &Path) -> Result<Outcome> {
    match fetch_advisories(tool) {
        Ok(()) => Ok(verdict(judge(tool, &paths::root(), &["advisories"])?, "advisories")),
        Err(error) => Ok(Outcome::Unreachable(format!("the advisories cannot be fetched\n{error:#}"))),
    }
}

/// Runs some of the tool's checks on a workspace. A warning is an offence.
fn judge(tool: &Path, workspace: &Path, checks: &[&str]) -> Result<bool> {
    let mut command = deny(tool, workspace);
    command.args(["check", "--deny", "warnings"]).args(checks);
    Ok(process::run(&mut command, TIMEOUT)?.success)
}

/// Updates the database of advisories, which cargo keeps beside its other downloads.
fn fetch_advisories(tool: &Path) -> Result<()> {
    let mut command = deny(tool, &paths::root());
    process::install(command.args(["fetch", "db"]).env("GIT_TERMINAL_PROMPT", "0"))
}

fn deny(tool: &Path, workspace: &Path) -> Command {
    let mut command = Command::new(tool);
    command.arg("--config").arg(paths::root().join("deny.toml")).arg("--locked").current_dir(workspace);
    command
}

/// Returns the tool: from the path, from the target folder, or built there now.
fn find() -> Result<PathBuf> {
    let folder = paths::target().join("tools").join(format!("cargo-deny-{VERSION}"));
    let (on_path, built) = (PathBuf::from("cargo-deny"), folder.join("bin/cargo-deny"));
    for tool in [on_path, built.clone()] {
        if is_wanted(&tool) {
            return Ok(tool);
        }
    }
    println!("building cargo-deny {VERSION}, once");
    let mut command = Command::new("cargo");
    command
        .args(["install", "--quiet", "--locked", "--debug", "--version", VERSION, "cargo-deny"])
        .arg("--root")
        .arg(&folder)
        .arg("--target-dir")
        .arg(folder.join("build"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    process::install(&mut command)?;
    anyhow::ensure!(is_wanted(&built), "{} does not say that it is {VERSION}", built.display());
    std::fs::remove_dir_all(folder.join("build"))?;
    Ok(built)
}

fn is_wanted(tool: &Path) -> bool {
    let said = process::run_quietly(Command::new(tool).arg("--version"), TIMEOUT);
    said.is_ok_and(|said| said.success && said.output.trim() == format!("cargo-deny {VERSION}"))
}
