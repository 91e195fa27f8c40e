//! Runs the README, the guides and the pages of docs as a reader would paste them, from top to bottom, each page in an
//! empty folder that is also the reader's home.
//!
//! | block | what happens |
//! |---|---|
//! | `sh` that begins with `bolide serve` or `cargo run --release -- serve` | a server is started so, in place of the page's last one |
//! | `sh` | bash runs it; it must succeed |
//! | `python`, `js` | the interpreter runs it; it must succeed |
//! | `go` | `go run` with the modules that `compat/go` pins, where the toolchain is there; it must succeed |
//! | `text` after one of them | what it must print; `…` stands for anything |
//! | any other | for the reader only: `console` is what a reader pastes and the tour does not, such as what fetches packages |
//!
//! The tour changes only addresses: pages have 127.0.0.1:8081 and 127.0.0.1:10255, the tour takes free ports.
//! `compat/explorer/readme.test.js` takes the README's steps in the browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::go;
use crate::paths;
use crate::process;
use crate::report::{self, Outcome};
use crate::server::{self, Server};

const ADDRESS: &str = "127.0.0.1:8081";
const MONGO_ADDRESS: &str = "127.0.0.1:10255";
const TIMEOUT: Duration = Duration::from_mins(2);

/// The commands by which pages start a server: the reader has built it, or installed it.
const STARTS: [&str; 2] = ["cargo run --release -- serve", "bolide serve"];

/// A fenced block of a page.
struct Block {
    language: String,
    text: String,
    line: usize,
}

/// Runs every page.
pub(crate) fn run(binary: &PathBuf, python: &Path, mongo_python: &Path) -> Result<Outcome> {
    let tools = Tools { binary, python, more_packages: packages_of(mongo_python)? };
    let readme = blocks(&fs::read_to_string(paths::root().join("README.md"))?);
    for language in ["python", "js"] {
        let is_there = readme.iter().any(|block| block.language == language);
        ensure!(is_there, "the README's tour has lost its {language}");
    }
    let (mut ran, mut pages) = (0, 0);
    for page in &pages_for_readers() {
        let blocks = PageRun::new(page, &tools)?.walk()?;
        ran += blocks;
        pages += u32::from(blocks > 0);
    }
    Ok(Outcome::Passed(format!("{ran} blocks of {pages} pages")))
}

/// Returns the README, the guides, and the pages beside them; not the records of decisions and measurements.
fn pages_for_readers() -> Vec<PathBuf> {
    let docs = paths::root().join("docs");
    let folders = [docs.clone(), docs.join("guides")];
    let mut pages = paths::files(&docs, &["md"]);
    pages.retain(|page| page.parent().is_some_and(|folder| folders.iter().any(|wanted| wanted == folder)));
    pages.insert(0, paths::root().join("README.md"));
    pages
}

/// The tools that readers have installed.
struct Tools<'a> {
    binary: &'a PathBuf,
    /// An interpreter with the Cosmos SDK.
    python: &'a Path,
    /// The folder of `PyMongo`, which that interpreter does not have.
    more_packages: PathBuf,
}

/// Returns the packages of a virtual environment.
fn packages_of(python: &Path) -> Result<PathBuf> {
    let library = python.ancestors().nth(2).expect("an interpreter lies in bin/").join("lib");
    let versions = fs::read_dir(&library).with_context(|| library.display().to_string())?;
    let found = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages")))
        .find(|path| path.is_dir());
    found.with_context(|| format!("no packages below {}", library.display()))
}

/// The run of one page.
struct PageRun<'a> {
    page: String,
    blocks: Vec<Block>,
    tools: &'a Tools<'a>,
    /// The working folder of this page's reader.
    folder: PathBuf,
    server: Option<Server>,
}

