//! Scratch files: data of sorts and groups of MongoDB pipelines that exceed their memory.
//!
//! They are in `scratch` in the data directory, so that they use the disk whose space the operator planned. A file is
//! unlinked as soon as it is open: no other process finds it, and a crash leaves nothing to clean up. Two limits apply
//! to all files together: `mongo-scratch-space`, and the disk reserve of the store.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use engine::Engine;
use mongo::scratch::{self, Code, Error, Scratch, ScratchFile};

use crate::files::create_private_directory;

/// The directory for scratch files, and their total size limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScratchSpace {
    pub(crate) directory: PathBuf,
    pub(crate) bytes_max: u64,
}

impl ScratchSpace {
    /// Returns the space for scratch files of a store in this directory; `None` if the limit is 0.
    pub(crate) fn of(data: &Path, bytes_max: u64) -> Option<ScratchSpace> {
        (bytes_max > 0).then(|| ScratchSpace { directory: data.join("scratch"), bytes_max })
    }

    /// Creates the directory, and removes files that a crash left between creating and unlinking them.
    pub(crate) fn open(self, engine: &Arc<Engine>) -> Result<Arc<dyn Scratch>> {
        let shown = self.directory.display();
        let _ = fs::remove_dir_all(&self.directory);
        create_private_directory(&self.directory)
            .with_context(|| format!("cannot create the directory {shown}"))?;
        let used = Arc::new(AtomicU64::new(0));
        Ok(Arc::new(ScratchDirectory {
            space: self,
            engine: Arc::clone(engine),
            used,
            made: AtomicU64::new(0),
        }))
    }
}

struct ScratchDirectory {
    space: ScratchSpace,
    engine: Arc<Engine>,
    /// The bytes of all files.
    used: Arc<AtomicU64>,
    /// The number of files created, which names the next one.
    made: AtomicU64,
}

impl std::fmt::Debug for ScratchDirectory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ScratchDirectory").field("space", &self.space).finish_non_exhaustive()
    }
}

impl Scratch for ScratchDirectory {
    fn create(&self) -> scratch::Result<Box<dyn ScratchFile>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = self.space.directory.join(number.to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| failed(&path.display(), &error))?;
        fs::remove_file(&path).map_err(|error| failed(&path.display(), &error))?;
        let (engine, used) = (Arc::clone(&self.engine), Arc::clone(&self.used));
        Ok(Box::new(Unlinked { file, length: 0, used, bytes_max: self.space.bytes_max, engine }))
    }
}

/// A file without a name.
struct Unlinked {
    file: File,
    length: u64,
    used: Arc<AtomicU64>,
    bytes_max: u64,
    engine: Arc<Engine>,
}

impl ScratchFile for Unlinked {
    fn append(&mut self, bytes: &[u8]) -> scratch::Result<()> {
        let added = bytes.len() as u64;
        if self.engine.storage_stats().free_space.is_some_and(storage::FreeSpace::is_low) {
            let message = "the disk has no space for scratch files beside the reserve (disk-reserve)";
            return Err(Error::new(Code::OUT_OF_DISK_SPACE, message));
        }
        let before = self.used.fetch_add(added, Ordering::Relaxed);
        self.length += added;
        if before + added > self.bytes_max {
            let bytes_max = self.bytes_max;
            let message = format!("scratch files may take {bytes_max} bytes together (mongo-scratch-space)");
            return Err(Error::new(Code::OUT_OF_DISK_SPACE, message));
        }
        self.file.write_all(bytes).map_err(|error| failed(&"a scratch file", &error))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> scratch::Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| failed(&"a scratch file", &error))
    }
}

impl Drop for Unlinked {
    fn drop(&mut self) {
        self.used.fetch_sub(self.length, Ordering::Relaxed);
    }
}

fn failed(what: &dyn Display, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull => Code::OUT_OF_DISK_SPACE,
        _ => Code::INTERNAL_ERROR,
    };
    Error::new(code, format!("cannot use {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};

    fn space(bytes_max: u64) -> (tempfile::TempDir, Arc<dyn Scratch>) {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        let engine = Arc::new(Engine::open(store).unwrap());
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("scratch")).unwrap();
        fs::write(directory.path().join("scratch/7"), "of a crash").unwrap();
        let space = ScratchSpace::of(directory.path(), bytes_max).unwrap();
        (directory, space.open(&engine).unwrap())
    }

    #[test]
    fn files_have_no_name_and_give_their_space_back() {
        let (directory, scratch) = space(10);
        let mut first = scratch.create().unwrap();
        first.append(b"hello ").unwrap();
        first.append(b"you").unwrap();
        let mut part = [0; 3];
        first.read_at(6, &mut part).unwrap();
        assert_eq!(&part, b"you");
        assert_eq!(fs::read_dir(directory.path().join("scratch")).unwrap().count(), 0);
        let mut second = scratch.create().unwrap();
        assert_eq!(second.append(b"too").unwrap_err().code, Code::OUT_OF_DISK_SPACE);
        drop((first, second));
        scratch.create().unwrap().append(b"ten bytes.").unwrap();
        assert_eq!(ScratchSpace::of(directory.path(), 0), None);
    }
}
