//! `planted-bugs`: proof that the simulator finds bugs.
//!
//! Copies the workspace into the build directory, plants one bug of the table in `bugs` at a time, builds the simulator
//! over it and lets seeds run until one of them fails. A bug that no seed catches fails the run, and so does a bug whose
//! text is no longer found in the engine, or that does not compile: the table must follow the code. A seed that also fails without the bug has not
//! caught it: the run ends and reports the seed's number.
//!
//! ```text
//! cargo run --release -p bolide-simulator --bin planted-bugs [-- NAME…]    all bugs, or those named
//! ```

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use simulator::bugs::{self, Bug};

/// The number of seeds that may try to catch a bug.
const SEEDS: &str = "20000";
/// The number of seeds that must pass before any bug is planted, or else every bug would look caught.
const HEALTHY_SEEDS: &str = "300";

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match plant_all(&wanted) {
        Ok((caught, 0)) => {
            println!("{caught} planted bugs, all caught");
            ExitCode::SUCCESS
        }
        Ok((caught, survivors)) => {
            println!("{survivors} planted bugs survived, {caught} were caught");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Plants one bug after another; returns how many were caught, and how many were not.
fn plant_all(wanted: &[String]) -> Result<(usize, usize), String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    let ground = target.join("planted-bugs");
    let copy = ground.join("workspace");
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|error| format!("cannot clear {}: {error}", copy.display()))?;
    }
    copy_tree(&workspace, &copy)?;
    let target = ground.join("target");
    if let Some(line) = run_simulator(&copy, &target, HEALTHY_SEEDS)? {
        return Err(format!("a seed fails without any planted bug: {line}"));
    }
    let healthy = ground.join("healthy-simulator");
    fs::copy(simulator(&target), &healthy)
        .map_err(|error| format!("cannot keep the simulator without bugs: {error}"))?;
    let (mut caught, mut survivors) = (0, 0);
    for bug in bugs::all().filter(|bug| wanted.is_empty() || wanted.iter().any(|name| name == bug.name)) {
        // A bug that cannot be planted proves nothing, and the others are run all the same.
        let caught_by = match plant(bug, &copy, &target) {
            Ok(line) => line,
            Err(error) => {
                println!("{error}: SURVIVED");
                survivors += 1;
                continue;
            }
        };
        if let Some(line) = &caught_by {
            check_healthy(&healthy, line)?;
        }
        match caught_by {
            Some(_) => caught += 1,
            None => survivors += 1,
        }
        println!("{:<66} {}", bug.name, caught_by.as_deref().unwrap_or("SURVIVED"));
    }
    Ok((caught, survivors))
}

/// Builds and runs with one bug; returns the line of the seed that caught it. The copy is healthy again afterwards.
fn plant(bug: &Bug, copy: &Path, target: &Path) -> Result<Option<String>, String> {
    let mut healthy = Vec::new();
    let caught = edit(bug, copy, &mut healthy).and_then(|()| run_simulator(copy, target, SEEDS));
    for (path, source) in healthy.into_iter().rev() {
        write(&path, &source)?;
    }
    caught.map_err(|error| format!("{}: {error}", bug.name))
}

/// Makes the edits of a bug; `healthy` has the files as they were.
fn edit(bug: &Bug, copy: &Path, healthy: &mut Vec<(PathBuf, String)>) -> Result<(), String> {
    for edit in bug.edits {
        let path = copy.join(edit.file);
        let source = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found = source.matches(edit.text).count();
        if found != 1 {
            return Err(format!("its text occurs {found} times in {}, not once", edit.file));
        }
        write(&path, &source.replacen(edit.text, edit.replacement, 1))?;
        healthy.push((path, source));
    }
    Ok(())
}

/// Fails if the seed that a line names fails without a planted bug, too.
fn check_healthy(healthy: &Path, line: &str) -> Result<(), String> {
    let Some(seed) = line.split_whitespace().nth(1).filter(|seed| seed.parse::<u64>().is_ok()) else {
        return Ok(());
    };
    let run = Command::new(healthy).args(["--seed", seed]).output();
    let run = run.map_err(|error| format!("cannot run {}: {error}", healthy.display()))?;
    if run.status.success() { Ok(()) } else { Err(format!("a seed fails without any planted bug: {line}")) }
}

fn simulator(target: &Path) -> PathBuf {
    target.join("debug/bolide-simulator")
}

fn run_simulator(copy: &Path, target: &Path, seeds: &str) -> Result<Option<String>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = Command::new(cargo)
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("RUSTFLAGS", "--cap-lints allow")
        .args(["build", "--quiet", "-p", "bolide-simulator", "--bin", "bolide-simulator"])
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !build.success() {
        return Err("the planted bug does not compile".to_owned());
    }
    let run = Command::new(simulator(target))
        .args(["--seeds", seeds, "--no-coverage"])
        .output()
        .map_err(|error| format!("cannot run the simulator: {error}"))?;
    if run.status.success() {
        return Ok(None);
    }
    let output = String::from_utf8_lossy(&run.stdout);
    let line = output.lines().find(|line| line.starts_with("seed "));
    Ok(Some(line.unwrap_or("the run failed without naming a seed").chars().take(160).collect()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies what cargo needs: manifests, lock file and sources.
fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    let explain = |error: std::io::Error| format!("cannot copy {}: {error}", from.display());
    fs::create_dir_all(to).map_err(explain)?;
    for entry in fs::read_dir(from).map_err(explain)? {
        let entry = entry.map_err(explain)?;
        let (name, target) = (entry.file_name(), to.join(entry.file_name()));
        let skipped = [".git", "target", "compat", "node_modules", "fuzz", "bolide-data"];
        if skipped.iter().any(|skipped| name == OsStr::new(skipped)) {
            continue;
        }
        if entry.file_type().map_err(explain)?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).map_err(explain)?;
        }
    }
    Ok(())
}
