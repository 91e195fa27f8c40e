//! The generations of a partition's index, and their states.
//!
//! ```text
//!   new policy          build done            cleared
//!   ---------> building ---------> serving -----------> gone
//!                  |                   |  next build done, or indexing mode none
//!                  +-- another policy -+--> clearing
//! ```
//!
//! Queries use the *serving* generation: every item is in it. A new policy starts a *building* one. A background step
//! adds the items that existed before, in the order of their numbers, while writes maintain what is already in it,
//! and everything that came later, as exactly as in the serving one. So a build ends, however fast items arrive.
//! Generations that are no longer needed are *cleared* in bounded steps.
//!
//! The state is one record of the partition that every write reads in its transaction. The policy of each generation
//! is a record of its own, because the container's definition already has the newest policy while an older one still
//! serves.

use std::sync::Arc;

use document::{Document, ItemNumber};
use storage::{Keyspace, Read, Transaction};

use super::build::Build;
use super::policy::Coverage;
use crate::definition::IndexingPolicy;
use crate::entries::counters;
use crate::keys::{Generation, Key, PartitionId};
use crate::types::error::{Error, Result};
use crate::types::events;

/// The number of generations that may wait to be cleared; beyond it a change of policy has to wait. A change adds two
/// at most.
const CLEARING_MAX: usize = 64;

/// The stored record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IndexState {
    /// Grows with every change, so that an older copy never replaces a newer one. 0 if the store has no record.
    pub(crate) version: u64,
    /// The last generation that was begun.
    last: u32,
    /// The generation that queries use.
    pub(crate) serving: Option<Generation>,
    /// The generation that is being built.
    pub(crate) building: Option<Building>,
    /// The generations that are being cleared, in this order.
    pub(crate) clearing: Vec<Generation>,
    /// The last key removed of the first generation in `clearing`, behind the stage (see `build`).
    pub(crate) cleared: Vec<u8>,
}

/// A build in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Building {
    pub(crate) generation: Generation,
    pub(crate) build: Build,
}

impl IndexState {
    /// Returns the state of a partition whose container was dropped: the last state that it has.
    pub(crate) fn gone() -> IndexState {
        IndexState { version: u64::MAX, ..IndexState::default() }
    }

    /// Returns whether a background step has work to do.
    pub(crate) fn has_work(&self) -> bool {
        self.building.is_some() || !self.clearing.is_empty()
    }

    /// Returns how much of the newest policy is in force, in percent; 100 only if all of it is.
    pub(crate) fn progress(&self) -> u8 {
        match self.building {
            None => 100,
            Some(Building { build: Build { built, total, .. }, .. }) => {
                let percent = u128::from(built) * 100 / u128::from(total.max(1));
                percent.min(99) as u8
            }
        }
    }

    /// Returns all generations that have a policy record.
    fn generations(&self) -> impl Iterator<Item = Generation> {
        self.serving.into_iter().chain(self.building.map(|building| building.generation))
    }

