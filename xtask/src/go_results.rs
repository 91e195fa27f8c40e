//! Compares the results of a module's own tests with the lists beside `files.txt`.
//!
//! A test is one without subtests, or one that failed although none of its subtests did. A test named in
//! `expected-failures.txt` must fail: if it passes, is skipped or does not exist, the run fails. `expected-skips.txt` says
//! how many tests the module skips by itself; one more or fewer fails the run as well. The caller names the share that must
//! pass of the tests that are neither skipped nor left out for a reason in `OUT_OF_SCOPE`, so that the list cannot grow
//! unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::Tier;
use crate::paths;
use crate::report::{self, Outcome};
use crate::rust::verdict;

/// Reasons that exclude a test from those that must pass: it needs something that one server of this kind does not have, or
/// it cannot run here.
const OUT_OF_SCOPE: [&str; 8] = [
    "several regions",
    "sharded cluster",
    "load balancer",
    "client encryption",
    "Entra ID",
    "scripts",
    "thin client",
    "missing test data",
];

/// The lists of a module's tests.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The test files that run.
    pub(crate) files: Vec<String>,
    /// Tests that take too long for the short tier.
    pub(crate) long: Vec<String>,
    /// Tests that measure milliseconds, and may fail while others run.
    pub(crate) timed: BTreeSet<String>,
    failures: BTreeMap<String, Expected>,
    skips: BTreeMap<String, usize>,
}

#[derive(Debug)]
struct Expected {
    in_scope: bool,
    /// It ends the whole process, and so runs in a process of its own.
    ends_the_process: bool,
}

impl Lists {
    pub(crate) fn read(folder: &Path) -> Result<Lists> {
        let lines = |name: &str| -> Result<Vec<String>> {
            let text = fs::read_to_string(folder.join(name)).with_context(|| paths::shown(folder))?;
            let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
            Ok(lines.map(str::to_owned).collect())
        };
        let mut lists = Lists { files: lines("files.txt")?, long: lines("long.txt")?, ..Lists::default() };
        for line in lines("expected-failures.txt")? {
            lists.expect(&line)?;
        }
        for line in lines("timed.txt")? {
            let (name, _) = line.split_once(' ').with_context(|| format!("{line} has no reason"))?;
            lists.timed.insert(name.to_owned());
        }
        for line in lines("expected-skips.txt")? {
            let mut words = line.split_whitespace();
            let (name, count) = (words.next(), words.next().and_then(|word| word.parse().ok()));
            let (name, count) = name.zip(count).with_context(|| format!("not a line of skips: {line}"))?;
            ensure!(words.next().is_some(), "{name} has no reason");
            lists.skips.insert(name.to_owned(), count);
        }
        Ok(lists)
    }

    /// A line is `test  reason`; with `!` before it the test ends its process.
    fn expect(&mut self, line: &str) -> Result<()> {
        let (ends_the_process, line) = line.strip_prefix('!').map_or((false, line), |line| (true, line));
        let (name, reason) = line.trim().split_once(' ').with_context(|| format!("{line} has no reason"))?;
        let reason = reason.trim();
        let in_scope = !OUT_OF_SCOPE.iter().any(|given| reason.starts_with(given));
        let expected = Expected { in_scope, ends_the_process };
        ensure!(self.failures.insert(name.to_owned(), expected).is_none(), "{name} is listed twice");
        Ok(())
    }

    pub(crate) fn that_end_the_process(&self) -> impl Iterator<Item = &str> {
        self.failures.iter().filter(|(_, expected)| expected.ends_the_process).map(|(name, _)| name.as_str())
    }

    /// Returns the tests of the listed files in this package.
    pub(crate) fn tests_in(&self, module: &Path, package: &str) -> Result<Vec<String>> {
        let package = Path::new(package.trim_start_matches("./").trim_start_matches('.'));
        let mut tests = Vec::new();
        for file in self.files.iter().filter(|file| Path::new(file).parent() == Some(package)) {
            let text = fs::read_to_string(module.join(file)).with_context(|| file.clone())?;
            let declared = text.lines().filter_map(|line| line.strip_prefix("func ")?.split_once('('));
            let names =
                declared.filter(|(name, rest)| name.starts_with("Test") && rest.contains(" *testing.T)"));
            tests.extend(names.map(|(name, _)| name.to_owned()));
        }
        ensure!(!tests.is_empty(), "no test in {}", package.display());
        Ok(tests)
    }
}

