//! When an item is dead: the heart of Bolide, one small pure function.
//!
//! Every item that can die stands in exactly one *queue*, at a *base* time. A rule is nothing but a *delay* added to the
//! base of each entry of one queue:
//!
//! ```text
//!   queue     who stands in it          base         delay while TTL is on
//!   inherit   items without own ttl     _ts          D (none while D = -1)
//!   own       items with ttl = m        _ts + m      0
//!   stamp     items not in inherit      _ts          never: it only serves queries on _ts
//! ```
//!
//! So the dead are a prefix of each queue, `base <= now - delay`, whatever D is. Changing D moves the end of the prefix
//! and rewrites nothing (T11). All times are milliseconds since 1970; `_ts` and ttl are whole seconds, and since
//! `floor(now) >= _ts + ttl` holds exactly when `now >= _ts + ttl`, the finer clock changes no answer (T1). Sums
//! saturate: the far future means "not yet" (T7).
//!
//! **Expired is final (T13).** A policy change at (sequence S, time T) records for each rule that it changes or drops a
//! [`Cutoff`]: what the old rule had killed by T stays dead, although the new rule would let it live:
//!
//! ```text
//!   inherit queue, by _ts      a  b  c | d  e | f  g
//!                                      ^      ^
//!      cutoff: D was 60 until T: a, b, c       D = 30 now: d, e
//!              are dead for ever               are dead too; f, g live
//! ```
//!
//! Only items written before S can be covered by it. For the two queues above that is implied by their base, because time
//! never falls; it is recorded all the same for items whose base can lie in the past: after a lifted hold, and in date
//! queues (see `docs/decisions/0001`). A cutoff is forgotten once the purge has emptied the prefix it covers.

use document::Sequence;
use storage::Time;

use crate::definition::{DefaultTtl, OwnTtl};
use crate::error::{Error, Result};
use crate::header::Header;

/// Milliseconds since 1970; negative before.
pub(crate) type Millis = i64;

/// An ordered list of items by base time. The number is its name on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub(crate) enum Queue {
    /// Items without own ttl, by `_ts`.
    Inherit = 1,
    /// Items with own ttl, by deadline.
    Own = 2,
    /// Items that do not stand in `Inherit`, by `_ts`: serves queries, kills nobody.
    Stamp = 3,
}

impl Queue {
    /// The queues by which items die.
    pub(crate) const MORTAL: [Queue; 2] = [Queue::Inherit, Queue::Own];

    pub(crate) fn number(self) -> u16 {
        self as u16
    }

    fn from_number(number: u16) -> Result<Queue> {
        match number {
            1 => Ok(Queue::Inherit),
            2 => Ok(Queue::Own),
            3 => Ok(Queue::Stamp),
            _ => Err(Error::Corrupt(format!("unknown queue {number}"))),
        }
    }
}

/// Where an item stands: its queue and its base time there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) queue: Queue,
    pub(crate) base: Millis,
}

impl Header {
    /// The place by which the item can die; none for `ttl` = -1.
    pub(crate) fn mortal_place(&self) -> Option<Place> {
        match self.ttl {
            OwnTtl::Absent => Some(Place { queue: Queue::Inherit, base: from_seconds(self.ts) }),
            OwnTtl::Seconds(ttl) => {
                let deadline = from_seconds(self.ts.saturating_add(u64::from(ttl)));
                Some(Place { queue: Queue::Own, base: deadline })
            }
            OwnTtl::Never => None,
        }
    }

    /// The place in `Stamp`, for items whose `_ts` no other queue tells.
    pub(crate) fn stamp_place(&self) -> Option<Place> {
        match self.ttl {
            OwnTtl::Absent => None,
            OwnTtl::Seconds(_) | OwnTtl::Never => {
                Some(Place { queue: Queue::Stamp, base: from_seconds(self.ts) })
            }
        }
    }
}

/// What a rule had killed when it was changed or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cutoff {
    pub(crate) queue: Queue,
    /// Entries up to this base are covered,
    pub(crate) through: Millis,
    /// if their item was last written before this sequence.
    pub(crate) before: Sequence,
}

/// The rules of one physical partition, and what earlier rules left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Grows with every change, so that an older copy never replaces a newer one.
    pub(crate) version: u64,
    /// The container's `D`.
    pub(crate) default_ttl: DefaultTtl,
    /// Open cutoffs, oldest first.
    pub(crate) cutoffs: Vec<Cutoff>,
}