    /// Returns the stored form, which `docs/file-format.md` describes.
    fn encode(&self) -> Vec<u8> {
        let mut out = self.version.to_be_bytes().to_vec();
        out.extend_from_slice(&self.last.to_be_bytes());
        out.extend_from_slice(&self.serving.map_or(0, |generation| generation.0).to_be_bytes());
        out.push(u8::from(self.building.is_some()));
        if let Some(Building { generation, build }) = &self.building {
            out.extend_from_slice(&generation.0.to_be_bytes());
            for number in [build.through.0, build.until.0, build.built, build.total] {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        out.push(self.clearing.len() as u8);
        for generation in &self.clearing {
            out.extend_from_slice(&generation.0.to_be_bytes());
        }
        out.extend_from_slice(&self.cleared);
        out
    }

    fn decode(bytes: &[u8]) -> Result<IndexState> {
        IndexState::try_decode(bytes).ok_or_else(|| Error::Corrupt("an index state cannot be read".into()))
    }

    fn try_decode(mut bytes: &[u8]) -> Option<IndexState> {
        let version = u64::from_be_bytes(*take(&mut bytes)?);
        let last = u32::from_be_bytes(*take(&mut bytes)?);
        let serving = Some(Generation(u32::from_be_bytes(*take(&mut bytes)?))).filter(|found| found.0 != 0);
        let building = match take::<1>(&mut bytes)? {
            [0] => None,
            [1] => Some(Building {
                generation: Generation(u32::from_be_bytes(*take(&mut bytes)?)),
                build: Build {
                    through: ItemNumber(u64::from_be_bytes(*take(&mut bytes)?)),
                    until: ItemNumber(u64::from_be_bytes(*take(&mut bytes)?)),
                    built: u64::from_be_bytes(*take(&mut bytes)?),
                    total: u64::from_be_bytes(*take(&mut bytes)?),
                },
            }),
            _ => return None,
        };
        let [count] = *take::<1>(&mut bytes)?;
        let mut clearing = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            clearing.push(Generation(u32::from_be_bytes(*take(&mut bytes)?)));
        }
        Some(IndexState { version, last, serving, building, clearing, cleared: bytes.to_vec() })
    }

    /// Reads the record. Returns `None` in a store that was written before there were indexes, or if the container
    /// was dropped.
    pub(crate) fn load(reader: &dyn Read, partition: PartitionId) -> Result<Option<IndexState>> {
        let (keyspace, key) = Key::IndexState(partition).encode();
        reader.get(keyspace, &key)?.map(|bytes| IndexState::decode(&bytes)).transpose()
    }

    /// Writes the record as the next version.
    pub(crate) fn store(&mut self, tx: &mut Transaction<'_>, partition: PartitionId) {
        self.version += 1;
        let (keyspace, key) = Key::IndexState(partition).encode();
        tx.put(keyspace, key, self.encode());
    }
}

/// The state of a partition's index with the policies of its generations, as a partition keeps it in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Indexes {
    pub(crate) state: IndexState,
    coverages: Vec<(Generation, Arc<Coverage>)>,
}

impl Indexes {
    /// Reads everything.
    pub(crate) fn load(reader: &dyn Read, partition: PartitionId) -> Result<Indexes> {
        let state = IndexState::load(reader, partition)?.unwrap_or_default();
        Indexes::complete(reader, partition, state, &Indexes::default())
    }

    /// Returns the state with its policies: from `known` where it has them, else from the store.
    pub(crate) fn complete(
        reader: &dyn Read,
        partition: PartitionId,
        state: IndexState,
        known: &Indexes,
    ) -> Result<Indexes> {
        let coverage = |generation| match known.coverage(generation) {
            Some(coverage) => Ok((generation, Arc::clone(coverage))),
            None => Ok((generation, Arc::new(load_coverage(reader, partition, generation)?))),
        };
        let coverages = state.generations().map(coverage).collect::<Result<_>>()?;
        Ok(Indexes { state, coverages })
    }

    /// Returns what a generation holds.
    pub(crate) fn coverage(&self, generation: Generation) -> Option<&Arc<Coverage>> {
        self.coverages.iter().find(|(known, _)| *known == generation).map(|(_, coverage)| coverage)
    }

    /// Returns the generations that writes maintain, with what they hold.
    pub(crate) fn maintained(&self) -> impl Iterator<Item = (Generation, &Arc<Coverage>)> {
        self.coverages.iter().map(|(generation, coverage)| (*generation, coverage))
    }

    /// Returns the generation that queries use.
    pub(crate) fn serving(&self) -> Option<(Generation, &Arc<Coverage>)> {
        let generation = self.state.serving?;
        Some((generation, self.coverage(generation)?))
    }

    /// Returns the generation that will serve when everything is built, or serves already.
    fn newest(&self) -> Option<&Arc<Coverage>> {
        let building = self.state.building.map(|building| building.generation);
        self.coverage(building.or(self.state.serving)?)
    }
}

fn load_coverage(reader: &dyn Read, partition: PartitionId, generation: Generation) -> Result<Coverage> {
    let damaged = || {
        Error::Corrupt(format!(
            "the indexing policy of generation {} of partition {}",
            generation.0, partition.0
        ))
    };
    let (keyspace, key) = Key::IndexPolicy(partition, generation).encode();
    let bytes = reader.get(keyspace, &key)?.ok_or_else(damaged)?;
    let value = Document::from_stored(bytes).map_err(|_| damaged())?.to_value();
    let policy = IndexingPolicy::from_value(&value).map_err(|_| damaged())?;
    Coverage::new(&policy).ok_or_else(damaged)
}

