//! The interface to the machine's clocks, and the clock that tests move by hand.

use crate::Time;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The machine's two clocks.
pub trait WallClock: Send + Sync {
    /// What the machine believes the time is. It may leap and may be set back.
    fn wall(&self) -> Time;

    /// Time since the machine started, suspends included. It never goes back while the process runs.
    fn boot_time(&self) -> Duration;

    /// Which boot of which machine [`boot_time`](Self::boot_time) counts from; none if the machine does not tell, or if its
    /// answer may be the same for another origin.
    fn boot_id(&self) -> Option<BootId>;
}

/// The identity of one boot of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId([u8; 16]);

impl BootId {
    /// The boot with these bytes; zeros stand for an unknown boot.
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    pub(crate) fn bytes(self) -> [u8; 16] {
        self.0
    }
}

/// A machine whose clocks stand still until they are moved: together or apart, and over reboots.
#[derive(Debug)]
pub struct ManualClock(Mutex<Machine>);

#[derive(Debug)]
struct Machine {
    wall: Time,
    boot_time: Duration,
    boot_id: Option<BootId>,
    /// How much time each look at the wall clock takes.
    step: Duration,
}

impl Machine {
    fn advance(&mut self, duration: Duration) {
        self.wall = self.wall.plus(duration);
        self.boot_time = self.boot_time.saturating_add(duration);
    }
}

impl ManualClock {
    /// A machine that has just started, with a boot id of its own, whose wall time is `wall`.
    pub fn new(wall: Time) -> Self {
        Self(Mutex::new(Machine {
            wall,
            boot_time: Duration::ZERO,
            boot_id: next_boot_id(),
            step: Duration::ZERO,
        }))
    }

    /// A clock that stands where `clock` is now.
    pub(super) fn stopped(clock: &dyn WallClock) -> Self {
        let (wall, boot_time, boot_id) = (clock.wall(), clock.boot_time(), clock.boot_id());
        Self(Mutex::new(Machine { wall, boot_time, boot_id, step: Duration::ZERO }))
    }

    /// Lets time pass on both clocks, as it does while a machine runs and while a laptop is suspended.
    pub fn advance(&self, duration: Duration) {
        self.0.lock().advance(duration);
    }

    /// From now on each look at the wall clock takes so long.
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

    /// Restarts the machine, which takes so long by the wall clock: another boot id, and boot time from zero.
    pub fn reboot(&self, down: Duration) {
        let mut machine = self.0.lock();
        machine.wall = machine.wall.plus(down);
        machine.boot_time = Duration::ZERO;
        machine.boot_id = next_boot_id();
    }

    /// Sets boot time and id, as of a machine restored from a snapshot of its memory; without an id the machine does not
    /// tell its boot.
    pub fn set_boot(&self, boot_id: Option<BootId>, boot_time: Duration) {
        let mut machine = self.0.lock();
        (machine.boot_id, machine.boot_time) = (boot_id, boot_time);
    }
}

/// No two machines made in this process, and no two boots of one, have the same id.
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
