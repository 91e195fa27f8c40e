//! Checks in the crate's own sources that only the table decides by a command's name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Command, all};

/// Words that are names of commands and stand elsewhere for something else.
const OTHER_MEANINGS: &[(&str, &[&str])] = &[
    // Kinds of events.
    ("change_stream/event.rs", &["delete", "drop", "dropDatabase", "insert", "update"]),
    // Fields of a command, and of what it answers.
    ("commands/aggregate.rs", &["explain"]),
    ("commands/coll_stats.rs", &["count"]),
    ("commands/configure_fail_point.rs", &["count"]),
    ("commands/explain.rs", &["update"]),
    ("commands/find_and_modify.rs", &["update"]),
    ("commands/get_cmd_line_opts.rs", &["setParameter"]),
    ("statements/describe.rs", &["count"]),
    // The operations of `bulkWrite`.
    ("commands/bulk_write.rs", &["delete", "insert", "update"]),
    ("commands/needs.rs", &["delete", "insert", "update"]),
    // An option of `$collStats`.
    ("dispatch/api.rs", &["count"]),
    // Kinds of operations.
    ("diagnostics/operation_kind.rs", &["delete", "insert", "update"]),
    ("diagnostics/usage.rs", &["count"]),
];

/// Files whose words are names of something else altogether: of actions that roles allow.
const OTHER_NAMES: &[&str] = &["rights/action.rs"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the files of the crate by their paths, without comments and tests.
fn product_code() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code: Vec<&str> = product.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        (path.strip_prefix(&root).unwrap().to_string_lossy().into_owned(), code.join("\n"))
    };
    let files = paths.into_iter().map(read);
    files
        .filter(|(file, _)| !["commands/mod.rs", "commands/named_elsewhere_tests.rs"].contains(&&**file))
        .collect()
}

/// Returns the file of a command's handler.
fn handler(command: &Command) -> String {
    let mut file = String::from("commands/");
    for sign in command.name.chars() {
        if sign.is_ascii_uppercase() {
            file.push('_');
        }
        file.push(sign.to_ascii_lowercase());
    }
    file + ".rs"
}

#[test]
fn no_command_is_named_outside_of_the_table_but_by_its_own_handler() {
    let (mut offences, mut met) = (Vec::new(), BTreeSet::new());
    let files = product_code();
    for (file, code) in files.iter().filter(|(file, _)| !OTHER_NAMES.contains(&&**file)) {
        for command in all().iter().filter(|command| handler(command) != *file) {
            for name in std::iter::once(&command.name).chain(command.aliases) {
                if !code.contains(&format!("\"{name}\"")) {
                    continue;
                }
                let other = OTHER_MEANINGS.iter().find(|(known, _)| known == file);
                if other.is_some_and(|(_, names)| names.contains(name)) {
                    met.insert((file.as_str(), *name));
                } else {
                    offences.push(format!("{file}: \"{name}\""));
                }
            }
        }
    }
    assert!(offences.is_empty(), "a column of the table should say this: {offences:#?}");
    let known = OTHER_MEANINGS.iter().flat_map(|(file, names)| names.iter().map(|name| (*file, *name)));
    let over: Vec<_> = known.filter(|entry| !met.contains(entry)).collect();
    assert!(over.is_empty(), "these do not stand there any more: {over:?}");
}

#[test]
fn no_command_is_told_by_comparing_its_name() {
    let decides = ["==", "!=", "match ", "matches!", "contains(", "starts_with(", "find("];
    for (file, code) in product_code() {
        let lines = code.lines().filter(|line| line.contains("command.name"));
        let offence = lines.into_iter().find(|line| decides.iter().any(|sign| line.contains(sign)));
        // The name as the client spelled it does not identify the command.
        let offence = offence.filter(|line| !line.contains("call.spelled() == call.command.name"));
        assert_eq!(offence, None, "{file}");
    }
}
