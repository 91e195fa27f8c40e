//! Merges the streams of a feed into one: recorded changes, recorded expiries, and the expired entries of each queue.
//!
//! Each stream is already in the order of positions. In a queue the instants of expiry grow with the base, so the
//! first entry behind a position is found by binary search, and no entry before it is read:
//!
//! ```text
//!   queue     a  b  c | d  e | f  g          instants grow with the base
//!                  ^
//!             after (instant, base, number): the search begins here, not at a
//! ```

use bytes::Bytes;
use document::{ItemNumber, Sequence};
use storage::{Direction, KeyRange, Keyspace, Scan};

use crate::access::gate::View;
use crate::expiry::{Millis, Policy, Queue, QueuePosition};
use crate::keys::Position;
use crate::keys::{self, Key, PartitionId};
use crate::types::error::Result;

/// The entry at a position.
#[derive(Debug)]
pub(super) enum Entry {
    /// A recorded change: its value.
    Change(Bytes),
    /// A recorded expiry: the image of the item.
    Expiry(Bytes),
    /// An expired entry of a queue; its item may have expired by another queue.
    Expired(QueuePosition),
}

/// All streams of a partition behind one position, up to and including another.
pub(super) struct Merge<'a> {
    streams: Vec<Stream<'a>>,
    policy: &'a Policy,
    until: Position,
}

struct Stream<'a> {
    scan: Scan<'a>,
    queue: Option<Queue>,
    head: Option<(Position, Entry)>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(view: &'a View, after: Position, until: Position) -> Result<Merge<'a>> {
        let (id, policy) = (view.gate.partition, &*view.gate.policy);
        let scan = |keyspace, range| view.snapshot.scan(keyspace, range, Direction::Forward);
        let mut streams = Vec::new();
        let recorded = [
            (keys::history_changes(id), Key::HistoryChange(id, after)),
            (keys::history_expiries(id), Key::HistoryExpiry(id, after)),
        ];
        for (stream, last) in recorded {
            // Whatever was trimmed lies before every position that may be read from.
            let range = KeyRange::prefix(stream).after(last.encode().1);
            streams.push(Stream { scan: scan(Keyspace::History, range), queue: None, head: None });
        }
        for queue in policy.queues() {
            if let Some(range) = queue_behind(id, policy, queue, after) {
                streams.push(Stream { scan: scan(Keyspace::Queue, range), queue: Some(queue), head: None });
            }
        }
        let mut merge = Merge { streams, policy, until };
        for at in 0..merge.streams.len() {
            merge.advance(at)?;
        }
        Ok(merge)
    }

    /// Returns the next entry in the order of positions.
    pub(super) fn next(&mut self) -> Result<Option<(Position, Entry)>> {
        let heads = self.streams.iter().enumerate();
        let heads = heads.filter_map(|(at, stream)| Some((stream.head.as_ref()?.0, at)));
        let Some((_, at)) = heads.min() else { return Ok(None) };
        let head = self.streams[at].head.take();
        self.advance(at)?;
        Ok(head)
    }

    /// Advances a stream; it ends behind the last requested position.
    fn advance(&mut self, at: usize) -> Result<()> {
        let stream = &mut self.streams[at];
        let Some(entry) = stream.scan.next() else { return Ok(()) };
        let (key, value) = entry?;
        let head = if let Some(queue) = stream.queue {
            let (base, number) = keys::queue_entry(&key)?;
            let place = QueuePosition { queue, base };
            moment_at(self.policy, place, number).map(|position| (position, Entry::Expired(place)))
        } else {
            let is_change = keys::is_history_change(&key);
            let entry = if is_change { Entry::Change(value) } else { Entry::Expiry(value) };
            Some((keys::history_position(&key)?, entry))
        };
        stream.head = head.filter(|(position, _)| *position <= self.until);
        Ok(())
    }
}

/// Returns the position in the feed of an entry of a queue, or `None` if it never expires. A cutoff covers a whole
/// prefix of its queue, so the item itself is not needed.
fn moment_at(policy: &Policy, place: QueuePosition, number: ItemNumber) -> Option<Position> {
    let moment = policy.instant(place, Sequence(0))?;
    Some(Position::of_expiry(moment, place.base, number))
}

/// Returns the part of a queue behind a position, or `None` if all of it lies before.
fn queue_behind(id: PartitionId, policy: &Policy, queue: Queue, after: Position) -> Option<KeyRange> {
    let last_of = |base| moment_at(policy, QueuePosition { queue, base }, ItemNumber(u64::MAX));
    let is_behind = |base| last_of(base).is_none_or(|position| position > after);
    if !is_behind(Millis::MAX) {
        return None;
    }
    let (mut low, mut high) = (i128::from(Millis::MIN), i128::from(Millis::MAX));
    while low < high {
        let middle = (low + high).div_euclid(2);
        if is_behind(middle as Millis) { high = middle } else { low = middle + 1 }
    }
    let base = low as Millis;
    let range =
        KeyRange { start: std::ops::Bound::Unbounded, ..KeyRange::prefix(keys::queue_prefix(id, queue)) };
    let is_same = last_of(base)
        .is_some_and(|position| (position.moment(), position.base) == (after.moment(), after.base));
    let number = if is_same { after.number.0 } else { 0 };
    // No item has the number 0.
    Some(range.after(Key::Queue { partition: id, queue, base, number: ItemNumber(number) }.encode().1))
}
