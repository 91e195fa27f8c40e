//! Figures of a peer's processes besides CPU: context switches, instructions, bytes written to disks.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use crate::client::{switches_of, written_bytes_of};
use crate::peer::Peer;

/// How long `perf` needs until it counts.
const ATTACH: Duration = Duration::from_millis(100);

/// Returns the context switches of all processes now, or `None` where the system does not tell.
pub fn switches(peer: &dyn Peer) -> Option<u64> {
    sum(peer, switches_of)
}

/// Returns the bytes that all processes have caused to be written so far, or `None` where the system does not tell.
pub fn written_bytes(peer: &dyn Peer) -> Option<u64> {
    sum(peer, written_bytes_of)
}

fn sum(peer: &dyn Peer, count_of: fn(u32) -> anyhow::Result<u64>) -> Option<u64> {
    let processes = peer.measured().processes().ok()?;
    // A process may end meanwhile.
    let known: Vec<u64> = processes.into_iter().filter_map(|pid| count_of(pid).ok()).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Counts the instructions of a peer's processes, with `perf stat`.
pub struct Instructions(Child);

impl Instructions {
    /// Begins to count; `None` where there is no `perf`, or no counter, as in many virtual machines.
    pub fn start(peer: &dyn Peer) -> Option<Instructions> {
        static ARE_COUNTED: OnceLock<bool> = OnceLock::new();
        let probe = || {
            let output =
                Command::new("perf").args(["stat", "-x", ",", "-e", "instructions", "true"]).output();
            output.is_ok_and(|output| counted(&String::from_utf8_lossy(&output.stderr)).is_some())
        };
        if !ARE_COUNTED.get_or_init(probe) {
            return None;
        }
        let processes: Vec<String> = peer.measured().processes().ok()?.iter().map(u32::to_string).collect();
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-e", "instructions", "-p", &processes.join(",")]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
        std::thread::sleep(ATTACH);
        Some(Instructions(child))
    }

    /// Ends the count and returns it.
    pub fn stop(mut self) -> Option<u64> {
        // An interrupt makes it print what it has counted.
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let mut text = String::new();
        let told = self.0.stderr.take()?.read_to_string(&mut text);
        let _ = self.0.wait();
        told.ok().and_then(|_| counted(&text))
    }
}

impl Drop for Instructions {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the count in a line of `perf stat -x ,`: without a counter it is `<not supported>`.
fn counted(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("instructions"))?;
    line.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_does_not_exist_is_no_count() {
        assert_eq!(counted("1234567,,instructions:u,1000,100.00,,\n"), Some(1_234_567));
        assert_eq!(counted("# started\n<not supported>,,instructions,0,100.00,,\n"), None);
        assert_eq!(counted(""), None);
    }
}
