//! The fuzz targets for a while: seeds from the golden scripts, then `cargo fuzz`. See fuzz/README.md.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::paths;
use crate::process;
use crate::report::{Outcome, Report};
use crate::rust::verdict;

/// Compiling the targets from nothing.
const BUILD_TIMEOUT: Duration = Duration::from_mins(30);

/// Runs a target for so many seconds.
pub(crate) fn run(report: &mut Report, target: &str, seconds: u32) {
    report.part(&format!("fuzz {target}"), || {
        let found = paths::root().join("fuzz/corpus").join(target);
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
        let kept = paths::root().join("crates/query/tests/corpus").join(target);
        let dictionary = paths::root().join("fuzz/dictionary.txt");
        let mut command = Command::new("cargo");
        command
            .current_dir(paths::root())
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["fuzz", "run", "--sanitizer", "none", target])
            .args([&found, &kept])
            .args(["--", "-timeout=5", "-rss_limit_mb=1024", "-print_final_stats=1"])
            .arg(format!("-dict={}", dictionary.display()))
            .arg(format!("-max_total_time={seconds}"));
        let finished =
            process::run(&mut command, BUILD_TIMEOUT + Duration::from_secs(2 * u64::from(seconds)))?;
        let executed =
            finished.output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        Ok(verdict(finished.success, &format!("{} inputs", executed.map_or("?", str::trim))))
    });
}

/// Every query of the golden scripts as an input of a target.
fn seeds(target: &str) -> Result<Vec<String>> {
    let mut seeds = Vec::new();
    for path in paths::files(&paths::root().join("crates/query/tests/scripts"), &["txt"]) {
        let queries = if is_grammar(&path) {
            grammar(&fs::read_to_string(&path)?)
        } else {
            script(&fs::read_to_string(&path)?)
        };
        let as_input = |(query, rest): (String, Vec<String>)| match target {
            "syntax" => query,
            _ => [vec![query.replace('\n', " ")], rest].concat().join("\n"),
        };
        seeds.extend(queries.into_iter().map(as_input));
    }
    Ok(seeds)
}

/// The grammar's scripts have queries alone, and their own form.
fn is_grammar(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("grammar"))
}

/// `> query`, continued by lines that begin with `|`.
fn grammar(script: &str) -> Vec<(String, Vec<String>)> {
    let mut queries: Vec<(String, Vec<String>)> = Vec::new();
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
fn script(script: &str) -> Vec<(String, Vec<String>)> {
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
        assert!(seeds("evaluation").unwrap().len() > 500);
    }
}
