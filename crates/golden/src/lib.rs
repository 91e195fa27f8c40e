//! The runner of golden scripts: text files that hold questions and the answers expected to them. For tests alone.
//!
//! A script is a transcript. The caller's function reads a script, writes its input into a [`Transcript`] unchanged and
//! each answer after its question; the script passes if that gives the same text again. The caller decides what a question
//! looks like, so each folder of scripts has its own form, described where its function is.
//!
//! With `UPDATE_GOLDEN=1` in the environment the transcripts replace the files instead, for review as a difference in
//! version control. Without it a difference is printed and fails the test. A folder without scripts fails, and so does a
//! script without questions.

mod diff;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The environment variable that makes a run rewrite the files.
pub const UPDATE: &str = "UPDATE_GOLDEN";

/// A script as it is stored.
#[derive(Debug)]
pub struct Script {
    /// The name of the file without its extension.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// The transcript of a script, written while it runs.
#[derive(Debug, Default)]
pub struct Transcript {
    text: String,
    answers: usize,
}

impl Transcript {
    /// Copies a line of input.
    pub fn input(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes the answer to a question; one that has no lines is an answer as well.
    pub fn answer<L: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = L>) {
        self.answers += 1;
        for line in lines {
            self.input(line.as_ref());
        }
    }

    /// Returns what was written so far: for scripts that run in several ways that must agree.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns what distinguishes `found` from `expected`, line by line.
pub fn difference(expected: &str, found: &str) -> String {
    diff::lines(expected, found)
}

/// Runs all scripts of a folder, the files `*.txt`, in the order of their names.
///
/// # Panics
///
/// If a script does not give its own text again, asks nothing or cannot be read, and if there is none.
pub fn check(folder: impl AsRef<Path>, run: impl Fn(&Script, &mut Transcript)) {
    let outcome = examine(folder.as_ref(), env::var_os(UPDATE).is_some(), run);
    if let Err(failures) = outcome {
        panic!("\n{failures}");
    }
}

/// Runs the scripts as [`check`] does, and returns failures as text.
fn examine(folder: &Path, update: bool, run: impl Fn(&Script, &mut Transcript)) -> Result<(), String> {
    let files = files(folder)?;
    if files.is_empty() {
        return Err(format!("no scripts in {}", folder.display()));
    }
    let mut failures = String::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // Shown if the function panics.
        println!("script {}", file.display());
        let script = Script { name, text };
        let mut transcript = Transcript::default();
        run(&script, &mut transcript);
        if transcript.answers == 0 {
            let _ = writeln!(failures, "{}: asks nothing, so it cannot fail", file.display());
        } else if transcript.text == script.text {
        } else if update {
            fs::write(&file, &transcript.text).map_err(|error| format!("{}: {error}", file.display()))?;
        } else {
            let difference = difference(&script.text, &transcript.text);
            let _ = writeln!(
                failures,
                "{} (- expected, + found; {UPDATE}=1 writes what was found)\n{difference}",
                file.display()
            );
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(unreadable))
        .collect::<Result<Vec<_>, _>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of scripts that goes with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, scripts: &[(&str, &str)]) -> Folder {
            let folder = env::temp_dir().join(format!("bolide-golden-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder");
            for (name, text) in scripts {
                fs::write(folder.join(name), text).expect("a script");
            }
            Folder(folder)
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.0.join(name)).expect("a script")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A form for these tests: `> words`, and below it how many letters each word has.
    fn lengths(script: &Script, transcript: &mut Transcript) {
        let mut lines = script.text.lines().peekable();
        while let Some(line) = lines.next() {
            transcript.input(line);
            let Some(words) = line.strip_prefix("> ") else { continue };
            while lines.next_if(|line| line.starts_with(char::is_numeric)).is_some() {}
            transcript.answer(words.split(' ').map(|word| word.len().to_string()));
        }
    }

    #[test]
    fn a_script_that_gives_itself_again_holds() {
        let folder = Folder::new("holds", &[("a.txt", "# why\n\n> one three\n3\n5\n"), ("notes.md", "none")]);
        assert_eq!(examine(&folder.0, false, lengths), Ok(()));
    }

    #[test]
    fn a_difference_fails_and_is_shown() {
        let folder = Folder::new("differs", &[("a.txt", "> one three\n3\n6\n")]);
        let failures = examine(&folder.0, false, lengths).expect_err("6 is wrong");
        assert!(failures.contains("\n- 6\n+ 5\n"), "{failures}");
        assert_eq!(folder.read("a.txt"), "> one three\n3\n6\n", "nothing is written");
    }

    #[test]
    fn an_update_writes_what_was_found() {
        let folder = Folder::new("update", &[("a.txt", "> one\n"), ("b.txt", "> two\n3\n")]);
        assert_eq!(examine(&folder.0, true, lengths), Ok(()));
        assert_eq!(
            (folder.read("a.txt").as_str(), folder.read("b.txt").as_str()),
            ("> one\n3\n", "> two\n3\n")
        );
        assert_eq!(examine(&folder.0, false, lengths), Ok(()));
    }

    #[test]
    fn a_folder_without_scripts_fails() {
        let folder = Folder::new("empty", &[("readme.md", "> one\n3\n")]);
        assert!(examine(&folder.0, false, lengths).is_err());
        assert!(examine(&folder.0.join("missing"), false, lengths).is_err());
    }

    #[test]
    fn a_script_that_asks_nothing_fails_and_an_update_does_not_hide_it() {
        let folder = Folder::new("nothing", &[("a.txt", "# only words\n"), ("b.txt", "> one\n3\n")]);
        for update in [false, true] {
            let failures = examine(&folder.0, update, lengths).expect_err("no question");
            assert!(failures.contains("a.txt: asks nothing"), "{failures}");
        }
    }
}
