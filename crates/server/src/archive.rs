//! Archives as directories of JSON lines (T32): `root/name/2026-11-15-0001.jsonl`, one file after the other for each day.
//!
//! A file ends when its day is over or when it is large. Synced lines are never modified. The remains of a failed or
//! interrupted append after the last complete line are cut off before the next one: its items are archived again.
//!
//! Operators may move files away at any time. Lines written to a file without a name would be lost, so an append checks
//! that its file still has its name, and fails if not. The next file gets another name, so that it can be put beside
//! the ones moved away.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use engine::{Archive, ArchiveDirectory, ArchiveError};
use parking_lot::Mutex;
use storage::Time;

use crate::files::{create_private_directory, private, warn_if_public};

/// The size from which a file gets no more lines.
const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// How much is read at a time to find the last complete line.
const CHUNK_BYTES: u64 = 64 * 1024;

/// The largest file number; a file with a higher one does not belong to the archive.
const NUMBER_MAX: u32 = 1_000_000;

const EXTENSION: &str = "jsonl";

/// The lock file in the root, held by the server that writes there. No archive directory can have this name.
const LOCK: &str = ".lock";

/// How often the lock is tried, and the pause between attempts.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Makes the names in a directory durable.
type SyncDirectory = fn(&Path) -> io::Result<()>;

/// An archive in directories below one root.
pub(crate) struct DirectoryArchive {
    root: PathBuf,
    file_bytes: u64,
    sync_directory: SyncDirectory,
    /// The file of each directory that was opened last, whether it still exists or not. An append holds the lock of its
    /// directory only, so that no other directory waits for a slow disk.
    opened: Mutex<BTreeMap<ArchiveDirectory, Arc<Mutex<Option<Name>>>>>,
    /// Two servers would cut off each other's lines.
    _lock: File,
}

/// The file that lines are appended to.
struct Current {
    file: File,
    path: PathBuf,
    name: Name,
    /// The offset after the last complete line.
    length: u64,
}

/// The name of a file, `2026-11-15-0001.jsonl`. Names sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    day: String,
    number: u32,
}

impl Name {
    fn parse(name: &str) -> Option<Name> {
        let (day, number) = name.strip_suffix(EXTENSION)?.strip_suffix('.')?.rsplit_once('-')?;
        let is_day = day.len() == 10 && day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let number = number.parse().ok().filter(|number| *number <= NUMBER_MAX)?;
        is_day.then_some(Name { day: day.to_owned(), number })
    }

    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}-{:04}.{EXTENSION}", self.day, self.number))
    }
}

impl DirectoryArchive {
    /// Opens the root, creating it if necessary. Root and data directory must not contain each other.
    pub(crate) fn open(root: &Path, data: Option<&Path>) -> Result<DirectoryArchive> {
        let folder = || format!("cannot use the archive root '{}'", root.display());
        let data = data.map(resolved).transpose().context("cannot find the data directory")?;
        let wanted = resolved(root).with_context(folder)?;
        if let Some(data) = data {
            if wanted.starts_with(&data) {
                bail!("the archive root '{}' lies in the data directory", wanted.display());
            }
            if data.starts_with(&wanted) {
                bail!("the data directory lies in the archive root '{}'", wanted.display());
            }
        }
        create_private_directory(&wanted).with_context(folder)?;
        warn_if_public("archive root", &wanted);
        if let Some(parent) = wanted.parent() {
            sync_directory(parent).or_else(forgive_unreadable).with_context(folder)?;
        }
        let lock = lock(&wanted).with_context(folder)?;
        let opened = Mutex::default();
        Ok(DirectoryArchive { root: wanted, file_bytes: FILE_BYTES, sync_directory, opened, _lock: lock })
    }

    fn append(&self, directory: &ArchiveDirectory, at: Time, lines: &[u8]) -> io::Result<()> {
        let of_directory = Arc::clone(self.opened.lock().entry(directory.clone()).or_default());
        let mut opened = of_directory.lock();
        let mut current = self.open_file(directory, day_of(at), opened.as_ref())?;
        *opened = Some(current.name.clone());
        current.append(lines).map_err(|error| named(&current.path, &error))
    }

