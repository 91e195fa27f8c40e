//! Which generations of an index a partition has, and what happens to them.
//!
//! ```text
//!   new policy          build done            cleared
//!   ---------> building ---------> serving -----------> gone
//!                  |                   |  next build done, or indexing mode none
//!                  +-- another policy -+--> clearing
//! ```
//!
//! Queries use the *serving* generation: every item is in it. A new policy starts a *building* one; a background step brings
//! the items into it that were there before, in the order of their numbers, while writes keep what is already in it, and
//! everything that came later, as exact as the serving one. So a build ends, however fast items come in. What is no longer
//! wanted is *cleared* in bounded steps.
//!
//! The state is one record of the partition that every write reads in its transaction; the policy of each generation is a
//! record of its own, because the container's definition already has the newest one while an older one still serves.

use std::sync::Arc;

use document::{Document, ItemNumber};
use storage::{Keyspace, Read, Transaction};

use super::policy::Coverage;
use crate::counters;
use crate::definition::IndexingPolicy;
use crate::error::{Error, Result};
use crate::events;
use crate::keys::{Generation, Key, PartitionId};

/// Generations that may wait to be cleared; then a change of policy waits. A change adds two at most.
const CLEARING_MAX: usize = 64;

/// The stored record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IndexState {
    /// Grows with every change, so that an older copy never replaces a newer one. 0 if the store has no record.
    pub(crate) version: u64,
    /// The last generation that was begun.
    last: u32,
    /// The generation that queries use.
    pub(super) serving: Option<Generation>,
    /// The generation that is being built.
    pub(super) building: Option<Building>,
    /// What is being cleared away, the first one first.
    pub(super) clearing: Vec<Generation>,
    /// The last key removed of the first one of `clearing`, behind the stage (see `build`).
    pub(super) cleared: Vec<u8>,
}

/// A build in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Building {
    pub(super) generation: Generation,
    /// Items up to this number are in it,
    pub(super) through: ItemNumber,
    /// and items behind this one, because they were created since.
    pub(super) until: ItemNumber,
    /// Items brought in so far,
    pub(super) built: u64,
    /// of so many.
    pub(super) total: u64,
}

impl Building {
    /// Whether an item's entries are in the generation.
    pub(super) fn has(&self, number: ItemNumber) -> bool {
        number <= self.through || number > self.until
    }
}

impl IndexState {
    /// The state of a partition whose container is gone: the last that there is.
    pub(super) fn gone() -> IndexState {
        IndexState { version: u64::MAX, ..IndexState::default() }
    }

    /// Whether a background step has something to do.
    pub(crate) fn has_work(&self) -> bool {
        self.building.is_some() || !self.clearing.is_empty()
    }

    /// How much of the newest policy is in force, in percent; 100 only if all is.
    pub(crate) fn progress(&self) -> u8 {
        match self.building {
            None => 100,
            Some(Building { built, total, .. }) => {
                let percent = u128::from(built) * 100 / u128::from(total.max(1));
                percent.min(99) as u8
            }
        }
    }

    /// All generations that have a policy record.
    fn generations(&self) -> impl Iterator<Item = Generation> {
        self.serving.into_iter().chain(self.building.map(|building| building.generation))
    }

    /// The stored form; `docs/file-format.md` has every byte.
    fn encode(&self) -> Vec<u8> {
        let mut out = self.version.to_be_bytes().to_vec();
        out.extend_from_slice(&self.last.to_be_bytes());
        out.extend_from_slice(&self.serving.map_or(0, |generation| generation.0).to_be_bytes());
        out.push(u8::from(self.building.is_some()));
        if let Some(building) = &self.building {
            out.extend_from_slice(&building.generation.0.to_be_bytes());
            for number in [building.through.0, building.until.0, building.built, building.total] {
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
                through: ItemNumber(u64::from_be_bytes(*take(&mut bytes)?)),
                until: ItemNumber(u64::from_be_bytes(*take(&mut bytes)?)),
                built: u64::from_be_bytes(*take(&mut bytes)?),
                total: u64::from_be_bytes(*take(&mut bytes)?),
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

    /// Reads the record; none in a store that was written before there were indexes, or if the container is gone.
    pub(super) fn load(reader: &dyn Read, partition: PartitionId) -> Result<Option<IndexState>> {
        let (keyspace, key) = Key::IndexState(partition).encode();
        reader.get(keyspace, &key)?.map(|bytes| IndexState::decode(&bytes)).transpose()
    }

    /// Writes the record as the next version.
    pub(super) fn store(&mut self, tx: &mut Transaction<'_>, partition: PartitionId) {
        self.version += 1;
        let (keyspace, key) = Key::IndexState(partition).encode();
        tx.put(keyspace, key, self.encode());
    }
}

/// The state of a partition's index with what its generations hold: what a partition keeps in memory.
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

    /// The state with its policies: from `known` where it has them, else from the store.
    pub(super) fn complete(
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

    /// What a generation holds.
    pub(super) fn coverage(&self, generation: Generation) -> Option<&Arc<Coverage>> {
        self.coverages.iter().find(|(known, _)| *known == generation).map(|(_, coverage)| coverage)
    }

    /// The generations that writes keep, with what they hold.
    pub(super) fn maintained(&self) -> impl Iterator<Item = (Generation, &Arc<Coverage>)> {
        self.coverages.iter().map(|(generation, coverage)| (*generation, coverage))
    }

    /// The generation that queries use.
    pub(super) fn serving(&self) -> Option<(Generation, &Arc<Coverage>)> {
        let generation = self.state.serving?;
        Some((generation, self.coverage(generation)?))
    }

    /// The generation that will serve when all is built, or serves already.
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

/// Makes the index of a partition follow `policy`: nothing if it does already, at once if there are no items, else by a build.
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
            "{CLEARING_MAX} earlier indexes of the container still wait to be cleared away"
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
    state.last = next.ok_or_else(|| Error::Unavailable("no more numbers for indexes".into()))?;
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
    // Whatever is created from now on has a higher number.
    let until = ItemNumber(events::last_of_commit(tx.last_sequence()).0);
    state.building = Some(Building { generation, through: ItemNumber(0), until, built: 0, total });
    Ok(())
}

/// Removes the records of a partition whose container goes.
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
        Building { generation: Generation(3), through, until, built: 5, total: 9 }
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
        let has = [1, 7, 8, 9, 10].map(|number| building.has(ItemNumber(number)));
        assert_eq!(has, [true, true, false, false, true]);
    }

    #[test]
    fn progress_is_a_hundred_only_at_the_end() {
        let mut state = IndexState::default();
        assert_eq!(state.progress(), 100);
        for (built, total, percent) in [(0, 9, 0), (5, 9, 55), (9, 9, 99), (12, 9, 99), (0, 0, 0)] {
            state.building = Some(Building { built, total, ..building(0, 0) });
            assert_eq!(state.progress(), percent, "{built} of {total}");
        }
    }
}
