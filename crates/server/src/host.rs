//! The machine and this process, as clients may ask about them.

use std::fs;

/// The machine, found out once.
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

/// A figure in a file of lines such as `VmRSS:  1234 kB`; zero where the system does not tell.
fn kibibytes(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The command line with secrets left out.
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
    fn secrets_are_left_out() {
        let shown = |given: &[&str]| without_secrets(given.iter().map(|it| (*it).to_owned())).join(" ");
        assert_eq!(shown(&["bolide", "--key", "abc", "--memory"]), "bolide --key <hidden> --memory");
        assert_eq!(shown(&["--key=abc", "--key-file", "f"]), "--key=<hidden> --key-file f");
    }
}
