//! The parts of a run with their results and durations; printed once at the end, with the last lines of the failed parts
//! and the names of their failed tests. The last line is the count of all tests and nothing else.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::Result;

/// The result of one part.
pub(crate) enum Outcome {
    /// Passed, with its counts.
    Passed(String),
    /// Failed, with the reason or the counts.
    Failed(String),
    /// Could not run because a tool is missing. A failure with `CI=true`.
    Missing(String),
    /// Could not run because a public service did not answer, which is never our fault.
    Unreachable(String),
}

struct Row {
    name: String,
    outcome: Outcome,
    seconds: f64,
    /// The last lines that it showed, in which test runners name failures.
    last_words: VecDeque<String>,
    /// The tests that failed, as their runner names them.
    failed_tests: Vec<String>,
}

/// A part that can run beside others.
pub(crate) struct Part<'a> {
    pub(crate) name: &'static str,
    pub(crate) run: Box<dyn FnOnce() -> Result<Outcome> + Send + 'a>,
}

/// How many parts run side by side if they may: most of them wait for clients more than they compute.
const LANES: usize = 2;

/// The number of lines of a failed part that are repeated at the end.
const LAST_WORDS: usize = 30;

/// How much of a text is shown in one line of the summary. Its part has printed all of it before.
const WIDTH: usize = 160;