/// Makes the index of a partition follow `policy`: no change if it already does, at once if there are no items, else
/// by a build.
pub(crate) fn follow(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    policy: &IndexingPolicy,
) -> Result<Indexes> {
    let indexes = Indexes::load(tx, partition)?;
    let wanted = Coverage::new(policy);
    if indexes.state.version > 0 && indexes.newest().map(Arc::as_ref) == wanted.as_ref() {
        return Ok(indexes);
    }
    let mut state = indexes.state.clone();
    if state.clearing.len() >= CLEARING_MAX {
        return Err(Error::Unavailable(format!(
            "{CLEARING_MAX} earlier indexes of the container are still being removed"
        )));
    }
    state.clearing.extend(state.building.take().map(|building| building.generation));
    match wanted {
        None => state.clearing.extend(state.serving.take()),
        Some(wanted) if indexes.serving().is_some_and(|(_, serving)| **serving == wanted) => {}
        Some(_) => begin(tx, partition, policy, &mut state)?,
    }
    state.store(tx, partition);
    Indexes::complete(tx, partition, state, &indexes)
}

/// Begins a new generation.
fn begin(
    tx: &mut Transaction<'_>,
    partition: PartitionId,
    policy: &IndexingPolicy,
    state: &mut IndexState,
) -> Result<()> {
    let next = state.last.checked_add(1);
    state.last = next.ok_or_else(|| Error::Unavailable("no index numbers are left".into()))?;
    let generation = Generation(state.last);
    let document = Document::from_value(&policy.to_value())?;
    let (keyspace, key) = Key::IndexPolicy(partition, generation).encode();
    tx.put(keyspace, key, document.as_bytes().to_vec());
    let total = counters::total(tx, partition)?.items;
    if total == 0 {
        let empty = state.serving.replace(generation);
        state.clearing.extend(empty);
        return Ok(());
    }
    // Every item created from now on has a higher number.
    let until = ItemNumber(events::last_of_commit(tx.last_sequence()).0);
    state.building = Some(Building { generation, build: Build::begin(until, total) });
    Ok(())
}

/// Removes the records of a partition whose container is being dropped.
pub(crate) fn forget(tx: &mut Transaction<'_>, partition: PartitionId) -> Result<()> {
    let (keyspace, key) = Key::IndexState(partition).encode();
    tx.remove(keyspace, key);
    let policies = storage::KeyRange::prefix(crate::keys::index_policies(partition));
    let policies = tx.scan(Keyspace::Catalog, policies, storage::Direction::Forward);
    let policies = policies.map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>>>()?;
    for key in policies {
        tx.remove(Keyspace::Catalog, key.to_vec());
    }
    Ok(())
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn building(through: u64, until: u64) -> Building {
        let (through, until) = (ItemNumber(through), ItemNumber(until));
        Building { generation: Generation(3), build: Build { through, until, built: 5, total: 9 } }
    }

    #[test]
    fn a_state_reads_back_as_written() {
        let bare = IndexState { version: 1, ..IndexState::default() };
        let full = IndexState {
            version: u64::MAX,
            last: 3,
            serving: Some(Generation(2)),
            building: Some(building(7, 9)),
            clearing: vec![Generation(1)],
            cleared: vec![0, 1, 2],
        };
        for state in [bare, full] {
            assert_eq!(IndexState::decode(&state.encode()), Ok(state.clone()));
            assert!(IndexState::decode(&state.encode()[..17]).is_err());
        }
    }

    #[test]
    fn a_build_has_what_it_passed_and_what_came_since() {
        let building = building(7, 9);
        let has = [1, 7, 8, 9, 10].map(|number| building.build.has(ItemNumber(number)));
        assert_eq!(has, [true, true, false, false, true]);
    }

    #[test]
    fn progress_is_a_hundred_only_at_the_end() {
        let mut state = IndexState::default();
        assert_eq!(state.progress(), 100);
        for (built, total, percent) in [(0, 9, 0), (5, 9, 55), (9, 9, 99), (12, 9, 99), (0, 0, 0)] {
            let build = Build { built, total, ..building(0, 0).build };
            state.building = Some(Building { build, ..building(0, 0) });
            assert_eq!(state.progress(), percent, "{built} of {total}");
        }
    }
}
