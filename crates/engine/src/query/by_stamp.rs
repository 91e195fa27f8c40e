//! A walk along the queues that are ordered by `_ts`: items by the time of their last write, then by number.
//!
//! Every item stands in exactly one of the two queues, whatever the indexing policy says. An entry of `inherit` is the
//! item's place, so it tells whether the item lives; for one of `stamp` the item's header is asked. Only containers without
//! date rules are walked so: an entry says nothing of dates.

use document::{ItemNumber, Value, ValueRef, decode_key, encode_key};
use query::Stamps;
use storage::{Direction, KeyRange, Keyspace};

use super::by_path::{Passing, Pause, Start, Step, Told, Walk, directed};
use super::desk::Desk;
use super::numbers::{number, rank};
use crate::error::Result;
use crate::expiry::{Millis, Place, Queue, from_seconds};
use crate::index::Mark;
use crate::keys::{self, Key};

type Entries<'a> = std::iter::Peekable<Box<dyn Iterator<Item = Result<(Millis, ItemNumber)>> + 'a>>;

/// The walk.
pub(super) struct StampWalk<'a> {
    desk: &'a Desk<'a>,
    direction: Direction,
    inherit: Entries<'a>,
    stamp: Entries<'a>,
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
        StampWalk { desk, direction, inherit: entries(Queue::Inherit), stamp: entries(Queue::Stamp) }
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
            // An entry of `stamp` says nothing of the item's place: as old as can be, so that the header is asked.
            let base = if queue == Queue::Inherit { base } else { Millis::MIN };
            let place = Place { queue: if queue == Queue::Inherit { queue } else { Queue::Own }, base };
            if self.desk.is_living(number, &Mark { places: place.into(), inexact: false })? {
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
