//! The test folders that ship in the source distributions of the Python clients, run against Bolide.
//!
//! The archives are downloaded from the package index and unpacked into an ignored folder; nothing of them is committed.
//! `compat/published/expected-failures.txt` and `compat/mongo/published/expected-failures.txt` list the tests that may
//! fail; the pytest plugin beside each compares the run with that list.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::compat::last_line;
use crate::paths;
use crate::process::{self, install};
use crate::relay::{self, Relay};
use crate::report::Outcome;
use crate::rust::verdict;
use crate::server::Server;

const TIMEOUT: Duration = Duration::from_mins(20);

/// A source distribution, and where its tests lie.
struct Package {
    name: &'static str,
    version: &'static str,
    tests: &'static str,
}

const COSMOS: Package = Package { name: "azure-cosmos", version: "4.17.1", tests: "tests" };
const PYMONGO: Package = Package { name: "pymongo", version: "4.19.0", tests: "test" };

/// The tests sleep more than they compute, so more workers than cores are faster. Each has a server of its own.
const WORKERS: usize = 6;

pub(crate) fn run(binary: &PathBuf, python: &Path) -> Result<Outcome> {
    let tests = source(python, &COSMOS)?.join(COSMOS.tests);
    let folder = paths::compat("published");
    let servers = (0..WORKERS).map(|_| Server::start(binary)).collect::<Result<Vec<_>>>()?;
    let relays =
        servers.iter().map(|server| relay::start(server.address().parse()?)).collect::<Result<Vec<_>>>()?;

    let mut command = Command::new(python);
    command
        .args(["-B", "-m", "pytest", "-n", &WORKERS.to_string(), "--dist", "load"])
        .arg("-c")
        .arg(folder.join("pytest.ini"))
        .arg("--rootdir")
        .arg(&tests)
        .args(files(&folder)?)
        .current_dir(&tests)
        .env("PYTHONPATH", &folder)
        .env("BOLIDE_ENDPOINTS", joined(&relays, |relay| format!("http://{}/", relay.address)))
        .env("BOLIDE_DISTANCES", joined(&relays, |relay| relay.distance.port().to_string()));
    let finished = process::run(&mut command, TIMEOUT)?;
    for server in servers {
        server.stop()?;
    }
    Ok(verdict(finished.success, last_line(&finished.output, " in ")))
}

/// Runs PyMongo's own tests. They set fail points and drop databases, so each worker has a server of its own.
pub(crate) fn run_pymongo(binary: &PathBuf, python: &Path) -> Result<Outcome> {
    let root = source(python, &PYMONGO)?;
    let folder = paths::compat("mongo/published");
    let servers = (0..WORKERS)
        .map(|_| Server::start_with(binary, &["--mongo-test-commands"]))
        .collect::<Result<Vec<_>>>()?;
    let ports = servers.iter().map(|server| server.mongo_port().to_string()).collect::<Vec<_>>();

    // A test may depend on what the tests before it in a file left, so a class stays with one worker.
    let mut command = Command::new(python);
    command
        .args(["-B", "-m", "pytest", "-n", &WORKERS.to_string(), "--dist", "loadscope"])
        .arg("-c")
        .arg(folder.join("pytest.ini"))
        .arg("--rootdir")
        .arg(&root)
        .args(files(&folder)?.iter().map(|file| format!("{}/{file}", PYMONGO.tests)))
        .current_dir(&root)
        .env("PYTHONPATH", std::env::join_paths([&folder, &paths::compat("published")])?)
        .env("BOLIDE_MONGO_PORTS", ports.join(","));
    let finished = process::run(&mut command, TIMEOUT)?;
    for server in servers {
        server.stop()?;
    }
    Ok(verdict(finished.success, last_line(&finished.output, " in ")))
}

/// Returns the folder of the tests in PyMongo's source distribution, with the drivers' shared specifications.
pub(crate) fn pymongo_tests(python: &Path) -> Result<PathBuf> {
    Ok(source(python, &PYMONGO)?.join(PYMONGO.tests))
}

fn joined(relays: &[Relay], shown: impl Fn(&Relay) -> String) -> String {
    relays.iter().map(shown).collect::<Vec<_>>().join(",")
}

fn files(folder: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(folder.join("files.txt")).with_context(|| paths::shown(folder))?;
    Ok(text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect())
}

/// Returns the unpacked source distribution.
fn source(python: &Path, package: &Package) -> Result<PathBuf> {
    let cache = paths::cache();
    let name = format!("{}-{}", package.name.replace('-', "_"), package.version);
    let unpacked = cache.join(&name);
    if unpacked.join(package.tests).is_dir() {
        return Ok(unpacked);
    }
    let archive = cache.join("sdist").join(format!("{name}.tar.gz"));
    if !archive.is_file() {
        let mut fetch = Command::new(python);
        fetch
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--no-binary", package.name, "--dest"])
            .arg(cache.join("sdist"))
            .arg(format!("{}=={}", package.name, package.version));
        install(&mut fetch)?;
    }
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&archive).arg("-C").arg(&cache);
    install(&mut unpack)?;
    ensure!(unpacked.join(package.tests).is_dir(), "{} holds no tests", archive.display());
    Ok(unpacked)
}
