//! Whether the purge has too little capacity: a pure state machine over measurements of the backlog.
//!
//! While the oldest expired item has waited for [`TOLERATED_AGE`], measurements are gathered into windows of [`WINDOW`].
//! Capacity is short after a window in which the backlog grew by a noticeable part of what expired; and after windows
//! over which the backlog and the age of its oldest item have both grown, however slowly: a deficit of three percent
//! fills a disk too.
//!
//! Items expire at full seconds, so both figures go up and down within each second. Windows are compared by the
//! lowest values in them, which do not depend on where in a second a window ends. A backlog that merely waits, for
//! units that users leave or for an operator to resume the purge, grows older but not larger: that is no shortage.

use std::time::Duration;

use super::Backlog;

/// How long the oldest item may wait before a shortage is judged, and before the operator's share is used.
pub(super) const TOLERATED_AGE: Duration = Duration::from_secs(5);
/// The length of a window.
const WINDOW: Duration = Duration::from_secs(30);
/// A backlog that grew by more than one part in this many of what expired in a window is a shortage by itself. A
/// smaller growth may come from one second more or less in the window.
const GROWTH_PART: u64 = 20;
/// How much the age must have grown over consecutive windows: twice the time between two measurements, which is the
/// uncertainty of the lowest values of a window.
const AGE_GROWTH: Duration = Duration::from_millis(500);

/// The time between two measurements of the backlog, the items expired and purged in it, and the second measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) seconds: f64,
    pub(super) expired: u64,
    pub(super) purged: u64,
    pub(super) backlog: Backlog,
}

/// The state machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Shortage {
    window: Option<Window>,
    /// The lowest values of the previous window.
    before: Option<Backlog>,
    /// How much the age has grown over the consecutive windows in which everything grew.
    age_growth: Duration,
    is_short: bool,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    seconds: f64,
    expired: u64,
    purged: u64,
    lowest: Backlog,
}

impl Shortage {
    /// Returns whether more expires than the purge can remove.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Takes the next measurement. After a gap the time between is unknown, so a new window begins.
    pub(super) fn look(&mut self, look: Look) {
        if look.backlog.age < TOLERATED_AGE {
            *self = Shortage::default();
            return;
        }
        match &mut self.window {
            Some(window) if look.seconds < WINDOW.as_secs_f64() => {
                window.count(look);
                if window.seconds >= WINDOW.as_secs_f64() {
                    let whole = *window;
                    self.judge(whole);
                    self.window = Some(Window::from(look.backlog));
                }
            }
            _ => *self = Shortage { window: Some(Window::from(look.backlog)), ..Shortage::default() },
        }
    }

    fn judge(&mut self, Window { expired, purged, lowest, .. }: Window) {
        let grown = |before: Backlog| {
            let older_by = lowest.age.saturating_sub(before.age);
            let is_growing = lowest.items > before.items && older_by > Duration::ZERO;
            is_growing.then(|| self.age_growth + older_by)
        };
        self.age_growth = self.before.and_then(grown).unwrap_or_default();
        let is_noticeable = expired.saturating_sub(purged) > expired / GROWTH_PART;
        self.is_short = is_noticeable || self.age_growth >= AGE_GROWTH;
        self.before = Some(lowest);
    }
}

impl Window {
    fn count(&mut self, look: Look) {
        self.seconds += look.seconds;
        self.expired += look.expired;
        self.purged += look.purged;
        let Backlog { items, age } = look.backlog;
        self.lowest = Backlog { items: self.lowest.items.min(items), age: self.lowest.age.min(age) };
    }
}

/// Begins an empty window with this measurement.
impl From<Backlog> for Window {
    fn from(lowest: Backlog) -> Window {
        Window { seconds: 0.0, expired: 0, purged: 0, lowest }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const LOOK_MS: u64 = 250;

    /// A stream of items: how many expire per second and how many are removed, oldest first.
    #[derive(Default)]
    struct Stream {
        shortage: Shortage,
        now_ms: u64,
        /// When they expired, and how many.
        waiting: VecDeque<(u64, u64)>,
        /// Measurements at which capacity was short.
        short_looks: u64,
    }

    impl Stream {
        fn run(&mut self, seconds: u64, expiring: u64, purging: u64) {
            for _ in 0..seconds * 1000 / LOOK_MS {
                let expired = if self.now_ms.is_multiple_of(1000) { expiring } else { 0 };
                if expired > 0 {
                    self.waiting.push_back((self.now_ms, expired));
                }
                self.now_ms += LOOK_MS;
                let purged = self.remove(purging * LOOK_MS / 1000);
                let age = self.waiting.front().map_or(0, |(since, _)| self.now_ms - since);
                let items = self.waiting.iter().map(|(_, items)| items).sum();
                let backlog = Backlog { items, age: Duration::from_millis(age) };
                self.shortage.look(Look { seconds: LOOK_MS as f64 / 1000.0, expired, purged, backlog });
                self.short_looks += u64::from(self.shortage.is_short());
            }
        }

        fn remove(&mut self, limit: u64) -> u64 {
            let mut left = limit;
            while left > 0
                && let Some((_, items)) = self.waiting.front_mut()
            {
                let gone = left.min(*items);
                (*items, left) = (*items - gone, left - gone);
                if *items == 0 {
                    self.waiting.pop_front();
                }
            }
            limit - left
        }
    }

    /// Returns a stream with a backlog whose oldest item has waited for a while.
    fn with_backlog() -> Stream {
        let mut stream = Stream::default();
        stream.run(10, 4400, 0);
        stream
    }

    #[test]
    fn t20_a_small_deficit_is_told_and_no_longer_when_it_is_gone() {
        // One, three and five in a hundred of what expires stay; the smaller the share, the longer it takes to be
        // detected.
        for (purging, within_seconds) in [(4356, 120), (4268, 90), (4200, 90)] {
            let mut stream = with_backlog();
            stream.run(within_seconds, 4400, purging);
            assert!(stream.shortage.is_short(), "{purging} a second");
            let before = stream.short_looks;
            stream.run(300, 4400, purging);
            assert_eq!(stream.short_looks - before, 1200, "{purging} a second: told all the time");
            stream.run(60, 4400, 4400);
            assert!(!stream.shortage.is_short(), "{purging} a second: it grows no more");
        }
    }

    #[test]
    fn t20_a_backlog_that_stays_as_it_is_or_shrinks_is_no_shortage() {
        for purging in [4400, 4420, 4600] {
            let mut stream = with_backlog();
            // Until the window in which the backlog grew is over.
            stream.run(90, 4400, 4400);
            let before = stream.short_looks;
            stream.run(600, 4400, purging);
            assert_eq!(stream.short_looks, before, "{purging} a second");
        }
    }

    #[test]
    fn t20_a_backlog_that_only_grows_older_is_no_shortage() {
        let mut stream = Stream::default();
        stream.run(1, 5000, 0);
        stream.run(300, 0, 0);
        stream.run(300, 0, 4);
        assert_eq!(stream.short_looks, 0);
    }
}
