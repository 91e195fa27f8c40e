//! The processor time that other machines take, where this machine is virtual (Linux).
//!
//! A comparison of two programs means little while half of the machine is taken away: those times are left out for both
//! programs, and the report says how much was left out.

use anyhow::{Context, Result, ensure};

/// A time in which other machines took more than this part of the processors' time is left out.
const MAX_STOLEN: f64 = 0.02;

/// The processor times since the machine was started.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    pub fn read() -> Result<Ticks> {
        Ticks::of(&std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?)
    }

    /// Returns idle, total and stolen time. The first line sums up all processors; its fourth and fifth columns are idle
    /// time, its eighth is the time of other machines; the first two contain the two columns behind it.
    fn of(text: &str) -> Result<Ticks> {
        let columns = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
        let columns: Vec<u64> = columns.map(str::parse).collect::<Result<_, _>>()?;
        ensure!(columns.len() == 8, "/proc/stat has {} columns, not 8", columns.len());
        Ok(Ticks { all: columns.iter().sum(), idle: columns[3] + columns[4], stolen: columns[7] })
    }

    /// Returns the part of the processors' time since `before` in which they were idle.
    pub fn idle_since(self, before: Ticks) -> f64 {
        (self.idle - before.idle) as f64 / (self.all - before.all).max(1) as f64
    }

    /// Returns `true` if other machines took a part of the processors' time since `before`.
    pub fn were_taken_since(self, before: Ticks) -> bool {
        let stolen = (self.stolen - before.stolen) as f64;
        stolen / (self.all - before.all).max(1) as f64 > MAX_STOLEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_machines_take_is_told_from_two_looks() {
        let ticks = |text: &str| Ticks::of(text).expect("a line of eight");
        let before = ticks("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2 3\n");
        for (after, expected) in
            [("cpu  20 0 20 150 0 0 0 12 5 0\n", false), ("cpu  20 0 20 150 0 0 0 13 5 0\n", true)]
        {
            assert_eq!(ticks(after).were_taken_since(before), expected, "{after}");
        }
        let idle = ticks("cpu  20 0 20 100 20 0 0 10 5 0\n").idle_since(before);
        assert!((idle - 50.0 / 70.0).abs() < 1e-9, "{idle}");
        assert!(Ticks::of("cpu  1 2 3\n").is_err());
    }
}
