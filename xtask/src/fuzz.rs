//! Runs fuzz targets for a while: seeds from the golden scripts, then `cargo fuzz`. See fuzz/README.md.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::paths;
use crate::process;
use crate::report::{Outcome, Report};
use crate::rust::verdict;

/// For compiling the targets from nothing.
const BUILD_TIMEOUT: Duration = Duration::from_mins(30);

/// The kind of a target's inputs, and the crate with its corpus.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    package: &'static str,
    /// The words of its inputs, if they are made of words.
    dictionary: Option<&'static str>,
}

const fn target(name: &'static str, package: &'static str, dictionary: Option<&'static str>) -> Target {
    Target { name, package, dictionary }
}

/// All targets.
pub(crate) const TARGETS: &[Target] = &[
    target("syntax", "query", Some("dictionary.txt")),
    target("evaluation", "query", Some("dictionary.txt")),
    target("bson", "bson", Some("operators.txt")),
    target("message", "mongo", Some("operators.txt")),
    target("scram", "mongo", None),
    target("resume", "mongo", None),
    target("filter", "mql", Some("operators.txt")),
    target("update", "mql", Some("operators.txt")),
    target("pipeline", "mql", Some("operators.txt")),
    target("json", "document", Some("operators.txt")),
    target("binary", "document", None),
    target("key", "document", None),
    target("backup", "storage", None),
    target("recovery", "storage", None),
    target("store", "engine", None),
    target("token", "engine", None),
    target("request", "nosql", Some("requests.txt")),
    target("rntbd", "rntbd", None),
    target("hybridrow", "hybridrow", None),
];

/// Runs a target for so many seconds.
pub(crate) fn run(report: &mut Report, target: Target, seconds: u32) {
    let name = target.name;
    report.part(&format!("fuzz {name}"), || {
        let found = paths::root().join("fuzz/corpus").join(name);
        fs::create_dir_all(&found)?;
        let seeds = seeds(target).context("cannot read the golden scripts")?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(found.join(format!("script-{number}")), seed)?;
        }
        if !process::available("cargo-fuzz") {
            return Ok(Outcome::Failed(
                "cargo-fuzz is missing: cargo install cargo-fuzz --locked".to_owned(),
            ));
        }
        let kept = paths::root().join("crates").join(target.package).join("tests/corpus").join(name);
        let mut command = Command::new("cargo");
        command
            .current_dir(paths::root())
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["fuzz", "run", "--sanitizer", "none", name])
            .args([&found, &kept])
            .args(["--", "-timeout=5", "-rss_limit_mb=1024", "-print_final_stats=1"])
            .arg(format!("-max_total_time={seconds}"));
        if let Some(dictionary) = target.dictionary {
            command.arg(format!("-dict={}", paths::root().join("fuzz").join(dictionary).display()));
        }
        let finished =
            process::run(&mut command, BUILD_TIMEOUT + Duration::from_secs(2 * u64::from(seconds)))?;
        let executed =
            finished.output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        Ok(verdict(finished.success, &format!("{} inputs", executed.map_or("?", str::trim))))
    });
}

/// Returns the questions of the golden scripts as inputs of a target.
fn seeds(target: Target) -> Result<Vec<String>> {
    match target.package {
        "query" => {}
        "bson" | "mql" => return json_seeds(target.name),
        // No script has such inputs: the kept inputs are the seeds.
        _ => return Ok(Vec::new()),
    }
    let mut seeds = Vec::new();
    for (folder, read) in [("scripts", script as fn(&str) -> Vec<Question>), ("grammar", grammar)] {
        for path in paths::files(&paths::root().join("crates/query/tests").join(folder), &["txt"]) {
            let as_input = |(query, rest): Question| match target.name {
                "syntax" => query,
                _ => [vec![query.replace('\n', " ")], rest].concat().join("\n"),
            };
            seeds.extend(read(&fs::read_to_string(&path)?).into_iter().map(as_input));
        }
    }
    Ok(seeds)
}

/// Returns the questions of the scripts of the MongoDB API that a target understands, each with the documents before it.
fn json_seeds(target: &str) -> Result<Vec<String>> {
    let mut seeds = Vec::new();
    for path in paths::files(&paths::root().join("crates/mql/tests/scripts"), &["txt"]) {
        let text = fs::read_to_string(&path)?;
        let mut documents: Vec<&str> = Vec::new();
        let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            if line == "docs" {
                documents.clear();
                while let Some(document) = lines.next_if(|line| line.starts_with('{')) {
                    documents.push(document);
                }
            } else if let Some((verb, arguments)) =
                line.strip_prefix("> ").and_then(|line| line.split_once(' '))
            {
                seeds.extend(json_seed(target, verb, values(arguments), &documents));
            }
        }
    }
    Ok(seeds)
}

