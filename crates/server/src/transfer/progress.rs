//! How far an export or import has come, written down beside its file after each page.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use document::{Object, Value};

use crate::files::create_private;

/// Which way items go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Export,
    Import,
}

impl Way {
    fn word(self) -> &'static str {
        match self {
            Way::Export => "export",
            Way::Import => "import",
        }
    }
}

/// How far one file has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Where the server goes on; exports only.
    pub(crate) token: Option<String>,
    /// Bytes of the file that are dealt with: as they lie there for an export, unpacked for an import.
    pub(crate) bytes: u64,
    /// Lines of it, imports only.
    pub(crate) lines: u64,
    /// Items that came across.
    pub(crate) items: u64,
    /// Items that were refused.
    pub(crate) failed: u64,
}

/// The note of a file's progress.
#[derive(Debug)]
pub(crate) struct Note {
    path: PathBuf,
    way: Way,
    /// What is exported or imported, from where to where: a note for something else is not taken.
    subject: String,
}

impl Note {
    pub(crate) fn new(file: &Path, way: Way, subject: String) -> Note {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(".progress");
        Note { path: file.with_file_name(name), way, subject }
    }

    /// Whether anything was noted.
    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// What was noted, if anything was. It must be about the same thing.
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
        match (text("way"), self.way) {
            (Some("export"), Way::Import) => bail!(
                "the export of this file was interrupted ('{shown}'): finish it with bolide export --resume"
            ),
            (Some(way), _) if way != self.way.word() => {
                bail!("'{shown}' is the note of an {way}: delete it if that is over")
            }
            _ => {}
        }
        if text("subject") != Some(&self.subject) {
            let other = text("subject").unwrap_or("something else");
            bail!("'{shown}' is about {other}, and not about {}: delete it to begin anew", self.subject);
        }
        Ok(Some(Progress {
            token: text("token").map(str::to_owned),
            bytes: number("bytes"),
            lines: number("lines"),
            items: number("items"),
            failed: number("failed"),
        }))
    }

    /// Notes progress: whole or not at all, whatever happens meanwhile.
    pub(crate) fn write(&self, progress: &Progress) -> Result<()> {
        let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let mut note = Object::new();
        note.insert("way", self.way.word());
        note.insert("subject", self.subject.as_str());
        if let Some(token) = &progress.token {
            note.insert("token", token.as_str());
        }
        note.insert("bytes", number(progress.bytes));
        note.insert("lines", number(progress.lines));
        note.insert("items", number(progress.items));
        note.insert("failed", number(progress.failed));
        let text = Value::Object(note).to_json() + "\n";
        let aside = self.path.with_extension("progress-new");
        let write = || -> std::io::Result<()> {
            let mut file = create_private(&aside)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            fs::rename(&aside, &self.path)
        };
        write().with_context(|| format!("cannot note the progress in '{}'", self.path.display()))
    }

    /// It is done: nothing is left to be noted.
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
        let note = |way, subject: &str| Note::new(&file, way, subject.to_owned());
        let export = note(Way::Export, "db/c of http://h");
        assert_eq!(export.read().unwrap(), None);
        let progress = Progress { token: Some("1.2".to_owned()), bytes: 7, lines: 3, items: 2, failed: 1 };
        export.write(&progress).unwrap();
        assert_eq!(export.read().unwrap(), Some(progress));
        let refusal = |note: Note| note.read().unwrap_err().to_string();
        assert!(refusal(note(Way::Export, "db/d of http://h")).contains("db/c of"));
        assert!(refusal(note(Way::Import, "db/c of http://h")).contains("export --resume"));
        export.remove().unwrap();
        export.remove().unwrap();
        assert_eq!(export.read().unwrap(), None);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
