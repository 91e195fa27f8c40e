//! Keeps the part of the journal that recovery cuts off after an unclean stop.
//!
//! fjall silently cuts the journal at the first record that does not parse. Most often that is the torn end of a commit
//! that was never acknowledged, sometimes it is damage. So the journal files are copied before fjall opens them and
//! compared afterwards, and the part cut off is kept. If opening fails the copies stay, and another attempt does not
//! overwrite them with what the first one left.

use super::journal::is_journal;
use crate::{Error, Result};
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The directory of copies and cut-off ends, inside the data directory.
pub(super) const DIRECTORY: &str = "rescue";
/// The file of the cut-off ends.
const DROPPED: &str = "dropped";
/// How much of a file is read at once.
const CHUNK: u64 = 1 << 20;

/// Copies of the journal files as they were before recovery.
pub(super) struct Rescue {
    directory: PathBuf,
    journals: Vec<Journal>,
}

struct Journal {
    path: PathBuf,
    copy: PathBuf,
    /// Bytes before the zeroes that fjall allocates in advance.
    length: u64,
}

/// The bytes that were cut off.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    pub(super) bytes: u64,
    pub(super) file: Option<PathBuf>,
}

impl Rescue {
    /// Copies the journal files in `path`.
    pub(super) fn prepare(path: &Path) -> Result<Self> {
        let directory = path.join(DIRECTORY);
        Self::copy(path, &directory).map_err(|error| Error::io("copy the journal before recovery", &error))
    }

    fn copy(path: &Path, directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let mut journals = Vec::new();
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            if !is_journal(&path) {
                continue;
            }
            let Some(name) = path.file_name() else { continue };
            let copy = directory.join(name);
            if !copy.exists() {
                let mut file = fs::OpenOptions::new().read(true).open(&path)?;
                let length = content_length(&mut file)?;
                file.rewind()?;
                let new = directory.join("new");
                io::copy(&mut file.take(length), &mut fs::File::create(&new)?)?;
                fs::rename(&new, &copy)?;
            }
            let length = fs::metadata(&copy)?.len();
            journals.push(Journal { path, copy, length });
        }
        Ok(Self { directory: directory.to_path_buf(), journals })
    }

    /// Removes the end of the last commit of the newest journal file.
    pub(super) fn cut_last_end(&self) -> Result<()> {
        let cut = || {
            let number = |journal: &&Journal| journal.path.file_stem()?.to_str()?.parse::<u64>().ok();
            let Some(newest) = self.journals.iter().max_by_key(number) else { return Ok(()) };
            let mut file = fs::OpenOptions::new().read(true).write(true).open(&newest.path)?;
            let length = content_length(&mut file)?;
            file.set_len(length.saturating_sub(1))?;
            file.sync_all()
        };
        cut().map_err(|error: io::Error| Error::io("cut a torn commit off the journal", &error))
    }

    /// Compares the journal with its copy, keeps the missing part and removes the copies.
    pub(super) fn finish(self) -> Result<Dropped> {
        self.compare().map_err(|error| Error::io("compare the journal after recovery", &error))
    }

    fn compare(&self) -> io::Result<Dropped> {
        let mut dropped = Dropped::default();
        let mut ends = Vec::new();
        for journal in &self.journals {
            // A sealed journal file whose content is in the tables by now has been deleted.
            let Ok(metadata) = fs::metadata(&journal.path) else { continue };
            if metadata.len() < journal.length {
                dropped.bytes += journal.length - metadata.len();
                let mut copy = fs::OpenOptions::new().read(true).open(&journal.copy)?;
                copy.seek(SeekFrom::Start(metadata.len()))?;
                copy.read_to_end(&mut ends)?;
            }
        }
        if dropped.bytes > 0 {
            let file = self.directory.join(DROPPED);
            fs::File::create(&file)?.write_all(&ends)?;
            dropped.file = Some(file);
        }
        // Also the copies left by a recovery that was killed: their journal files may be gone by now (T24).
        for entry in fs::read_dir(&self.directory)? {
            let copy = entry?.path();
            if is_journal(&copy) {
                fs::remove_file(copy)?;
            }
        }
        Ok(dropped)
    }
}

/// Removes what earlier recoveries cut off.
pub(super) fn forget(path: &Path) -> Result<()> {
    match fs::remove_file(path.join(DIRECTORY).join(DROPPED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove what a recovery cut off", &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the length of a file without trailing zeroes. A complete commit never ends with a zero.
fn content_length(file: &mut fs::File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        file.take(end - start).read_to_end(&mut chunk)?;
        if let Some(last) = chunk.iter().rposition(|&byte| byte != 0) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::content_length;
    use std::io::Write;

    #[test]
    fn the_content_ends_where_the_zeroes_begin() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(content_length(&mut file).unwrap(), 0);
        file.write_all(&[0, 0, 7, 0, 9]).unwrap();
        file.set_len(5 << 20).unwrap();
        assert_eq!(content_length(&mut file).unwrap(), 5);
    }
}
