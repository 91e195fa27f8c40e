//! Deleting all items of a logical partition.
//!
//! It runs in bounded transactions, so that a partition of any size neither stops other writers nor fills memory. Items that
//! were written after the call began are left alone.

use std::sync::Arc;

use document::PartitionKey;
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Transaction, transact_noting};

use crate::Engine;
use crate::charge::Charge;
use crate::container::Container;
use crate::counters;
use crate::error::Result;
use crate::events;
use crate::footprint::{Footprint, Home};
use crate::gate::{Found, Gate, View};
use crate::history;
use crate::hold;
use crate::index::{Drafted, Upkeep};
use crate::keys;
use crate::limits::{DELETE_CHUNK, SWEEP_ENTRIES};
use crate::lsn::{RangeLsn, Writes};
use crate::write::home_of_key;

/// What became of a logical partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emptied {
    /// How many living items were deleted.
    pub items: u64,
    /// What it cost.
    pub charge: Charge,
    /// The range that they were in, at the LSN of the last deletion.
    pub range: RangeLsn,
}

impl Engine {
    /// Deletes the living items of a partition key. Blocks until all are gone. Refused if one of them is
    /// held; one that is held meanwhile ends it there.
    pub fn delete_partition(&self, container: &Arc<Container>, key: &PartitionKey) -> Result<Emptied> {
        let home = Arc::new(home_of_key(container, Some(key.clone()))?);
        let partition = Arc::clone(container.partition_of(&home.effective));
        let toll = self.admit(container, &partition)?;
        let lane = Lanes::one(u64::from(home.partition.0));
        let view = View::open(&*self.store, &partition)?;
        hold::check_home(&*view.snapshot, &view.gate, container, &home)?;
        let begun = self.store.last_sequence();
        let mut emptied = Emptied { items: 0, charge: Charge::MINIMUM, range: partition.range_lsn() };
        let mut from = home.id_key("");
        loop {
            let (home, container, start) = (Arc::clone(&home), Arc::clone(container), from.clone());
            let run = move |tx: &mut Transaction<'_>| delete_chunk(tx, &container, &home, start, begun);
            let counted = Arc::clone(&partition);
            let note = move |chunk: &Chunk| counted.known_lsn.raise(chunk.deleted.range.lsn);
            let chunk = transact_noting(&*self.store, lane.clone(), run, note).wait()?;
            emptied.items += chunk.deleted.items;
            emptied.charge += chunk.deleted.charge;
            emptied.range = chunk.deleted.range;
            // Others who use the container meanwhile know what is left of its throughput.
            toll.pay_part(chunk.deleted.charge);
            let Some(next) = chunk.next else {
                self.alarm.ring();
                toll.pay(Charge::MINIMUM);
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
    container: &Container,
    home: &Home,
    start: Vec<u8>,
    begun: u64,
) -> Result<Chunk> {
    let gate = Gate::for_write(tx, home.partition)?;
    let range = KeyRange { start: std::ops::Bound::Included(start), ..KeyRange::prefix(home.id_key("")) };
    let chunk = tx.scan(Keyspace::Id, range, Direction::Forward).take(DELETE_CHUNK + 1);
    let mut chunk = chunk.collect::<storage::Result<Vec<_>>>()?;
    let mut next = if chunk.len() > DELETE_CHUNK { chunk.pop() } else { None };
    let partition = container.partition_of(&home.effective);
    let upkeep = Upkeep::load(tx, partition)?;
    let lsn = counters::lsn(tx, home.partition)?.unwrap_or_default();
    let range = RangeLsn { range: partition.index, lsn };
    let mut deleted = Emptied { items: 0, charge: Charge::default(), range };
    let (mut entries, mut writes) = (0, Writes::new(home.partition));
    for (key, value) in chunk {
        if entries >= SWEEP_ENTRIES {
            next = Some((key, value));
            break;
        }
        let number = keys::number_from_value(&value)?;
        if let Found::Living(record) = gate.by_number(tx, number)?
            && events::commit_of(record.header.sequence) <= begun
        {
            hold::check_item(tx, &gate, &record)?;
            let write = writes.next(tx)?;
            let footprint = Footprint::new(home, &container.definition, &upkeep, &record, Drafted::default());
            entries += history::deleted(tx, &gate, write, &record) + footprint.entries();
            deleted.items += 1;
            deleted.range.lsn = write.lsn;
            deleted.charge += Charge::write(record.size(), footprint.terms());
            footprint.remove(tx)?;
        }
    }
    if let Some(due) = history::look_again(&gate, gate.now).filter(|_| deleted.items > 0) {
        partition.next_look.not_after(due);
    }
    Ok(Chunk { deleted, next: next.map(|(key, _)| key.to_vec()) })
}
