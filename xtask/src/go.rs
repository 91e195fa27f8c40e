//! Suites of the Go clients: ours in `compat/go`, and the tests that the modules carry themselves.
//!
//! The modules' tests run from a copy in an ignored folder, because the module cache is read-only; nothing of them is
//! committed. Lists beside `files.txt` in `compat/go/published` name the tests that may fail and count those that are
//! skipped; `go_results` judges them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::Tier;
use crate::go_results::{self, Lists, Results};
use crate::paths;
use crate::process::{self, Finished, install};
use crate::published;
use crate::report::{self, Outcome};
use crate::rust::verdict;
use crate::server::Server;

const TIMEOUT: Duration = Duration::from_mins(20);

/// A module whose own tests are run: its path, and the folder of its lists.
struct Module {
    path: &'static str,
    folder: &'static str,
    /// How many percent of its tests must pass, without those that need something out of scope.
    least_percent: usize,
}

const AZCOSMOS: Module = Module {
    path: "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos",
    folder: "azcosmos",
    least_percent: 95,
};
const DRIVER: Module =
    Module { path: "go.mongodb.org/mongo-driver/v2", folder: "mongo-driver", least_percent: 95 };

/// The addresses of an emulator that azcosmos's tests have in their source, which are replaced by the server's.
const EMULATOR_PORTS: [&str; 2] = ["8081", "8903"];

/// The shared specifications: where they lie in PyMongo's source distribution, and where in their repository, in the layout
/// of which the driver looks for them. The module has no copy of them.
const SPECIFICATIONS: [(&str, &str); 14] = [
    ("unified-test-format", "unified-test-format/tests"),
    ("transactions-convenient-api", "transactions-convenient-api/tests"),
    ("versioned-api", "versioned-api/tests"),
    ("crud", "crud/tests"),
    ("change_streams", "change-streams/tests"),
    ("collection_management", "collection-management/tests"),
    ("sessions", "sessions/tests"),
    ("retryable_reads", "retryable-reads/tests"),
    ("retryable_writes", "retryable-writes/tests"),
    ("run_command", "run-command/tests"),
    ("gridfs", "gridfs/tests"),
    ("transactions", "transactions/tests"),
    ("causal_consistency", "causal-consistency/tests"),
    ("read_write_concern", "read-write-concern/tests"),
];

/// Returns `go` in the folder of our suites or of a copy, without the settings that a caller may have for other modules.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder).env("GOWORK", "off").env("GOFLAGS", "-buildvcs=false");
    command
}

/// Runs one package of `compat/go`.
pub(crate) fn own(binary: &PathBuf, package: &str) -> Result<Outcome> {
    let mut test = command(&paths::compat("go"));
    test.args(["test", "-count=1", "-v", &format!("./{package}")]).env("BOLIDE_BIN", binary);
    let finished = process::run(&mut test, TIMEOUT)?;
    let results = Results::of(&finished.output);
    for name in &results.failed {
        report::show(&format!("FAILED {name}"));
    }
    ensure!(results.count() > 0 || !finished.success, "no test ran");
    Ok(verdict(finished.success, &results.counts()))
}

/// Runs azcosmos's emulator tests. They have one address in their source, and one server serves them all; its account is that
/// of an emulator: of strong consistency, behind a strict gateway, at 127.0.0.1 however it is reached.
pub(crate) fn azcosmos(binary: &PathBuf, tier: Tier) -> Result<Outcome> {
    let as_emulator = |port: u16| {
        let address = format!("127.0.0.1:{port}");
        ["--default-consistency", "strong", "--strict-gateway", "--public-address", &address]
            .map(str::to_owned)
            .to_vec()
    };
    let server = Server::start_knowing_its_port(binary, as_emulator)?;
    let port = server.address().rsplit(':').next().unwrap_or_default().to_owned();
    let (original, copy) = copied(&AZCOSMOS)?;
    let lists = Lists::read(&folder(&AZCOSMOS))?;
    for file in &lists.files {
        let mut text = fs::read_to_string(original.join(file)).with_context(|| file.clone())?;
        for emulators in EMULATOR_PORTS {
            for host in ["localhost", "127.0.0.1"] {
                text = text.replace(&format!("//{host}:{emulators}/"), &format!("//{host}:{port}/"));
            }
        }
        fs::write(copy.join(file), text)?;
    }
    let run =
        Run { copy: &copy, package: ".", below: "", environment: vec![("EMULATOR", "true".to_owned())] };
    let mut results = run.all(&lists, tier)?;
    results.add(run.alone(&lists)?);
    server.stop()?;
    Ok(go_results::judge(&results, &lists, tier, AZCOSMOS.least_percent))
}

/// Runs the MongoDB driver's integration tests, and the shared specifications. They set fail points and drop databases, so
/// each package has a server of its own; they wait more than they compute, so both run at once.
pub(crate) fn driver(binary: &PathBuf, python: &Path, tier: Tier) -> Result<Outcome> {
    let (_, copy) = copied(&DRIVER)?;
    lay_specifications(&published::pymongo_tests(python)?, &copy)?;
    let lists = Lists::read(&folder(&DRIVER))?;
    let names = SPECIFICATIONS.map(|(_, to)| to.split('/').next().unwrap_or(to)).join("|");
    let packages = [
        ("./internal/integration", String::new()),
        ("./internal/integration/unified", format!("^({names})$")),
    ];
    let servers = packages
        .iter()
        .map(|_| Server::start_with(binary, &["--mongo-test-commands"]))
        .collect::<Result<Vec<_>>>()?;
    let all = thread::scope(|scope| {
        let work = packages.iter().zip(&servers).map(|((package, below), server)| {
            // There is no secondary, and the driver looks for one for half a minute; here it gives up sooner.
            let address = format!(
                "mongodb://127.0.0.1:{}/?replicaSet=globaldb&serverSelectionTimeoutMS=3000",
                server.mongo_port()
            );
            let run = Run { copy: &copy, package, below, environment: vec![("MONGODB_URI", address)] };
            let lists = &lists;
            scope.spawn(move || -> Result<Results> {
                let mut results = run.all(lists, tier)?;
                results.add(run.alone(lists)?);
                Ok(results)
            })
        });
        let work: Vec<_> = work.collect();
        work.into_iter().map(|one| one.join().expect("a run does not panic")).collect::<Result<Vec<_>>>()
    })?;
    for server in servers {
        server.stop()?;
    }
    let mut results = Results::default();
    for part in all {
        results.add(part);
    }
    Ok(go_results::judge(&results, &lists, tier, DRIVER.least_percent))
}

