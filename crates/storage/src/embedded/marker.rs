//! The marker beside the data: the format, whether the store was closed cleanly, and how many commits are known to be
//! in it.
//!
//! fjall ends recovery silently at the first journal record that does not parse. So the number of commits known to be
//! durable is kept in a file of its own, raised with a renewal of the clock's lease every few seconds under load (never
//! when idle) and on close: a recovery that finds fewer commits has lost some, and reports it.
//!
//! A text file, so that an operator can read it: `bolide store 1`, `commit 4711`, and `clean`, `open` or `making`, each
//! on a line.

use crate::record::{FORMAT, READABLE};
use crate::{Error, Result};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

pub(super) const FILE: &str = "bolide.store";
const NEW_FILE: &str = "bolide.store.new";
/// Longer than any valid marker; more is not read.
const MAX_BYTES: u64 = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    /// At least this many commits are in the store; exactly as many if it is clean.
    pub(super) commit: u64,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Clean,
    Open,
    /// The store's files are being created: nothing was ever written to it, and what exists of them can be removed.
    Making,
}

impl State {
    const ALL: [Self; 3] = [Self::Clean, Self::Open, Self::Making];

    fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Open => "open",
            Self::Making => "making",
        }
    }
}

impl Marker {
    /// Reads the marker in `directory`; `None` if there is none.
    pub(super) fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE);
        let length = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("look at the store's marker", &error)),
        };
        if length > MAX_BYTES {
            return Err(unreadable());
        }
        let text = fs::read(&path).map_err(|error| Error::io("read the store's marker", &error))?;
        Self::parse(std::str::from_utf8(&text).map_err(|_| unreadable())?).map(Some)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let found = lines.next().and_then(|line| line.strip_prefix("bolide store ")?.parse().ok());
        let found: u32 = found.ok_or_else(unreadable)?;
        if !READABLE.contains(&found) {
            return Err(Error::Unsupported { found, supported: FORMAT });
        }
        let commit = lines.next().and_then(|line| line.strip_prefix("commit ")?.parse().ok());
        let state = lines.next().and_then(|name| State::ALL.into_iter().find(|state| state.name() == name));
        Ok(Self { commit: commit.ok_or_else(unreadable)?, state: state.ok_or_else(unreadable)? })
    }

    /// Replaces the marker in `directory`: after a crash either this one or the previous one is there.
    pub(super) fn write(self, directory: &Path) -> Result<()> {
        let text = format!("bolide store {FORMAT}\ncommit {}\n{}\n", self.commit, self.state.name());
        let new = directory.join(NEW_FILE);
        let write = || {
            let mut file = fs::File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, directory.join(FILE))?;
            super::database::sync_directory(directory)
        };
        write().map_err(|error| Error::io("write the store's marker", &error))
    }
}

fn unreadable() -> Error {
    Error::Corrupt { what: format!("{FILE} is unreadable") }
}

#[cfg(test)]
mod tests {
    use super::{FILE, FORMAT, Marker, State};
    use crate::Error;

    #[test]
    fn a_marker_reads_back_as_written() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Marker::read(directory.path()), Ok(None));
        for state in State::ALL {
            let marker = Marker { commit: 4711, state };
            marker.write(directory.path()).unwrap();
            assert_eq!(Marker::read(directory.path()), Ok(Some(marker)));
        }
    }

    #[test]
    fn unreadable_and_foreign_markers_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let long = "bolide store 1\ncommit 1\nclean\n".repeat(50);
        for text in [
            "",
            "bolide store 1\n",
            "bolide store 1\ncommit x\nclean\n",
            "bolide store 1\ncommit 1\n?\n",
            &long,
        ] {
            std::fs::write(directory.path().join(FILE), text).unwrap();
            assert!(matches!(Marker::read(directory.path()), Err(Error::Corrupt { .. })), "{text:?}");
        }
        std::fs::write(directory.path().join(FILE), format!("bolide store {}\n", FORMAT + 1)).unwrap();
        let refused = Err(Error::Unsupported { found: FORMAT + 1, supported: FORMAT });
        assert_eq!(Marker::read(directory.path()), refused);
    }
}
