//! The suites of Java clients: one run of Maven each, with the figures in Surefire's reports. Packages go into Maven's
//! common folder, below the home folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::paths;
use crate::process;
use crate::report::Outcome;
use crate::rust::verdict;

const TIMEOUT: Duration = Duration::from_mins(30);

/// Maven itself needs little; the tests have a heap of their own in `compat/java/pom.xml`.
const MAVEN_OPTIONS: &str = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1";

/// What a suite needs: a compiler, not only a runtime.
pub(crate) const TOOLS: &[&str] = &["javac", "mvn"];

/// How the clients of the NoSQL API connect. Each way has a folder of its own, so that both can run at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Connection {
    Gateway,
    Direct,
}

/// Runs modules of `compat/java`, all of them even if one fails.
pub(crate) fn run(binary: &PathBuf, modules: &[&str], connection: Connection) -> Result<Outcome> {
    let folder = paths::compat("java");
    let (target, mode) = match connection {
        Connection::Gateway => ("target", "gateway"),
        Connection::Direct => ("target/direct", "direct"),
    };
    let reports = modules.iter().map(|module| folder.join(module).join(target).join("surefire-reports"));
    let reports: Vec<PathBuf> = reports.collect();
    for old in reports.iter().filter(|old| old.exists()) {
        fs::remove_dir_all(old).with_context(|| paths::shown(old))?;
    }
    let mut command = Command::new("mvn");
    command
        .args([
            "--quiet",
            "--batch-mode",
            "--fail-at-end",
            "-Dstyle.color=never",
            &format!("-Dsuite.target={target}"),
            "--projects",
            &modules.join(","),
            "test",
        ])
        .current_dir(&folder)
        .env("MAVEN_OPTS", MAVEN_OPTIONS)
        .env("BOLIDE_CONNECTION", mode)
        .env("BOLIDE_BIN", binary);
    let finished = process::run(&mut command, TIMEOUT)?;
    let mut sum = Figures::default();
    for report in reports.iter().flat_map(|report| paths::files(report, &["xml"])) {
        sum = sum.plus(Figures::read(&report)?);
    }
    ensure!(sum.tests > 0, "no test ran");
    Ok(verdict(finished.success, &sum.told()))
}

/// How many tests had which result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    tests: u64,
    failed: u64,
    skipped: u64,
}

impl Figures {
    fn read(report: &Path) -> Result<Figures> {
        let text = fs::read_to_string(report).with_context(|| paths::shown(report))?;
        Figures::parse(&text).with_context(|| format!("{}: no report of Surefire", paths::shown(report)))
    }

    /// The attributes of a report's root element.
    fn parse(text: &str) -> Option<Figures> {
        let (_, rest) = text.split_once("<testsuite ")?;
        let (root, _) = rest.split_once('>')?;
        let attribute = |name: &str| -> Option<u64> {
            let (_, value) = root.split_once(&format!(" {name}=\""))?;
            value.split_once('"')?.0.parse().ok()
        };
        let failed = attribute("errors")? + attribute("failures")?;
        Some(Figures { tests: attribute("tests")?, failed, skipped: attribute("skipped")? })
    }

    fn plus(self, other: Figures) -> Figures {
        Figures {
            tests: self.tests + other.tests,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }

    fn told(self) -> String {
        let passed = self.tests.saturating_sub(self.failed + self.skipped);
        format!("{passed} passed, {} failed, {} skipped", self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_root_element() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" name="bolide.X" time="0.4" tests="7" errors="1" skipped="2" failures="1" flakes="0">
  <properties><property name="tests" value="9"/></properties>
</testsuite>"#;
        let figures = Figures::parse(report).unwrap();
        assert_eq!(figures, Figures { tests: 7, failed: 2, skipped: 2 });
        assert_eq!(figures.plus(figures).told(), "6 passed, 4 failed, 4 skipped");
        assert_eq!(Figures::parse("<html></html>"), None);
    }
}