    /// Opens the last file of the day if it has space, otherwise a new one.
    fn open_file(
        &self,
        directory: &ArchiveDirectory,
        day: String,
        opened: Option<&Name>,
    ) -> io::Result<Current> {
        let folder = self.root.join(directory.as_str());
        if !folder.is_dir() {
            create_private_directory(&folder).map_err(|error| named(&folder, &error))?;
        }
        let mut name = match opened {
            Some(opened) if opened.day == day && opened.path(&folder).exists() => opened.clone(),
            _ => first_name(&folder, day, opened)?,
        };
        loop {
            let path = name.path(&folder);
            let file = private().read(true).append(true).create(true).open(&path);
            let mut file = file.map_err(|error| named(&path, &error))?;
            let length = cut_to_whole_lines(&mut file).map_err(|error| named(&path, &error))?;
            if length < self.file_bytes {
                // Every time: an earlier attempt may have created the names and failed to make them durable.
                (self.sync_directory)(&folder).map_err(|error| named(&folder, &error))?;
                (self.sync_directory)(&self.root).map_err(|error| named(&self.root, &error))?;
                return Ok(Current { file, path, name, length });
            }
            name.number += 1;
        }
    }
}

impl Current {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(lines).and_then(|()| self.file.sync_all()) {
            // The next attempt cuts it off otherwise.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        if self.file.metadata()?.len() != self.length + lines.len() as u64 {
            return Err(io::Error::other("another process has written to it"));
        }
        if !self.is_in_place()? {
            return Err(io::Error::other("it was moved away while lines were written to it"));
        }
        Ok(())
    }

    /// Returns whether the file still has its name.
    fn is_in_place(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Archive for DirectoryArchive {
    fn append(&self, directory: &ArchiveDirectory, at: Time, lines: &[u8]) -> Result<(), ArchiveError> {
        self.append(directory, at, lines)
            .map_err(|error| ArchiveError(format!("cannot write the archive: {error}")))
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("'{}': {error}", path.display()))
}

/// Formats a day as `2026-11-15`.
pub(crate) fn day_of(at: Time) -> String {
    let seconds = i64::try_from(at.seconds()).unwrap_or(i64::MAX);
    let (year, month, day) = calendar::date_of(seconds.div_euclid(86_400));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Resolves links and detours in a path, whose end may not exist yet.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let is_there = |ancestor: &&Path| ancestor.exists();
    let there = path.ancestors().find(is_there).unwrap_or(Path::new("/"));
    let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
    if rest.components().any(|part| part == Component::ParentDir) {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("'{}' is not there", rest.display())));
    }
    // Joined with an empty path it would end with a separator.
    let there = there.canonicalize()?;
    Ok(if rest.as_os_str().is_empty() { there } else { there.join(rest) })
}

/// Ignores the error if the directory cannot be read: then no name was created in it.
fn forgive_unreadable(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::PermissionDenied { Ok(()) } else { Err(error) }
}

/// Locks the root until this process ends.
#[expect(clippy::disallowed_methods, reason = "waits for another process")]
fn lock(root: &Path) -> Result<File> {
    let file = private().create(true).append(true).open(root.join(LOCK))?;
    for attempt in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            // A process that is just ending, or replacing itself, may still hold it.
            Err(TryLockError::WouldBlock) if attempt < LOCK_ATTEMPTS => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => bail!("another server writes to it"),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    Ok(file)
}

/// Returns the name to continue with in a directory of which only the last opened file is known, and that it was moved
/// away.
fn first_name(folder: &Path, day: String, opened: Option<&Name>) -> io::Result<Name> {
    let last = last_file(folder)?;
    if let Some(earlier) = last.as_ref().filter(|last| last.day != day) {
        // A failure does no harm: what a crash left there is not a complete line, and its item is archived again.
        let _ = mend(&earlier.path(folder));
    }
    let of_today = |name: &&Name| name.day == day;
    let there = last.as_ref().filter(of_today).map_or(0, |last| last.number);
    let opened = opened.filter(of_today).map_or(0, |last| last.number);
    let number = if opened > there { opened + 1 } else { there.max(1) };
    Ok(Name { day, number })
}

/// Returns the last file of a directory.
fn last_file(folder: &Path) -> io::Result<Option<Name>> {
    let mut last = None;
    for entry in fs::read_dir(folder).map_err(|error| named(folder, &error))? {
        last = last.max(entry?.file_name().to_str().and_then(Name::parse));
    }
    Ok(last)
}

/// Cuts off what a crash left after the last complete line of a file. Mostly there is nothing to cut, and the file may
/// be read-only.
fn mend(path: &Path) -> io::Result<()> {
    let mut end = [b'\n'];
    let mut file = OpenOptions::new().read(true).open(path)?;
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut end)?;
    }
    if end != [b'\n'] {
        cut_to_whole_lines(&mut OpenOptions::new().read(true).write(true).open(path)?)?;
    }
    Ok(())
}

