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

/// Returns the resident memory in KiB: now, and at its peak.
pub fn resident_kib_of(pid: u32) -> Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = |name: &str| -> Result<u64> {
        let line = status.lines().find(|line| line.starts_with(name)).context("no such line")?;
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).context("no number")
    };
    Ok((line("VmRSS:")?, line("VmHWM:")?))
}