/// Returns a question as an input, if the target understands it.
fn json_seed(target: &str, verb: &str, mut values: Vec<&str>, documents: &[&str]) -> Option<String> {
    match (target, verb) {
        ("filter", "find" | "ids") | ("pipeline", "aggregate") => values.truncate(1),
        ("update", "update" | "upsert") if values.len() == 2 => values.push("[]"),
        ("bson", _) | ("update", "update" | "upsert") => {}
        ("pipeline", "expr") => {
            let expression = values.first()?;
            return Some(format!(r#"[{{"$project":{{"x":{expression}}}}}]"#));
        }
        _ => return None,
    }
    Some([&values, documents].concat().join("\n"))
}

/// Returns the values of a line, which stand one after the other.
fn values(line: &str) -> Vec<&str> {
    let (mut values, mut start, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0_i32, false, false);
    for (at, sign) in line.char_indices() {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ' ' if !quoted && depth == 0 => {
                values.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    values.push(&line[start..]);
    values
}

/// A query, and its parameters and items.
type Question = (String, Vec<String>);

/// `> query`, continued by lines that begin with `|`.
fn grammar(script: &str) -> Vec<Question> {
    let mut queries: Vec<Question> = Vec::new();
    for line in script.lines() {
        if let Some(query) = line.strip_prefix('>') {
            queries.push((
                query.trim_start().to_owned(),
                vec![r#"{"id":"1","_ts":1,"a":[1,{"b":2}]}"#.to_owned()],
            ));
        } else if let (Some(more), Some((query, _))) = (line.strip_prefix('|'), queries.last_mut()) {
            *query += "\n";
            *query += more.strip_prefix(' ').unwrap_or(more);
        }
    }
    queries
}

/// `> query` or `? filter`, continued by indented lines and then by parameters; `expression => value`; items and settings
/// before them.
fn script(script: &str) -> Vec<Question> {
    let mut queries = Vec::new();
    let mut settings: Vec<String> = Vec::new();
    let mut lines = script.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(query) = line.strip_prefix("> ").or(line.strip_prefix("? ")) {
            let mut query = query.to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with("  ")) {
                query = query + "\n" + more;
            }
            let mut rest = Vec::new();
            while let Some(parameter) = lines.next_if(|line| line.starts_with('@')) {
                rest.push(parameter.to_owned());
            }
            queries.push((query, [rest, settings.clone()].concat()));
            while lines.next_if(|line| !line.is_empty()).is_some() {}
        } else if let Some(item) = line.strip_prefix("item ") {
            settings.push(item.to_owned());
        } else if line.starts_with("computed ") || line.starts_with("embedding ") {
            settings.push(line.to_owned());
        } else if line == "forget" {
            settings.clear();
        } else if let Some((expression, _)) = line.rsplit_once("=>").filter(|_| !line.starts_with('#')) {
            queries.push((format!("SELECT [{}] FROM c", expression.trim_end()), settings.clone()));
        }
    }
    queries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_become_inputs() {
        let text = "# a => b\nitem {\"n\":1}\n\n> SELECT *\n  FROM c\n@n 5\n{\"n\":1}\n\nc.n => 1\nforget\n? FROM c WHERE 1\nnone\n";
        let item = "{\"n\":1}".to_owned();
        let expected = [
            ("SELECT *\n  FROM c".to_owned(), vec!["@n 5".to_owned(), item.clone()]),
            ("SELECT [c.n] FROM c".to_owned(), vec![item]),
            ("FROM c WHERE 1".to_owned(), vec![]),
        ];
        assert_eq!(script(text), expected);
        assert_eq!(grammar("> SELECT\n| 1\n= SELECT 1\n")[0].0, "SELECT\n1");
    }

    #[test]
    fn every_script_is_a_seed() {
        let least: [(&str, usize); 6] = [
            ("syntax", 500),
            ("evaluation", 500),
            ("bson", 300),
            ("filter", 50),
            ("update", 300),
            ("pipeline", 100),
        ];
        for (name, least) in least {
            let target = TARGETS.iter().find(|target| target.name == name).unwrap();
            assert!(seeds(*target).unwrap().len() > least, "{name}");
        }
    }

    #[test]
    fn values_stand_one_after_the_other() {
        assert_eq!(values(r#"{"a": "} \" "} [1, {}] 5"#), [r#"{"a": "} \" "}"#, "[1, {}]", "5"]);
    }
}