/// Cuts off everything after the last complete line; returns the length of the rest.
fn cut_to_whole_lines(file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut end = length;
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        Read::by_ref(file).take(end - start).read_to_end(&mut chunk)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            end = start + at as u64 + 1;
            break;
        }
        end = start;
    }
    if end < length {
        file.set_len(end)?;
        file.sync_all()?;
    }
    Ok(end)
}

/// Syncs a directory.
#[expect(clippy::disallowed_methods, reason = "the server accesses files")]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn archive(root: &Path) -> DirectoryArchive {
        DirectoryArchive { file_bytes: 20, ..DirectoryArchive::open(root, None).unwrap() }
    }

    fn cold() -> ArchiveDirectory {
        ArchiveDirectory::parse("cold").unwrap()
    }

    /// Returns names and contents of all files of the directory.
    fn files(root: &Path) -> Vec<(String, String)> {
        let mut files: Vec<_> = fs::read_dir(root.join("cold"))
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(path).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    fn file(name: &str, text: &str) -> (String, String) {
        (name.to_owned(), text.to_owned())
    }

    #[test]
    fn t32_files_end_with_their_day_and_when_they_are_large() {
        let root = tempfile::tempdir().unwrap();
        let (archive, at) = (archive(root.path()), Time::from_seconds(1_700_000_000));
        let append = |at, text: &str| archive.append(&cold(), at, text.as_bytes()).unwrap();
        append(at, "{\"n\":1}\n");
        append(at, "{\"n\":2}\n{\"n\":3}\n");
        append(at, "{\"n\":4}\n");
        append(at.plus_millis(86_400_000), "{\"n\":5}\n");
        let expected = [
            file("2023-11-14-0001.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n"),
            file("2023-11-14-0002.jsonl", "{\"n\":4}\n"),
            file("2023-11-15-0001.jsonl", "{\"n\":5}\n"),
        ];
        assert_eq!(files(root.path()), expected);
    }

    #[test]
    fn t32_a_start_goes_on_behind_the_last_whole_line() {
        let root = tempfile::tempdir().unwrap();
        let at = Time::from_seconds(1_700_000_000);
        archive(root.path()).append(&cold(), at, b"{\"n\":1}\n").unwrap();
        let path = root.path().join("cold/2023-11-14-0001.jsonl");
        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"{\"n\":2,\"half").unwrap();
        archive(root.path()).append(&cold(), at, b"{\"n\":2}\n").unwrap();
        assert_eq!(files(root.path()), [file("2023-11-14-0001.jsonl", "{\"n\":1}\n{\"n\":2}\n")]);
        fs::write(&path, "no complete line at all, and a long one").unwrap();
        archive(root.path()).append(&cold(), at, b"{\"n\":3}\n").unwrap();
        assert_eq!(files(root.path()), [file("2023-11-14-0001.jsonl", "{\"n\":3}\n")]);
    }

    #[test]
    fn t32_lines_do_not_go_into_a_file_that_was_taken_away() {
        let root = tempfile::tempdir().unwrap();
        let (archive, at) = (archive(root.path()), Time::from_seconds(1_700_000_000));
        archive.append(&cold(), at, b"{\"n\":1}\n").unwrap();
        fs::remove_file(root.path().join("cold/2023-11-14-0001.jsonl")).unwrap();
        archive.append(&cold(), at, b"{\"n\":2}\n").unwrap();
        let second = file("2023-11-14-0002.jsonl", "{\"n\":2}\n");
        assert_eq!(files(root.path()), [second], "the first may lie elsewhere by that name");
        fs::rename(root.path().join("cold"), root.path().join("moved")).unwrap();
        archive.append(&cold(), at, b"{\"n\":3}\n").unwrap();
        assert_eq!(files(root.path()), [file("2023-11-14-0003.jsonl", "{\"n\":3}\n")]);
    }

    #[test]
    fn t32_what_a_crash_has_left_in_an_earlier_file_is_cut_off() {
        let root = tempfile::tempdir().unwrap();
        let at = Time::from_seconds(1_700_000_000);
        archive(root.path()).append(&cold(), at, b"{\"n\":1}\n").unwrap();
        let path = root.path().join("cold/2023-11-14-0001.jsonl");
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"n\":2,\"half").unwrap();
        fs::write(root.path().join("cold/notes"), "not ours").unwrap();
        archive(root.path()).append(&cold(), at.plus_millis(86_400_000), b"{\"n\":2}\n").unwrap();
        let expected = [
            file("2023-11-14-0001.jsonl", "{\"n\":1}\n"),
            file("2023-11-15-0001.jsonl", "{\"n\":2}\n"),
            file("notes", "not ours"),
        ];
        assert_eq!(files(root.path()), expected);
    }

    /// The device has no free space, like a full volume.
    #[test]
    fn t32_a_full_volume_is_an_error_and_leaves_no_files_behind() {
        let root = tempfile::tempdir().unwrap();
        let (archive, at) = (archive(root.path()), Time::from_seconds(1_700_000_000));
        fs::create_dir(root.path().join("cold")).unwrap();
        let path = root.path().join("cold/2023-11-14-0001.jsonl");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        for _ in 0..3 {
            let error = archive.append(&cold(), at, b"{\"n\":1}\n").unwrap_err().to_string();
            assert!(error.contains("No space left on device") && error.contains("cold"), "{error}");
        }
        assert_eq!(fs::read_dir(root.path().join("cold")).unwrap().count(), 1);
        fs::remove_file(&path).unwrap();
        archive.append(&cold(), at, b"{\"n\":1}\n").unwrap();
        assert_eq!(files(root.path()), [file("2023-11-14-0002.jsonl", "{\"n\":1}\n")]);
    }

    /// A name that was created and is not durable yet may be lost in a crash, with the lines in the file.
    #[test]
    fn t32_no_line_counts_before_the_names_that_lead_to_it_are_durable() {
        thread_local! {
            static SYNCED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
            static FAILS: Cell<bool> = const { Cell::new(true) };
        }
        let root = tempfile::tempdir().unwrap();
        let sync_directory = |path: &Path| {
            SYNCED.with_borrow_mut(|synced| synced.push(path.to_owned()));
            if FAILS.get() { Err(io::Error::other("not now")) } else { Ok(()) }
        };
        let archive = DirectoryArchive { sync_directory, ..archive(root.path()) };
        let at = Time::from_seconds(1_700_000_000);
        for _ in 0..2 {
            archive.append(&cold(), at, b"{\"n\":1}\n").unwrap_err();
            assert_eq!(files(root.path()), [file("2023-11-14-0001.jsonl", "")], "nothing is written before");
        }
        FAILS.set(false);
        SYNCED.take();
        archive.append(&cold(), at, b"{\"n\":1}\n").unwrap();
        assert_eq!(SYNCED.take(), [archive.root.join("cold"), archive.root.clone()]);
    }

    #[test]
    fn t32_two_servers_do_not_share_a_root() {
        let root = tempfile::tempdir().unwrap();
        let first = archive(root.path());
        let error = format!("{:#}", DirectoryArchive::open(root.path(), None).err().unwrap());
        assert!(error.contains("another server writes to it"), "{error}");
        drop(first);
        assert!(DirectoryArchive::open(root.path(), None).is_ok());
    }

    /// Lines that others append to the file are neither lost nor mixed into the archive's own.
    #[test]
    fn t32_lines_of_others_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let (archive, at) = (archive(root.path()), Time::from_seconds(1_700_000_000));
        archive.append(&cold(), at, b"{\"n\":1}\n").unwrap();
        let path = root.path().join("cold/2023-11-14-0001.jsonl");
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"mine\n").unwrap();
        archive.append(&cold(), at, b"{\"n\":2}\n").unwrap();
        assert_eq!(files(root.path()), [file("2023-11-14-0001.jsonl", "{\"n\":1}\nmine\n{\"n\":2}\n")]);
    }

    #[test]
    fn no_file_stays_open() {
        let root = tempfile::tempdir().unwrap();
        let (archive, at) = (archive(root.path()), Time::from_seconds(1_700_000_000));
        for number in 0..20 {
            let directory = ArchiveDirectory::parse(&format!("d{number}")).unwrap();
            archive.append(&directory, at, b"{\"n\":1}\n").unwrap();
        }
        let open = fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
            let path = fs::read_link(entry.as_ref().unwrap().path());
            path.is_ok_and(|path| path.starts_with(&archive.root) && !path.ends_with(LOCK))
        });
        assert_eq!(open.count(), 0);
    }

    #[test]
    fn the_root_is_not_the_stores_own_directory() {
        let data = tempfile::tempdir().unwrap();
        let inside = data.path().join("archive");
        let error = DirectoryArchive::open(&inside, Some(data.path())).err().unwrap().to_string();
        assert!(error.contains("lies in the data directory"), "{error}");
        assert!(!inside.exists(), "nothing is made before");
        let above = data.path().parent().unwrap();
        let error = DirectoryArchive::open(above, Some(&data.path().join("new"))).err().unwrap().to_string();
        assert!(error.contains("the data directory lies in the archive root"), "{error}");
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(DirectoryArchive::open(&elsewhere.path().join("made"), Some(data.path())).is_ok());
    }
}
