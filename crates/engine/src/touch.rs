//! Touches: reads that restart the countdown of an item (T33, *sliding*).
//!
//! A touch is no write of the item. Its bytes, `_ts`, etag, index and feed stay as they are, and it takes no sequence. What
//! moves is the item's entry in its queue and what the counters have of it, to the second of the read; a small record beside
//! the item says so:
//!
//! ```text
//!   header    counted from 100, reads restart it         queue   100  ...            before the first touch
//!   touch     from 160                                   queue         ...  160      after it
//! ```
//!
//! So queues and counters always tell the truth, and purge, figures, forecasts and feeds know nothing of touches. Whoever
//! judges an item by its header looks the touch up only if the header alone calls it dead; an index entry, whose mark may be
//! as old as the version, is as good a bound as before. A write of the item removes the record, and so does its removal.
//!
//! One touch for a version and second is enough, however many read it: once it is durable, the others find it done without a
//! look at the store. Those who come before that wait as well, since nobody may be promised what a crash could take back.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use document::{ItemNumber, Sequence};
use parking_lot::Mutex;
use storage::{Lanes, Read, Ticket, Time, Transaction, transact};

use crate::Engine;
use crate::catalog::put;
use crate::container::Partition;
use crate::counters::{self, Weight};
use crate::error::{Error, Result};
use crate::expiry::{Millis, Policy, from_seconds};
use crate::footprint::put_places;
use crate::gate::{Found, Gate};
use crate::header::{Body, Header, Record};
use crate::keys::{Key, PartitionId};

/// How many countdowns one transaction restarts at most.
const TOUCHES_MAX: usize = 256;

/// A countdown that a read has to restart: [`Engine::touch`] does it.
#[derive(Debug, Clone)]
#[must_use = "the countdown goes on until the touch is made"]
pub struct Touch {
    partition: Arc<Partition>,
    version: Version,
    at: Time,
}

/// What is read: an item and the version of it.
type Version = (ItemNumber, Sequence);

impl Touch {
    /// The touch that a read at `now` makes; none if there is nothing to restart, or nothing left of this second.
    pub(crate) fn of(
        partition: &Arc<Partition>,
        gate: &Gate,
        number: ItemNumber,
        header: &Header,
    ) -> Option<Touch> {
        restarted(&gate.policy, header, gate.now)?;
        Some(Touch { partition: Arc::clone(partition), version: (number, header.sequence), at: gate.now })
    }

    fn is_done(&self) -> bool {
        self.partition.touching.has(self.version, self.at.seconds())
    }
}

/// A touch on its way: the seconds that the item has left once it is durable, none of them if it has died meanwhile, which
/// is final (T13).
#[must_use = "a touch is known to be durable only when this resolves"]
pub struct Touched {
    touch: Touch,
    ticket: Ticket<Result<Option<u64>>>,
}

impl Touched {
    /// Blocks this thread until the result is there.
    pub fn wait(self) -> Result<Option<u64>> {
        let Touched { touch, ticket } = self;
        done(&touch, ticket.wait())
    }
}

impl Future for Touched {
    type Output = Result<Option<u64>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.ticket).poll(context).map(|outcome| done(&self.touch, outcome))
    }
}

/// Whoever reads the item later in the same second need not wait any more.
fn done(touch: &Touch, outcome: Result<Option<u64>>) -> Result<Option<u64>> {
    if outcome.as_ref().is_ok_and(|left| *left != Some(0)) {
        touch.partition.touching.put(touch.version, touch.at.seconds());
    }
    outcome
}

impl Engine {
    /// Restarts the countdown of an item that was read. None if another read of the same second has done it.
    pub fn touch(&self, touch: &Touch) -> Option<Touched> {
        let ticket = (!touch.is_done()).then(|| self.restart(std::slice::from_ref(touch)))?;
        Some(Touched { touch: touch.clone(), ticket })
    }

    /// Restarts the countdowns of items that were read together, and waits for it.
    pub fn touch_all(&self, touches: &[Touch]) -> Result<()> {
        let open: Vec<Touch> = touches.iter().filter(|touch| !touch.is_done()).cloned().collect();
        let of_one_partition = |one: &Touch, other: &Touch| one.partition.id == other.partition.id;
        let parts = open.chunk_by(of_one_partition).flat_map(|part| part.chunks(TOUCHES_MAX));
        let begun: Vec<_> = parts.map(|part| (part, self.restart(part))).collect();
        for (part, ticket) in begun {
            ticket.wait()?;
            for touch in part {
                touch.partition.touching.put(touch.version, touch.at.seconds());
            }
        }
        Ok(())
    }

