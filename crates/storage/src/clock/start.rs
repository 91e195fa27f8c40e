//! Where time continues when a store is opened.
//!
//! Within one boot of the machine a start is a reading after a pause: boot time tells how long it was, and the rule of
//! the running clock applies. The floor, the limit of the record, only adds what may have been shown beyond the line
//! before a crash. In another boot only the bound and the wall clock are known.

use super::record::{Boot, BootLine, ClockRecord};
use super::running::{ActiveSuspicion, State};
use super::{ClockOptions, Leap};
use crate::Time;
use std::time::Duration;

impl State {
    /// Creates the state of a new store, which trusts the wall clock.
    pub(super) fn new_store(wall: Time, boot: Boot) -> Self {
        Self::at(wall, boot, ClockRecord::default())
    }

    /// Creates the state of a store that is opened again.
    pub(super) fn reopened(durable: ClockRecord, wall: Time, boot: Boot, options: &ClockOptions) -> Self {
        let line = durable.boot.and_then(|line| Some((line, line.elapsed(boot)?)));
        match line {
            Some((line, elapsed)) => Self::in_same_boot(durable, line, elapsed, wall, boot, options),
            None => Self::in_another_boot(durable, wall, boot, options),
        }
    }

    fn in_same_boot(
        durable: ClockRecord,
        line: BootLine,
        elapsed: Duration,
        wall: Time,
        boot: Boot,
        options: &ClockOptions,
    ) -> Self {
        let mut state =
            Self::at(line.line, Boot { time: boot.time.saturating_sub(elapsed), ..boot }, durable);
        state.suspicion = durable.suspicion.map(|suspicion| ActiveSuspicion {
            leap: suspicion.leap,
            gap_ms: durable.bound.millis_since(suspicion.trusted),
        });
        let floor = durable.limit(boot).unwrap_or(durable.bound);
        let known = line.line.plus(elapsed).max(floor);
        if state.suspicion.is_none() && wall > known.plus(options.max_start_gap) {
            state = Self::at(wall, boot, durable);
            state.suspicion = Some(ActiveSuspicion { leap: Leap::Start, gap_ms: wall.millis_since(known) });
        } else {
            state.tick(wall, boot.time, options.max_clock_jump);
        }
        state.raise_to(floor);
        state
    }

    fn in_another_boot(durable: ClockRecord, wall: Time, boot: Boot, options: &ClockOptions) -> Self {
        let known = durable.suspicion.map_or(durable.bound, |suspicion| suspicion.trusted);
        let mut state = Self::at(wall.max(durable.bound), boot, durable);
        let is_ahead_by = |span| wall > known.plus(span);
        let leap = if state.is_behind(wall, durable.bound, options.max_clock_jump) {
            Some(Leap::Behind)
        } else if is_ahead_by(options.max_start_gap) {
            Some(Leap::Start)
        } else {
            durable.suspicion.map(|suspicion| match suspicion.leap {
                // A leap that was not followed is shown from this start on.
                Leap::Running if is_ahead_by(options.max_clock_jump) => Leap::Start,
                leap => leap,
            })
        };
        let gap_ms = state.time().millis_since(known);
        state.suspicion = leap.map(|leap| ActiveSuspicion { leap, gap_ms });
        state
    }
}
