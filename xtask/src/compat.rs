//! The official SDKs against a live server. Each suite starts its own servers from one binary, and first installs its
//! packages into ignored folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Tier;
use crate::go;
use crate::java::{self, Connection};
use crate::paths;
use crate::process::{self, install};
use crate::published;
use crate::report::{Outcome, Part, Report, count_before};
use crate::rust::{counted, verdict};
use crate::server::{self, Build, Tested};
use crate::tour;

const SUITE_TIMEOUT: Duration = Duration::from_mins(30);
const LONG_TIMEOUT: Duration = Duration::from_hours(2);

/// The modules of `compat/java` that speak the protocol of Cosmos DB, in either mode,
const COSMOS_JAVA: &[&str] = &["cosmos", "spring-cosmos"];

/// and those that speak the MongoDB protocol.
const MONGO_JAVA: &[&str] = &["mongo", "mongo-reactive", "spring-mongo", "debezium", "mongo-kafka"];

/// One suite of `compat/`, or the README's tour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    Python,
    JavaScript,
    Rust,
    Published,
    MongoPython,
    MongoPublished,
    MongoJavaScript,
    MongoRust,
    Java,
    JavaDirect,
    MongoJava,
    Go,
    GoPublished,
    MongoGo,
    MongoGoPublished,
    MongoTools,
    Explorer,
    Tour,
}

impl Suite {
    /// Suites that wait beside suites that build, the longest first when nothing is built, so that all lanes end at about
    /// the same time.
    const ALL: [Suite; 18] = [
        Suite::Published,
        Suite::Java,
        Suite::JavaDirect,
        Suite::MongoGoPublished,
        Suite::Rust,
        Suite::MongoRust,
        Suite::Python,
        Suite::MongoPublished,
        Suite::MongoJava,
        Suite::Explorer,
        Suite::JavaScript,
        Suite::MongoPython,
        Suite::GoPublished,
        Suite::Go,
        Suite::MongoGo,
        Suite::MongoTools,
        Suite::MongoJavaScript,
        Suite::Tour,
    ];

    pub(crate) fn named(name: &str) -> Option<Suite> {
        match name {
            "python" => Some(Suite::Python),
            "js" => Some(Suite::JavaScript),
            "rust" => Some(Suite::Rust),
            "published" => Some(Suite::Published),
            "mongo-python" => Some(Suite::MongoPython),
            "mongo-published" => Some(Suite::MongoPublished),
            "mongo-js" => Some(Suite::MongoJavaScript),
            "mongo-rust" => Some(Suite::MongoRust),
            "java" => Some(Suite::Java),
            "java-direct" => Some(Suite::JavaDirect),
            "mongo-java" => Some(Suite::MongoJava),
            "go" => Some(Suite::Go),
            "go-published" => Some(Suite::GoPublished),
            "mongo-go" => Some(Suite::MongoGo),
            "mongo-go-published" => Some(Suite::MongoGoPublished),
            "mongo-tools" => Some(Suite::MongoTools),
            "explorer" => Some(Suite::Explorer),
            "tour" => Some(Suite::Tour),
            _ => None,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Suite::Python => "sdk: python",
            Suite::JavaScript => "sdk: javascript",
            Suite::Rust => "sdk: rust",
            Suite::Published => "sdk: published python",
            Suite::MongoPython => "mongo: python",
            Suite::MongoPublished => "mongo: published python",
            Suite::MongoJavaScript => "mongo: javascript",
            Suite::MongoRust => "mongo: rust",
            Suite::Java => "sdk: java",
            Suite::JavaDirect => "sdk: java in direct mode",
            Suite::MongoJava => "mongo: java",
            Suite::Go => "sdk: go",
            Suite::GoPublished => "sdk: published go",
            Suite::MongoGo => "mongo: go",
            Suite::MongoGoPublished => "mongo: published go",
            Suite::MongoTools => "mongo: tools",
            Suite::Explorer => "explorer in a browser",
            Suite::Tour => "readme tour",
        }
    }

    /// Programs that must be on the machine.
    fn tools(self) -> &'static [&'static str] {
        match self {
            Suite::Python | Suite::Published | Suite::MongoPython | Suite::MongoPublished => &["python3"],
            Suite::JavaScript | Suite::MongoJavaScript | Suite::Explorer => &["node", "npm"],
            Suite::Rust | Suite::MongoRust => &[],
            Suite::Java | Suite::JavaDirect | Suite::MongoJava => java::TOOLS,
            Suite::Go | Suite::GoPublished | Suite::MongoGo | Suite::MongoTools => &["go"],
            // The shared specifications come with PyMongo.
            Suite::MongoGoPublished => &["go", "python3"],
            Suite::Tour => &["python3", "node", "npm", "curl", "openssl"],
        }
    }

    fn run(self, binary: &PathBuf, tier: Tier) -> Result<Outcome> {
        for tool in self.tools() {
            if !process::available(tool) {
                return Ok(Outcome::Missing(format!("{tool} is not installed")));
            }
        }
        match self {
            Suite::Python => python(binary, &virtual_environment("python")?, "python", tier),
            Suite::MongoPython => python(binary, &virtual_environment("mongo/python")?, "mongo/python", tier),
            Suite::MongoPublished => published::run_pymongo(binary, &virtual_environment("mongo/python")?),
            Suite::JavaScript => javascript(binary, "js"),
            Suite::MongoJavaScript => javascript(binary, "mongo/js"),
            Suite::Explorer => javascript(binary, "explorer"),
            Suite::Rust => rust(binary, "rust"),
            Suite::MongoRust => rust(binary, "mongo/rust"),
            Suite::Java => java::run(binary, COSMOS_JAVA, Connection::Gateway),
            Suite::JavaDirect => java::run(binary, COSMOS_JAVA, Connection::Direct),
            Suite::MongoJava => java::run(binary, MONGO_JAVA, Connection::Gateway),
            Suite::Go => go::own(binary, "cosmos"),
            Suite::MongoGo => go::own(binary, "mongodb"),
            Suite::MongoTools => go::own(binary, "tools"),
            Suite::GoPublished => go::azcosmos(binary, tier),
            Suite::MongoGoPublished => go::driver(binary, &virtual_environment("mongo/python")?, tier),
            Suite::Published => published::run(binary, &virtual_environment("python")?),
            Suite::Tour => {
                node_modules("js")?;
                node_modules("mongo/js")?;
                tour::run(binary, &virtual_environment("python")?, &virtual_environment("mongo/python")?)
            }
        }
    }
}

