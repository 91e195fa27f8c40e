//! Texts that describe the clock's state, in one place so that tools, explorer, log and admin API agree (T34).

use super::{ClockStatus, Leap};
use std::fmt::{self, Display, Formatter};

/// The offset between shown time and system clock below which the two count as in step: commits and the scheduler cause
/// that much.
const NEGLIGIBLE_MS: u64 = 100;

/// The offset below which a suspect clock counts as having come back: a larger one is that of the leap.
const CAME_BACK_MS: u64 = 60_000;

/// The offset of shown time from the machine's wall clock, and whether it is shrinking.
///
/// Its `Display` is meant for people: `12.4 s ahead of the system clock, slowing down until they agree`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    ahead_ms: i64,
    /// Whether time runs slower until the wall clock has caught up.
    slowing: bool,
    /// Whether a test clock was advanced, which is not part of the offset.
    advanced: bool,
}

impl ClockOffset {
    /// The offset above which the log warns and the explorer shows a badge: `_ts` and `ttl` count whole seconds.
    pub const NOTEWORTHY_MS: u64 = 1_000;

    /// Returns the milliseconds by which shown time is ahead of the wall clock; negative if it is behind.
    pub fn ahead_ms(self) -> i64 {
        self.ahead_ms
    }

    /// Returns whether the offset is large enough for users to notice.
    pub fn is_noteworthy(self) -> bool {
        self.ahead_ms.unsigned_abs() > Self::NOTEWORTHY_MS
    }
}

impl Display for ClockOffset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let distance_ms = self.ahead_ms.unsigned_abs();
        if distance_ms < NEGLIGIBLE_MS {
            f.write_str("in step with the system clock")?;
        } else {
            let side = if self.ahead_ms > 0 { "ahead of" } else { "behind" };
            let course = if self.slowing { ", slowing down until they agree" } else { "" };
            write!(f, "{} {side} the system clock{course}", Span(distance_ms))?;
        }
        if self.advanced { f.write_str(" (the test clock's advance apart)") } else { Ok(()) }
    }
}

impl Leap {
    /// Returns the name used by the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Leap::Running => "running",
            Leap::Start => "start",
            Leap::Behind => "behind",
        }
    }
}

impl ClockStatus {
    /// Returns the offset of shown time, without the test clock's advance.
    pub fn offset(&self) -> ClockOffset {
        ClockOffset { ahead_ms: self.ahead_ms, slowing: self.slewing, advanced: self.advanced_ms > 0 }
    }

    /// Returns why the clock is suspect, as a clause: `while the server ran, the system clock leapt 2 h ahead`.
    pub fn suspicion(&self) -> Option<String> {
        let suspicion = self.suspect?;
        let (ahead, is_ahead) = (Span(suspicion.ahead_ms), suspicion.ahead_ms >= CAME_BACK_MS);
        Some(match suspicion.leap {
            Leap::Running if is_ahead => {
                format!("while the server ran, the system clock leapt {ahead} ahead")
            }
            Leap::Running => {
                format!("while the server ran, the system clock leapt ahead, and it {}", self.present())
            }
            Leap::Start if is_ahead => {
                format!("at its start the server found the system clock {ahead} ahead")
            }
            Leap::Start => {
                format!("at its start the server found the system clock far ahead, and it {}", self.present())
            }
            Leap::Behind if self.ahead_ms > 0 && self.ahead_ms.unsigned_abs() >= CAME_BACK_MS => {
                format!("the system clock is {} behind the time shown", Span(self.ahead_ms.unsigned_abs()))
            }
            Leap::Behind => {
                format!("the system clock was far behind the time shown, and it {}", self.present())
            }
        })
    }

    /// Describes where the system clock is now, for a clock that has come back since it became suspect.
    fn present(&self) -> String {
        let distance_ms = self.ahead_ms.unsigned_abs();
        if distance_ms <= ClockOffset::NOTEWORTHY_MS {
            return "agrees with the time shown now".to_owned();
        }
        let side = if self.ahead_ms > 0 { "behind" } else { "ahead of" };
        format!("is {} {side} the time shown now", Span(distance_ms))
    }
}

