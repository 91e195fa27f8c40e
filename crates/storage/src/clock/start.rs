//! Where time goes on when a store is opened.
//!
//! Within one boot of the machine a start is a look at the clock after a pause: boot time says how long it was, and the
//! rule of the running clock does the rest. The floor, the limit of the record, only adds what a crash may have shown
//! beyond the line. In another boot nothing but the bound and the wall clock is known.

use super::record::{Boot, BootLine, ClockRecord};
use super::running::{Doubt, State};
use super::{ClockOptions, Leap};
use crate::Time;
use std::time::Duration;

impl State {
    /// A new store trusts the wall clock.
    pub(super) fn new_store(wall: Time, boot: Boot) -> Self {
        Self::at(wall, boot, ClockRecord::default())
    }

    /// The state of a store that is opened again.
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
        state.doubt = durable.suspicion.map(|suspicion| Doubt {
            leap: suspicion.leap,
            gap_ms: durable.bound.millis_since(suspicion.trusted),
        });
        let floor = durable.limit(boot).unwrap_or(durable.bound);
        let known = line.line.plus(elapsed).max(floor);
        if state.doubt.is_none() && wall > known.plus(options.max_start_gap) {
            state = Self::at(wall, boot, durable);
            state.doubt = Some(Doubt { leap: Leap::Start, gap_ms: wall.millis_since(known) });
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
        state.doubt = leap.map(|leap| Doubt { leap, gap_ms });
        state
    }
}
