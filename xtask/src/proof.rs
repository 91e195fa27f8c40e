//! What must hold whatever happens to the server, checked against the release binary: see proof/ and docs/reliability.md.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::compat;
use crate::extent::Extent;
use crate::paths;
use crate::process;
use crate::report::{Outcome, Report};
use crate::rust::verdict;

const BUILD_TIMEOUT: Duration = Duration::from_mins(20);
const TIMEOUT: Duration = Duration::from_hours(4);

pub(crate) fn run(report: &mut Report, extent: Extent) {
    compat::with_server(report, |report, binary| {
        report.part("proofs", || check(binary, extent));
    });
}

fn check(binary: &PathBuf, extent: Extent) -> Result<Outcome> {
    let target = paths::target().join("proof");
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked"]).current_dir(paths::root().join("proof"));
    let made = process::run(build.env("CARGO_TARGET_DIR", &target), BUILD_TIMEOUT)?.success;
    ensure!(made, "proof does not build");
    let mut command = Command::new(target.join("release/bolide-proof"));
    command.arg(binary).arg("all").args(extent.flags());
    if extent == Extent::Quick {
        // A part of every test run, so the same each time.
        command.args(["--seed", "1"]);
    }
    let finished = process::run(&mut command, TIMEOUT)?;
    let skipped = finished.output.lines().filter(|line| line.contains(": NOT CHECKED: ")).count();
    Ok(verdict(finished.success, &format!("{skipped} not checked")))
}
