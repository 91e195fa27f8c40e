//! Builds and clears generations of an index, in bounded steps.
//!
//! A step is one transaction on one partition. It adds some items to the generation that is being built
//! ([`index::build`](crate::index::build)). The step that finds no further item puts the generation into service. Later
//! steps clear the replaced generation; each begins where the last one ended, so that none scans what earlier ones have
//! removed.
//!
//! Steps remove no items, so neither a paused purge nor a suspect clock stops them.

use std::sync::Arc;

use storage::{Keyspace, Lanes, Transaction, transact};

use crate::Engine;
use crate::access::gate::Gate;
use crate::catalog::container::{Container, Partition};
use crate::index::build::{build_now, clear_piece};
use crate::index::{self, Building, IndexFootprint, IndexState, Indexes};
use crate::keys::{self, Generation, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::index_report::IndexReport;
use crate::types::limits::DROP_CHUNK;

impl Engine {
    /// Builds or clears a bounded piece of one container's index: at most `limit` items. The purge's step does this
    /// too, so a caller that runs purge steps needs no other loop.
    pub fn index_step(&self, limit: usize) -> Result<IndexReport> {
        let catalog = self.catalog();
        let partitions = catalog.partitions().map(|(_, partition)| partition);
        let waiting = partitions.filter(|partition| partition.indexes().state.has_work());
        let next = self.index_turn.next(waiting, |partition| partition.id);
        let Some((partition, others)) = next else { return Ok(IndexReport::default()) };
        let (handle, limit) = (Arc::clone(partition), limit.max(1));
        let lane = Lanes::one(u64::from(partition.id.0));
        let (indexes, entries) = transact(&*self.store, lane, move |tx| step(tx, &handle, limit)).wait()?;
        partition.install_indexes(indexes);
        let more = others > 0 || partition.indexes().state.has_work();
        Ok(IndexReport { entries, more })
    }

    /// Returns how much of a container's indexing policy is in force, in percent; 100 only if all of it is.
    pub fn index_progress(&self, container: &Container) -> u8 {
        let partitions = &container.partitions;
        let sum: usize =
            partitions.iter().map(|partition| usize::from(partition.indexes().state.progress())).sum();
        (sum / partitions.len().max(1)) as u8
    }

    /// Begins a build for every partition of a store that was written before there were indexes.
    pub(crate) fn adopt_unindexed(&self) -> Result<()> {
        for (container, partition) in self.catalog().partitions() {
            if partition.indexes().state.version == 0 {
                let (id, policy) = (partition.id, container.definition.indexing.clone());
                let indexes = self.change(move |tx| index::follow(tx, id, &policy))?;
                partition.install_indexes(indexes);
            }
        }
        Ok(())
    }
}

/// Does one piece of work on a partition's index; returns the index's state after it and how many entries were changed.
fn step(tx: &mut Transaction<'_>, partition: &Partition, limit: usize) -> Result<(Indexes, u64)> {
    match Gate::for_write(tx, partition.id) {
        Ok(_) => {}
        // The container was dropped, and all pending work with it.
        Err(Error::OwnerNotFound { .. }) => {
            let gone = Indexes::complete(tx, partition.id, IndexState::gone(), &Indexes::default())?;
            return Ok((gone, 0));
        }
        Err(error) => return Err(error),
    }
    let mut state = IndexState::load(tx, partition.id)?.unwrap_or_default();
    let entries = match build_now(tx, state.building, &state.clearing) {
        Some(building) => build(tx, partition, &mut state, building, limit)?,
        None => clear(tx, partition.id, &mut state, limit)?,
    };
    state.store(tx, partition.id);
    let indexes = Indexes::complete(tx, partition.id, state, &partition.indexes())?;
    Ok((indexes, entries))
}

/// Adds the next items to the generation that is being built, or puts it into service if there are none.
fn build(
    tx: &mut Transaction<'_>,
    partition: &Partition,
    state: &mut IndexState,
    Building { generation, build }: Building,
    limit: usize,
) -> Result<u64> {
    let (id, coverage) = (partition.id, partition.maintained_indexes(tx)?.coverage(generation)?);
    let built = build.piece(tx, id, limit, |tx, record| {
        let footprint = IndexFootprint::in_generation(id, generation, &coverage, record);
        let entries = footprint.entries();
        footprint.insert(tx)?;
        Ok(entries)
    })?;
    if built.items == 0 {
        let replaced = state.serving.replace(generation);
        state.clearing.extend(replaced);
        state.building = None;
    } else {
        state.building = Some(Building { generation, build: built.build });
    }
    Ok(built.entries as u64)
}

/// Removes the next entries of the first generation that is being cleared, or its records if it has no entries left.
fn clear(tx: &mut Transaction<'_>, id: PartitionId, state: &mut IndexState, limit: usize) -> Result<u64> {
    let Some(&generation) = state.clearing.first() else { return Ok(0) };
    let (mut position, mut last) = match state.cleared.split_first() {
        Some((position, last)) => (usize::from(*position), last.to_vec()),
        None => (0, Vec::new()),
    };
    let mut room = limit.clamp(1, DROP_CHUNK);
    let mut removed = 0;
    while let Some((keyspace, prefix)) = stages(id, generation).into_iter().nth(position) {
        let cleared = clear_piece(tx, keyspace, prefix, &mut last, room)?;
        room -= cleared;
        removed += cleared as u64;
        if room == 0 {
            state.cleared = [&[position as u8], last.as_slice()].concat();
            return Ok(removed);
        }
        (position, last) = (position + 1, Vec::new());
    }
    let (keyspace, key) = Key::IndexPolicy(id, generation).encode();
    tx.remove(keyspace, key);
    state.clearing.remove(0);
    state.cleared.clear();
    Ok(removed)
}

/// Returns the keyspaces and prefixes in which a generation has entries, in the order of clearing.
fn stages(id: PartitionId, generation: Generation) -> [(Keyspace, Vec<u8>); 3] {
    [
        (Keyspace::Index, keys::index_generation(id, generation)),
        (Keyspace::Counter, keys::shape_counts(id, generation)),
        (Keyspace::Counter, keys::shape_places(id, generation)),
    ]
}
