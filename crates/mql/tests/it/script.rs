//! Golden scripts: text files of documents, questions and answers.
//!
//! Blocks stand between blank lines; lines that begin with `#` are comments.
//!
//! ```text
//! docs
//! {"_id": 1, "a": 5}
//! {"_id": 2, "a": [5, 6]}
//!
//! > ids {"a": 6}
//! [2]
//!
//! > find {"$x": 1}
//! error 2 unknown top level operator: $x. If ...
//! ```
//!
//! `docs name` sets another collection, for pipelines that look into it. A question is a verb with arguments in Extended JSON. Expected lines are Extended JSON too, one for each line of the answer,
//! and compared by value and type; or `error` with a code and the whole message. The verbs are in `verbs/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bson::{RawDocument, Value};

use crate::pipeline::Memory;
use crate::verbs;

/// What one answer is: values, or an error.
pub(crate) type Answer = mql::Result<Vec<Value>>;

/// What a script has set up so far.
#[derive(Default)]
pub(crate) struct State {
    /// The documents of the last `docs` block.
    pub(crate) documents: Vec<RawDocument>,
    /// The collections of `docs name` blocks, and what pipelines wrote.
    pub(crate) memory: Memory,
}

struct Block<'t> {
    line: usize,
    head: &'t str,
    rest: Vec<&'t str>,
}

/// Runs all scripts of an area; fails with everything that is not as expected.
pub(crate) fn run(area: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(area);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut cases, mut failures) = (0, String::new());
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "txt")) {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut state = State::default();
        for block in blocks(&text) {
            cases += usize::from(block.head.starts_with('>'));
            if let Err(failure) = run_block(&mut state, &block) {
                let _ = writeln!(failures, "{}:{}: {}\n{failure}", name.display(), block.line, block.head);
            }
        }
    }
    assert!(cases > 0, "no cases in {}", directory.display());
    assert!(failures.is_empty(), "\n{failures}");
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        match &mut open {
            _ if line.starts_with('#') => {}
            _ if line.is_empty() => blocks.extend(open.take()),
            // A question may follow an answer without a blank line between.
            Some(block) if !line.starts_with('>') => block.rest.push(line),
            _ => {
                blocks.extend(open.take());
                open = Some(Block { line: number + 1, head: line, rest: Vec::new() });
            }
        }
    }
    blocks.extend(open);
    blocks
}

fn run_block(state: &mut State, block: &Block<'_>) -> Result<(), String> {
    if block.head == "docs" || block.head.starts_with("docs ") {
        let document = |line: &&str| match parse(line)?.as_slice() {
            [Value::Document(document)] => Ok(RawDocument::from_document(document)),
            _ => Err(format!("not one document: {line}")),
        };
        let documents: Vec<RawDocument> = block.rest.iter().map(document).collect::<Result<_, String>>()?;
        match block.head.strip_prefix("docs ") {
            Some(name) => drop(state.memory.collections.insert(name.to_owned(), documents)),
            None => state.documents = documents,
        }
        return Ok(());
    }
    let question = block.head.strip_prefix("> ").ok_or("neither docs nor a question")?;
    let (verb, arguments) = question.split_once(' ').unwrap_or((question, ""));
    let (_, answer) = verbs::VERBS.iter().find(|(name, _)| *name == verb).ok_or("no such verb")?;
    let expected = match block.rest.first().and_then(|line| line.strip_prefix("error ")) {
        Some(error) => vec![format!("error {error}")],
        None => lines(&block.rest.iter().map(|line| parse(line)).collect::<Result<Vec<_>, _>>()?.concat()),
    };
    let actual = match answer(state, &parse(arguments)?) {
        Ok(values) => lines(&values),
        Err(error) => vec![format!("error {} {}", error.code.0, error.message)],
    };
    if actual == expected {
        return Ok(());
    }
    Err(format!("  expected {}\n  actual   {}", expected.join("\n           "), actual.join("\n           ")))
}

fn lines(values: &[Value]) -> Vec<String> {
    values.iter().map(|value| bson::to_extended_json(value.view(), false)).collect()
}

/// Reads values that stand one after another.
fn parse(text: &str) -> Result<Vec<Value>, String> {
    let mut values = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (value, after) = rest.split_at(value_end(rest));
        values.push(bson::parse_extended_json(value).map_err(|error| format!("{error}: {value}"))?);
        rest = after.trim_start();
    }
    Ok(values)
}

/// Where the first value of a text ends.
fn value_end(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ' ' if depth == 0 => return at,
            _ => continue,
        }
        if depth == 0 && !quoted && !escaped {
            return at + letter.len_utf8();
        }
    }
    text.len()
}
