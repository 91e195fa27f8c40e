//! The reliability checks of the server's binary: see proof/ and docs/reliability.md.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::compat;
use crate::extent::Extent;
use crate::paths;
use crate::process::{self, available, install};
use crate::report::{Outcome, Report};
use crate::server::Build;

const BUILD_TIMEOUT: Duration = Duration::from_mins(45);
const LIST_TIMEOUT: Duration = Duration::from_mins(1);
/// The mark, after a check's name, of a line that says why it could not run.
const NOT_CHECKED: &str = ": NOT CHECKED: ";

/// Runs the named checks, or all of them.
pub(crate) fn run(report: &mut Report, extent: Extent, names: &[&str]) {
    let tested = if extent == Extent::Quick { Build::Tested } else { Build::Release };
    compat::with_server(report, tested, |report, binary| {
        let mut built = None;
        report.part("proofs, build", || {
            let (program, checks) = build(extent)?;
            let checks = chosen(checks, names)?;
            let count = checks.len();
            built = Some((program, checks));
            Ok(Outcome::Passed(format!("{count} checks")))
        });
        let Some((program, checks)) = built else { return };
        for name in checks {
            report.part(&format!("proof: {name}"), || check(&program, binary, &name, extent));
        }
    });
}

fn chosen(checks: Vec<String>, names: &[&str]) -> Result<Vec<String>> {
    for name in names {
        ensure!(
            checks.iter().any(|check| check == name),
            "there is no check '{name}', but {}",
            checks.join(", ")
        );
    }
    let is_chosen = |check: &String| names.is_empty() || names.contains(&check.as_str());
    Ok(checks.into_iter().filter(is_chosen).collect())
}

/// Returns how long one check may take.
fn timeout(extent: Extent) -> Duration {
    match extent {
        Extent::Quick => Duration::from_mins(15),
        Extent::Full => Duration::from_mins(30),
        Extent::Long => Duration::from_hours(4),
    }
}

/// Builds the program, fetches what its checks need, and asks it for their names.
fn build(extent: Extent) -> Result<(PathBuf, Vec<String>)> {
    let target = target();
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked"]).current_dir(paths::root().join("proof"));
    let made = process::run(build.env("CARGO_TARGET_DIR", &target), BUILD_TIMEOUT)?.success;
    ensure!(made, "proof does not build");
    if !available("strace") {
        // A check reports a missing prerequisite itself.
        let mut command = Command::new("apt-get");
        let _ = install(command.args(["install", "--yes", "--no-install-recommends", "strace"]));
    }
    let program = target.join("release/bolide-proof");
    let listed = process::run_quietly(Command::new(&program).arg("list").args(extent.flags()), LIST_TIMEOUT)?;
    ensure!(listed.success, "bolide-proof does not list its checks: {}", listed.output);
    Ok((program, listed.output.lines().map(str::to_owned).collect()))
}

/// Returns the folder in which the program and its unit tests are built.
pub(crate) fn target() -> PathBuf {
    paths::target().join("proof")
}

fn check(program: &Path, binary: &Path, name: &str, extent: Extent) -> Result<Outcome> {
    let mut command = Command::new(program);
    command.arg(binary).arg(name).args(extent.flags());
    if extent == Extent::Quick {
        // Part of every test run, so with the same seed each time.
        command.args(["--seed", "1"]);
    }
    let finished = process::run(&mut command, timeout(extent))?;
    verdict(name, finished.success, &finished.output)
}

/// Returns the result of a check, from its output.
fn verdict(name: &str, success: bool, output: &str) -> Result<Outcome> {
    let told = |mark: &str| output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(mark));
    if let Some(why) = told(NOT_CHECKED) {
        return Ok(Outcome::Missing(why.to_owned()));
    }
    if !success {
        return Ok(Outcome::Failed(told(": FAILED ").unwrap_or("it says nothing").to_owned()));
    }
    let figures = told(": held: ").context("it neither held nor failed")?;
    Ok(Outcome::Passed(figures.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_made_by_name_or_all_of_them() {
        let checks = || ["kills", "steady"].map(str::to_owned).to_vec();
        assert_eq!(chosen(checks(), &[]).unwrap(), checks());
        assert_eq!(chosen(checks(), &["steady"]).unwrap(), ["steady"]);
        let error = chosen(checks(), &["stedy"]).unwrap_err().to_string();
        assert_eq!(error, "there is no check 'stedy', but kills, steady");
    }

    #[test]
    fn a_check_that_could_not_be_made_has_not_passed() {
        let skipped = "diskfull: no room (seed 1)\ndiskfull: NOT CHECKED: no right to mount\n";
        let outcome = verdict("diskfull", true, skipped).unwrap();
        assert!(matches!(outcome, Outcome::Missing(why) if why == "no right to mount"));
        let held = "kills: kill -9 (seed 1)\nkills: held: 8 kills\n";
        assert!(
            matches!(verdict("kills", true, held).unwrap(), Outcome::Passed(figures) if figures == "8 kills")
        );
        let failed = "kills: FAILED with seed 1: item w1 is lost\n";
        assert!(matches!(verdict("kills", false, failed).unwrap(), Outcome::Failed(_)));
        assert!(verdict("kills", true, "").is_err(), "silence is no success");
    }
}
