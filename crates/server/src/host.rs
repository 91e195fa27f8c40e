//! Describes the machine and this process to clients.

use std::fs;

/// Describes the machine.
pub(crate) fn describe() -> mongo::Host {
    let read = |path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    mongo::Host {
        name: read("/proc/sys/kernel/hostname"),
        system: (read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease")),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes: kibibytes("/proc/meminfo", "MemTotal:") * 1024,
        process: std::process::id(),
        used_bytes: || {
            let status = |name| kibibytes("/proc/self/status", name) * 1024;
            (status("VmRSS:"), status("VmSize:"))
        },
    }
}

/// Reads a number from a file of lines such as `VmRSS:  1234 kB`; zero if the system does not report it.
fn kibibytes(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The unit of process times in the kernel's interface, whatever the machine's own ticks are.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns metrics of this process; zeros where the system does not report them.
pub(crate) fn process() -> telemetry::Process {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (stat, status) = (read("/proc/self/stat"), |name| kibibytes("/proc/self/status", name) * 1024);
    let booted = read("/proc/stat").lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
    let (cpu_seconds, after_boot) = times(&stat);
    telemetry::Process {
        resident_bytes: status("VmRSS:"),
        virtual_bytes: status("VmSize:"),
        cpu_seconds,
        open_files: fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64),
        open_files_max: open_files_max(&read("/proc/self/limits")),
        started_seconds: booted.unwrap_or(0.0) + after_boot,
    }
}

/// Raises the limit of open files as far as the system permits: the default of a shell (`ulimit -n`, often 1024) suits
/// interactive programs, and each connection takes a file.
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If that fails the server continues, and reports how many connections the limit allows.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Returns the processor seconds of the process, and the seconds from the system's start to its own, from the one line
/// of its `stat`. The name of the program, which may contain anything, precedes them in parentheses.
fn times(stat: &str) -> (f64, f64) {
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let seconds = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    ((seconds(11) + seconds(12)) / TICKS_PER_SECOND, seconds(19) / TICKS_PER_SECOND)
}

fn open_files_max(limits: &str) -> u64 {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns the command line without secrets.
pub(crate) fn arguments() -> Vec<String> {
    without_secrets(std::env::args())
}

fn without_secrets(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut secret = false;
    let hide = |argument: String| {
        if std::mem::take(&mut secret) {
            return "<hidden>".to_owned();
        }
        secret = argument == "--key";
        if argument.starts_with("--key=") { "--key=<hidden>".to_owned() } else { argument }
    };
    arguments.map(hide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_described_as_the_kernel_does() {
        let stat = "7 (bo) li) de) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 9 0 1234 5 6";
        assert_eq!(times(stat), (3.0, 12.34));
        assert_eq!(times(""), (0.0, 0.0));
        let limits =
            "Limit  Soft Limit\nMax open files            1024                 4096                 files\n";
        assert_eq!(open_files_max(limits), 1024);
        let process = process();
        assert!(process.resident_bytes > 0 && process.open_files > 2 && process.started_seconds > 1e9);
    }

    #[test]
    fn secrets_are_left_out() {
        let shown = |given: &[&str]| without_secrets(given.iter().map(|it| (*it).to_owned())).join(" ");
        assert_eq!(shown(&["bolide", "--key", "abc", "--memory"]), "bolide --key <hidden> --memory");
        assert_eq!(shown(&["--key=abc", "--key-file", "f"]), "--key=<hidden> --key-file f");
    }
}
