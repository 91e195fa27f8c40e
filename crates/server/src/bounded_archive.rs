//! An archive with a time limit on its writes (T32).
//!
//! A write to a mount that hangs may never return, and one loop purges all containers. So each write runs on a thread
//! of its own, and fails if it has not returned after a while: the purge of that container waits and reports it, the
//! others continue. Until it returns, every other write to the directory fails at once: there is at most one such
//! thread per directory. Lines that it wrote after all are written again; a duplicate line is allowed, a missing one is
//! not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use engine::{Archive, ArchiveDirectory, ArchiveError};
use parking_lot::{Condvar, Mutex};
use storage::Time;

/// The time limit: a disk that takes longer for a batch counts as unavailable.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Limits the time that writes of another archive may take.
pub(crate) struct BoundedArchive<A> {
    archive: Arc<A>,
    running: Arc<Running>,
    timeout: Duration,
}

/// The directories being written to.
#[derive(Default)]
struct Running {
    writes: Mutex<BTreeMap<ArchiveDirectory, Write>>,
    ended: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    /// It may return any moment: several partitions share a directory.
    Fresh,
    /// A caller has given up waiting for it.
    Stuck,
}

impl<A: Archive> BoundedArchive<A> {
    pub(crate) fn new(archive: A) -> BoundedArchive<A> {
        BoundedArchive { archive: Arc::new(archive), running: Arc::default(), timeout: TIMEOUT }
    }
}

impl Running {
    /// Begins a write when the previous one has ended.
    fn begin(
        self: &Arc<Self>,
        directory: &ArchiveDirectory,
        timeout: Duration,
    ) -> Result<RunningWrite, ArchiveError> {
        let mut writes = self.writes.lock();
        let waits = |writes: &mut BTreeMap<_, Write>| writes.get(directory) == Some(&Write::Fresh);
        self.ended.wait_while_for(&mut writes, waits, timeout);
        if let Some(write) = writes.get_mut(directory) {
            *write = Write::Stuck;
            return Err(no_answer(directory, "an earlier write has not returned"));
        }
        writes.insert(directory.clone(), Write::Fresh);
        Ok(RunningWrite { running: Arc::clone(self), directory: directory.clone() })
    }
}

/// A running write; it ends when this is dropped.
struct RunningWrite {
    running: Arc<Running>,
    directory: ArchiveDirectory,
}

impl Drop for RunningWrite {
    fn drop(&mut self) {
        self.running.writes.lock().remove(&self.directory);
        self.running.ended.notify_all();
    }
}

impl<A: Archive + 'static> Archive for BoundedArchive<A> {
    fn append(&self, directory: &ArchiveDirectory, at: Time, lines: &[u8]) -> Result<(), ArchiveError> {
        let running = self.running.begin(directory, self.timeout)?;
        let (archive, lines) = (Arc::clone(&self.archive), lines.to_vec());
        let (tell, told) = mpsc::sync_channel(1);
        let write = move || {
            let outcome = archive.append(&running.directory, at, &lines);
            // The caller that receives the result may begin the next write.
            drop(running);
            let _ = tell.send(outcome);
        };
        let thread = std::thread::Builder::new().name("archive".into()).spawn(write);
        thread.map_err(|error| ArchiveError(format!("cannot start a thread for the archive: {error}")))?;
        match told.recv_timeout(self.timeout) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(write) = self.running.writes.lock().get_mut(directory) {
                    *write = Write::Stuck;
                }
                Err(no_answer(directory, &format!("a write has not returned for {:?}", self.timeout)))
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

    /// Writes to `stuck` return when the test lets them.
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
        let patient = BoundedArchive { timeout: Duration::from_hours(1), ..BoundedArchive::new(mount) };
        let (archive, running) = (Arc::clone(&patient.archive), Arc::clone(&patient.running));
        let hasty = BoundedArchive { archive, running, timeout: Duration::from_millis(1) };
        let directory = |name| ArchiveDirectory::parse(name).unwrap();
        let append = |door: &BoundedArchive<Mount>, name, text: &str| {
            door.append(&directory(name), Time::from_seconds(1), text.as_bytes())
        };
        let error = append(&hasty, "stuck", "a").unwrap_err().to_string();
        assert_eq!(error, "the archive 'stuck' does not answer: a write has not returned for 1ms");
        for _ in 0..3 {
            let error = append(&patient, "stuck", "b").unwrap_err().to_string();
            assert_eq!(error, "the archive 'stuck' does not answer: an earlier write has not returned");
            append(&patient, "fine", "c").unwrap();
        }
        // The mount recovers: the first write returns eventually, and then the archive continues.
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
        let archive = BoundedArchive { timeout: Duration::from_hours(1), ..BoundedArchive::new(mount) };
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
