//! A cursor over the queues that are ordered by `_ts`: items by the time of their last write, then by number.
//!
//! Every item has an entry in exactly one of the two queues, whatever the indexing policy says. An entry of `inherit`
//! is the item's queue position, so it shows whether the item is living, unless items may expire by something other
//! than ttl. In that case, and for an entry of `stamp`, the item's header is read.

use document::{ItemNumber, Value, ValueRef, decode_key, encode_key};
use query::Stamps;
use storage::{Direction, KeyRange, Keyspace};

use super::by_path::{CursorItem, CursorStart, CursorStep, IndexedValue, Pause, SortedCursor, directed};
use super::context::QueryContext;
use super::numbers::{number, rank};
use crate::access::gate::Gate;
use crate::entries::mark::Mark;
use crate::expiry::{Millis, Queue, QueuePosition, from_seconds};
use crate::keys::{self, Key};
use crate::types::error::Result;

type Entries<'a> = std::iter::Peekable<Box<dyn Iterator<Item = Result<(Millis, ItemNumber)>> + 'a>>;

/// A cursor over `_ts`.
pub(super) struct TimestampCursor<'a> {
    ctx: &'a QueryContext<'a>,
    direction: Direction,
    inherit: Entries<'a>,
    stamp: Entries<'a>,
    /// Whether no item can have expired.
    expires_nothing: bool,
    /// Whether items expire by ttl alone.
    of_ttl_alone: bool,
}

impl<'a> TimestampCursor<'a> {
    /// Opens a cursor over the items that were written within a range of time.
    pub(super) fn open(
        ctx: &'a QueryContext<'a>,
        stamps: Stamps,
        direction: Direction,
        start: Option<&CursorStart>,
    ) -> TimestampCursor<'a> {
        let from = stamps.from.map_or(Millis::MIN, from_seconds);
        let to = stamps.to.map_or(Millis::MAX, |to| from_seconds(to.saturating_add(1)));
        let start = start.and_then(|start| Some((base_of(&start.sort, direction)?, start.rank)));
        let partition = ctx.partition.id;
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
            let scan = ctx.view.snapshot.scan(Keyspace::Queue, range, direction);
            let entries: Box<dyn Iterator<Item = Result<(Millis, ItemNumber)>> + 'a> =
                Box::new(scan.map(|entry| keys::queue_entry(&entry?.0)));
            entries.peekable()
        };
        let Gate { policy, now, .. } = &ctx.view.gate;
        let (expires_nothing, of_ttl_alone) = (policy.expires_nothing(*now), policy.is_of_ttl_alone());
        let (inherit, stamp) = (entries(Queue::Inherit), entries(Queue::Stamp));
        TimestampCursor { ctx, direction, inherit, stamp, expires_nothing, of_ttl_alone }
    }

    /// Returns whether the item of an entry is living.
    fn is_living(&self, queue: Queue, base: Millis, number: ItemNumber) -> Result<bool> {
        match queue {
            _ if self.expires_nothing => Ok(true),
            Queue::Inherit if self.of_ttl_alone => {
                let places = QueuePosition { queue, base }.into();
                self.ctx.is_living(number, &Mark { places, inexact: false })
            }
            _ => self.ctx.view.is_number_living(number),
        }
    }

    /// Returns the next entry of either queue, and its queue.
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

impl SortedCursor for TimestampCursor<'_> {
    fn next(&mut self) -> Result<CursorStep> {
        while let Some((queue, base, number)) = self.entry()? {
            self.ctx.work.look()?;
            let seconds = base.div_euclid(1000);
            let sort = sort_of(seconds, self.direction);
            let rank = rank(number, self.direction);
            if self.is_living(queue, base, number)? {
                self.ctx.work.count_entry();
                let indexed = Some(IndexedValue::Scalar(Value::Int(seconds)));
                return Ok(CursorStep::Item(CursorItem {
                    sort,
                    rank,
                    number,
                    vague: None,
                    exact: true,
                    indexed,
                    record: None,
                }));
            }
            if self.ctx.work.is_spent() {
                return Ok(CursorStep::Pause(Pause { sort, rank, is_vague: false }));
            }
        }
        Ok(CursorStep::End)
    }
}

/// Returns the bytes by which a cursor over `_ts` is sorted.
pub(super) fn sort_of(seconds: i64, direction: Direction) -> Vec<u8> {
    let mut key = Vec::new();
    encode_key(Some(ValueRef::Int(seconds)), &mut key);
    directed(&key, direction)
}

/// Returns the time in a forward sort key.
pub(super) fn seconds(sort: &[u8]) -> u64 {
    match decode_key(sort) {
        Ok((Some(Value::Int(seconds)), _)) => u64::try_from(seconds).unwrap_or_default(),
        _ => 0,
    }
}

/// Returns the base time of a sort key, or `None` if it is not a time.
fn base_of(sort: &[u8], direction: Direction) -> Option<Millis> {
    match decode_key(&directed(sort, direction)) {
        Ok((Some(Value::Int(seconds)), _)) => Some(seconds.saturating_mul(1000)),
        _ => None,
    }
}
