//! A peer's process and its working folder; dropping it ends and removes both.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::client::{cpu_seconds_of, exact_cpu_seconds_of, resident_kib_of};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Process {
    child: Child,
    folder: PathBuf,
}

impl Process {
    /// Starts it and waits until it listens.
    pub(super) fn start(command: &mut Command, folder: PathBuf, port: u16) -> Result<Process> {
        let shown = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {shown}"))?;
        let mut process = Process { child, folder };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = process.child.try_wait()? {
                bail!("{shown} ended before it was ready: {status}");
            }
            ensure!(began.elapsed() < START_TIMEOUT, "{shown} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// Ends the process in order and starts it again, on the same folder.
    pub(super) fn restart(&mut self, command: &mut Command, port: u16, between: impl FnOnce()) -> Result<()> {
        self.end();
        between();
        // The folder stays: it belongs to the new process.
        *self = Process::start(command, std::mem::take(&mut self.folder), port)?;
        Ok(())
    }

    /// Returns the numbers of the process and its children.
    pub(super) fn all(&self) -> Result<Vec<u32>> {
        let mut all = children(self.child.id())?;
        all.insert(0, self.child.id());
        Ok(all)
    }

    /// Returns the CPU seconds of the process and its children, ended ones included.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        self.cpu_seconds_without(0)
    }

    /// Returns the same without one of the children.
    pub(super) fn cpu_seconds_without(&self, other: u32) -> Result<f64> {
        let mut seconds = cpu_seconds_of(self.child.id())?;
        for child in children(self.child.id())?.into_iter().filter(|child| *child != other) {
            // In steps of ten milliseconds, the sum over many processes would be wrong by as many steps. The parent
            // counts a child that ends right now next time.
            seconds += exact_cpu_seconds_of(child).or_else(|_| cpu_seconds_of(child)).unwrap_or(0.0);
        }
        Ok(seconds)
    }

    pub(super) fn resident_mib(&self) -> Result<u64> {
        let mut kib = resident_kib_of(self.child.id())?.0;
        for child in children(self.child.id())? {
            kib += resident_kib_of(child).map_or(0, |(now, _)| now);
        }
        Ok(kib / 1024)
    }

    fn end(&mut self) {
        // The number of a process that has ended may be another's by now.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // An interrupt is a fast shutdown for PostgreSQL, which then ends its children in order.
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let began = Instant::now();
        while began.elapsed() < STOP_TIMEOUT && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(super) fn disk_bytes(&self) -> Result<u64> {
        folder_bytes(&self.folder)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        if !self.folder.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn children(parent: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let father = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).unwrap_or_default();
        if father.parse() == Ok(parent) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Returns what the files below a folder take on disk.
pub(super) fn folder_bytes(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut waiting) = (0, vec![folder.to_path_buf()]);
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            // A file may disappear meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                waiting.push(entry.path());
            } else {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    Ok(bytes)
}

/// Returns a port that was free just now.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Returns an unused folder name.
pub(super) fn new_folder(of: &str) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("bolide-bench-{of}-{}-{number}", std::process::id()))
}

/// Returns the first line that a program prints.
pub(super) fn first_line(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
