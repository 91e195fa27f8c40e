//! Deletes all items of a logical partition.
//!
//! It runs in bounded transactions, so that a partition of any size neither stops other writers nor fills memory. Items that
//! were written after the call began are kept.

use std::sync::Arc;

use document::PartitionKey;
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Transaction, transact_noting};

use crate::Engine;
use crate::access::gate::{LookupResult, View};
use crate::catalog::container::Container;
use crate::catalog::home::home_of_key;
use crate::entries::counters;
use crate::entries::traces::Home;
use crate::entries::writes::Writes;
use crate::keys;
use crate::types::alarm::Alarm;
use crate::types::charge::Charge;
use crate::types::error::Result;
use crate::types::events;
use crate::types::limits::{DELETE_CHUNK, SWEEP_ENTRIES};
use crate::types::lsn::RangeLsn;
use crate::write::container_schema::ContainerContext;
use crate::write::context::Deleted;
use crate::write::held;

/// The progress of deleting a logical partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emptied {
    /// How many living items were deleted.
    pub items: u64,
    /// The charge.
    pub charge: Charge,
    /// The range that they were in, at the LSN of the last deletion.
    pub range: RangeLsn,
}

impl Engine {
    /// Deletes the living items of a partition key. Blocks until all are deleted. Refused if one of them is
    /// held; if one becomes held meanwhile, the call ends there.
    pub fn delete_partition(&self, container: &Arc<Container>, key: &PartitionKey) -> Result<Emptied> {
        let home = Arc::new(home_of_key(container, Some(key.clone()))?);
        let partition = Arc::clone(container.partition_of(&home.effective));
        let pending = self.admit(container, &partition)?;
        let lane = Lanes::one(u64::from(home.partition.0));
        let view = View::open(&*self.store, &partition)?;
        held::check_home(&*view.snapshot, &view.gate, container, &home)?;
        let begun = self.store.last_sequence();
        let mut emptied = Emptied { items: 0, charge: Charge::MINIMUM, range: partition.range_lsn() };
        let mut from = home.id_key("");
        loop {
            let (home, container, start) = (Arc::clone(&home), Arc::clone(container), from.clone());
            let alarm = Arc::clone(&self.alarm);
            let run =
                move |tx: &mut Transaction<'_>| delete_chunk(tx, (&container, &home), start, begun, &alarm);
            let counted = Arc::clone(&partition);
            let note = move |chunk: &Chunk| counted.known_lsn.raise(chunk.deleted.range.lsn);
            let chunk = transact_noting(&*self.store, lane.clone(), run, note).wait()?;
            emptied.items += chunk.deleted.items;
            emptied.charge += chunk.deleted.charge;
            emptied.range = chunk.deleted.range;
            // Other requests to the container know meanwhile what is left of its throughput.
            pending.pay_part(chunk.deleted.charge);
            let Some(next) = chunk.next else {
                self.alarm.ring();
                pending.pay(Charge::MINIMUM);
                return Ok(emptied);
            };
            from = next;
        }
    }
}

struct Chunk {
    deleted: Emptied,
    /// Where the next chunk begins.
    next: Option<Vec<u8>>,
}

fn delete_chunk(
    tx: &mut Transaction<'_>,
    (container, home): (&Arc<Container>, &Arc<Home>),
    start: Vec<u8>,
    begun: u64,
    alarm: &Alarm,
) -> Result<Chunk> {
    let partition = container.partition_of(&home.effective);
    let context = ContainerContext::open(tx, container, partition, home)?;
    let range = KeyRange { start: std::ops::Bound::Included(start), ..KeyRange::prefix(home.id_key("")) };
    let chunk = tx.scan(Keyspace::Id, range, Direction::Forward).take(DELETE_CHUNK + 1);
    let mut chunk = chunk.collect::<storage::Result<Vec<_>>>()?;
    let mut next = if chunk.len() > DELETE_CHUNK { chunk.pop() } else { None };
    let lsn = counters::lsn(tx, home.partition)?.unwrap_or_default();
    let range = RangeLsn { range: partition.index, lsn };
    let mut emptied = Emptied { items: 0, charge: Charge::default(), range };
    let (mut entries, mut writes) = (0, Writes::new(home.partition));
    for (key, value) in chunk {
        if entries >= SWEEP_ENTRIES {
            next = Some((key, value));
            break;
        }
        let number = keys::number_from_value(&value)?;
        if let LookupResult::Living(record) = context.gate.by_number(tx, number)?
            && events::commit_of(record.header.sequence) <= begun
        {
            let Deleted { write, charge, work } = context.delete(tx, &mut writes, &record)?;
            entries += work;
            emptied.items += 1;
            emptied.range.lsn = write.lsn;
            emptied.charge += charge;
        }
    }
    context.finish(tx, alarm);
    Ok(Chunk { deleted: emptied, next: next.map(|(key, _)| key.to_vec()) })
}