fn folder(module: &Module) -> PathBuf {
    paths::compat("go/published").join(module.folder)
}

/// Returns the module's folder in the module cache, in the version that `compat/go/go.mod` pins, and a writable copy.
fn copied(module: &Module) -> Result<(PathBuf, PathBuf)> {
    let ours = paths::compat("go");
    install(command(&ours).args(["mod", "download", module.path]))?;
    let told = process::run_quietly(
        command(&ours).args(["list", "-m", "-f", "{{.Version}} {{.Dir}}", module.path]),
        TIMEOUT,
    )?;
    let (version, original) = told.output.trim().split_once(' ').context("`go list` names no folder")?;
    let (original, copy) =
        (PathBuf::from(original), paths::cache().join(format!("go-{}-{version}", module.folder)));
    if !copy.join("go.mod").is_file() {
        let half = copy.with_extension("half");
        fs::create_dir_all(paths::cache())?;
        if half.exists() {
            fs::remove_dir_all(&half)?;
        }
        install(Command::new("cp").args(["-R", "--no-preserve=mode"]).arg(&original).arg(&half))?;
        fs::rename(half, &copy)?;
    }
    Ok((original, copy))
}

fn lay_specifications(tests: &Path, copy: &Path) -> Result<()> {
    let source = copy.join("testdata/specifications/source");
    for (from, to) in SPECIFICATIONS {
        let to = source.join(to);
        if !to.is_dir() {
            fs::create_dir_all(to.parent().unwrap_or(&source))?;
            install(Command::new("cp").arg("-R").arg(tests.join(from)).arg(to))?;
        }
    }
    Ok(())
}

/// One package of a copy and what its tests read from the environment.
struct Run<'a> {
    copy: &'a Path,
    package: &'a str,
    /// Which subtests run, as a pattern; empty for all.
    below: &'a str,
    environment: Vec<(&'static str, String)>,
}

impl Run<'_> {
    /// Runs every test of the listed files in this package, except those that end the process and, in the short tier, the
    /// long ones.
    fn all(&self, lists: &Lists, tier: Tier) -> Result<Results> {
        let tests = lists.tests_in(self.copy, self.package)?;
        let mut pattern = format!("^({})$", tests.join("|"));
        if !self.below.is_empty() {
            pattern = format!("{pattern}/{}", self.below);
        }
        let mut left_out: Vec<_> = lists.that_end_the_process().map(exactly).collect();
        if tier == Tier::Short {
            left_out.extend(lists.long.iter().map(|name| exactly(name)));
        }
        let finished = self.test(&["-run", &pattern, "-skip", &left_out.join("|")])?;
        let mut results = Results::of(&finished.output);
        report::show(&format!("{}: {}", self.package, results.counts()));
        for name in lists.timed.intersection(&results.failed.clone()) {
            report::show(&format!("FAILED among others, runs again alone: {name}"));
            if self.test(&["-run", &exactly(name)])?.success {
                results.passed_again(name);
            }
        }
        ensure!(results.count() > 0, "no test ran in {}:\n{}", self.package, finished.output);
        let ended = finished.output.lines().find(|line| line.starts_with("panic: "));
        ensure!(ended.is_none(), "{}: {}", self.package, ended.unwrap_or_default());
        Ok(results)
    }

    /// Runs the tests that end the process, each in a process of its own: they must still end it.
    fn alone(&self, lists: &Lists) -> Result<Results> {
        let mut results = Results::default();
        let tests = lists.tests_in(self.copy, self.package)?;
        for name in lists.that_end_the_process() {
            let top = name.split('/').next().unwrap_or(name);
            if tests.iter().any(|test| test == top) {
                let finished = self.test(&["-run", &exactly(name)])?;
                results.add(Results::alone(name, finished.success));
            }
        }
        Ok(results)
    }

    fn test(&self, arguments: &[&str]) -> Result<Finished> {
        let timeout = format!("-timeout={}s", TIMEOUT.as_secs());
        let mut test = command(self.copy);
        test.args(["test", "-count=1", "-v", &timeout]).args(arguments).arg(self.package);
        test.envs(self.environment.iter().map(|(name, value)| (name, value)));
        process::run_quietly(&mut test, TIMEOUT + Duration::from_mins(1))
    }
}

/// Returns the pattern of one test: Go matches each level separately.
fn exactly(name: &str) -> String {
    let quoted = |level: &str| {
        let escaped: String = level
            .chars()
            .flat_map(|letter| {
                let plain = letter.is_alphanumeric() || letter == '_' || !letter.is_ascii();
                (!plain).then_some('\\').into_iter().chain([letter])
            })
            .collect();
        format!("^{escaped}$")
    };
    name.split('/').map(quoted).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_one_test_at_each_level() {
        assert_eq!(exactly("TestA/of_(two)/b.json"), r"^TestA$/^of_\(two\)$/^b\.json$");
    }
}
