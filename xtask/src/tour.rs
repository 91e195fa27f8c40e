//! The README's tour, run as a reader would paste it: each code block in Python or JavaScript must print exactly the
//! `text` block that follows it.
//!
//! Only the address is changed: the README says 127.0.0.1:8081, the test uses a free port.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::paths;
use crate::process;
use crate::report::Outcome;
use crate::server::Server;

const ADDRESS: &str = "127.0.0.1:8081";
const TIMEOUT: Duration = Duration::from_mins(2);

/// A fenced block of the README.
struct Block {
    language: String,
    text: String,
    line: usize,
}

pub(crate) fn run(binary: &PathBuf, python: &Path) -> Result<Outcome> {
    let readme = fs::read_to_string(paths::root().join("README.md")).context("README.md")?;
    let blocks = blocks(&readme);
    let mut ran = 0;
    for (index, block) in blocks.iter().enumerate() {
        let Some(mut command) = interpreter(&block.language, python) else { continue };
        let expected = blocks.get(index + 1).filter(|next| next.language == "text");
        let Some(expected) = expected else {
            bail!("README.md:{}: the block is not followed by the text it prints", block.line);
        };
        let server = Server::start(binary)?;
        let program = write(block, &server.address())?;
        let finished = process::run_quietly(command.arg(&program), TIMEOUT)?;
        server.stop()?;
        ensure!(finished.success, "README.md:{}: the block fails:\n{}", block.line, finished.output);
        ensure!(
            finished.output.trim() == expected.text.trim(),
            "README.md:{}: the block prints\n{}\nbut the README says\n{}",
            block.line,
            finished.output,
            expected.text
        );
        println!("README.md:{}: {} prints what the README says", block.line, block.language);
        ran += 1;
    }
    ensure!(ran >= 2, "the README's tour has lost its code");
    Ok(Outcome::Passed(format!("{ran} blocks")))
}

fn interpreter(language: &str, python: &Path) -> Option<Command> {
    match language {
        "python" => {
            let mut command = Command::new(python);
            command.arg("-B");
            Some(command)
        }
        "js" => Some(Command::new("node")),
        _ => None,
    }
}

/// Writes the block where its imports resolve.
fn write(block: &Block, address: &str) -> Result<PathBuf> {
    let (folder, name) = match block.language.as_str() {
        "python" => (paths::cache().join("tour"), "tour.py"),
        _ => (paths::compat("js").join("node_modules/.tour"), "tour.mjs"),
    };
    fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    fs::write(&path, block.text.replace(ADDRESS, address))?;
    Ok(path)
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in markdown.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            open = !open;
            if open {
                found.push(Block { language: language.to_owned(), text: String::new(), line: number + 1 });
            }
        } else if open && let Some(block) = found.last_mut() {
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_language_text_and_line() {
        let found = blocks("a\n```python\nx = 1\n```\nb\n```text\nout\n```\n");
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].language.as_str(), found[0].text.as_str(), found[0].line),
            ("python", "x = 1\n", 2)
        );
        assert_eq!(found[1].text, "out\n");
    }
}
