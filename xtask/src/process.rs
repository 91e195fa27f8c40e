//! Child processes with a deadline. Their output is shown as it comes, and kept so that counts can be read from it.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::report;

const INSTALL_TIMEOUT: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_millis(20);

/// The result of a finished child process.
pub(crate) struct Finished {
    pub(crate) success: bool,
    /// Standard output and standard error, as they were written.
    pub(crate) output: String,
}

/// Runs a command to its end or to the deadline; then kills the whole process group.
pub(crate) fn run(command: &mut Command, timeout: Duration) -> Result<Finished> {
    run_with(command, timeout, Echo::Yes)
}

/// Runs a command as `run` does, without showing the output.
pub(crate) fn run_quietly(command: &mut Command, timeout: Duration) -> Result<Finished> {
    run_with(command, timeout, Echo::No)
}

/// Runs a command that fetches or builds prerequisites; its output is only shown on failure.
pub(crate) fn install(command: &mut Command) -> Result<()> {
    let finished = run_quietly(command, INSTALL_TIMEOUT)?;
    ensure!(finished.success, "{command:?} failed:\n{}", finished.output);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Echo {
    Yes,
    No,
}

fn run_with(command: &mut Command, timeout: Duration, echo: Echo) -> Result<Finished> {
    let shown = format!("{command:?}");
    // One pipe for both; with two, lines of one would overtake those of the other.
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let mut child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    // Drops our ends of the pipe, so that it ends with the child's.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (sender, lines) = mpsc::channel();
    forward(reader, sender);

    let deadline = Instant::now() + timeout;
    let mut output = String::new();
    let mut status = None;
    loop {
        while let Ok(line) = lines.recv_timeout(POLL) {
            if echo == Echo::Yes {
                report::show(&line);
            }
            output.push_str(&line);
            output.push('\n');
        }
        if let Some(status) = status {
            let status: std::process::ExitStatus = status;
            return Ok(Finished { success: status.success(), output });
        }
        status = child.try_wait()?;
        if status.is_none() && Instant::now() > deadline {
            kill_group(&child);
            let _ = child.wait();
            bail!("{shown} was still running after {} s and was killed", timeout.as_secs());
        }
    }
}

fn forward(pipe: impl Read + Send + 'static, sender: mpsc::Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { break };
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
}

fn kill_group(child: &Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-9", "--", &group]).status();
}

/// Returns `true` if a program exists and prints its version; openssl does so only without dashes.
pub(crate) fn available(program: &str) -> bool {
    ["--version", "version"].iter().any(|question| {
        Command::new(program)
            .arg(question)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// Waits until `done` returns true; returns false if the time is over first.
pub(crate) fn wait_until(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while Instant::now() < deadline {
        if done() {
            return true;
        }
        thread::sleep(POLL);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_exit_code_are_kept() {
        let finished =
            run_quietly(&mut shell("echo one; echo two >&2; echo three; exit 3"), Duration::from_mins(1))
                .unwrap();
        assert!(!finished.success);
        assert_eq!(finished.output, "one\ntwo\nthree\n");
    }

    #[test]
    fn a_program_is_available_however_it_tells_its_version() {
        assert!(available("cargo"));
        assert!(!available("no-such-program"));
    }

    #[test]
    fn a_child_past_its_deadline_is_killed_with_its_children() {
        let started = Instant::now();
        assert!(run_quietly(&mut shell("sleep 600 & sleep 600"), Duration::from_millis(200)).is_err());
        assert!(started.elapsed() < Duration::from_mins(2));
    }
}