/// More open cutoffs than this, and a policy change waits for the purge.
const CUTOFFS_MAX: usize = 256;

impl Policy {
    /// The policy of a new partition.
    pub(crate) fn new(default_ttl: DefaultTtl) -> Policy {
        Policy { version: 1, default_ttl, cutoffs: Vec::new() }
    }

    /// **The one decision**: is an item with this header dead at `now`?
    pub(crate) fn is_dead(&self, header: &Header, now: Time) -> bool {
        header.mortal_place().is_some_and(|place| {
            self.horizon(place.queue, now).is_some_and(|through| place.base <= through)
                || self.cutoffs.iter().any(|cutoff| {
                    cutoff.queue == place.queue
                        && place.base <= cutoff.through
                        && header.sequence < cutoff.before
                })
        })
    }

    /// How long after its base an entry of the queue dies; none if the queue has no rule now (T2).
    fn delay(&self, queue: Queue) -> Option<Millis> {
        match (queue, self.default_ttl) {
            (Queue::Stamp, _) | (_, DefaultTtl::Off) | (Queue::Inherit, DefaultTtl::Never) => None,
            (Queue::Inherit, DefaultTtl::Seconds(n)) => Some(from_seconds(u64::from(n))),
            (Queue::Own, DefaultTtl::Never | DefaultTtl::Seconds(_)) => Some(0),
        }
    }

    /// The base up to which the current rule kills.
    fn horizon(&self, queue: Queue, now: Time) -> Option<Millis> {
        self.delay(queue).map(|delay| from_time(now).saturating_sub(delay))
    }

    /// The end of the queue's dead prefix, by the current rule or a cutoff.
    pub(crate) fn dead_through(&self, queue: Queue, now: Time) -> Option<Millis> {
        let cutoffs = self.cutoffs.iter().filter(|cutoff| cutoff.queue == queue);
        cutoffs.map(|cutoff| cutoff.through).chain(self.horizon(queue, now)).max()
    }

    /// When an entry with this base dies; none if no rule will kill it.
    pub(crate) fn due(&self, place: Place) -> Option<Time> {
        let due = place.base.saturating_add(self.delay(place.queue)?);
        Some(Time::from_millis(due.max(0).unsigned_abs()))
    }

    /// The policy after `D` becomes `default_ttl` at (`sequence`, `now`). `occupied` tells whether a queue has an entry up
    /// to a base: a cutoff that covers nothing is not recorded.
    pub(crate) fn change(
        &self,
        default_ttl: DefaultTtl,
        now: Time,
        sequence: Sequence,
        occupied: impl Fn(Queue, Millis) -> Result<bool>,
    ) -> Result<Policy> {
        let mut next = Policy { version: self.version + 1, default_ttl, cutoffs: self.cutoffs.clone() };
        for queue in Queue::MORTAL {
            let Some(through) = self.horizon(queue, now) else { continue };
            if self.delay(queue) == next.delay(queue) || !occupied(queue, through)? {
                continue;
            }
            next.cutoffs.retain(|older| older.queue != queue || older.through > through);
            next.cutoffs.push(Cutoff { queue, through, before: sequence });
        }
        if next.cutoffs.len() > CUTOFFS_MAX {
            return Err(Error::Unavailable(format!(
                "{CUTOFFS_MAX} earlier changes of defaultTtl still wait for the purge"
            )));
        }
        Ok(next)
    }

    /// The policy without those cutoffs of `queue` that reach no further than `through`: the purge has passed them.
    pub(crate) fn forget(&self, queue: Queue, through: Millis) -> Option<Policy> {
        let passed = |cutoff: &Cutoff| cutoff.queue == queue && cutoff.through <= through;
        if !self.cutoffs.iter().any(passed) {
            return None;
        }
        let mut next = Policy { version: self.version + 1, ..self.clone() };
        next.cutoffs.retain(|cutoff| !passed(cutoff));
        Some(next)
    }

