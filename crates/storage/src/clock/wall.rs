//! The interface to the machine's clocks, and the clock that tests move by hand.

use crate::Time;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The machine's two clocks.
pub trait WallClock: Send + Sync {
    /// Returns the time of day according to the machine. It may leap and may be set back.
    fn wall(&self) -> Time;

    /// Returns the time since the machine started, suspends included. It never goes back while the process runs.
    fn boot_time(&self) -> Duration;

    /// Returns the boot that [`boot_time`](Self::boot_time) counts from; `None` if the machine does not report it, or
    /// if its answer may be the same for another origin.
    fn boot_id(&self) -> Option<BootId>;
}

/// The identity of one boot of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId([u8; 16]);

impl BootId {
    /// Creates the id with these bytes; zeros stand for an unknown boot.
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    pub(crate) fn bytes(self) -> [u8; 16] {
        self.0
    }
}

/// A machine whose clocks stand still until a test moves them: together or apart, and over reboots.
#[derive(Debug)]
pub struct ManualClock(Mutex<Machine>);

#[derive(Debug)]
struct Machine {
    wall: Time,
    boot_time: Duration,
    boot_id: Option<BootId>,
    /// How far each reading advances the wall clock.
    step: Duration,
}

impl Machine {
    fn advance(&mut self, duration: Duration) {
        self.wall = self.wall.plus(duration);
        self.boot_time = self.boot_time.saturating_add(duration);
    }
}

impl ManualClock {
    /// Creates a machine that has just started, with a boot id of its own, whose wall time is `wall`.
    pub fn new(wall: Time) -> Self {
        Self(Mutex::new(Machine {
            wall,
            boot_time: Duration::ZERO,
            boot_id: next_boot_id(),
            step: Duration::ZERO,
        }))
    }

    /// Creates a clock that stands still at the present time of `clock`.
    pub(super) fn stopped(clock: &dyn WallClock) -> Self {
        let (wall, boot_time, boot_id) = (clock.wall(), clock.boot_time(), clock.boot_id());
        Self(Mutex::new(Machine { wall, boot_time, boot_id, step: Duration::ZERO }))
    }

    /// Lets time pass on both clocks, as it does while a machine runs and while a laptop is suspended.
    pub fn advance(&self, duration: Duration) {
        self.0.lock().advance(duration);
    }

    /// Makes each later reading of the wall clock advance it by `step`.
    pub fn set_step(&self, step: Duration) {
        self.0.lock().step = step;
    }

    /// Sets the wall clock alone, forward or backward. Forward is also what a virtual machine sees that its host has paused.
    pub fn set_wall(&self, wall: Time) {
        self.0.lock().wall = wall;
    }

    /// Lets time pass on the boot-time clock alone: the wall clock loses it.
    pub fn advance_boot_time(&self, duration: Duration) {
        let mut machine = self.0.lock();
        machine.boot_time = machine.boot_time.saturating_add(duration);
    }

    /// Restarts the machine, which takes `down` by the wall clock: another boot id, and boot time from zero.
    pub fn reboot(&self, down: Duration) {
        let mut machine = self.0.lock();
        machine.wall = machine.wall.plus(down);
        machine.boot_time = Duration::ZERO;
        machine.boot_id = next_boot_id();
    }

    /// Sets boot time and id, as of a machine restored from a snapshot of its memory; without an id the machine does
    /// not report its boot.
    pub fn set_boot(&self, boot_id: Option<BootId>, boot_time: Duration) {
        let mut machine = self.0.lock();
        (machine.boot_id, machine.boot_time) = (boot_id, boot_time);
    }
}

/// Returns an id that no other machine and no other boot in this process has.
fn next_boot_id() -> Option<BootId> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    BootId::new((u128::from(number)).to_le_bytes())
}

impl WallClock for ManualClock {
    fn wall(&self) -> Time {
        let mut machine = self.0.lock();
        let step = machine.step;
        machine.advance(step);
        machine.wall
    }

    fn boot_time(&self) -> Duration {
        self.0.lock().boot_time
    }

    fn boot_id(&self) -> Option<BootId> {
        self.0.lock().boot_id
    }
}