/// A span for people: tenths of a second below a minute, otherwise the two largest units.
struct Span(u64);

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
        let seconds = self.0 / 1000;
        if seconds < 60 {
            return write!(f, "{seconds}.{} s", self.0 % 1000 / 100);
        }
        let first = UNITS.iter().position(|(_, length)| seconds >= *length).unwrap_or(UNITS.len() - 1);
        let (name, length) = UNITS[first];
        write!(f, "{} {name}", seconds / length)?;
        match UNITS.get(first + 1) {
            Some((name, second)) if seconds % length >= *second => {
                write!(f, " {} {name}", seconds % length / second)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::clock::{Suspicion, TestClock};

    const NOW: Time = Time::from_seconds(1_700_000_000);

    #[test]
    fn t34_an_offset_is_told_with_what_becomes_of_it() {
        for (ahead_ms, text, noteworthy) in [
            (0, "in step with the system clock", false),
            (-99, "in step with the system clock", false),
            (100, "0.1 s ahead of the system clock, slowing down until they agree", false),
            (1_000, "1.0 s ahead of the system clock, slowing down until they agree", false),
            (12_450, "12.4 s ahead of the system clock, slowing down until they agree", true),
            (3_599_000, "59 m 59 s ahead of the system clock, slowing down until they agree", true),
            (-1_001, "1.0 s behind the system clock", true),
            (-90_000_000, "1 d 1 h behind the system clock", true),
        ] {
            let offset = ClockStatus::trusted_at(NOW, ahead_ms).offset();
            assert_eq!((offset.to_string().as_str(), offset.is_noteworthy()), (text, noteworthy));
            assert_eq!(offset.ahead_ms(), ahead_ms);
        }
    }

    #[test]
    fn t34_a_clock_that_does_not_slow_down_does_not_say_so() {
        let stopped = ClockStatus {
            test_clock: TestClock::Stopped,
            slewing: false,
            ..ClockStatus::trusted_at(NOW, 5_000)
        };
        assert_eq!(stopped.offset().to_string(), "5.0 s ahead of the system clock");
        let advanced = ClockStatus { advanced_ms: 1_000, ..ClockStatus::trusted_at(NOW, 0) };
        assert_eq!(
            advanced.offset().to_string(),
            "in step with the system clock (the test clock's advance apart)"
        );
        let suspect = Suspicion { leap: Leap::Behind, wall: Time::ZERO, ahead_ms: 0, accepted: NOW };
        let suspect =
            ClockStatus { suspect: Some(suspect), slewing: false, ..ClockStatus::trusted_at(NOW, 7_200_000) };
        assert_eq!(suspect.offset().to_string(), "2 h ahead of the system clock");
    }

    #[test]
    fn t34_a_suspicion_says_what_happened() {
        let ran = "while the server ran, the system clock leapt";
        let started = "at its start the server found the system clock";
        let behind = "the system clock was far behind the time shown, and it";
        for (leap, ahead_of_trusted_ms, shown_ahead_ms, text) in [
            (Leap::Running, 7_200_000, -7_200_000, format!("{ran} 2 h ahead")),
            (Leap::Running, 0, 0, format!("{ran} ahead, and it agrees with the time shown now")),
            (
                Leap::Running,
                5_000,
                -5_000,
                format!("{ran} ahead, and it is 5.0 s ahead of the time shown now"),
            ),
            (Leap::Running, 0, 600_000, format!("{ran} ahead, and it is 10 m behind the time shown now")),
            (Leap::Start, 10_000_000_000, 0, format!("{started} 115 d 17 h ahead")),
            (
                Leap::Start,
                0,
                90_000_000,
                format!("{started} far ahead, and it is 1 d 1 h behind the time shown now"),
            ),
            (Leap::Behind, 0, 5_400_000, "the system clock is 1 h 30 m behind the time shown".to_owned()),
            (Leap::Behind, 0, 2_000, format!("{behind} is 2.0 s behind the time shown now")),
            (Leap::Behind, 0, 0, format!("{behind} agrees with the time shown now")),
            (Leap::Behind, 600_000, -600_000, format!("{behind} is 10 m ahead of the time shown now")),
        ] {
            let suspect =
                Some(Suspicion { leap, wall: Time::ZERO, ahead_ms: ahead_of_trusted_ms, accepted: NOW });
            let status = ClockStatus { suspect, ..ClockStatus::trusted_at(NOW, shown_ahead_ms) };
            assert_eq!(status.suspicion(), Some(text));
        }
        assert_eq!(ClockStatus::trusted_at(NOW, 0).suspicion(), None);
    }
}