/// The tests of a run by their results.
#[derive(Debug, Default)]
pub(crate) struct Results {
    passed: BTreeSet<String>,
    pub(crate) failed: BTreeSet<String>,
    skipped: BTreeSet<String>,
}

impl Results {
    /// Reads the output of `go test -v`.
    pub(crate) fn of(output: &str) -> Results {
        let mut ends = BTreeMap::new();
        for line in output.lines() {
            let Some((word, rest)) =
                line.trim_start().strip_prefix("--- ").and_then(|line| line.split_once(": "))
            else {
                continue;
            };
            let name = rest.rsplit_once(" (").map_or(rest, |(name, _)| name);
            if ["PASS", "FAIL", "SKIP"].contains(&word) && name.starts_with("Test") {
                ends.insert(name, word);
            }
        }
        let mut results = Results::default();
        let (mut parents, mut failed_parents) = (BTreeSet::new(), BTreeSet::new());
        for (name, word) in &ends {
            for (at, _) in name.match_indices('/') {
                parents.insert(&name[..at]);
                if *word == "FAIL" {
                    failed_parents.insert(&name[..at]);
                }
            }
        }
        for (name, word) in ends {
            let is_test = !parents.contains(name) || (word == "FAIL" && !failed_parents.contains(name));
            if is_test {
                results.of_end(word).insert(name.to_owned());
            }
        }
        results
    }

    /// Returns the result of a test that ran in a process of its own.
    pub(crate) fn alone(name: &str, passed: bool) -> Results {
        let mut results = Results::default();
        results.of_end(if passed { "PASS" } else { "FAIL" }).insert(name.to_owned());
        results
    }

    /// Replaces the failure of a test that passed when it ran again.
    pub(crate) fn passed_again(&mut self, name: &str) {
        self.failed.remove(name);
        self.passed.insert(name.to_owned());
    }

    fn of_end(&mut self, word: &str) -> &mut BTreeSet<String> {
        match word {
            "PASS" => &mut self.passed,
            "FAIL" => &mut self.failed,
            _ => &mut self.skipped,
        }
    }

    pub(crate) fn add(&mut self, other: Results) {
        self.passed.extend(other.passed);
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
    }

    pub(crate) fn count(&self) -> usize {
        self.passed.len() + self.failed.len()
    }

    pub(crate) fn counts(&self) -> String {
        let (passed, failed, skipped) = (self.passed.len(), self.failed.len(), self.skipped.len());
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }

    /// Skips by test, or by folder where the tests are files of data.
    fn skips(&self) -> BTreeMap<String, usize> {
        let mut skips = BTreeMap::new();
        for name in &self.skipped {
            let group = match name.split_once(".json") {
                Some((file, _)) => file.rsplit_once('/').map_or(file, |(folder, _)| folder),
                None => name.split('/').next().unwrap_or(name),
            };
            *skips.entry(group.to_owned()).or_default() += 1;
        }
        skips
    }
}

