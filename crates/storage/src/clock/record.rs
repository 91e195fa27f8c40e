//! What is durable about the clock, and the floor that follows from it (T13).

use super::Leap;
use super::wall::BootId;
use crate::Time;

/// The durable part of the clock; every commit may carry a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockRecord {
    /// No raw time beyond this has been shown.
    pub(crate) bound: Time,
    /// The test clock's advance.
    pub(crate) advanced_ms: u64,
    /// Set while the clock is suspect.
    pub(crate) suspicion: Option<RecordedSuspicion>,
    /// Where time stood within the writer's boot; none if the machine does not tell its boot, and in a backup.
    pub(crate) boot: Option<BootLine>,
    /// How far behind the shown time an operator has accepted the wall clock to be.
    pub(crate) accepted_ms: u64,
}

/// A suspicion that no operator has decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedSuspicion {
    /// What made the clock suspect.
    pub(crate) leap: Leap,
    /// No trusted raw time beyond this has been shown.
    pub(crate) trusted: Time,
}

/// A point of the shown time within one boot of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BootLine {
    /// Which boot.
    pub(crate) id: BootId,
    /// The boot time at which the record was made, in milliseconds.
    pub(crate) boot_ms: u64,
    /// The raw time at `boot_ms`.
    pub(crate) line: Time,
}
