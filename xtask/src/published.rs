//! The test folder that ships in the source distribution of the Python SDK, run against Bolide.
//!
//! The archive is fetched from the package index and unpacked into an ignored folder; none of it is committed. What may
//! fail is listed in `compat/published/expected-failures.txt`; the pytest plugin beside it holds the run to that list.

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

const PACKAGE: &str = "azure-cosmos";
const VERSION: &str = "4.17.1";
const TIMEOUT: Duration = Duration::from_mins(10);

/// The tests sleep more than they compute, so more workers than cores pay. Each has a server of its own.
const WORKERS: usize = 6;

pub(crate) fn run(binary: &PathBuf, python: &Path) -> Result<Outcome> {
    let tests = source(python)?.join("tests");
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

fn joined(relays: &[Relay], shown: impl Fn(&Relay) -> String) -> String {
    relays.iter().map(shown).collect::<Vec<_>>().join(",")
}

fn files(folder: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(folder.join("files.txt")).context("compat/published/files.txt")?;
    Ok(text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect())
}

/// The unpacked source distribution.
fn source(python: &Path) -> Result<PathBuf> {
    let cache = paths::cache();
    let name = format!("{}-{VERSION}", PACKAGE.replace('-', "_"));
    let unpacked = cache.join(&name);
    if unpacked.join("tests").is_dir() {
        return Ok(unpacked);
    }
    let archive = cache.join("sdist").join(format!("{name}.tar.gz"));
    if !archive.is_file() {
        let mut fetch = Command::new(python);
        fetch
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--no-binary", PACKAGE, "--dest"])
            .arg(cache.join("sdist"))
            .arg(format!("{PACKAGE}=={VERSION}"));
        install(&mut fetch)?;
    }
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&archive).arg("-C").arg(&cache);
    install(&mut unpack)?;
    ensure!(unpacked.join("tests").is_dir(), "{} holds no tests", archive.display());
    Ok(unpacked)
}