/// Compares results with the lists, and returns what differs. At least this percentage of those in scope must pass.
pub(crate) fn judge(results: &Results, lists: &Lists, tier: Tier, least_percent: usize) -> Outcome {
    let is_left_out =
        |name: &str| tier == Tier::Short && lists.long.iter().any(|long| name.starts_with(long.as_str()));
    let unexpected: Vec<_> =
        results.failed.iter().filter(|name| !lists.failures.contains_key(*name)).collect();
    let stale: Vec<_> =
        lists.failures.keys().filter(|name| !results.failed.contains(*name) && !is_left_out(name)).collect();
    for name in &unexpected {
        report::show(&format!("FAILED {name}"));
    }
    for name in &stale {
        let end = if results.passed.contains(*name) { "passed" } else { "was skipped or does not exist" };
        report::show(&format!("STALE LINE {name}: it {end}"));
    }
    let (found, mut other_skips) = (results.skips(), 0);
    for name in found.keys().chain(lists.skips.keys()).collect::<BTreeSet<_>>() {
        let (found, listed) =
            (found.get(name).copied().unwrap_or(0), lists.skips.get(name).copied().unwrap_or(0));
        if found != listed {
            other_skips += 1;
            report::show(&format!("OTHER SKIPS {name}: {found}, and {listed} are listed"));
        }
    }
    let in_scope =
        lists.failures.iter().filter(|(name, expected)| expected.in_scope && results.failed.contains(*name));
    let (passed, expected) = (results.passed.len(), in_scope.count());
    let of = passed + expected + unexpected.len();
    let good =
        unexpected.is_empty() && stale.is_empty() && other_skips == 0 && passed * 100 >= of * least_percent;
    let percent = 100.0 * passed as f64 / of.max(1) as f64;
    verdict(
        good,
        &format!(
            "{passed} passed, {} failed, {} skipped; {} failures expected, {expected} of them in scope: {percent:.1} % of {of}",
            unexpected.len() + stale.len() + other_skips,
            results.skipped.len(),
            results.failed.len() - unexpected.len(),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "=== RUN TestA\n--- FAIL: TestA (0.10s)\n    --- PASS: TestA/one (0.00s)\n    --- FAIL: TestA/two_(b) (0.00s)\n\
                          --- FAIL: TestB (0.00s)\n    --- PASS: TestB/one (0.00s)\n--- SKIP: TestC (0.00s)\n\
                          --- PASS: TestD (0.00s)\n    --- SKIP: TestD/x/y.json/one (0.00s)\n";

    fn lists(lines: &[&str]) -> Lists {
        let mut lists = Lists::default();
        for line in lines {
            lists.expect(line).unwrap();
        }
        lists
    }

    fn is_good(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Passed(_))
    }

    #[test]
    fn tests_are_those_without_tests_below_and_those_that_fail_by_themselves() {
        let results = Results::of(OUTPUT);
        assert_eq!(results.counts(), "2 passed, 2 failed, 2 skipped");
        assert!(results.failed.contains("TestA/two_(b)") && results.failed.contains("TestB"));
        let skips = results.skips();
        assert_eq!(skips.get("TestC"), Some(&1));
        assert_eq!(skips.get("TestD/x"), Some(&1));
    }

    #[test]
    fn what_differs_from_the_lists_fails() {
        let mut results = Results::of(OUTPUT);
        results.skipped.clear();
        for number in 0..100 {
            results.passed.insert(format!("TestMany/{number}"));
        }
        let judged = |lines: &[&str]| is_good(&judge(&results, &lists(lines), Tier::Long, 95));
        assert!(judged(&["TestA/two_(b)  a reason", "TestB  scripts"]));
        assert!(!judged(&["TestA/two_(b)  a reason"]), "an unexpected failure");
        assert!(!judged(&["TestA/two_(b)  a reason", "TestB  x", "TestA/one  x"]), "an unexpected pass");
        results.skipped.insert("TestC".to_owned());
        assert!(
            !is_good(&judge(&results, &lists(&["TestA/two_(b)  x", "TestB  x"]), Tier::Long, 95)),
            "a skip"
        );
    }

    #[test]
    fn the_share_that_must_pass_leaves_out_what_is_out_of_scope() {
        let results = Results::of(OUTPUT);
        let judged = |lines: &[&str]| is_good(&judge(&results, &skipping(lists(lines)), Tier::Long, 95));
        assert!(judged(&["TestA/two_(b)  scripts", "!TestB  several regions"]));
        assert!(!judged(&["TestA/two_(b)  scripts", "TestB  it is not built"]));
    }

    fn skipping(lists: Lists) -> Lists {
        Lists { skips: [("TestC".to_owned(), 1), ("TestD/x".to_owned(), 1)].into(), ..lists }
    }

    #[test]
    fn a_line_has_a_name_and_a_reason_once() {
        let mut lists = lists(&["! TestA  ends it all"]);
        assert_eq!(lists.that_end_the_process().collect::<Vec<_>>(), ["TestA"]);
        assert!(lists.expect("TestB").is_err());
        assert!(lists.expect("TestA  again").is_err());
    }
}
