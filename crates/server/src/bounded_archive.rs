//! An archive that keeps nobody waiting for long (T32).
//!
//! A write to a mount that is stuck may never come back, and the purge of all containers is one loop. So each write runs on a
//! thread of its own, and is a failure if it has not come back after a while: the purge of that container waits and says
//! so, the others go on. As long as it is out, every other write to the directory fails at once: there is one such thread for
//! a directory at most. What it has written after all comes again; a duplicate line is allowed, a missing one is not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use engine::{Archive, ArchiveDirectory, ArchiveError};
use parking_lot::{Condvar, Mutex};
use storage::Time;

/// A disk that takes longer for a batch is as good as none.
const PATIENCE: Duration = Duration::from_secs(30);

/// Another archive with a bound on how long its writes take.
pub(crate) struct BoundedArchive<A> {
    archive: Arc<A>,
    running: Arc<Running>,
    patience: Duration,
}

/// The directories that are written to.
#[derive(Default)]
struct Running {
    writes: Mutex<BTreeMap<ArchiveDirectory, Write>>,
    ended: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    /// It may come back any moment: several partitions share a directory.
    Fresh,
    /// Somebody has given up waiting for it.
    Stuck,
}

impl<A: Archive> BoundedArchive<A> {
    pub(crate) fn new(archive: A) -> BoundedArchive<A> {
        BoundedArchive { archive: Arc::new(archive), running: Arc::default(), patience: PATIENCE }
    }
}

impl Running {
    /// Begins a write when the one before it has ended.
    fn begin(
        self: &Arc<Self>,
        directory: &ArchiveDirectory,
        patience: Duration,
    ) -> Result<Turn, ArchiveError> {
        let mut writes = self.writes.lock();
        let waits = |writes: &mut BTreeMap<_, Write>| writes.get(directory) == Some(&Write::Fresh);
        self.ended.wait_while_for(&mut writes, waits, patience);
        if let Some(write) = writes.get_mut(directory) {
            *write = Write::Stuck;
            return Err(no_answer(directory, "an earlier write has not come back"));
        }
        writes.insert(directory.clone(), Write::Fresh);
        Ok(Turn { running: Arc::clone(self), directory: directory.clone() })
    }
}

/// A write that has begun; it ends with this.
struct Turn {
    running: Arc<Running>,
    directory: ArchiveDirectory,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.running.writes.lock().remove(&self.directory);
        self.running.ended.notify_all();
    }
}

impl<A: Archive + 'static> Archive for BoundedArchive<A> {
    fn append(&self, directory: &ArchiveDirectory, at: Time, lines: &[u8]) -> Result<(), ArchiveError> {
        let turn = self.running.begin(directory, self.patience)?;
        let (archive, lines) = (Arc::clone(&self.archive), lines.to_vec());
        let (tell, told) = mpsc::sync_channel(1);
        let write = move || {
            let outcome = archive.append(&turn.directory, at, &lines);
            // Who hears of it may come with the next one.
            drop(turn);
            let _ = tell.send(outcome);
        };
        let thread = std::thread::Builder::new().name("archive".into()).spawn(write);
        thread.map_err(|error| ArchiveError(format!("cannot start a thread for the archive: {error}")))?;
        match told.recv_timeout(self.patience) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(write) = self.running.writes.lock().get_mut(directory) {
                    *write = Write::Stuck;
                }
                Err(no_answer(directory, &format!("a write has not come back for {:?}", self.patience)))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(ArchiveError("a write to the archive has failed".into()))
            }
        }
    }
}

fn no_answer(directory: &ArchiveDirectory, why: &str) -> ArchiveError {
    ArchiveError(format!("the archive '{}' does not answer: {why}", directory.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes to `stuck` come back when the test says so.
    struct Mount {
        release: Mutex<mpsc::Receiver<()>>,
        written: Mutex<Vec<String>>,
    }

    impl Archive for Mount {
        fn append(&self, directory: &ArchiveDirectory, _: Time, lines: &[u8]) -> Result<(), ArchiveError> {
            if directory.as_str() == "stuck" {
                self.release.lock().recv().map_err(|error| ArchiveError(error.to_string()))?;
            }
            self.written.lock().push(String::from_utf8_lossy(lines).into_owned());
            Ok(())
        }
    }

    #[test]
    fn t32_a_write_that_hangs_is_a_failure_there_and_nowhere_else() {
        let (release, released) = mpsc::channel();
        let mount = Mount { release: Mutex::new(released), written: Mutex::default() };
        let patient = BoundedArchive { patience: Duration::from_hours(1), ..BoundedArchive::new(mount) };
        let (archive, running) = (Arc::clone(&patient.archive), Arc::clone(&patient.running));
        let hasty = BoundedArchive { archive, running, patience: Duration::from_millis(1) };
        let directory = |name| ArchiveDirectory::parse(name).unwrap();
        let append = |door: &BoundedArchive<Mount>, name, text: &str| {
            door.append(&directory(name), Time::from_seconds(1), text.as_bytes())
        };
        let error = append(&hasty, "stuck", "a").unwrap_err().to_string();
        assert_eq!(error, "the archive 'stuck' does not answer: a write has not come back for 1ms");
        for _ in 0..3 {
            let error = append(&patient, "stuck", "b").unwrap_err().to_string();
            assert_eq!(error, "the archive 'stuck' does not answer: an earlier write has not come back");
            append(&patient, "fine", "c").unwrap();
        }
        // The mount is well again: the first write comes back, some time, and then it goes on.
        release.send(()).unwrap();
        release.send(()).unwrap();
        while append(&patient, "stuck", "d").is_err() {
            std::thread::yield_now();
        }
        assert_eq!(*patient.archive.written.lock(), ["c", "c", "c", "a", "d"]);
    }

    #[test]
    fn t32_writes_to_one_directory_wait_for_each_other() {
        let (_release, released) = mpsc::channel();
        let mount = Mount { release: Mutex::new(released), written: Mutex::default() };
        let archive = BoundedArchive { patience: Duration::from_hours(1), ..BoundedArchive::new(mount) };
        let fine = ArchiveDirectory::parse("fine").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        archive.append(&fine, Time::from_seconds(1), b"x").unwrap();
                    }
                });
            }
        });
        assert_eq!(archive.archive.written.lock().len(), 160);
    }
}
