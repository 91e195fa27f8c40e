//! Deleting all items of a logical partition.
//!
//! It runs in bounded transactions, so that a partition of any size neither stops other writers nor fills memory. Items that
//! were written after the call began are left alone.

use std::sync::Arc;

use document::PartitionKey;
use storage::{Direction, KeyRange, Keyspace, Lanes, Read, Transaction, transact};

use crate::Engine;
use crate::container::Container;
use crate::error::Result;
use crate::events::{self, Events};
use crate::footprint::{Footprint, Home};
use crate::gate::{Found, Gate};
use crate::index::{Drafted, Upkeep};
use crate::keys;
use crate::limits::DELETE_CHUNK;
use crate::write::home_of_key;

impl Engine {
    /// Deletes the living items of a partition key and returns how many. Blocks until all are gone.
    pub fn delete_partition(&self, container: &Arc<Container>, key: &PartitionKey) -> Result<u64> {
        let home = Arc::new(home_of_key(container, Some(key.clone()))?);
        let lane = Lanes::one(u64::from(home.partition.0));
        let begun = self.store.last_sequence();
        let (mut deleted, mut from) = (0, home.id_key(""));
        loop {
            let (home, container, start) = (Arc::clone(&home), Arc::clone(container), from.clone());
            let chunk = transact(&*self.store, lane.clone(), move |tx| {
                delete_chunk(tx, &container, &home, start, begun)
            })
            .wait()?;
            deleted += chunk.deleted;
            match chunk.next {
                Some(next) => from = next,
                None => return Ok(deleted),
            }
        }
    }
}

struct Chunk {
    deleted: u64,
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
    let mut numbers = Vec::new();
    let mut next = None;
    for entry in tx.scan(Keyspace::Id, range, Direction::Forward) {
        let (key, value) = entry?;
        if numbers.len() == DELETE_CHUNK {
            next = Some(key.to_vec());
            break;
        }
        numbers.push(keys::number_from_value(&value)?);
    }
    let upkeep = Upkeep::load(tx, container.partition_of(&home.effective))?;
    let (mut deleted, mut events) = (0, Events::default());
    for number in numbers {
        if let Found::Living(record) = gate.by_number(tx, number)?
            && events::commit_of(record.header.sequence) <= begun
        {
            events.next(tx);
            Footprint::new(home, &container.definition, &upkeep, &record, Drafted::default()).remove(tx)?;
            deleted += 1;
        }
    }
    Ok(Chunk { deleted, next })
}
