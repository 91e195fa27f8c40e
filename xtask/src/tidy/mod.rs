//! Rules about the source tree that no compiler checks: arrows between crates and inside them, file sizes, forbidden and
//! retired words, opening comments, numbered decisions, rows of COMPAT.md that name a test, and pages that name existing
//! code.

mod floors;
mod imports;
mod map;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::paths;
use crate::report::{Outcome, Report};

const MAX_LINES: usize = 1000;

/// Which crates of ours each crate may depend on. Arrows point down only.
const ARROWS: &[(&str, &[&str])] = &[
    ("calendar", &[]),
    ("patterns", &[]),
    ("stemming", &[]),
    ("golden", &[]),
    ("account", &[]),
    ("hybridrow", &[]),
    ("rntbd", &[]),
    ("direct", &["rntbd"]),
    ("telemetry", &[]),
    ("transport", &["telemetry"]),
    ("bson", &["calendar"]),
    ("document", &[]),
    ("storage", &[]),
    ("query", &["golden", "calendar", "document", "patterns", "stemming"]),
    ("mql", &["golden", "bson", "calendar", "patterns", "stemming"]),
    ("engine", &["golden", "bson", "document", "storage", "query", "mql"]),
    (
        "nosql",
        &[
            "account",
            "hybridrow",
            "rntbd",
            "direct",
            "calendar",
            "document",
            "query",
            "engine",
            "storage",
            "telemetry",
            "transport",
        ],
    ),
    ("mongo", &["account", "bson", "mql", "document", "engine", "storage", "telemetry", "transport"]),
    ("explorer", &["account", "bson", "calendar", "document", "storage", "query", "engine"]),
    (
        "server",
        &[
            "account",
            "rntbd",
            "direct",
            "bson",
            "explorer",
            "calendar",
            "document",
            "storage",
            "engine",
            "nosql",
            "mongo",
            "telemetry",
            "transport",
        ],
    ),
    ("embedded", &["document", "storage", "query", "engine"]),
    ("simulator", &["bson", "document", "storage", "query", "mql", "engine"]),
];

/// Crates that stay synchronous: no runtime may appear among their dependencies.
const SYNCHRONOUS: &[&str] = &[
    "account",
    "hybridrow",
    "rntbd",
    "calendar",
    "patterns",
    "stemming",
    "golden",
    "telemetry",
    "bson",
    "document",
    "storage",
    "query",
    "mql",
    "engine",
    "embedded",
];
/// Crates that only tests may use.
const FOR_TESTS: &[&str] = &["golden", "direct"];
const RUNTIMES: &[&str] = &["tokio", "hyper", "hyper-util", "http-body-util", "futures"];

/// Checks everything and lists every offence.
pub(crate) fn check(report: &mut Report) {
    report.part("tidy", || {
        let mut offences = Vec::new();
        arrows(&mut offences)?;
        floors::check(&mut offences)?;
        words::check(&mut offences)?;
        map::check(&mut offences)?;
        let sources = sources(&mut offences)?;
        decisions(&mut offences);
        compat_rows(&mut offences, &test_names()?);
        for offence in &offences {
            println!("{offence}");
        }
        Ok(if offences.is_empty() {
            Outcome::Passed(format!("{sources} source files"))
        } else {
            Outcome::Failed(format!("{} offences", offences.len()))
        })
    });
}

fn arrows(offences: &mut Vec<String>) -> Result<()> {
    let crates = paths::root().join("crates");
    for folder in folders(&crates) {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == folder) else {
            offences.push(format!(
                "crates/{folder}: unknown to the table of crate arrows in xtask/src/tidy/mod.rs"
            ));
            continue;
        };
        let manifest = fs::read_to_string(crates.join(&folder).join("Cargo.toml"))?;
        let product = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for dependency in dependencies(product).iter().filter(|name| FOR_TESTS.contains(&name.as_str())) {
            offences.push(format!("crates/{folder}: must not depend on {dependency}: it is for tests alone"));
        }
        for dependency in dependencies(&manifest) {
            let ours = ARROWS.iter().any(|(name, _)| *name == dependency);
            if ours && !allowed.contains(&dependency.as_str()) {
                offences.push(format!(
                    "crates/{folder}: must not depend on {dependency}: arrows point down only"
                ));
            }
            if SYNCHRONOUS.contains(&folder.as_str()) && RUNTIMES.contains(&dependency.as_str()) {
                offences.push(format!("crates/{folder}: must not depend on {dependency}: it is synchronous"));
            }
        }
    }
    Ok(())
}

fn folders(parent: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(parent) else { return BTreeSet::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Returns the names under `[dependencies]`, `[dev-dependencies]` and `[build-dependencies]`, also written as sub-tables.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (table, name) = match header.rsplit_once("dependencies.") {
                Some((_, name)) => ("dependencies", Some(name)),
                None => (header, None),
            };
            names.extend(name.map(str::to_owned));
            inside = name.is_none() && table.ends_with("dependencies");
        } else if inside && let Some((name, _)) = line.split_once(['.', '=', ' ']) {
            names.insert(name.trim().to_owned());
        }
    }
    names
}

