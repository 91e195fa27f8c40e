//! How much of a long task to run: the programs of `bench/` and `proof/` understand the same flags.

/// An extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Proofs in two minutes, as part of every test run; benchmarks in fifteen, once everything is built.
    Quick,
    /// Proofs in some minutes; benchmarks with more rounds and a million items.
    Full,
    /// 500 kills, and a power loss after each sync; benchmarks up to ten million items, with half an hour of
    /// churn: hours, and 20 GB of disk.
    Long,
}

impl Extent {
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Quick => &["--quick"],
            Self::Full => &[],
            Self::Long => &["--long"],
        }
    }
}
