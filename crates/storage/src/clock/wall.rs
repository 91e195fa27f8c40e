//! The door to the machine's clocks, and the clock that tests move by hand.

use crate::Time;
use parking_lot::Mutex;
use std::time::Duration;

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

/// The machine's two clocks. The real one lives in `server`.
pub trait WallClock: Send + Sync {
    /// What the machine believes the time is. It may leap and may be set back.
    fn wall(&self) -> Time;

    /// Time passed since some fixed moment. It never goes back while the process runs.
    fn monotonic(&self) -> Duration;
}

/// A clock that stands still until it is moved: wall and monotonic time together or apart.
#[derive(Debug)]
pub struct ManualClock(Mutex<Hands>);

#[derive(Debug)]
struct Hands {
    wall: Time,
    monotonic: Duration,
    /// How much time each look at the wall clock takes.
    step: Duration,
}

impl Hands {
    fn advance(&mut self, duration: Duration) {
        self.wall = self.wall.plus(duration);
        self.monotonic = self.monotonic.saturating_add(duration);
    }
}

impl ManualClock {
    /// A clock whose wall time is `wall`.
    pub const fn new(wall: Time) -> Self {
        Self(Mutex::new(Hands { wall, monotonic: Duration::ZERO, step: Duration::ZERO }))
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, duration: Duration) {
        self.0.lock().advance(duration);
    }

    /// From now on each look at the wall clock takes so long.
    pub fn set_step(&self, step: Duration) {
        self.0.lock().step = step;
    }

    /// Sets the wall clock alone, forward or backward.
    pub fn set_wall(&self, wall: Time) {
        self.0.lock().wall = wall;
    }

    /// Lets time pass on the monotonic clock alone.
    pub fn advance_monotonic(&self, duration: Duration) {
        let mut hands = self.0.lock();
        hands.monotonic = hands.monotonic.saturating_add(duration);
    }
}

impl WallClock for ManualClock {
    fn wall(&self) -> Time {
        let mut hands = self.0.lock();
        let step = hands.step;
        hands.advance(step);
        hands.wall
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().monotonic
    }
}
