//! Licences, bans and sources of everything the server links, after `deny.toml`.
//!
//! Our own check always runs. `cargo deny`, where it is installed, reads the same file and looks closer; its absence is
//! said aloud.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::paths;
use crate::process;
use crate::report::{Outcome, Report};
use crate::spdx;

const TIMEOUT: Duration = Duration::from_mins(5);
const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn check(report: &mut Report) {
    report.part("dependencies", || {
        let policy = Policy::read()?;
        let packages = packages()?;
        let mut offences = Vec::new();
        for (name, licence) in &packages {
            if !spdx::allowed(licence, &policy.licences) {
                offences.push(format!("{name}: licence '{licence}' is not allowed by deny.toml"));
            }
            let bare = name.split(' ').next().unwrap_or_default();
            if policy.bans.iter().any(|ban| ban == bare) {
                offences.push(format!("{name}: banned by deny.toml"));
            }
        }
        sources(&mut offences)?;
        for offence in &offences {
            println!("{offence}");
        }
        if !process::available("cargo-deny") {
            println!(
                "cargo-deny is NOT INSTALLED: only the built-in check of licences, bans and sources ran"
            );
        } else if !cargo_deny()? {
            offences.push("cargo deny: see above".to_owned());
        }
        let text = format!("{} packages, {} offences", packages.len(), offences.len());
        Ok(if offences.is_empty() { Outcome::Passed(text) } else { Outcome::Failed(text) })
    });
}

fn cargo_deny() -> Result<bool> {
    let mut command = Command::new("cargo");
    command.args(["deny", "--locked", "check", "licenses", "bans", "sources"]).current_dir(paths::root());
    Ok(process::run(&mut command, TIMEOUT)?.success)
}

struct Policy {
    licences: Vec<String>,
    bans: Vec<String>,
}

impl Policy {
    fn read() -> Result<Policy> {
        let text = fs::read_to_string(paths::root().join("deny.toml")).context("deny.toml")?;
        Ok(Policy { licences: list(&text, "licenses", "allow"), bans: list(&text, "bans", "deny") })
    }
}

/// The quoted words of `key = [ ... ]` within `[section]`; enough of TOML for a file of our own.
fn list(text: &str, section: &str, key: &str) -> Vec<String> {
    let header = format!("[{section}]");
    let mut words = Vec::new();
    let (mut inside, mut open) = (false, false);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') && !open {
            inside = line == header;
        }
        if inside && line.split('=').next().is_some_and(|name| name.trim() == key) {
            open = true;
        }
        if open && !line.starts_with('#') {
            words.extend(line.split('"').skip(1).step_by(2).map(str::to_owned));
            open = !line.ends_with(']');
        }
    }
    words
}

/// Every package of the workspace's tree with its licence; our own crates included.
fn packages() -> Result<Vec<(String, String)>> {
    let mut command = Command::new("cargo");
    command
        .args(["tree", "--workspace", "--locked", "--edges", "normal,build,dev", "--prefix", "none"])
        .args(["--format", "{p}|{l}"])
        .env("CARGO_TERM_QUIET", "true")
        .current_dir(paths::root());
    let finished = process::run_quietly(&mut command, TIMEOUT)?;
    anyhow::ensure!(finished.success, "cargo tree failed:\n{}", finished.output);
    let mut found: Vec<(String, String)> = finished
        .output
        .lines()
        .filter_map(|line| line.trim_end_matches(" (*)").split_once('|'))
        .map(|(name, licence)| (name.to_owned(), licence.to_owned()))
        .collect();
    found.sort();
    found.dedup();
    anyhow::ensure!(!found.is_empty(), "cargo tree listed nothing");
    Ok(found)
}

/// Lock files name the public index only: no git, no other registry.
fn sources(offences: &mut Vec<String>) -> Result<()> {
    for path in [paths::root().join("Cargo.lock"), paths::compat("rust").join("Cargo.lock")] {
        for line in fs::read_to_string(&path)?.lines() {
            let Some(source) = line.strip_prefix("source = ") else { continue };
            if source.trim_matches('"') != INDEX {
                offences.push(format!("{}: source {source} is not allowed", paths::shown(&path)));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_from_their_own_section_only() {
        let text = "[licenses]\nallow = [\n  \"MIT\",\n  # \"GPL\",\n  \"0BSD\",\n]\n[bans]\nallow = [\"no\"]\ndeny = [\"openssl\"]\n";
        assert_eq!(list(text, "licenses", "allow"), ["MIT", "0BSD"]);
        assert_eq!(list(text, "bans", "deny"), ["openssl"]);
    }
}
