//! Figures of a process from the kernel.

use anyhow::{Context, Result};

/// Returns the CPU seconds that a process has used, those of its ended children included.
pub fn cpu_seconds_of(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let used = fields.get(11..15).context("a short stat")?;
    let ticks: u64 = used.iter().map(|text| text.parse::<u64>().unwrap_or(0)).sum();
    Ok(ticks as f64 / 100.0)
}

/// Returns the CPU seconds that a process of one thread has used, to the nanosecond.
pub fn exact_cpu_seconds_of(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let nanoseconds: u64 = text.split_whitespace().next().context("a short schedstat")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// Returns the resident memory in KiB: now, and at its peak.
pub fn resident_kib_of(pid: u32) -> Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = |name: &str| -> Result<u64> {
        let line = status.lines().find(|line| line.starts_with(name)).context("no such line")?;
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).context("no number")
    };
    Ok((line("VmRSS:")?, line("VmHWM:")?))
}

/// Returns the context switches, wanted and unwanted, of all threads that a process has now.
pub fn switches_of(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile.
        let Ok(status) = std::fs::read_to_string(thread?.path().join("status")) else { continue };
        sum += switches_in(&status);
    }
    Ok(sum)
}

fn switches_in(status: &str) -> u64 {
    let counts = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

/// Returns the bytes that a process has caused to be written to disks, those of its ended children included.
pub fn written_bytes_of(pid: u32) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes:")).context("no such line")?;
    Ok(line.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_context_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(switches_in(status), 157);
        assert!(switches_of(std::process::id()).expect("this process has threads") > 0);
    }
}
