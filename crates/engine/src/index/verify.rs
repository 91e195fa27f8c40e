//! The integrity check: does the index hold exactly what the items call for?
//!
//! It walks all items and looks up each entry that their footprint names, then counts what lies in the generation. If all
//! were found and there are no more than that, both are the same set. Memory is bounded, however many items there are.

use storage::{Direction, KeyRange, Keyspace, Read};

use super::entry::Mark;
use super::scan::Index;
use super::state::{Building, Indexes};
use super::upkeep::IndexFootprint;
use crate::Engine;
use crate::container::Container;
use crate::error::{Error, Result};
use crate::header::Record;
use crate::keys::{self, PartitionId};
use crate::touch;

impl Engine {
    /// Compares every entry of a container's index, of generations being built or cleared too, with what its items call for,
    /// and returns how many there are. Reads everything: for tests, and for operators in doubt.
    pub fn check_index(&self, container: &Container) -> Result<u64> {
        let snapshot = self.store.snapshot()?;
        let mut entries = 0;
        for partition in &container.partitions {
            let indexes = Indexes::load(&*snapshot, partition.id)?;
            let mut kept = 0;
            for (generation, coverage) in indexes.maintained() {
                let building = indexes.state.building.filter(|building| building.generation == generation);
                let index = Index { partition: partition.id, generation, coverage: coverage.clone() };
                kept += check(&*snapshot, &index, building)?;
            }
            for generation in &indexes.state.clearing {
                let prefix = keys::index_generation(partition.id, *generation);
                kept += count(&*snapshot, Keyspace::Index, prefix)?;
            }
            check_total(&*snapshot, partition.id, kept)?;
            entries += kept;
        }
        Ok(entries)
    }
}

/// Checks one generation and returns how many entries it has.
fn check(reader: &dyn Read, index: &Index, building: Option<Building>) -> Result<u64> {
    let mut expected = 0;
    let items = KeyRange::prefix(keys::partition(index.partition));
    for entry in reader.scan(Keyspace::Item, items, Direction::Forward) {
        let (key, value) = entry?;
        let mut record = Record::decode(keys::item_number(&key)?, &value)?;
        touch::look_up(reader, index.partition, record.number, &mut record.header)?;
        if building.is_some_and(|building| !building.has(record.number)) {
            continue;
        }
        let (partition, generation) = (index.partition, index.generation);
        let footprint = IndexFootprint::in_generation(partition, generation, &index.coverage, &record);
        for (key, wanted) in footprint.expected() {
            let found = reader.get(Keyspace::Index, key)?;
            let found = found
                .ok_or_else(|| wrong(index, &format!("item {} has no entry {key:02x?}", record.number.0)))?;
            let mark = Mark::decode(&found)?;
            if mark.inexact != wanted.inexact || !mark.places.bounds(&wanted.places) {
                let number = record.number.0;
                return Err(wrong(index, &format!("item {number}: {mark:?} does not bound {wanted:?}")));
            }
            expected += 1;
        }
    }
    let found = count(reader, Keyspace::Index, keys::index_generation(index.partition, index.generation))?;
    if found != expected {
        return Err(wrong(index, &format!("{found} entries, and the items call for {expected}")));
    }
    check_shapes(reader, index)?;
    Ok(found)
}

/// Every shape is counted as often as it has entries, and every entry of a shape is counted.
fn check_shapes(reader: &dyn Read, index: &Index) -> Result<()> {
    let (mut shapes, mut items) = (0, 0);
    for shape in index.shapes(reader) {
        let shape = shape?;
        let found = count(reader, Keyspace::Index, index.shape_prefix(&shape.hash))?;
        if found != shape.items || found == 0 {
            return Err(wrong(index, &format!("a shape of {found} items is counted as {}", shape.items)));
        }
        (shapes, items) = (shapes + 1, items + found);
    }
    let counts = count(reader, Keyspace::Counter, keys::shape_counts(index.partition, index.generation))?;
    let entries = count(reader, Keyspace::Index, index.all_shapes_prefix())?;
    if counts == shapes && entries == items {
        return Ok(());
    }
    Err(wrong(index, &format!("{shapes} shapes of {items} items, {counts} counts, {entries} entries")))
}

/// Nothing lies outside of the generations that are known.
fn check_total(reader: &dyn Read, partition: PartitionId, kept: u64) -> Result<()> {
    let found = count(reader, Keyspace::Index, keys::partition(partition))?;
    if found == kept {
        return Ok(());
    }
    Err(Error::Corrupt(format!("partition {}: {found} index entries, {kept} are known", partition.0)))
}

fn count(reader: &dyn Read, keyspace: Keyspace, prefix: Vec<u8>) -> Result<u64> {
    let mut count = 0;
    for entry in reader.scan(keyspace, KeyRange::prefix(prefix), Direction::Forward) {
        entry?;
        count += 1;
    }
    Ok(count)
}

fn wrong(index: &Index, what: &str) -> Error {
    Error::Corrupt(format!(
        "index generation {} of partition {}: {what}",
        index.generation.0, index.partition.0
    ))
}
