//! The versions whose countdown a read has restarted within the current second (T33).

use std::collections::BTreeSet;

use document::{ItemNumber, Sequence};
use parking_lot::Mutex;

/// A version of an item.
pub(crate) type Version = (ItemNumber, Sequence);

/// The versions whose renewal is durable, of the last second that had one.
#[derive(Debug, Default)]
pub(crate) struct RenewedVersions(Mutex<(u64, BTreeSet<Version>)>);

impl RenewedVersions {
    pub(crate) fn has(&self, version: Version, second: u64) -> bool {
        let (last, done) = &*self.0.lock();
        *last == second && done.contains(&version)
    }

    pub(crate) fn put(&self, version: Version, second: u64) {
        let (last, done) = &mut *self.0.lock();
        // Also if it is an earlier second: a leap of the clock may have been rejected (T34).
        if *last != second {
            *last = second;
            done.clear();
        }
        done.insert(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t33_a_touch_is_done_for_its_version_and_second() {
        let renewed = RenewedVersions::default();
        let version = |number, sequence| (ItemNumber(number), Sequence(sequence));
        let has = |number, sequence, second| renewed.has(version(number, sequence), second);
        renewed.put(version(1, 1), 5);
        assert!(has(1, 1, 5) && !has(2, 1, 5) && !has(1, 1, 6) && !has(1, 2, 5));
        renewed.put(version(1, 1), 6);
        assert!(has(1, 1, 6) && !has(1, 1, 5));
        renewed.put(version(1, 1), 5);
        assert!(has(1, 1, 5), "time may fall back once");
    }
}
