//! The progress of an export or import, recorded beside its file after each page.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use document::{Object, Value};

use crate::files::create_private;

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Export,
    Import,
}

impl Direction {
    fn word(self) -> &'static str {
        match self {
            Direction::Export => "export",
            Direction::Import => "import",
        }
    }
}

/// The progress of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The server's continuation token; exports only.
    pub(crate) token: Option<String>,
    /// Bytes of the file that are done: as stored for an export, decompressed for an import.
    pub(crate) bytes: u64,
    /// Lines done, imports only.
    pub(crate) lines: u64,
    /// Items transferred.
    pub(crate) items: u64,
    /// Items refused.
    pub(crate) failed: u64,
}

/// The progress file of a transfer.
#[derive(Debug)]
pub(crate) struct ProgressFile {
    path: PathBuf,
    direction: Direction,
    /// Source and target of the transfer: progress of another one is not accepted.
    subject: String,
}

impl ProgressFile {
    pub(crate) fn new(file: &Path, direction: Direction, subject: String) -> ProgressFile {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".progress");
        ProgressFile { path: file.with_file_name(name), direction, subject }
    }

    /// Returns whether there is any progress.
    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Reads the progress, if there is any. It must be about the same transfer.
    pub(crate) fn read(&self) -> Result<Option<Progress>> {
        let shown = self.path.display();
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read '{shown}'")),
        };
        let noted =
            document::parse_json(&text).with_context(|| format!("'{shown}' is damaged: delete it"))?;
        let text = |name| noted.get(name).and_then(Value::as_str);
        let number = |name| noted.get(name).and_then(Value::as_i64).map_or(0, i64::unsigned_abs);
        match (text("way"), self.direction) {
            (Some("export"), Direction::Import) => bail!(
                "the export of this file was interrupted ('{shown}'): finish it with bolide export --resume"
            ),
            (Some(direction), _) if direction != self.direction.word() => {
                bail!("'{shown}' is the note of an {direction}: delete it if that is over")
            }
            _ => {}
        }
        if text("subject") != Some(&self.subject) {
            let other = text("subject").unwrap_or("something else");
            bail!("'{shown}' is about {other}, and not about {}: delete it to start over", self.subject);
        }
        Ok(Some(Progress {
            token: text("token").map(str::to_owned),
            bytes: number("bytes"),
            lines: number("lines"),
            items: number("items"),
            failed: number("failed"),
        }))
    }

    /// Records the progress atomically.
    pub(crate) fn write(&self, progress: &Progress) -> Result<()> {
        let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let mut progress_file = Object::new();
        progress_file.insert("way", self.direction.word());
        progress_file.insert("subject", self.subject.as_str());
        if let Some(token) = &progress.token {
            progress_file.insert("token", token.as_str());
        }
        progress_file.insert("bytes", number(progress.bytes));
        progress_file.insert("lines", number(progress.lines));
        progress_file.insert("items", number(progress.items));
        progress_file.insert("failed", number(progress.failed));
        let text = Value::Object(progress_file).to_json() + "\n";
        let aside = self.path.with_extension("progress-new");
        let write = || -> std::io::Result<()> {
            let mut file = create_private(&aside)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            fs::rename(&aside, &self.path)
        };
        write().with_context(|| format!("cannot record the progress in '{}'", self.path.display()))
    }

    /// Removes the file after the transfer is complete.
    pub(crate) fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove '{}'", self.path.display()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_taken_for_the_same_thing_only() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("orders.jsonl");
        let progress_file =
            |direction, subject: &str| ProgressFile::new(&file, direction, subject.to_owned());
        let export = progress_file(Direction::Export, "db/c of http://h");
        assert_eq!(export.read().unwrap(), None);
        let progress = Progress { token: Some("1.2".to_owned()), bytes: 7, lines: 3, items: 2, failed: 1 };
        export.write(&progress).unwrap();
        assert_eq!(export.read().unwrap(), Some(progress));
        let refusal = |progress_file: ProgressFile| progress_file.read().unwrap_err().to_string();
        assert!(refusal(progress_file(Direction::Export, "db/d of http://h")).contains("db/c of"));
        assert!(refusal(progress_file(Direction::Import, "db/c of http://h")).contains("export --resume"));
        export.remove().unwrap();
        export.remove().unwrap();
        assert_eq!(export.read().unwrap(), None);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
