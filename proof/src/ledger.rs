//! The ledger of a writer: acknowledged writes, writes in flight, and the states that they allow.
//!
//! Every item belongs to one writer, so that its writes come one after the other: at most one of them has an unknown
//! outcome, the one in flight when the server ended. All others are known.
//!
//! Every version has a number of its own (`rev`), twice in the item, and a text that follows from the number: an item of
//! which only a part was written is detected.

use anyhow::{Result, bail, ensure};

use crate::times::{ItemExpiry, Rules, Span};

/// A version of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub rev: u64,
    pub expiry: ItemExpiry,
    /// When it was last seen live, in the server's time.
    pub alive: i64,
}

/// The state of an item as the writer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    There,
    Gone,
    /// It expires about now.
    Either,
}

/// The effect of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Put(u64),
    Delete,
}

/// A write with an unknown outcome.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub change: Change,
    /// Writes of one group happen together or not at all.
    pub group: u64,
    /// Whether the written version may have expired before the next read.
    pub may_expire: bool,
}

/// The outcome of a write that was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// There was none.
    Nothing,
    Made,
    NotMade,
    /// The outcome of this change cannot be determined.
    Unknown(Change),
}

/// One item.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The last acknowledged version; none if it was deleted, or seen to be gone.
    pub version: Option<Version>,
    pub attempt: Option<Attempt>,
    /// The acknowledged writes since the last comparison with the feed.
    pub changes: Vec<Change>,
    /// The last version in the feed; none if the feed had its removal.
    pub told: Option<u64>,
    /// The past states with their times on the machine's clock, if they are recorded.
    pub past: Option<Vec<Moment>>,
}

/// The known state of an item from a moment on, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub since: f64,
    pub version: Option<Version>,
    pub attempt: Option<Attempt>,
}

impl Entry {
    /// Records a write that is about to be sent.
    pub fn attempts(&mut self, attempt: Attempt) {
        self.attempt = Some(attempt);
        self.remember();
    }

    /// Begins to record past states.
    pub fn begin_past(&mut self) {
        self.past = Some(Vec::new());
        self.remember();
    }

    fn remember(&mut self) {
        if let Some(past) = &mut self.past {
            past.push(Moment { since: wall_clock(), version: self.version, attempt: self.attempt });
        }
    }

    /// Returns the entry as it was at a moment.
    pub fn as_of(&self, moment: f64) -> Entry {
        let past = self.past.as_deref().unwrap_or_default();
        let known = past.iter().rev().find(|known| known.since <= moment);
        let (version, attempt) = known.map_or((None, None), |known| (known.version, known.attempt));
        Entry { version, attempt, ..Entry::default() }
    }

    /// Checks that `found` was the state at some moment from `begun` to `ended`; the error is about the state as of `begun`.
    pub fn settle_within(
        &self,
        found: Option<Version>,
        (begun, ended): (f64, f64),
        rules: &Rules,
        now: Span,
    ) -> Result<()> {
        let first = self.as_of(begun).settle(found, rules, now).map(drop);
        let past = self.past.as_deref().unwrap_or_default();
        let mut later = past.iter().filter(|known| begun < known.since && known.since <= ended);
        let fits = |known: &Moment| {
            let mut entry = Entry { version: known.version, attempt: known.attempt, ..Entry::default() };
            entry.settle(found, rules, now).is_ok()
        };
        if later.any(fits) { Ok(()) } else { first }
    }

    /// Returns the versions that were acknowledged, each with its group, sent at `begun` or later.
    pub fn put_since(&self, begun: f64) -> impl Iterator<Item = (u64, u64)> {
        let past = self.past.as_deref().unwrap_or_default();
        past.windows(2).filter(move |pair| pair[0].since >= begun).filter_map(|pair| {
            let attempt = pair[0].attempt?;
            let made = pair[1].version.map(|version| Change::Put(version.rev));
            match attempt.change {
                Change::Put(rev) if made == Some(attempt.change) => Some((rev, attempt.group)),
                _ => None,
            }
        })
    }

    pub fn presence(&self, rules: &Rules, now: Span) -> Presence {
        let Some(version) = self.version else { return Presence::Gone };
        match rules.is_expired(version.expiry, version.alive, now) {
            (true, _) => Presence::Gone,
            (false, true) => Presence::Either,
            (false, false) => Presence::There,
        }
    }

    /// Records that a write was acknowledged.
    pub fn acknowledged(&mut self, change: Change, version: Option<Version>) {
        self.attempt = None;
        self.version = version;
        self.changes.push(change);
        self.remember();
    }

    /// Records that the write in flight was refused: nothing has changed.
    pub fn refused(&mut self) {
        self.attempt = None;
        self.remember();
    }