    /// The stored form; `docs/file-format.md` has every byte.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.version.to_be_bytes().to_vec();
        out.extend_from_slice(&default_ttl_number(self.default_ttl).to_be_bytes());
        out.extend_from_slice(&(self.cutoffs.len() as u16).to_be_bytes());
        for cutoff in &self.cutoffs {
            out.extend_from_slice(&cutoff.queue.number().to_be_bytes());
            out.extend_from_slice(&cutoff.through.to_be_bytes());
            out.extend_from_slice(&cutoff.before.0.to_be_bytes());
        }
        out
    }

    /// The stored form read back.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Policy> {
        Policy::try_decode(bytes).ok_or_else(|| Error::Corrupt("an expiry policy cannot be read".into()))
    }

    fn try_decode(mut bytes: &[u8]) -> Option<Policy> {
        let version = u64::from_be_bytes(*take(&mut bytes)?);
        let default_ttl = default_ttl_from(i32::from_be_bytes(*take(&mut bytes)?))?;
        let count = u16::from_be_bytes(*take(&mut bytes)?);
        let mut cutoffs = Vec::new();
        for _ in 0..count {
            let queue = Queue::from_number(u16::from_be_bytes(*take(&mut bytes)?)).ok()?;
            let through = Millis::from_be_bytes(*take(&mut bytes)?);
            let before = Sequence(u64::from_be_bytes(*take(&mut bytes)?));
            cutoffs.push(Cutoff { queue, through, before });
        }
        bytes.is_empty().then_some(Policy { version, default_ttl, cutoffs })
    }
}

/// `D` as the number that clients write, and 0, which they cannot, for off.
fn default_ttl_number(default_ttl: DefaultTtl) -> i32 {
    match default_ttl {
        DefaultTtl::Off => 0,
        DefaultTtl::Never => -1,
        DefaultTtl::Seconds(seconds) => i32::try_from(seconds).expect("a default ttl fits 31 bits"),
    }
}

fn default_ttl_from(number: i32) -> Option<DefaultTtl> {
    match number {
        0 => Some(DefaultTtl::Off),
        -1 => Some(DefaultTtl::Never),
        _ => u32::try_from(number).ok().map(DefaultTtl::Seconds),
    }
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}

/// Whole seconds as milliseconds, saturating (T7).
pub(crate) fn from_seconds(seconds: u64) -> Millis {
    Millis::try_from(seconds).unwrap_or(Millis::MAX).saturating_mul(1000)
}

