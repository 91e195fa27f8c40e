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
//! `docs name` sets another collection, for pipelines that look into it. A question is a verb with arguments in Extended JSON.
//! Expected lines are Extended JSON too, one for each line of the answer, and compared by value and type; or `error` with a
//! code and the whole message. The verbs are in `verbs/`. `UPDATE_GOLDEN=1 cargo test` writes what was found into the files.

use std::iter::Peekable;
use std::str::Lines;

use bson::{RawDocument, Value};
use golden::Transcript;

use crate::pipeline::Memory;
use crate::verbs;

/// What one answer is: values, or an error.
pub(crate) type Answer = mql::Result<Vec<Value>>;

/// The state that a script has set up so far.
#[derive(Default)]
pub(crate) struct State {
    /// The documents of the last `docs` block.
    pub(crate) documents: Vec<RawDocument>,
    /// The collections of `docs name` blocks, and those that pipelines wrote.
    pub(crate) memory: Memory,
}

/// Runs all scripts of an area.
pub(crate) fn run(area: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    golden::check(format!("{folder}/{area}"), |script, transcript| run_script(&script.text, transcript));
}

fn run_script(text: &str, transcript: &mut Transcript) {
    let mut state = State::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        transcript.input(line);
        if line == "docs" || line.starts_with("docs ") {
            let documents = rest_of_block(&mut lines);
            for line in &documents {
                transcript.input(line);
            }
            state.set_documents(line.strip_prefix("docs "), &documents);
        } else if let Some(question) = line.strip_prefix("> ") {
            let expected = rest_of_block(&mut lines);
            let found = state.ask(question);
            // Values may be written in several ways: a line with an equal value stays as it is.
            let holds = normal(&expected).is_ok_and(|expected| expected == found);
            transcript.answer(if holds { expected.iter().map(ToString::to_string).collect() } else { found });
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "no part of a script: {line:?}");
        }
    }
}

/// The lines up to the next empty one or the next question.
fn rest_of_block<'t>(lines: &mut Peekable<Lines<'t>>) -> Vec<&'t str> {
    let mut rest = Vec::new();
    while let Some(line) = lines.next_if(|line| !line.is_empty() && !line.starts_with('>')) {
        rest.push(line);
    }
    rest
}

/// Returns expected lines in the form of an answer.
fn normal(expected: &[&str]) -> Result<Vec<String>, String> {
    let expected: Vec<_> = expected.iter().filter(|line| !line.starts_with('#')).collect();
    match expected.first() {
        Some(error) if error.starts_with("error ") => Ok(vec![(**error).to_owned()]),
        _ => Ok(lines(&expected.iter().map(|line| parse(line)).collect::<Result<Vec<_>, _>>()?.concat())),
    }
}

impl State {
    fn set_documents(&mut self, name: Option<&str>, lines: &[&str]) {
        let document = |line: &&str| match parse(line).unwrap().as_slice() {
            [Value::Document(document)] => RawDocument::from_document(document),
            _ => panic!("not one document: {line}"),
        };
        let documents = lines.iter().filter(|line| !line.starts_with('#')).map(document).collect();
        match name {
            Some(name) => drop(self.memory.collections.insert(name.to_owned(), documents)),
            None => self.documents = documents,
        }
    }

    fn ask(&mut self, question: &str) -> Vec<String> {
        let (verb, arguments) = question.split_once(' ').unwrap_or((question, ""));
        let known = verbs::VERBS.iter().find(|(name, _)| *name == verb);
        let (_, answer) = known.unwrap_or_else(|| panic!("no such verb: {question}"));
        match answer(self, &parse(arguments).unwrap()) {
            Ok(values) => lines(&values),
            Err(error) => vec![format!("error {} {}", error.code.0, error.message)],
        }
    }
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

/// Returns where the first value of a text ends.
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
