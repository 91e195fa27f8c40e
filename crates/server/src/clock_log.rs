//! Log lines about the clock (T34): that it is suspect, and that shown time is more than a second from the system
//! clock.
//!
//! Each is one line when it begins and one when it ends, not one each second. The loop costs an idle server nothing: it
//! compares the machine's two clocks, without the disk, and reads the store's clock only if they have moved apart, or
//! if a logged offset should have healed.

use std::sync::Arc;
use std::time::Duration;

use engine::{ClockStatus, Engine};
use parking_lot::Mutex;
use storage::WallClock;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How often the machine's clocks are compared.
const PAUSE: Duration = Duration::from_secs(1);
/// How far the wall clock must move against the boot-time clock to count as set.
const STEP_MS: u64 = 200;
/// The offset below which a logged one has ended; less than where it begins, so that one around a second is not logged
/// repeatedly.
const HEALED_MS: u64 = 500;
/// How long after a line about an offset the next one to the same side is suppressed.
const QUIET: Duration = Duration::from_mins(1);
/// Time runs at nine tenths while it is ahead, so an offset heals in ten times its length.
const HEALING_FACTOR: u64 = 10;
/// The longest time between two checks of a logged offset.
const LOOK_MAX: Duration = Duration::from_mins(10);

/// Writes each line once, whichever loop notices it first.
pub(crate) struct ClockLog {
    /// The machine's clocks.
    clock: Arc<dyn WallClock>,
    logged: Mutex<Logged>,
}

impl ClockLog {
    pub(crate) fn new(clock: Arc<dyn WallClock>) -> ClockLog {
        ClockLog { clock, logged: Mutex::default() }
    }

    /// Logs what is new in `status`.
    pub(crate) fn log(&self, status: &ClockStatus) {
        let lines = self.logged.lock().news(status, self.clock.boot_time());
        for line in lines {
            match line {
                LogLine::Error(text) => tracing::error!("{text}"),
                LogLine::Warning(text) => tracing::warn!("{text}"),
            }
        }
    }

