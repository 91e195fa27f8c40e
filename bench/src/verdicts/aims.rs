//! The aims beside PostgreSQL and the empty HTTP loop, in one table.

use bolide_bench::drive::Figures;
use bolide_bench::workload::Kind;

/// The sizes of partitions that are measured.
pub const PARTITIONS: [u64; 3] = [10, 100, 10_000];
/// The partition size of operations that are not about a partition.
const ORDINARY: u64 = 100;
/// Connections, where an aim is not about one.
pub const MANY: usize = 16;
/// The largest ratio of the latency that one of a thousand operations exceeds.
const TAIL: f64 = 1.0;
/// The longest pause, in milliseconds.
const PAUSE_MS: f64 = 100.0;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Server CPU for an operation, deferred work included.
    Cpu,
    /// The latency that half of the operations exceed.
    P50,
    /// The latency that one of a thousand operations exceeds.
    P999,
    /// The longest answer of a run. It is no ratio: the aim is in milliseconds.
    Longest,
}

impl Measure {
    pub fn name(self) -> &'static str {
        match self {
            Measure::Cpu => "CPU",
            Measure::P50 => "p50",
            Measure::P999 => "p99.9",
            Measure::Longest => "longest",
        }
    }

    /// Returns the measure of a run: microseconds, and of the longest answer milliseconds.
    pub fn of(self, figures: &Figures) -> f64 {
        match self {
            Measure::Cpu => figures.server_us,
            Measure::P50 => figures.latencies.percentile(50.0),
            Measure::P999 => figures.latencies.percentile(99.9),
            Measure::Longest => figures.longest_us / 1e3,
        }
    }
}

/// A workload with its aims.
#[derive(Debug, Clone, Copy)]
pub struct Aim {
    pub kind: Kind,
    pub partition_items: u64,
    pub connections: usize,
    /// The largest ratios to PostgreSQL: over REST and over the MongoDB wire.
    pub at_most: &'static [(Measure, [f64; 2])],
    /// The largest ratio of its CPU over REST to that of the empty HTTP loop.
    pub of_the_loop: Option<f64>,
}

const fn aim(kind: Kind, connections: usize, at_most: &'static [(Measure, [f64; 2])]) -> Aim {
    Aim { kind, partition_items: ORDINARY, connections, at_most, of_the_loop: None }
}

const fn scoped(kind: Kind, partition_items: u64) -> Aim {
    const AT_MOST: &[(Measure, [f64; 2])] = &[(Measure::Cpu, [0.9, 0.7]), (Measure::P999, [TAIL; 2])];
    Aim { partition_items, ..aim(kind, MANY, AT_MOST) }
}

pub const AIMS: [Aim; 15] = [
    Aim {
        of_the_loop: Some(2.0),
        ..aim(Kind::Read, MANY, &[(Measure::Cpu, [0.70, 0.55]), (Measure::P999, [TAIL; 2])])
    },
    aim(Kind::Read, 1, &[(Measure::Cpu, [1.3, 1.1]), (Measure::P999, [TAIL; 2])]),
    scoped(Kind::Scoped, PARTITIONS[0]),
    scoped(Kind::Scoped, PARTITIONS[1]),
    scoped(Kind::Scoped, PARTITIONS[2]),
    scoped(Kind::Top, PARTITIONS[0]),
    scoped(Kind::Top, PARTITIONS[1]),
    scoped(Kind::Top, PARTITIONS[2]),
    scoped(Kind::Count, PARTITIONS[0]),
    scoped(Kind::Count, PARTITIONS[1]),
    scoped(Kind::Count, PARTITIONS[2]),
    aim(Kind::Insert, MANY, &[(Measure::Cpu, [0.80, 0.45]), (Measure::P999, [TAIL; 2])]),
    aim(Kind::Replace, MANY, &[(Measure::Cpu, [0.75, 0.50]), (Measure::P999, [TAIL; 2])]),
    aim(
        Kind::Insert,
        1,
        &[(Measure::Cpu, [1.5, 1.2]), (Measure::P50, [1.2, 1.0]), (Measure::P999, [TAIL; 2])],
    ),
    // An operation takes some tenths of a second: too few of them for a tail.
    aim(Kind::Contains, 1, &[(Measure::Cpu, [1.0, 1.0])]),
];

impl Aim {
    /// Returns the longest pause in milliseconds; none for an operation that takes longer by its nature.
    pub fn pause_ms(&self) -> Option<f64> {
        (self.kind != Kind::Contains).then_some(PAUSE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_workload_has_two_rows() {
        for (at, aim) in AIMS.iter().enumerate() {
            let key = |aim: &Aim| (aim.kind, aim.partition_items, aim.connections);
            assert!(AIMS[..at].iter().all(|other| key(other) != key(aim)), "{aim:?}");
        }
    }
}
