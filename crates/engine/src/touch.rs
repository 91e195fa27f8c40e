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
//! One touch for an item and second is enough, however many read it: the others find it begun, without a look at the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use document::ItemNumber;
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

/// A countdown that a read has to restart: [`Engine::touch`] does it.
#[derive(Debug, Clone)]
#[must_use = "the countdown goes on until the touch is made"]
pub struct Touch {
    partition: Arc<Partition>,
    number: ItemNumber,
    at: Time,
}

impl Touch {
    /// The touch that a read at `now` makes; none if there is nothing to restart, or nothing left of this second.
    pub(crate) fn of(
        partition: &Arc<Partition>,
        gate: &Gate,
        number: ItemNumber,
        header: &Header,
    ) -> Option<Touch> {
        restarted(&gate.policy, header, gate.now)?;
        Some(Touch { partition: Arc::clone(partition), number, at: gate.now })
    }
}

impl Engine {
    /// Restarts the countdown of an item that was read, and tells the seconds that it has left then: none of them if it has
    /// died meanwhile, which is final (T13). No ticket if another read of the same second does it.
    pub fn touch(&self, touch: &Touch) -> Option<Ticket<Result<Option<u64>>>> {
        let Touch { partition, number, at } = touch;
        if !partition.touching.begin(*number, at.seconds()) {
            return None;
        }
        let (id, number) = (partition.id, *number);
        Some(transact(&*self.store, Lanes::one(u64::from(id.0)), move |tx| {
            let gate = Gate::for_write(tx, id)?;
            match gate.by_number::<document::Document>(tx, number)? {
                Found::Living(mut record) => {
                    restart(tx, &gate, &mut record)?;
                    Ok(gate.policy.seconds_left(&record.header, gate.now))
                }
                Found::Dead(_) | Found::Nobody => Ok(Some(0)),
            }
        }))
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

/// Where the countdown begins after a read; none if the read does not restart it: it has begun in this second, it is none,
/// or nothing may be changed.
pub(crate) fn restarted(policy: &Policy, header: &Header, now: Time) -> Option<Millis> {
    let second = from_seconds(now.seconds());
    let is_due = policy.lifecycle.sliding
        && header.slides()
        && header.counts_from() < second
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

/// The items whose touch has begun in the last second that had one.
#[derive(Debug, Default)]
pub(crate) struct Touching(Mutex<(u64, BTreeSet<ItemNumber>)>);

impl Touching {
    /// Whether nobody has begun it.
    fn begin(&self, number: ItemNumber, second: u64) -> bool {
        let (last, begun) = &mut *self.0.lock();
        if *last < second {
            *last = second;
            begun.clear();
        }
        begun.insert(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t33_one_touch_for_an_item_and_second() {
        let touching = Touching::default();
        let begun = [(1, 5), (2, 5), (1, 5), (1, 6), (2, 6), (2, 6), (1, 5)]
            .map(|(number, second)| touching.begin(ItemNumber(number), second));
        assert_eq!(begun, [true, true, false, true, true, false, false]);
    }
}
