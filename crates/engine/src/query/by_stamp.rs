//! A walk along the queues that are ordered by `_ts`: items by the time of their last write, then by number.
//!
//! Every item stands in exactly one of the two queues, whatever the indexing policy says. An entry of `inherit` is the
//! item's place, so it tells whether the item lives, unless items may die by something else than ttl; then, and for an entry
//! of `stamp`, the item's header is asked.

use document::{ItemNumber, Value, ValueRef, decode_key, encode_key};
use query::Stamps;
use storage::{Direction, KeyRange, Keyspace};

use super::by_path::{Passing, Pause, Start, Step, Told, Walk, directed};
use super::desk::Desk;
use super::numbers::{number, rank};
use crate::error::Result;
use crate::expiry::{Millis, Place, Queue, from_seconds};
use crate::gate::Gate;
use crate::index::Mark;
use crate::keys::{self, Key};

type Entries<'a> = std::iter::Peekable<Box<dyn Iterator<Item = Result<(Millis, ItemNumber)>> + 'a>>;

/// The walk.
pub(super) struct StampWalk<'a> {
    desk: &'a Desk<'a>,
    direction: Direction,
    inherit: Entries<'a>,
    stamp: Entries<'a>,
    /// Whether nobody can be dead.
    kills_nobody: bool,
    /// Whether items die by nothing but ttl.
    of_ttl_alone: bool,
}

impl<'a> StampWalk<'a> {
    /// The items that were written within a range of time.
    pub(super) fn open(
        desk: &'a Desk<'a>,
        stamps: Stamps,
        direction: Direction,
        start: Option<&Start>,
    ) -> StampWalk<'a> {
        let from = stamps.from.map_or(Millis::MIN, from_seconds);
        let to = stamps.to.map_or(Millis::MAX, |to| from_seconds(to.saturating_add(1)));
        let start = start.and_then(|start| Some((base_of(&start.sort, direction)?, start.rank)));
        let partition = desk.partition.id;
        let entries = |queue| -> Entries<'a> {
            let bound = |base| keys::queue_base(partition, queue, base);
            let mut range = KeyRange::between(bound(from), bound(to));
            if let Some((base, rank)) = start {
                let number = number(rank, direction);
                let bound = Key::Queue { partition, queue, base, number }.encode().1;
                match direction {
                    Direction::Forward => range.start = std::ops::Bound::Included(bound),
                    Direction::Backward => range.end = std::ops::Bound::Included(bound),
                }
            }
            if range.is_empty() {
                let nothing: Box<dyn Iterator<Item = Result<(Millis, ItemNumber)>>> =
                    Box::new(std::iter::empty());
                return nothing.peekable();
            }
            let scan = desk.view.snapshot.scan(Keyspace::Queue, range, direction);
            let entries: Box<dyn Iterator<Item = Result<(Millis, ItemNumber)>> + 'a> =
                Box::new(scan.map(|entry| keys::queue_entry(&entry?.0)));
            entries.peekable()
        };
        let Gate { policy, now, .. } = &desk.view.gate;
        let (kills_nobody, of_ttl_alone) = (policy.kills_nobody(*now), policy.is_of_ttl_alone());
        let (inherit, stamp) = (entries(Queue::Inherit), entries(Queue::Stamp));
        StampWalk { desk, direction, inherit, stamp, kills_nobody, of_ttl_alone }
    }

    /// Whether the item of an entry lives.
    fn is_living(&self, queue: Queue, base: Millis, number: ItemNumber) -> Result<bool> {
        match queue {
            _ if self.kills_nobody => Ok(true),
            Queue::Inherit if self.of_ttl_alone => {
                let places = Place { queue, base }.into();
                self.desk.is_living(number, &Mark { places, inexact: false })
            }
            _ => self.desk.view.is_number_living(number),
        }
    }

    /// The next entry of either queue, and which one it is of.
    fn entry(&mut self) -> Result<Option<(Queue, Millis, ItemNumber)>> {
        let inherit_first = match (self.inherit.peek(), self.stamp.peek()) {
            (Some(Ok(one)), Some(Ok(other))) => match self.direction {
                Direction::Forward => one <= other,
                Direction::Backward => one >= other,
            },
            (Some(_), _) => true,
            (None, _) => false,
        };
        let (queue, next) = if inherit_first {
            (Queue::Inherit, self.inherit.next())
        } else {
            (Queue::Stamp, self.stamp.next())
        };
        Ok(next.transpose()?.map(|(base, number)| (queue, base, number)))
    }
}

impl Walk for StampWalk<'_> {
    fn next(&mut self) -> Result<Step> {
        while let Some((queue, base, number)) = self.entry()? {
            self.desk.work.look()?;
            let seconds = base.div_euclid(1000);
            let sort = sort_of(seconds, self.direction);
            let rank = rank(number, self.direction);
            if self.is_living(queue, base, number)? {
                self.desk.work.touch();
                let told = Some(Told::Scalar(Value::Int(seconds)));
                return Ok(Step::Item(Passing {
                    sort,
                    rank,
                    number,
                    vague: None,
                    exact: true,
                    told,
                    record: None,
                }));
            }
            if self.desk.work.is_spent() {
                return Ok(Step::Pause(Pause { sort, rank, is_vague: false }));
            }
        }
        Ok(Step::End)
    }
}

/// What a walk along `_ts` is sorted by.
pub(super) fn sort_of(seconds: i64, direction: Direction) -> Vec<u8> {
    let mut key = Vec::new();
    encode_key(Some(ValueRef::Int(seconds)), &mut key);
    directed(&key, direction)
}

/// The time in a forward sort key.
pub(super) fn seconds(sort: &[u8]) -> u64 {
    match decode_key(sort) {
        Ok((Some(Value::Int(seconds)), _)) => u64::try_from(seconds).unwrap_or_default(),
        _ => 0,
    }
}

/// The base time of a sort key; none if it is no time.
fn base_of(sort: &[u8], direction: Direction) -> Option<Millis> {
    match decode_key(&directed(sort, direction)) {
        Ok((Some(Value::Int(seconds)), _)) => Some(seconds.saturating_mul(1000)),
        _ => None,
    }
}