impl<'a> PageRun<'a> {
    fn new(page: &Path, tools: &'a Tools<'a>) -> Result<PageRun<'a>> {
        let text = fs::read_to_string(page).with_context(|| paths::shown(page))?;
        let name = paths::shown(page).replace(['/', '.'], "-");
        // Below the suite's folder, so that JavaScript finds its packages.
        let folder = paths::compat("js").join("node_modules/.tour").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(PageRun { page: paths::shown(page), blocks: blocks(&text), tools, folder, server: None })
    }

    fn walk(mut self) -> Result<u32> {
        let blocks = std::mem::take(&mut self.blocks);
        let mut ran = 0;
        for (index, block) in blocks.iter().enumerate() {
            let here = format!("{}:{}", self.page, block.line);
            if let Some(arguments) = served(block) {
                let arguments: Vec<&str> = arguments.split_whitespace().collect();
                self.stop_server()?;
                let server = Server::start_in(self.tools.binary, &self.folder, &arguments);
                let server = self.server.insert(server.with_context(|| here.clone())?);
                let printed = server.announcement().to_owned();
                self.compare(&here, &printed, blocks.get(index + 1))?;
            } else if let Some(mut command) = self.interpreter(block)? {
                let finished = process::run_quietly(&mut command, TIMEOUT)?;
                ensure!(finished.success, "{here}: the block fails:\n{}", finished.output);
                self.compare(&here, &finished.output, blocks.get(index + 1))?;
            } else {
                continue;
            }
            report::show(&format!("{here}: {} does what the page says", block.language));
            ran += 1;
        }
        self.stop_server()?;
        Ok(ran)
    }

    fn stop_server(&mut self) -> Result<()> {
        self.server.take().map_or(Ok(()), Server::stop)
    }

    /// Returns the command that runs a block; none if no command does.
    fn interpreter(&self, block: &Block) -> Result<Option<Command>> {
        if block.language == "go" {
            return self.go_program(block);
        }
        let (program, file) = match block.language.as_str() {
            "sh" => (PathBuf::from("bash"), "block.sh"),
            "python" => (self.tools.python.to_path_buf(), "block.py"),
            "js" => (PathBuf::from("node"), "block.mjs"),
            _ => return Ok(None),
        };
        let mut command = Command::new(program);
        server::without_settings(&mut command);
        command
            .current_dir(&self.folder)
            .env("PATH", self.search_path()?)
            .env("HOME", &self.folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", &self.tools.more_packages);
        if block.language == "sh" {
            command.args(["-euo", "pipefail"]);
        }
        if let Some(server) = &self.server {
            command.env("BOLIDE_URL", format!("http://{}", server.address()));
        }
        fs::write(self.folder.join(file), self.with_addresses(&block.text))?;
        command.arg(file);
        Ok(Some(command))
    }

    /// Returns a command that runs a Go program of a page, with the modules of our suites and the caches of the machine.
    fn go_program(&self, block: &Block) -> Result<Option<Command>> {
        if !process::available("go") {
            return Ok(None);
        }
        let file = self.folder.join("block.go");
        fs::write(&file, self.with_addresses(&block.text))?;
        let mut command = go::command(&paths::compat("go"));
        server::without_settings(&mut command);
        command.arg("run").arg(file);
        Ok(Some(command))
    }

    /// Returns the page's text with the addresses of the running server.
    fn with_addresses(&self, text: &str) -> String {
        let Some(server) = &self.server else { return text.to_owned() };
        let mongo = format!("127.0.0.1:{}", server.mongo_port());
        text.replace(ADDRESS, &server.address()).replace(MONGO_ADDRESS, &mongo)
    }

    /// Compares the output with the page, if the page has one.
    fn compare(&self, here: &str, printed: &str, next: Option<&Block>) -> Result<()> {
        let Some(expected) = next.filter(|next| next.language == "text") else { return Ok(()) };
        let expected = self.with_addresses(&expected.text);
        ensure!(
            is_like(printed.trim(), expected.trim()),
            "{here}: the block prints\n{printed}\nbut the page says\n{expected}"
        );
        Ok(())
    }

    /// Returns a search path with the server's own commands, the interpreters and the shell of MongoDB before everything
    /// else.
    fn search_path(&self) -> Result<String> {
        let own = paths::cache().join("tour-bin");
        fs::create_dir_all(&own)?;
        let link = own.join("bolide");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(self.tools.binary, &link)?;
        let python = self.tools.python.parent().expect("the interpreter lies in a folder");
        let shells = paths::compat("mongo/js").join("node_modules/.bin");
        let path = std::env::var("PATH").unwrap_or_default();
        Ok(format!("{}:{}:{}:{path}", own.display(), python.display(), shells.display()))
    }
}

/// Returns the arguments after `serve`, if the block starts a server.
fn served(block: &Block) -> Option<&str> {
    let rest = STARTS.iter().find_map(|start| block.text.strip_prefix(start))?;
    (block.language == "sh").then(|| rest.lines().next().unwrap_or(""))
}

/// Returns `true` if a text matches the pattern, in which `…` stands for anything.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
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

    #[test]
    fn dots_stand_for_anything() {
        for (text, pattern, like) in [
            ("a b c", "a b c", true),
            ("a b c", "a … c", true),
            ("a\nb\nc", "a\n…", true),
            ("a b c", "…", true),
            ("a b c d", "a … c", false),
            ("b", "a", false),
            ("ab", "a", false),
            ("x 1 y 2 z", "x … y … z", true),
        ] {
            assert_eq!(is_like(text, pattern), like, "{text:?} {pattern:?}");
        }
    }

    #[test]
    fn a_block_that_starts_a_server_is_known_by_its_first_words() {
        let block =
            |language: &str, text: &str| Block { language: language.into(), text: text.into(), line: 1 };
        for (language, text, arguments) in [
            ("sh", "bolide serve --memory\n", Some(" --memory")),
            ("sh", "cargo run --release -- serve --test-clock\n", Some(" --test-clock")),
            ("text", "bolide serve\n", None),
            ("sh", "bolide status\n", None),
        ] {
            assert_eq!(served(&block(language, text)), arguments, "{text}");
        }
    }
}