/// Checks sizes, words and opening comments; returns the number of files.
fn sources(offences: &mut Vec<String>) -> Result<usize> {
    // Written in two halves, so that this file does not offend.
    let words = [["todo", "!("], ["dbg", "!("], ["unimplemented", "!("], ["FIX", "ME"], ["XX", "X:"]]
        .map(|half| half.concat());
    let files = paths::files(&paths::root(), &["rs", "py", "js", "java"]);
    for path in &files {
        let text = fs::read_to_string(path)?;
        let shown = paths::shown(path);
        let lines = text.lines().count();
        if lines > MAX_LINES {
            offences.push(format!("{shown}: {lines} lines; past {MAX_LINES} something is wrong"));
        }
        for (number, line) in text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                offences.push(format!("{shown}:{}: contains {word}", number + 1));
            }
        }
        let opening = match path.extension().and_then(|end| end.to_str()) {
            Some("rs") => "//!",
            Some("py") => "\"\"\"",
            _ => "//",
        };
        if !text.starts_with(opening) {
            offences.push(format!("{shown}: does not open with {opening} and what it is for"));
        }
    }
    Ok(files.len())
}

fn decisions(offences: &mut Vec<String>) {
    let folder = paths::root().join("docs/decisions");
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    for path in paths::files(&folder, &["md"]) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (number, rest) = name.split_at(name.find('-').unwrap_or(0));
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) || rest.len() < 5 {
            offences.push(format!("docs/decisions/{name}: must be named NNNN-what-was-decided.md"));
        } else if let Some(other) = taken.insert(number.to_owned(), name.clone()) {
            offences.push(format!("docs/decisions/{name}: {number} is taken by {other}"));
        }
    }
    if taken.is_empty() {
        offences.push("docs/decisions: no decision is recorded".to_owned());
    }
}

/// Checks that every row of a table in COMPAT.md names, in backticks in its last cell, tests that exist: a function, a
/// test's title, or a file.
fn compat_rows(offences: &mut Vec<String>, tests: &BTreeSet<String>) {
    let Ok(text) = fs::read_to_string(paths::root().join("COMPAT.md")) else {
        offences.push("COMPAT.md: missing".to_owned());
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let is_row = line.starts_with('|') && !is_rule(line);
        let is_head = lines.get(index + 1).is_some_and(|next| is_rule(next));
        if !is_row || is_head {
            continue;
        }
        let named = backticked(last_cell(line));
        if named.is_empty() {
            offences.push(format!("COMPAT.md:{}: the row names no test", index + 1));
        }
        for name in named.iter().filter(|name| !exists(name, tests)) {
            offences.push(format!("COMPAT.md:{}: there is no test `{name}`", index + 1));
        }
    }
}

fn is_rule(line: &str) -> bool {
    line.starts_with('|') && line.contains("---") && line.chars().all(|sign| "|-: ".contains(sign))
}

fn last_cell(line: &str) -> &str {
    line.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default()
}

fn backticked(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn exists(name: &str, tests: &BTreeSet<String>) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    tests.contains(last) || paths::root().join(name).exists()
}

/// Returns the names of test functions in Rust, Python and Java, titles in JavaScript, and files of the published suite.
fn test_names() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for path in paths::files(&paths::root(), &["rs", "py", "js", "java"]) {
        let text = fs::read_to_string(&path)?;
        for line in text.lines().map(str::trim) {
            for prefix in ["fn ", "async fn ", "def ", "async def ", "void "] {
                let rest = line.strip_prefix(prefix);
                names.extend(rest.and_then(|rest| rest.split('(').next()).map(str::to_owned));
            }
            let title = line.strip_prefix("test(").map(|rest| rest.trim_start_matches(['"', '`']));
            names.extend(title.and_then(|rest| rest.split(['"', '`']).next()).map(str::to_owned));
        }
    }
    let published = fs::read_to_string(paths::compat("published").join("files.txt"))?;
    names.extend(published.lines().map(str::to_owned));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_found_in_every_spelling() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = \"1\"\n\
                        [dev-dependencies]\nc = { version = \"1\" }\n[dependencies.d]\nversion = \"1\"\n\
                        [target.'cfg(unix)'.dependencies]\ne = \"1\"\n[features]\nf = []\n";
        assert_eq!(dependencies(manifest), ["a", "b", "c", "d", "e"].map(str::to_owned).into());
    }

    #[test]
    fn every_arrow_of_the_table_points_down() {
        for (index, (name, allowed)) in ARROWS.iter().enumerate() {
            for below in *allowed {
                let position = ARROWS.iter().position(|(other, _)| other == below);
                assert!(position.is_some_and(|position| position < index), "{name} -> {below}");
            }
        }
    }

    #[test]
    fn a_rows_tests_are_the_backticked_names_of_its_last_cell() {
        let row = "| `ttl` | yes | `t5_bad_item_ttl`, `tests/x.rs` |";
        assert_eq!(backticked(last_cell(row)), ["t5_bad_item_ttl", "tests/x.rs"]);
        assert!(is_rule("|---|:--|"));
        assert!(!is_rule(row));
    }
}