    /// Restarts countdowns in one partition, and tells the seconds that the last one has left.
    fn restart(&self, touches: &[Touch]) -> Ticket<Result<Option<u64>>> {
        let id = touches[0].partition.id;
        let numbers: Vec<_> = touches.iter().map(|touch| touch.version.0).collect();
        transact(&*self.store, Lanes::one(u64::from(id.0)), move |tx| {
            let gate = Gate::for_write(tx, id)?;
            let mut left = None;
            for number in &numbers {
                left = match gate.by_number::<document::Document>(tx, *number)? {
                    Found::Living(mut record) => {
                        restart(tx, &gate, &mut record)?;
                        gate.policy.seconds_left(&record.header, gate.now)
                    }
                    Found::Dead(_) | Found::Damaged(_) | Found::Nobody => Some(0),
                };
            }
            Ok(left)
        })
    }
}

/// Restarts the countdown of a living item.
pub(crate) fn restart<B: Body>(tx: &mut Transaction<'_>, gate: &Gate, record: &mut Record<B>) -> Result<()> {
    let Some(touched) = restarted(&gate.policy, &record.header, gate.now) else { return Ok(()) };
    let (before, number) = (Weight::of(gate.partition, record), record.number);
    record.header.touched = Some(touched);
    let after = Weight::of(gate.partition, record);
    counters::subtract(tx, &before)?;
    counters::add(tx, &after)?;
    put_places(tx, number, &before, &after);
    put(tx, Key::Touch(gate.partition, number), touched.to_be_bytes().to_vec());
    Ok(())
}

/// Where the countdown begins after a read; none if the read does not restart it: it was written or read in this second, it
/// is none, or nothing may be changed. Any other read gives way, also one in the future: its time was rejected (T34).
pub(crate) fn restarted(policy: &Policy, header: &Header, now: Time) -> Option<Millis> {
    let second = from_seconds(now.seconds());
    let is_due = policy.lifecycle.sliding
        && header.slides()
        && header.written_from() < second
        && header.touched != Some(second)
        && header.ttl_place().and_then(|place| policy.due(place)).is_some();
    is_due.then_some(second)
}

/// Looks up whether a read has restarted the countdown of a stored item.
pub(crate) fn look_up(
    reader: &(impl Read + ?Sized),
    partition: PartitionId,
    number: ItemNumber,
    header: &mut Header,
) -> Result<()> {
    if header.slides() {
        let (keyspace, key) = Key::Touch(partition, number).encode();
        let decode = |value: bytes::Bytes| match value.as_ref().try_into() {
            Ok(bytes) => Ok(Millis::from_be_bytes(bytes)),
            Err(_) => Err(Error::Corrupt(format!("the touch of item {}", number.0))),
        };
        header.touched = reader.get(keyspace, &key)?.map(decode).transpose()?;
    }
    Ok(())
}

/// The versions whose touch is durable, of the last second that had one.
#[derive(Debug, Default)]
pub(crate) struct Touching(Mutex<(u64, BTreeSet<Version>)>);

impl Touching {
    fn has(&self, version: Version, second: u64) -> bool {
        let (last, done) = &*self.0.lock();
        *last == second && done.contains(&version)
    }

    fn put(&self, version: Version, second: u64) {
        let (last, done) = &mut *self.0.lock();
        // Also if it is an earlier one: a leap of the clock may have been rejected (T34).
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
        let touching = Touching::default();
        let version = |number, sequence| (ItemNumber(number), Sequence(sequence));
        let has = |number, sequence, second| touching.has(version(number, sequence), second);
        touching.put(version(1, 1), 5);
        assert!(has(1, 1, 5) && !has(2, 1, 5) && !has(1, 1, 6) && !has(1, 2, 5));
        touching.put(version(1, 1), 6);
        assert!(has(1, 1, 6) && !has(1, 1, 5));
        touching.put(version(1, 1), 5);
        assert!(has(1, 1, 5), "time may fall back once");
    }
}
