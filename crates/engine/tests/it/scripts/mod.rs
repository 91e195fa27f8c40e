//! Golden scripts for the engine: commands, and what they print, over the memory store and the embedded store, which must
//! agree. The form is described in `tests/scripts/README.md`.
//!
//! | file | what |
//! |---|---|
//! | `call.rs` | the parser of commands |
//! | `stage.rs` | the engine that a script runs on: its store, its clock, its restarts and crashes |
//! | `labels.rs` | short names for item numbers, versions and times |
//! | `verbs.rs` | the table of commands |
//! | `owners.rs`, `items.rs`, `documents.rs`, `queries.rs`, `feeds.rs`, `upkeep.rs` | what they do |
//! | `dump.rs`, `decode.rs` | stored entries, read by `docs/file-format.md` alone and not by the engine's own decoders |

#![expect(
    clippy::unnecessary_wraps,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "commands of a table have one signature, and what they print is short"
)]

mod call;
mod decode;
mod documents;
mod dump;
mod feeds;
mod items;
mod labels;
mod owners;
mod queries;
mod stage;
mod upkeep;
mod verbs;

use golden::{Script, Transcript};

use call::Call;
use stage::{Kind, Stage};

/// The output of a command, or the engine's error.
type Answer = engine::Result<Vec<String>>;

/// Runs a script on one kind of store.
fn run(script: &Script, kind: Kind, transcript: &mut Transcript) {
    let mut stage = Stage::new(kind);
    let mut lines = script.text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("> ") else {
            assert!(
                line.is_empty() || line.starts_with('#'),
                "{}: no part of a script: {line:?}",
                script.name
            );
            transcript.input(line);
            continue;
        };
        transcript.input(line);
        let mut block = Vec::new();
        while let Some(more) = lines.next_if(|line| line.starts_with('|')) {
            transcript.input(more);
            block.push(more[1..].trim_start());
        }
        while lines.next_if(|line| !line.is_empty() && !line.starts_with(['>', '#'])).is_some() {}
        println!("{line}");
        let command = expand(command);
        let printed = stage.run(Call::new(&command, block));
        let taken = printed.iter().find(|line| line.is_empty() || line.starts_with(['>', '#', '|']));
        assert!(taken.is_none(), "{}: an answer that reads as input: {taken:?}", script.name);
        if !printed.is_empty() {
            transcript.answer(printed);
        }
    }
    stage.finish();
}

/// `$text(5)` becomes `xxxxx`: scripts reach limits without unreadable lines.
fn expand(command: &str) -> String {
    let mut parts = command.split("$text(");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (length, rest) = part.split_once(')').expect("$text(length)");
        text += &"x".repeat(length.parse().expect("a length"));
        text += rest;
    }
    text
}

/// Runs the scripts of a folder, on both stores.
fn check(folder: &str) {
    let folder = format!("{}/tests/scripts/{folder}", env!("CARGO_MANIFEST_DIR"));
    golden::check(folder, |script, transcript| {
        run(script, Kind::Memory, transcript);
        if script.text.lines().any(verbs::is_for_memory_alone) {
            return;
        }
        let mut embedded = Transcript::default();
        run(script, Kind::Embedded, &mut embedded);
        let (memory, embedded) = (transcript.text(), embedded.text());
        let difference = || golden::difference(memory, embedded);
        assert!(memory == embedded, "{}: - memory, + embedded\n{}", script.name, difference());
    });
}

#[test]
fn expiry_scripts() {
    check("expiry");
}

#[test]
fn item_scripts() {
    check("items");
}

#[test]
fn collection_scripts() {
    check("collections");
}

#[test]
fn query_scripts() {
    check("queries");
}

#[test]
fn feed_scripts() {
    check("feeds");
}

#[test]
fn purge_scripts() {
    check("purge");
}

#[test]
fn rule_scripts() {
    check("rules");
}