thread_local! {
    /// The prefix of lines printed by this thread: the name of the part, if several run at once.
    static WHOSE: RefCell<String> = const { RefCell::new(String::new()) };
    /// The last lines of the part that runs on this thread.
    static SHOWN: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
    /// The tests of that part that failed.
    static FAILED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Prints a line of the part that runs on this thread.
pub(crate) fn show(line: &str) {
    WHOSE.with_borrow(|whose| println!("{whose}{line}"));
    SHOWN.with_borrow_mut(|shown| {
        if shown.len() == LAST_WORDS {
            shown.pop_front();
        }
        shown.push_back(line.to_owned());
    });
    if let Some(test) = failed_test(line) {
        // Some runners name it when it fails and again at their end.
        FAILED.with_borrow_mut(|failed| {
            if !failed.iter().any(|named| named == test) {
                failed.push(test.to_owned());
            }
        });
    }
}

/// Returns the test that a line reports as failed: in the form of pytest's summary, of cargo during a run, of node's
/// `spec`, or of Maven at the end of a class.
fn failed_test(line: &str) -> Option<&str> {
    let cargo = || line.strip_prefix("test ")?.strip_suffix(" ... FAILED");
    let node = || line.trim_start().strip_prefix("✖ ").filter(|name| *name != "failing tests:");
    let maven = || line.strip_prefix("[ERROR] ")?.split_once(" -- Time elapsed: ").map(|(test, _)| test);
    let pytest = || line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "));
    pytest().or_else(cargo).or_else(node).or_else(maven)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The parts that ran so far.
pub(crate) struct Report {
    rows: Vec<Row>,
    started: Instant,
}

impl Report {
    pub(crate) fn new() -> Report {
        Report { rows: Vec::new(), started: Instant::now() }
    }

    /// Runs one part under a heading. An error counts as a failure of that part.
    pub(crate) fn part(&mut self, name: &str, run: impl FnOnce() -> Result<Outcome>) {
        self.rows.push(Row::of(name, run));
    }

    /// Runs parts in their order, several at a time. Each line that they print is prefixed with the part's name.
    pub(crate) fn beside(&mut self, parts: Vec<Part<'_>>) {
        let waiting = Mutex::new(parts.into_iter().enumerate());
        let ended = Mutex::new(Vec::new());
        let next = || waiting.lock().expect("no part runs while this is held").next();
        thread::scope(|scope| {
            for _ in 0..LANES {
                scope.spawn(|| {
                    while let Some((place, Part { name, run })) = next() {
                        WHOSE.set(format!("{name} | "));
                        let row = Row::of(name, run);
                        ended.lock().expect("a push does not panic").push((place, row));
                    }
                });
            }
        });
        let mut ended = ended.into_inner().expect("a push does not panic");
        ended.sort_by_key(|(place, _)| *place);
        self.rows.extend(ended.into_iter().map(|(_, row)| row));
    }

    /// Prints the summary; anything that failed makes the exit code 1.
    pub(crate) fn finish(&self) -> ExitCode {
        let strict = continuous_integration();
        println!("\n{}", self.summary());
        let good = !self.rows.iter().any(|row| row.is_bad(strict));
        let parts = self.rows.iter().filter(|row| matches!(row.outcome, Outcome::Passed(_))).count();
        let minutes = self.started.elapsed().as_secs_f64() / 60.0;
        println!("{parts} of {} parts in {minutes:.1} minutes", self.rows.len());
        println!("{}", self.counts(strict));
        if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Returns the counts of all parts; the last line has them, for programs.
    fn counts(&self, strict: bool) -> Counts {
        self.rows.iter().map(|row| row.counts(strict)).fold(Counts::default(), Counts::plus)
    }

    /// Returns the last lines of the failed parts, then a line for each part, and one for each of its failed tests.
    fn summary(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let Outcome::Failed(reason) = &row.outcome else { continue };
            let _ = writeln!(text, "the last lines of {}, and why it failed:", row.name);
            for line in row.last_words.iter().map(String::as_str).chain(reason.lines()) {
                let _ = writeln!(text, "    {line}");
            }
            text.push('\n');
        }
        for row in &self.rows {
            let word = match row.outcome {
                Outcome::Passed(_) => "ok",
                Outcome::Failed(_) => "FAILED",
                Outcome::Missing(_) | Outcome::Unreachable(_) => "NOT RUN",
            };
            let (name, seconds, detail) = (&row.name, row.seconds, shortened(row.detail()));
            let _ = writeln!(text, "{word:>8}  {name:<22} {seconds:>7.1} s  {detail}");
            for test in &row.failed_tests {
                let _ = writeln!(text, "{:>8}  {}", "", shortened(test));
            }
        }
        text
    }
}

impl Row {
    fn of(name: &str, run: impl FnOnce() -> Result<Outcome>) -> Row {
        println!("\n=== {name}");
        SHOWN.take();
        FAILED.take();
        let started = Instant::now();
        let outcome = run().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let seconds = started.elapsed().as_secs_f64();
        match &outcome {
            Outcome::Passed(_) => {}
            Outcome::Failed(text) => println!("{name}: FAILED: {text}"),
            Outcome::Missing(text) | Outcome::Unreachable(text) => {
                println!("\n{0}\n{name}: DID NOT RUN: {text}\n{0}", "!".repeat(100));
            }
        }
        Row { name: name.to_owned(), outcome, seconds, last_words: SHOWN.take(), failed_tests: FAILED.take() }
    }

    /// Returns the counts or the reason, in one line.
    fn detail(&self) -> &str {
        let (Outcome::Passed(text)
        | Outcome::Failed(text)
        | Outcome::Missing(text)
        | Outcome::Unreachable(text)) = &self.outcome;
        text.lines().next().unwrap_or("")
    }

    /// Returns its tests. A part without a count is one test; a failed part has at least one failed test, also if it ended
    /// before its runner could count.
    fn counts(&self, strict: bool) -> Counts {
        let counted = Counts::parse(self.detail());
        match self.outcome {
            Outcome::Passed(_) => counted.unwrap_or(Counts { passed: 1, ..Counts::default() }),
            Outcome::Failed(_) => {
                let counted = counted.unwrap_or_default();
                Counts { failed: counted.failed.max(1), ..counted }
            }
            Outcome::Missing(_) | Outcome::Unreachable(_) if self.is_bad(strict) => {
                Counts { failed: 1, ..Counts::default() }
            }
            Outcome::Missing(_) | Outcome::Unreachable(_) => Counts { skipped: 1, ..Counts::default() },
        }
    }

    fn is_bad(&self, strict: bool) -> bool {
        match self.outcome {
            Outcome::Passed(_) | Outcome::Unreachable(_) => false,
            Outcome::Failed(_) => true,
            Outcome::Missing(_) => strict,
        }
    }
}

/// How many tests had which result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    /// Returns the counts at the beginning of a part's text, as in `1 failed, 30 passed, 2 skipped in 3.1s`; `None` if it
    /// begins otherwise: the figures of a check may contain the same words.
    fn parse(detail: &str) -> Option<Counts> {
        let clause = detail.split([',', ';']).next().unwrap_or("");
        let begins = ["passed", "failed", "skipped"].iter().any(|word| {
            clause.split(' ').nth(1) == Some(word) && clause.split(' ').next().is_some_and(is_number)
        });
        let sum = |words: &[&str]| words.iter().map(|word| count_before(detail, word)).sum();
        begins.then(|| Counts {
            passed: sum(&["passed"]),
            failed: sum(&["failed", "error", "errors"]),
            skipped: sum(&["skipped", "ignored", "xfailed"]),
        })
    }

    fn plus(self, other: Counts) -> Counts {
        Counts {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}

/// Whether `CI=true`: then a part that cannot run is a failure.
pub(crate) fn continuous_integration() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Returns the number before a word, as in `12 passed`; 0 if there is none.
pub(crate) fn count_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ',', ';']).filter(|part| !part.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_lines_that_test_runners_print() {
        let cargo = "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured";
        assert_eq!(count_before(cargo, "passed"), 12);
        assert_eq!(count_before(cargo, "ignored"), 3);
        assert_eq!(count_before("2 failed, 140 passed in 3.1s", "passed"), 140);
        assert_eq!(count_before("nothing here", "passed"), 0);
    }

    #[test]
    fn parts_that_run_beside_each_other_are_told_in_their_order_and_all_of_them() {
        let (first, second) = std::sync::mpsc::channel();
        let mut report = Report::new();
        report.beside(vec![
            // Ends only after the second has begun.
            Part { name: "one", run: Box::new(move || Ok(Outcome::Passed(second.recv()?))) },
            Part {
                name: "two",
                run: Box::new(move || {
                    first.send("begun".to_owned())?;
                    Ok(Outcome::Passed(String::new()))
                }),
            },
            Part { name: "three", run: Box::new(|| anyhow::bail!("three fails")) },
        ]);
        let names: Vec<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["one", "two", "three"]);
        assert!(matches!(&report.rows[2].outcome, Outcome::Failed(text) if text == "three fails"));
    }

    #[test]
    fn the_last_words_of_what_failed_stand_above_the_summary_and_of_nothing_else() {
        let mut report = Report::new();
        report.part("good", || {
            show("all is well");
            Ok(Outcome::Passed(String::new()))
        });
        report.part("bad", || {
            (0..2 * LAST_WORDS).for_each(|number| show(&format!("line {number}.")));
            show("FAILED test_of_something");
            Ok(Outcome::Failed("1 failed\nit says no".to_owned()))
        });
        let summary = report.summary();
        let end = "\n    FAILED test_of_something\n    1 failed\n    it says no\n\n      ok  good ";
        assert!(summary.contains(end), "{summary}");
        assert!(
            summary.starts_with("the last lines of bad, and why it failed:\n    line 31.\n"),
            "{summary}"
        );
        assert!(summary.ends_with(" s  1 failed\n          test_of_something\n"), "{summary}");
        assert!(!summary.contains("all is well"), "{summary}");
    }

    #[test]
    fn a_failed_test_is_named_whatever_ran_it() {
        for (line, test) in [
            ("FAILED test_a.py::test_b - AssertionError", Some("test_a.py::test_b - AssertionError")),
            ("ERROR test_a.py::test_b", Some("test_a.py::test_b")),
            ("test it::store::t1 ... FAILED", Some("it::store::t1")),
            ("test it::store::t1 ... ok", None),
            ("  ✖ T1: alive (3.2ms)", Some("T1: alive (3.2ms)")),
            ("✖ failing tests:", None),
            (
                "[ERROR] bolide.OrdersTest.t2() -- Time elapsed: 0.1 s <<< FAILURE!",
                Some("bolide.OrdersTest.t2()"),
            ),
            ("[ERROR] Tests run: 1, Failures: 1, Errors: 0, Skipped: 0", None),
            ("1 failed, 3 passed in 2.0s", None),
        ] {
            assert_eq!(failed_test(line), test, "{line}");
        }
    }

    #[test]
    fn a_line_of_the_summary_has_an_end() {
        assert_eq!(shortened(&"ü".repeat(WIDTH)), "ü".repeat(WIDTH));
        assert_eq!(shortened(&"ü".repeat(WIDTH + 1)), format!("{}...", "ü".repeat(WIDTH)));
    }

    #[test]
    fn the_last_line_adds_up_the_tests_of_all_parts_and_says_nothing_else() {
        let mut report = Report::new();
        report.part("tidy", || Ok(Outcome::Passed("1220 source files".to_owned())));
        report.part("cargo", || Ok(Outcome::Passed("12 passed, 0 failed, 3 ignored".to_owned())));
        assert_eq!(report.counts(true).to_string(), "13 passed, 0 failed, 3 skipped");
        report.part("proof", || Ok(Outcome::Passed("5 kills, 7 reads that failed, 9 passed".to_owned())));
        report.part("pytest", || {
            Ok(Outcome::Failed("1 failed, 30 passed, 2 skipped, 1 error in 3s".to_owned()))
        });
        assert_eq!(report.counts(true).to_string(), "44 passed, 2 failed, 5 skipped");
    }

    #[test]
    fn a_part_that_failed_counts_even_if_none_of_its_tests_did() {
        for text in ["", "it ran for more than 600 s", "12 passed, 0 failed, 0 ignored"] {
            let mut report = Report::new();
            report.part("bad", || Ok(Outcome::Failed(text.to_owned())));
            let found = report.counts(false);
            assert_eq!((found.failed, found.skipped), (1, 0), "{text}");
        }
        let mut report = Report::new();
        report.part("error", || anyhow::bail!("it does not build"));
        assert_eq!(report.counts(false).to_string(), "0 passed, 1 failed");
    }

    #[test]
    fn a_part_that_did_not_run_is_skipped_or_failed_as_the_exit_code_says() {
        let mut report = Report::new();
        report.part("tool", || Ok(Outcome::Missing("node is not installed".to_owned())));
        report.part("service", || Ok(Outcome::Unreachable("no answer".to_owned())));
        assert_eq!(report.counts(false).to_string(), "0 passed, 0 failed, 2 skipped");
        assert_eq!(report.counts(true).to_string(), "0 passed, 1 failed, 1 skipped");
    }

    fn nothing() -> Row {
        Row {
            name: String::new(),
            outcome: Outcome::Passed(String::new()),
            seconds: 0.0,
            last_words: VecDeque::new(),
            failed_tests: Vec::new(),
        }
    }

    #[test]
    fn a_missing_tool_is_a_failure_only_in_an_unattended_run() {
        let row = Row { outcome: Outcome::Missing(String::new()), ..nothing() };
        assert!(row.is_bad(true));
        assert!(!row.is_bad(false));
    }

    #[test]
    fn a_service_that_does_not_answer_is_never_a_failure() {
        let row = Row { outcome: Outcome::Unreachable(String::new()), ..nothing() };
        assert!(!row.is_bad(true) && !row.is_bad(false));
    }
}