/// Returns every suite, to run against one build of the server.
pub(crate) fn parts(server: &Tested, tier: Tier) -> Vec<Part<'_>> {
    let part = |suite: Suite| Part {
        name: suite.title(),
        run: Box::new(move || suite.run(&server.binary()?, tier)),
    };
    Suite::ALL.map(part).into()
}

/// One suite.
pub(crate) fn one(report: &mut Report, suite: Suite) {
    let tier = Tier::Short;
    with_server(report, tier.build(), |report, binary| {
        report.part(suite.title(), || suite.run(binary, tier));
    });
}

pub(crate) fn with_server(report: &mut Report, build: Build, then: impl FnOnce(&mut Report, &PathBuf)) {
    match server::build(build) {
        Ok(binary) => then(report, &binary),
        Err(error) => report.part("server, build", || Err(error)),
    }
}

/// Returns the interpreter of the Python environment with the packages that a suite locks; rebuilds the environment when
/// the lock changes.
fn virtual_environment(suite: &str) -> Result<PathBuf> {
    let folder = paths::cache().join(format!("venv-{}", suite.replace('/', "-")));
    let lock = paths::compat(suite).join("requirements.txt");
    let python = folder.join("bin/python");
    unless_fresh(&folder, &lock, || {
        let mut create = Command::new("python3");
        create.args(["-m", "venv", "--clear"]).arg(&folder);
        install(&mut create)?;
        let mut fill = Command::new(&python);
        fill.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--requirement",
        ])
        .arg(&lock);
        install(&mut fill)
    })?;
    Ok(python)
}

fn node_modules(suite: &str) -> Result<()> {
    node_modules_in(&paths::compat(suite))
}

/// Runs `npm ci` by the lock file.
pub(crate) fn node_modules_in(folder: &Path) -> Result<()> {
    unless_fresh(&folder.join("node_modules"), &folder.join("package-lock.json"), || {
        let mut command = Command::new("npm");
        command.args(["ci", "--no-progress", "--loglevel=error"]).current_dir(folder);
        install(&mut command)
    })
}

/// Suites that share a folder of packages may start together: one fills it, the other waits and finds it filled.
static FILLING: Mutex<()> = Mutex::new(());

/// Runs `fill` unless `folder` was filled from exactly this lock file before.
fn unless_fresh(folder: &Path, lock: &Path, fill: impl FnOnce() -> Result<()>) -> Result<()> {
    let _alone = FILLING.lock().expect("who fills does not panic");
    let wanted = fs::read_to_string(lock).with_context(|| paths::shown(lock))?;
    let mark = folder.join("bolide-lock");
    if fs::read_to_string(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    fs::create_dir_all(paths::cache())?;
    fill()?;
    Ok(fs::write(mark, wanted)?)
}

fn python(binary: &PathBuf, interpreter: &Path, suite: &str, tier: Tier) -> Result<Outcome> {
    let mut command = Command::new(interpreter);
    command
        .args(["-B", "-m", "pytest"])
        .current_dir(paths::compat(suite))
        .env("BOLIDE_BIN", binary)
        .env_remove("BOLIDE_LONG");
    let timeout = if tier == Tier::Long {
        command.env("BOLIDE_LONG", "1");
        LONG_TIMEOUT
    } else {
        SUITE_TIMEOUT
    };
    let finished = process::run(&mut command, timeout)?;
    Ok(verdict(finished.success, last_line(&finished.output, " in ")))
}

fn javascript(binary: &PathBuf, suite: &str) -> Result<Outcome> {
    node_modules(suite)?;
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .current_dir(paths::compat(suite))
        .env("BOLIDE_BIN", binary);
    let finished = process::run(&mut command, SUITE_TIMEOUT)?;
    let count = |word: &str| {
        let line = finished.output.lines().rev().find(|line| line.contains(&format!(" {word} ")));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let (passed, failed, skipped) = (count("pass"), count("fail"), count("skipped"));
    ensure!(passed + failed > 0, "no test ran");
    Ok(verdict(finished.success, &format!("{passed} passed, {failed} failed, {skipped} skipped")))
}

fn rust(binary: &PathBuf, suite: &str) -> Result<Outcome> {
    let mut command = Command::new("cargo");
    command
        .args(["test", "--locked"])
        .current_dir(paths::compat(suite))
        .env("CARGO_TARGET_DIR", paths::target().join("compat"))
        .env("BOLIDE_BIN", binary);
    counted(&process::run(&mut command, SUITE_TIMEOUT)?)
}

/// Returns the last line that contains `mark`: pytest ends with one.
pub(crate) fn last_line<'a>(output: &'a str, mark: &str) -> &'a str {
    let line = output.lines().rev().find(|line| line.contains(mark) && count_before(line, "passed") > 0);
    line.unwrap_or("no summary").trim_matches('=').trim()
}