    /// Compares the clocks until dropped.
    pub(crate) async fn watch(&self, engine: &Arc<Engine>) {
        let mut before = None;
        loop {
            let found = self.distance_ms();
            let moved = before.is_none_or(|before: i64| before.abs_diff(found) >= STEP_MS);
            if moved || self.logged.lock().is_due(self.clock.boot_time()) {
                let engine = Arc::clone(engine);
                // An error stops the store and is logged by the loops that need it.
                if let Ok(Ok(status)) = spawn_blocking(move || engine.clock_status()).await {
                    self.log(&status);
                    before = Some(found);
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns how far the wall clock is ahead of the boot-time clock.
    fn distance_ms(&self) -> i64 {
        let boot_time = i64::try_from(self.clock.boot_time().as_millis()).unwrap_or(i64::MAX);
        i64::try_from(self.clock.wall().millis()).unwrap_or(i64::MAX).saturating_sub(boot_time)
    }
}

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
enum LogLine {
    Error(String),
    Warning(String),
}

/// Whether shown time is ahead of the wall clock or behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ahead,
    Behind,
}

/// The state of the log lines.
#[derive(Debug, Default)]
struct Logged {
    suspect: bool,
    /// The offset that has not ended.
    offset: Option<Side>,
    /// When an offset to either side was last logged.
    ahead_at: Option<Duration>,
    behind_at: Option<Duration>,
    /// When to check again at the latest; `None` while nothing is open.
    look_at: Option<Duration>,
}

impl Logged {
    fn news(&mut self, status: &ClockStatus, at: Duration) -> Vec<LogLine> {
        let mut lines = Vec::new();
        match status.suspicion() {
            Some(reason) if !self.suspect => lines.push(LogLine::Error(format!(
                "clock suspect: {reason}; nothing is purged until an operator accepts the system clock's time (bolide clock \
                 accept) or rejects it (bolide clock reject)"
            ))),
            None if self.suspect => lines.push(LogLine::Warning("the clock is trusted again".to_owned())),
            Some(_) | None => {}
        }
        self.suspect = status.suspect.is_some();
        lines.extend(self.offset_news(status, at));
        self.look_at = self.look_again(status, at);
        lines
    }

    fn offset_news(&mut self, status: &ClockStatus, at: Duration) -> Option<LogLine> {
        let offset = status.offset();
        let side = if offset.ahead_ms() > 0 { Side::Ahead } else { Side::Behind };
        // A suspicion has its own line, which includes the distance.
        if status.suspect.is_none() && offset.is_noteworthy() && self.offset != Some(side) {
            let last = match side {
                Side::Ahead => &mut self.ahead_at,
                Side::Behind => &mut self.behind_at,
            };
            if last.is_some_and(|last| at < last + QUIET) {
                return None;
            }
            (*last, self.offset) = (Some(at), Some(side));
            return Some(LogLine::Warning(format!("the store's time is {offset}")));
        }
        if self.offset.is_some() && offset.ahead_ms().unsigned_abs() < HEALED_MS {
            self.offset = None;
            return Some(LogLine::Warning("the store's time agrees with the system clock again".to_owned()));
        }
        None
    }

    fn is_due(&self, at: Duration) -> bool {
        self.look_at.is_some_and(|due| at >= due)
    }

    /// Returns when the offset should have ended, or when one may be logged that followed the last too soon.
    fn look_again(&self, status: &ClockStatus, at: Duration) -> Option<Duration> {
        let distance_ms = status.ahead_ms.unsigned_abs();
        let open = self.offset.is_some() || (status.suspect.is_none() && status.offset().is_noteworthy());
        let wait =
            Duration::from_millis(distance_ms.saturating_sub(HEALED_MS).saturating_mul(HEALING_FACTOR));
        open.then(|| at + wait.clamp(PAUSE, LOOK_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::{Leap, Suspicion, Time};

    const NOW: Time = Time::from_seconds(1_700_000_000);

    fn warned(text: &str) -> Vec<LogLine> {
        vec![LogLine::Warning(text.to_owned())]
    }

    #[test]
    fn t34_an_offset_of_more_than_a_second_is_logged_once_and_when_it_has_healed() {
        let mut logged = Logged::default();
        let ahead = "the store's time is 12.4 s ahead of the system clock, slowing down until they agree";
        let healed = "the store's time agrees with the system clock again";
        for (second, ahead_ms, lines) in [
            (0, 80, Vec::new()),
            (1, 1_000, Vec::new()),
            (2, 12_400, warned(ahead)),
            (3, 12_300, Vec::new()),
            (60, 1_001, Vec::new()),
            (61, 900, Vec::new()),
            (62, 1_200, Vec::new()),
            (63, 499, warned(healed)),
            (64, 100, Vec::new()),
            (80, -3_000, warned("the store's time is 3.0 s behind the system clock")),
            (81, 0, warned(healed)),
        ] {
            assert_eq!(
                logged.news(&ClockStatus::trusted_at(NOW, ahead_ms), Duration::from_secs(second)),
                lines,
                "second {second}"
            );
        }
    }

    #[test]
    fn t34_offsets_that_come_and_go_are_logged_once_a_minute() {
        let mut logged = Logged::default();
        let mut lines = 0;
        for second in 0..600 {
            let ahead_ms = if second % 2 == 0 { 2_000 } else { 0 };
            lines += logged.news(&ClockStatus::trusted_at(NOW, ahead_ms), Duration::from_secs(second)).len();
        }
        assert_eq!(lines, 20, "a warning and its end each minute");
    }

    #[test]
    fn t34_a_suspicion_is_logged_with_the_command_that_accepts_and_without_a_second_line() {
        let mut logged = Logged::default();
        let suspicion =
            Suspicion { leap: Leap::Running, wall: Time::ZERO, ahead_ms: 7_200_000, accepted: NOW };
        let suspect = ClockStatus { suspect: Some(suspicion), ..ClockStatus::trusted_at(NOW, -7_200_000) };
        let lines = logged.news(&suspect, Duration::ZERO);
        let [LogLine::Error(text)] = lines.as_slice() else { panic!("{lines:?}") };
        let expected = "clock suspect: while the server ran, the system clock leapt 2 h ahead; ";
        assert!(text.starts_with(expected) && text.contains("(bolide clock accept)"), "{text}");
        assert_eq!(logged.news(&suspect, PAUSE), []);
        assert_eq!(
            logged.news(&ClockStatus::trusted_at(NOW, 0), 2 * PAUSE),
            warned("the clock is trusted again")
        );
    }

    #[test]
    fn t34_an_open_offset_is_looked_at_when_it_should_have_healed_and_none_is_not() {
        let mut logged = Logged::default();
        let at = Duration::from_secs(1000);
        for (ahead_ms, wait) in [
            (0, None),
            (2_500, Some(Duration::from_secs(20))),
            (501, Some(PAUSE)),
            (3_600_000, Some(LOOK_MAX)),
            (100, None),
            // Too soon after the last one to be logged, but remembered.
            (2_500, Some(Duration::from_secs(20))),
        ] {
            logged.news(&ClockStatus::trusted_at(NOW, ahead_ms), at);
            assert_eq!(logged.look_at, wait.map(|wait| at + wait), "{ahead_ms}");
            assert!(!logged.is_due(at));
            assert_eq!(logged.is_due(at + LOOK_MAX), wait.is_some(), "{ahead_ms}");
        }
    }
}
