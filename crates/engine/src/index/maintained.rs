//! The generations of the path index that writes maintain, and the terms extracted for them.
//!
//! Terms are extracted before the transaction, for the generations known there ([`ExtractedTerms`]); the transaction reads
//! which generations there are by then ([`MaintainedIndexes`]), takes the terms extracted for them and extracts missing ones.

use std::sync::Arc;

use document::{Document, ItemNumber};
use storage::Read;

use super::policy::Coverage;
use super::state::{IndexState, Indexes};
use super::terms::Terms;
use crate::keys::{Generation, PartitionId};
use crate::types::error::{Error, Result};

/// The terms of a body that is about to be written, for the generations that were kept when it was prepared.
#[derive(Debug, Default)]
pub(crate) struct ExtractedTerms(Vec<(Generation, Terms)>);

impl ExtractedTerms {
    /// Extracts the terms of a body on the caller's thread.
    pub(crate) fn new(partition: PartitionId, indexes: &Indexes, body: &Document) -> ExtractedTerms {
        let extract = |(generation, coverage): (Generation, &Arc<Coverage>)| {
            (generation, Terms::extract(partition, generation, coverage, body.root()))
        };
        ExtractedTerms(indexes.maintained().map(extract).collect())
    }

    /// Takes the terms for one generation, if they were extracted.
    pub(super) fn take(&mut self, generation: Generation) -> Option<Terms> {
        let at = self.0.iter().position(|(known, _)| *known == generation)?;
        Some(self.0.swap_remove(at).1)
    }
}

/// The generations that a transaction has to maintain.
#[derive(Debug)]
pub(crate) struct MaintainedIndexes {
    partition: PartitionId,
    indexes: Arc<Indexes>,
    /// The state as the transaction sees it; `indexes` may be of an earlier one with the same generations.
    state: IndexState,
}

impl MaintainedIndexes {
    /// Reads the state; policies come from memory where they are known.
    pub(crate) fn load(
        reader: &dyn Read,
        partition: PartitionId,
        known: Arc<Indexes>,
    ) -> Result<MaintainedIndexes> {
        let state = IndexState::load(reader, partition)?.unwrap_or_default();
        let is_known = |generation: Option<Generation>| {
            generation.is_none_or(|generation| known.coverage(generation).is_some())
        };
        let building = state.building.map(|building| building.generation);
        let indexes = if is_known(state.serving) && is_known(building) {
            known
        } else {
            Arc::new(Indexes::complete(reader, partition, state.clone(), &known)?)
        };
        Ok(MaintainedIndexes { partition, indexes, state })
    }

    /// Returns whether an item has the same entries by both.
    pub(crate) fn is_for_the_same_as(&self, other: &MaintainedIndexes) -> bool {
        self.partition == other.partition && self.state == other.state
    }

    /// Returns the generations that writes maintain.
    pub(crate) fn kept(&self) -> impl Iterator<Item = Generation> {
        self.state.serving.into_iter().chain(self.state.building.map(|building| building.generation))
    }

    /// Returns the generations that are being cleared.
    pub(crate) fn clearing(&self) -> impl Iterator<Item = Generation> {
        self.state.clearing.iter().copied()
    }

    /// Returns the coverage of a maintained generation.
    pub(crate) fn coverage(&self, generation: Generation) -> Result<Arc<Coverage>> {
        let known = self.indexes.coverage(generation).cloned();
        known.ok_or_else(|| Error::Corrupt(format!("generation {} of an index has no policy", generation.0)))
    }

    /// Returns the partition that they belong to.
    pub(super) fn partition(&self) -> PartitionId {
        self.partition
    }

    /// Returns the generations in which an item has entries.
    pub(super) fn generations(
        &self,
        number: ItemNumber,
    ) -> impl Iterator<Item = (Generation, &Arc<Coverage>)> {
        let building = self.state.building.filter(|building| building.build.has(number));
        let generations = self.state.serving.into_iter().chain(building.map(|building| building.generation));
        generations.filter_map(|generation| Some((generation, self.indexes.coverage(generation)?)))
    }

    /// Returns the generation of the policy in force, whether it serves already or not: a write is charged for its terms. The
    /// progress of a build must not show in a charge, because it depends on how many expired items the purge has removed before.
    pub(super) fn charged(&self) -> Option<(Generation, &Arc<Coverage>)> {
        let building = self.state.building.map(|building| building.generation);
        let generation = building.or(self.state.serving)?;
        Some((generation, self.indexes.coverage(generation)?))
    }
}
