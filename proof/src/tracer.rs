//! strace as fault injector: it makes operations of a running process fail and records which.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// How long strace may take to attach to a thread.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// strace's mark on a call that it made fail.
const INJECTED: &str = "(INJECTED)";

/// The n-th call of a kind fails, counted for each thread by itself.
#[derive(Clone, Copy, Debug)]
pub struct Injection {
    pub call: &'static str,
    pub error: &'static str,
    pub number: u64,
}

impl Injection {
    /// Returns the arguments of strace, which records into `file`. If `paths` are given, only calls on these count.
    pub fn words(&self, file: &Path, paths: &[PathBuf]) -> Vec<std::ffi::OsString> {
        let Injection { call, error, number } = self;
        let (trace, inject) = (format!("trace={call}"), format!("inject={call}:error={error}:when={number}"));
        let mut words: Vec<_> = ["-q", "-y", "-e", &trace, "-e", &inject, "-o"].map(Into::into).to_vec();
        words.push(file.into());
        for path in paths {
            words.extend(["-P".into(), path.into()]);
        }
        words
    }

    /// Returns the operating system's text for the error.
    pub fn text(&self) -> &'static str {
        match self.error {
            "ENOSPC" => "No space left on device",
            _ => "Input/output error",
        }
    }
}

/// Returns the first call that strace made fail, as it records it.
pub fn struck(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().find(|line| line.contains(INJECTED)).map(str::to_owned)
}

/// The threads whose calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    Named(&'static str),
    AllBut(&'static [&'static str]),
}

impl Threads {
    fn includes(self, name: &str) -> bool {
        match self {
            Threads::Named(wanted) => name == wanted,
            Threads::AllBut(spared) => !spared.contains(&name),
        }
    }
}

/// strace, attached to threads of a process.
pub struct Tracer {
    child: Child,
    file: PathBuf,
}

impl Tracer {
    /// Attaches to the threads that the process has now.
    pub fn attach(
        process: u32,
        which: Threads,
        injection: &Injection,
        paths: &[PathBuf],
        file: &Path,
    ) -> Result<Tracer> {
        let _ = std::fs::remove_file(file);
        let mut threads = threads(process)?;
        threads.retain(|(_, name)| which.includes(name));
        ensure!(!threads.is_empty(), "the server has no such thread: {which:?}");
        let mut command = Command::new("strace");
        for (thread, _) in &threads {
            command.args(["-p", &thread.to_string()]);
        }
        command.args(injection.words(file, paths));
        let child =
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start strace")?;
        let begun = Instant::now();
        while !threads.iter().all(|(thread, _)| is_held(process, *thread, child.id())) {
            ensure!(begun.elapsed() < MAX_WAIT, "strace does not get hold of the server's threads");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Tracer { child, file: file.to_owned() })
    }

    pub fn struck(&self) -> Option<String> {
        struck(&self.file)
    }

    /// Detaches from a process that goes on.
    pub fn let_go(mut self) -> Result<()> {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status()?;
        self.child.wait().map(drop).context("strace does not end")
    }

    /// Waits for strace to end with the process.
    pub fn wait(mut self) -> Result<()> {
        self.child.wait().map(drop).context("strace does not end")
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_held(process: u32, thread: u32, tracer: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/status"));
    // A thread that has ended in between cannot be traced.
    status.map_or(true, |status| status.contains(&format!("TracerPid:\t{tracer}\n")))
}

/// Returns the threads of a process, each with its name.
fn threads(process: u32) -> Result<Vec<(u32, String)>> {
    let mut threads = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let entry = entry?;
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        threads.push((entry.file_name().to_string_lossy().parse()?, name.trim().to_owned()));
    }
    Ok(threads)
}