    /// Records that a read did not find the item.
    pub fn seen_gone(&mut self) {
        self.version = None;
        self.remember();
    }

    /// Compares with the state after a restart, whose version is `found`. Returns the outcome of the write that was in
    /// flight.
    pub fn settle(&mut self, found: Option<Version>, rules: &Rules, now: Span) -> Result<Settled> {
        let presence = self.presence(rules, now);
        let attempt = self.attempt.take();
        let Some(found) = found else {
            let settled = match (attempt, presence) {
                (None, Presence::There) => bail!("acknowledged version {:?} is lost", self.version),
                (Some(Attempt { change: Change::Put(_), may_expire: false, .. }), Presence::There) => {
                    bail!("acknowledged version {:?} is lost, and nothing took its place", self.version)
                }
                (None, _) => Settled::Nothing,
                (Some(attempt), Presence::There) => self.made(attempt.change),
                (Some(Attempt { change: Change::Put(_), may_expire: false, .. }), _) => Settled::NotMade,
                (Some(attempt), _) => Settled::Unknown(attempt.change),
            };
            self.version = None;
            self.remember();
            return Ok(settled);
        };
        let (expired, _) = rules.is_expired(found.expiry, i64::MIN, now);
        ensure!(!expired, "{found:?} has expired and is shown at {now:?}");
        let settled = match (self.version, attempt) {
            (_, Some(Attempt { change: change @ Change::Put(rev), .. })) if rev == found.rev => {
                self.made(change)
            }
            (Some(version), attempt) if version.rev == found.rev => {
                ensure!(presence != Presence::Gone, "{version:?} had expired and is back at {now:?}");
                ensure!(version.expiry == found.expiry, "{version:?} has become {found:?}");
                attempt.map_or(Settled::Nothing, |_| Settled::NotMade)
            }
            (version, attempt) => {
                bail!(
                    "what was acknowledged is lost: {found:?} is there instead of {version:?} (on its way: {attempt:?})"
                )
            }
        };
        self.version = Some(found);
        self.remember();
        Ok(settled)
    }

    fn made(&mut self, change: Change) -> Settled {
        self.changes.push(change);
        Settled::Made
    }

    /// Compares the feed's events since the last time with the writes. `settled` is the outcome of the write that was in
    /// flight, `now` the time after the feed was read.
    pub fn compare_feed(
        &mut self,
        events: &[Event],
        settled: Settled,
        rules: &Rules,
        now: Span,
    ) -> Result<()> {
        let mut told = Vec::new();
        for event in events {
            ensure!(event.previous == self.told, "{event:?} follows {:?}", self.told);
            self.told = event.current;
            match (event.current, event.expired) {
                (Some(rev), _) => told.push(Change::Put(rev)),
                (None, false) => told.push(Change::Delete),
                (None, true) => {}
            }
        }
        let mut expected = std::mem::take(&mut self.changes);
        if let (Settled::Unknown(change), true) = (settled, told.len() > expected.len()) {
            expected.push(change);
        }
        ensure!(told == expected, "the feed tells of {told:?}, acknowledged were {expected:?}");
        let there = self.version.map(|version| version.rev);
        let expired_since = self.version.is_some_and(|version| {
            let expired = events.last().is_some_and(|event| event.expired);
            expired && self.told.is_none() && rules.is_expired(version.expiry, version.alive, now).1
        });
        ensure!(
            self.told == there || expired_since,
            "the feed ends with {:?}, there is {there:?}",
            self.told
        );
        Ok(())
    }
}

/// An event of the feed of all versions: a version and its successor, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub previous: Option<u64>,
    pub current: Option<u64>,
    /// Whether it ended by expiry.
    pub expired: bool,
}

/// Returns the seconds since 1970 by the machine's clock, which strace uses too.
pub fn wall_clock() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

