//! The machine's clocks: the one place that asks the operating system for the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{BootId, WallClock};
use crate::Time;

/// The clocks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl RealClock {
    /// The clocks of this machine.
    pub fn new() -> Self {
        Self
    }
}

impl WallClock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn wall(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn boot_time(&self) -> Duration {
        system::boot_time()
    }

    fn boot_id(&self) -> Option<BootId> {
        system::boot_id()
    }
}

/// Linux: boot time counts suspends, and the kernel names each boot.
#[cfg(target_os = "linux")]
mod system {
    use super::super::BootId;
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    pub(super) fn boot_time() -> Duration {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    }

    /// `None` in a time namespace that moves boot time: other processes see another boot time under the same id.
    pub(super) fn boot_id() -> Option<BootId> {
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        if super::moves_boot_time(&offsets) { None } else { super::parse_boot_id(&id) }
    }
}

/// On other systems time counts from the first reading, which no other process can relate to: every start counts as one
/// in another boot.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::super::BootId;
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    pub(super) fn boot_time() -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    pub(super) fn boot_id() -> Option<BootId> {
        None
    }
}

/// Returns whether the text of `/proc/self/timens_offsets` shows a boot time that is not the machine's.
#[cfg(any(target_os = "linux", test))]
fn moves_boot_time(offsets: &str) -> bool {
    let is_moved = |line: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some("boottime") && words.any(|offset| offset != "0")
    };
    offsets.lines().any(is_moved)
}

/// Parses a boot id such as `8767e00d-631a-4270-81d6-3a291ad2d9a0`.
#[cfg(any(target_os = "linux", test))]
fn parse_boot_id(text: &str) -> Option<BootId> {
    let digits: String = text.trim().chars().filter(|letter| *letter != '-').collect();
    let is_whole = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_whole)?;
    BootId::new(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::{RealClock, WallClock, moves_boot_time, parse_boot_id};

    #[test]
    fn a_boot_id_is_read_or_unknown() {
        let id = parse_boot_id("8767e00d-631a-4270-81d6-3a291ad2d9a0\n").map(|id| id.bytes()[..3].to_vec());
        assert_eq!(id.as_deref(), Some(&[0x87, 0x67, 0xe0][..]));
        for text in [
            "",
            "8767e00d",
            "+767e00d-631a-4270-81d6-3a291ad2d9a0",
            "no boot",
            "00000000-0000-0000-0000-000000000000",
        ] {
            assert_eq!(parse_boot_id(text), None, "{text}");
        }
    }

    #[test]
    fn t34_a_time_namespace_that_moves_boot_time_is_noticed() {
        assert!(!moves_boot_time(""));
        assert!(!moves_boot_time("monotonic           0         0\nboottime            0         0\n"));
        assert!(!moves_boot_time("monotonic           5         0\nboottime            0         0\n"));
        assert!(moves_boot_time("monotonic           0         0\nboottime        86400         0\n"));
        assert!(moves_boot_time("boottime            0        -1\n"));
    }

    #[test]
    fn the_machine_tells_its_boot_time() {
        let clock = RealClock::new();
        let before = clock.boot_time();
        assert!(clock.boot_time() >= before);
        assert_eq!(clock.boot_id(), RealClock::new().boot_id(), "the boot of a machine does not change");
    }
}
