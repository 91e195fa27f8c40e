//! Measures how many processors of the machine are idle, where the system reports it (Linux: `/proc/stat`).

use std::fs;
use std::path::PathBuf;

/// The file with the times of all processors.
const STAT: &str = "/proc/stat";

/// Samples the processor times.
#[derive(Debug)]
pub(crate) struct Processors {
    path: PathBuf,
    before: Option<Ticks>,
}

/// The times of all processors together since the system started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    idle: u64,
    all: u64,
    processors: u32,
}

impl Processors {
    pub(crate) fn new() -> Processors {
        Processors { path: STAT.into(), before: None }
    }

    /// Returns how many processors were idle since the last call; `None` on the first call, or if the system does not
    /// report it.
    pub(crate) fn idle(&mut self) -> Option<f64> {
        let now = fs::read_to_string(&self.path).ok().and_then(|text| Ticks::read(&text))?;
        let before = self.before.replace(now)?;
        let (idle, all) = (now.idle.checked_sub(before.idle)?, now.all.checked_sub(before.all)?);
        (all > 0).then(|| idle as f64 / all as f64 * f64::from(now.processors))
    }
}

impl Ticks {
    /// The line `cpu` sums up those of all processors, `cpu0` and so on. Its fourth column counts idle ticks, the fifth
    /// those spent waiting for a disk; the last two are included in the first two.
    fn read(text: &str) -> Option<Ticks> {
        let mut lines = text.lines();
        let columns: Vec<u64> = lines
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .take(8)
            .map(|column| column.parse().ok())
            .collect::<Option<_>>()?;
        let idle = columns.get(3)? + columns.get(4)?;
        let processors = lines.take_while(|line| line.starts_with("cpu")).count() as u32;
        Some(Ticks { idle, all: columns.iter().sum(), processors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_processors_are_told_from_two_looks() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("stat");
        let mut processors = Processors { path: path.clone(), before: None };
        assert_eq!(processors.idle(), None, "the system does not tell");
        let write = |line: &str| {
            fs::write(&path, format!("cpu  {line}\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5 6\n")).expect("written");
        };
        write("100 0 100 700 100 0 0 0 50 0");
        assert_eq!(processors.idle(), None, "the first look");
        write("150 0 150 780 120 0 0 0 90 0");
        assert_eq!(processors.idle(), Some(1.0), "100 of 200 ticks of two processors");
        write("150 0 150 780 120 0 0 0 90 0");
        assert_eq!(processors.idle(), None, "no tick has passed");
        write("nonsense");
        assert_eq!(processors.idle(), None);
    }
}