fn from_time(time: Time) -> Millis {
    Millis::try_from(time.millis()).unwrap_or(Millis::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    fn header(ts: u64, ttl: OwnTtl) -> Header {
        Header { sequence: Sequence(5), ts, ttl }
    }

    fn at(seconds: u64) -> Time {
        Time::from_seconds(seconds)
    }

    /// A queue that has an entry everywhere.
    #[expect(clippy::unnecessary_wraps, reason = "the signature of `occupied`")]
    fn always(_: Queue, _: Millis) -> Result<bool> {
        Ok(true)
    }

    /// T1, T2: the nine cells, each asked a second before, at and a second after the only instant that could matter.
    #[test]
    fn t2_the_whole_truth_table() {
        use {DefaultTtl as D, OwnTtl as Own};
        let cells: [(Own, D, Option<u64>); 9] = [
            (Own::Absent, D::Off, None),
            (Own::Absent, D::Never, None),
            (Own::Absent, D::Seconds(10), Some(10)),
            (Own::Never, D::Off, None),
            (Own::Never, D::Never, None),
            (Own::Never, D::Seconds(10), None),
            (Own::Seconds(7), D::Off, None),
            (Own::Seconds(7), D::Never, Some(7)),
            (Own::Seconds(7), D::Seconds(10), Some(7)),
        ];
        for (own, default, lives) in cells {
            let (policy, header) = (Policy::new(default), header(NOW, own));
            for age in [0, 6, 7, 8, 9, 10, 11, 1_000_000_000] {
                let expected = lives.is_some_and(|lives| age >= lives);
                assert_eq!(policy.is_dead(&header, at(NOW + age)), expected, "{own:?} {default:?} age {age}");
            }
        }
    }

    #[test]
    fn t1_the_last_millisecond_before_the_deadline_is_alive() {
        let policy = Policy::new(DefaultTtl::Seconds(10));
        let item = header(NOW, OwnTtl::Absent);
        assert!(!policy.is_dead(&item, Time::from_millis((NOW + 10) * 1000 - 1)));
        assert!(policy.is_dead(&item, Time::from_millis((NOW + 10) * 1000)));
    }

    #[test]
    fn t7_the_far_future_never_overflows() {
        let policy = Policy::new(DefaultTtl::Seconds(i32::MAX as u32));
        for ts in [u64::MAX, u64::MAX / 1000, i64::MAX as u64] {
            assert!(!policy.is_dead(&header(ts, OwnTtl::Seconds(i32::MAX as u32)), at(NOW)));
            assert!(!policy.is_dead(&header(ts, OwnTtl::Absent), at(NOW)));
        }
    }

    /// T13: what was dead under the old rule stays dead under every later one; what lived is judged by the new rule.
    #[test]
    fn t13_a_cutoff_keeps_the_dead_dead() {
        let old = Policy::new(DefaultTtl::Seconds(10));
        let (dead, alive) = (header(NOW - 10, OwnTtl::Absent), header(NOW - 9, OwnTtl::Absent));
        let own_dead = header(NOW - 10, OwnTtl::Seconds(10));
        for next in [DefaultTtl::Off, DefaultTtl::Never, DefaultTtl::Seconds(1000)] {
            let policy = old.change(next, at(NOW), Sequence(6), always).expect("changes");
            assert!(policy.is_dead(&dead, at(NOW)), "{next:?}");
            assert!(policy.is_dead(&own_dead, at(NOW)), "{next:?}");
            assert!(!policy.is_dead(&alive, at(NOW + 500)), "{next:?}");
        }
        let lowered = old.change(DefaultTtl::Seconds(9), at(NOW), Sequence(6), always).expect("changes");
        assert!(lowered.is_dead(&alive, at(NOW)));
    }

    #[test]
    fn t13_an_item_written_after_the_change_is_not_covered_by_it() {
        let policy = Policy::new(DefaultTtl::Seconds(1))
            .change(DefaultTtl::Off, at(NOW), Sequence(5), always)
            .expect("changes");
        assert!(!policy.is_dead(&header(NOW - 100, OwnTtl::Absent), at(NOW)));
    }

    #[test]
    fn an_unchanged_rule_and_an_empty_prefix_record_nothing() {
        let policy = Policy::new(DefaultTtl::Seconds(10));
        let same = policy.change(DefaultTtl::Seconds(10), at(NOW), Sequence(6), always).expect("changes");
        assert!(same.cutoffs.is_empty());
        let empty = policy.change(DefaultTtl::Off, at(NOW), Sequence(6), |_, _| Ok(false)).expect("changes");
        assert!(empty.cutoffs.is_empty());
        let own_rule_goes_on =
            policy.change(DefaultTtl::Never, at(NOW), Sequence(6), always).expect("changes");
        assert_eq!(own_rule_goes_on.cutoffs.len(), 1);
    }

    #[test]
    fn a_farther_cutoff_replaces_a_nearer_one_and_the_purge_forgets_both() {
        let first = Policy::new(DefaultTtl::Seconds(100))
            .change(DefaultTtl::Seconds(50), at(NOW), Sequence(6), always)
            .expect("changes");
        let second = first.change(DefaultTtl::Seconds(70), at(NOW), Sequence(7), always).expect("changes");
        assert_eq!(second.cutoffs.len(), 1);
        assert_eq!(second.dead_through(Queue::Inherit, at(NOW)), Some(from_seconds(NOW - 50)));
        assert_eq!(second.forget(Queue::Inherit, from_seconds(NOW - 51)), None);
        let forgotten = second.forget(Queue::Inherit, from_seconds(NOW - 50)).expect("forgets");
        assert!(forgotten.cutoffs.is_empty() && forgotten.version > second.version);
    }

    #[test]
    fn too_many_open_cutoffs_are_refused() {
        let mut policy = Policy::new(DefaultTtl::Seconds(1));
        let mut refused = false;
        for n in 2..2000 {
            match policy.change(DefaultTtl::Seconds(n), at(NOW), Sequence(u64::from(n)), always) {
                Ok(next) => policy = next,
                Err(_) => refused = true,
            }
        }
        assert!(refused && policy.cutoffs.len() == CUTOFFS_MAX);
    }

    #[test]
    fn a_policy_reads_back_as_written() {
        let mut policy = Policy::new(DefaultTtl::Never);
        for default in [DefaultTtl::Seconds(5), DefaultTtl::Off, DefaultTtl::Seconds(i32::MAX as u32)] {
            policy = policy.change(default, at(NOW), Sequence(9), always).expect("changes");
            assert_eq!(Policy::decode(&policy.encode()).expect("decodes"), policy);
        }
        assert!(Policy::decode(&policy.encode()[1..]).is_err());
    }
}