/// Returns the text of a version.
pub fn fill(rev: u64, length: usize) -> String {
    let mut random = fastrand::Rng::with_seed(rev);
    std::iter::repeat_with(|| random.alphanumeric()).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::Ttl;

    const NOW: Span = Span { low: 1000, high: 1001 };

    fn version(rev: u64, expiry: ItemExpiry) -> Version {
        Version { rev, expiry, alive: 0 }
    }

    fn entry(version: Option<Version>, change: Option<Change>) -> Entry {
        let attempt = change.map(|change| Attempt { change, group: 1, may_expire: false });
        Entry { version, attempt, ..Entry::default() }
    }

    fn settle(mut entry: Entry, found: Option<Version>) -> Result<Settled> {
        entry.settle(found, &Rules::new(Ttl::Infinite), NOW)
    }

    #[test]
    fn what_is_on_its_way_is_there_or_not() {
        let (old, new) = (version(1, ItemExpiry::Never), version(2, ItemExpiry::Never));
        let put = || entry(Some(old), Some(Change::Put(2)));
        assert_eq!(settle(put(), Some(old)).unwrap(), Settled::NotMade);
        assert_eq!(settle(put(), Some(new)).unwrap(), Settled::Made);
        assert!(settle(put(), None).is_err(), "neither is there");
        assert!(settle(put(), Some(version(3, ItemExpiry::Never))).is_err(), "no writer wrote this");
        let delete = || entry(Some(old), Some(Change::Delete));
        assert_eq!(settle(delete(), Some(old)).unwrap(), Settled::NotMade);
        assert_eq!(settle(delete(), None).unwrap(), Settled::Made);
    }

    #[test]
    fn what_was_acknowledged_is_there() {
        let old = version(1, ItemExpiry::Never);
        assert!(settle(entry(Some(old), None), Some(old)).is_ok());
        assert!(settle(entry(Some(old), None), None).is_err());
        assert!(settle(entry(None, None), Some(old)).is_err(), "deleted, and back");
    }

    #[test]
    fn what_was_there_at_a_moment_of_a_while_is_told_from_what_was_not() {
        let put =
            |since, rev| Moment { since, version: Some(version(rev, ItemExpiry::Never)), attempt: None };
        let sent = |since, version, rev| Moment {
            since,
            version,
            attempt: Some(Attempt { change: Change::Put(rev), group: rev, may_expire: false }),
        };
        let first = Some(version(1, ItemExpiry::Never));
        let past = vec![
            put(10.0, 1),
            sent(20.0, first, 2),
            put(21.0, 2),
            sent(30.0, Some(version(2, ItemExpiry::Never)), 3),
        ];
        let entry = Entry { past: Some(past), ..Entry::default() };
        let within = |rev: u64, while_| {
            let rules = Rules::new(Ttl::Infinite);
            entry.settle_within(Some(version(rev, ItemExpiry::Never)), while_, &rules, NOW).is_ok()
        };
        assert!(within(1, (15.0, 16.0)) && !within(2, (15.0, 16.0)), "not even sent");
        assert!(within(1, (15.0, 25.0)) && within(2, (15.0, 25.0)), "made meanwhile");
        assert!(!within(1, (22.0, 25.0)), "acknowledged before, and not in it");
        assert!(within(3, (22.0, 31.0)) && !within(3, (22.0, 29.0)), "on its way");
        let none = entry.settle_within(None, (22.0, 31.0), &Rules::new(Ttl::Infinite), NOW);
        assert!(none.unwrap_err().to_string().contains("is lost"));
        assert_eq!(entry.put_since(15.0).collect::<Vec<_>>(), [(2, 2)], "the last one was not answered");
        assert_eq!(entry.put_since(20.5).count(), 0);
    }

    #[test]
    fn t13_an_expired_item_does_not_come_back() {
        let expired = version(1, ItemExpiry::At(900));
        assert!(settle(entry(Some(expired), None), None).is_ok());
        assert!(settle(entry(Some(expired), None), Some(expired)).is_err());
        let expiring = version(1, ItemExpiry::At(1001));
        assert!(settle(entry(Some(expiring), None), None).is_ok());
        assert!(settle(entry(Some(expiring), None), Some(expiring)).is_ok());
    }

    #[test]
    fn the_feed_tells_each_write_once_and_in_order() {
        let now = Some(version(3, ItemExpiry::Never));
        let event = |previous, current| Event { previous, current, expired: false };
        let compare = |events: &[Event], settled| {
            let changes = vec![Change::Put(1), Change::Delete, Change::Put(3)];
            let mut entry = Entry { version: now, changes, ..Entry::default() };
            entry.compare_feed(events, settled, &Rules::new(Ttl::Infinite), NOW)
        };
        let all = [event(None, Some(1)), event(Some(1), None), event(None, Some(3))];
        assert!(compare(&all, Settled::Nothing).is_ok());
        assert!(compare(&all[..2], Settled::Nothing).is_err(), "one is missing");
        assert!(compare(&[all[0], all[2]], Settled::Nothing).is_err(), "one in the middle is missing");
        assert!(compare(&[all[0], all[1], all[1], all[2]], Settled::Nothing).is_err(), "one comes twice");
        let more = [all[0], all[1], all[2], event(Some(3), Some(4))];
        assert!(compare(&more, Settled::Unknown(Change::Put(4))).is_err(), "told, but not there");
        let expired = Event { previous: Some(3), current: None, expired: true };
        let gone = [all[0], all[1], all[2], expired];
        assert!(compare(&gone, Settled::Nothing).is_err(), "it cannot have expired");
    }
}
