//! Benchmarks beside other databases: builds, installs missing peers, measures, writes docs/benchmarks/.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::compat;
use crate::extent::Extent;
use crate::paths;
use crate::process::{self, available, install};
use crate::report::{Outcome, Report};
use crate::rust::verdict;
use crate::server::Build;

const BUILD_TIMEOUT: Duration = Duration::from_mins(30);
const TIMEOUT: Duration = Duration::from_hours(6);
const COSMOS_PACKAGE: &str = "@vercel/cosmosdb-server";
const COSMOS_VERSION: &str = "1.0.1";

pub(crate) fn run(report: &mut Report, extent: Extent) {
    compat::with_server(report, Build::Release, |report, binary| {
        report.part("peers", || Ok(peers()));
        report.part("benchmarks", || measure(binary, extent));
    });
}

fn measure(binary: &PathBuf, extent: Extent) -> Result<Outcome> {
    let target = paths::target().join("bench");
    let folder = paths::root().join("bench");
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked", "--workspace"]).current_dir(&folder);
    ensure!(
        process::run(build.env("CARGO_TARGET_DIR", &target), BUILD_TIMEOUT)?.success,
        "bench does not build"
    );
    let mut command = Command::new(target.join("release/bolide-bench"));
    command.arg(binary).args(["compare", "--out"]).arg(paths::root().join("docs/benchmarks"));
    command.args(extent.flags()).args(["--cosmosdb-server"]).arg(cosmos_package());
    let finished = process::run(&mut command, TIMEOUT)?;
    Ok(verdict(finished.success, "docs/benchmarks/report.md"))
}

fn cosmos_package() -> PathBuf {
    paths::cache().join("cosmosdb-server/node_modules").join(COSMOS_PACKAGE)
}

/// Installs missing peers where possible. The report names those that are not available.
fn peers() -> Outcome {
    let mut missing = Vec::new();
    let wanted = [
        ("redis-server", "redis-server", "redis-server"),
        ("/usr/lib/postgresql/15/bin/postgres", "postgresql-15", "postgresql"),
    ];
    for (program, package, service) in wanted {
        if available(program) {
            continue;
        }
        let mut command = Command::new("apt-get");
        let installed = install(command.args(["install", "--yes", "--no-install-recommends", package]));
        // The package starts a server of its own, which would share the machine with the measured one.
        let _ = install(Command::new("service").args([service, "stop"]));
        if installed.is_err() || !available(program) {
            missing.push(package);
        }
    }
    if !cosmos_package().join("lib/cli.js").exists() && cosmos().is_err() {
        missing.push(COSMOS_PACKAGE);
    }
    if missing.is_empty() {
        Outcome::Passed("all there".to_owned())
    } else {
        Outcome::Missing(format!("{} cannot be installed here", missing.join(", ")))
    }
}

fn cosmos() -> Result<()> {
    let folder = paths::cache().join("cosmosdb-server");
    fs::create_dir_all(&folder)?;
    let mut command = Command::new("npm");
    command.args(["install", "--no-save", "--no-progress", "--loglevel=error", "--prefix"]).arg(&folder);
    install(command.arg(format!("{COSMOS_PACKAGE}@{COSMOS_VERSION}")))
}
