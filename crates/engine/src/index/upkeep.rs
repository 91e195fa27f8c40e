//! Keeping the index with every write: what an item's versions leave in each generation that is kept.
//!
//! Terms are extracted before the transaction, for the generations known there ([`Drafted`]); the transaction learns which
//! generations there are by then ([`Upkeep`]), takes what was extracted for them and extracts what is missing.
//!
//! A replace merges the sorted entries of both versions: what both have stays where it is, unless the new version may die
//! earlier than the entry's mark says, or by another rule (decision 0004).

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use document::{Document, ItemNumber};
use storage::{Keyspace, Read, Transaction};

use super::entry::Mark;
use super::policy::Coverage;
use super::state::{IndexState, Indexes};
use super::terms::{Entry, Terms};
use crate::check::ClaimedShape;
use crate::container::Partition;
use crate::error::{Error, Result};
use crate::expiry::Places;
use crate::header::Record;
use crate::keys::{Generation, PartitionId};

/// The terms of a body that is about to be written, for the generations that were kept when it was prepared.
#[derive(Debug, Default)]
pub(crate) struct Drafted(Vec<(Generation, Terms)>);

impl Drafted {
    /// Extracts the terms of a body on the caller's thread.
    pub(crate) fn new(partition: &Partition, body: &Document) -> Drafted {
        let indexes = partition.indexes();
        let extract = |(generation, coverage): (Generation, &Arc<Coverage>)| {
            (generation, Terms::extract(partition.id, generation, coverage, body.root()))
        };
        Drafted(indexes.maintained().map(extract).collect())
    }

    fn take(&mut self, generation: Generation) -> Option<Terms> {
        let at = self.0.iter().position(|(known, _)| *known == generation)?;
        Some(self.0.swap_remove(at).1)
    }
}

/// The generations that a transaction has to keep.
#[derive(Debug)]
pub(crate) struct Upkeep {
    partition: PartitionId,
    indexes: Arc<Indexes>,
    /// The state as the transaction sees it; `indexes` may be of an earlier one with the same generations.
    state: IndexState,
}

impl Upkeep {
    /// Reads the state; policies come from memory where they are known.
    pub(crate) fn load(reader: &dyn Read, partition: &Partition) -> Result<Upkeep> {
        let state = IndexState::load(reader, partition.id)?.unwrap_or_default();
        let known = partition.indexes();
        let is_known = |generation: Option<Generation>| {
            generation.is_none_or(|generation| known.coverage(generation).is_some())
        };
        let building = state.building.map(|building| building.generation);
        let indexes = if is_known(state.serving) && is_known(building) {
            known
        } else {
            Arc::new(Indexes::complete(reader, partition.id, state.clone(), &known)?)
        };
        Ok(Upkeep { partition: partition.id, indexes, state })
    }

    /// Whether an item leaves the same in the index by both.
    pub(crate) fn is_for_the_same_as(&self, other: &Upkeep) -> bool {
        self.partition == other.partition && self.state == other.state
    }

    /// The generations that writes keep.
    pub(crate) fn kept(&self) -> impl Iterator<Item = Generation> {
        self.state.serving.into_iter().chain(self.state.building.map(|building| building.generation))
    }

    /// The generations that are being cleared away.
    pub(crate) fn clearing(&self) -> impl Iterator<Item = Generation> {
        self.state.clearing.iter().copied()
    }

    /// What a generation that is kept holds.
    pub(super) fn coverage(&self, generation: Generation) -> Result<Arc<Coverage>> {
        let known = self.indexes.coverage(generation).cloned();
        known.ok_or_else(|| Error::Corrupt(format!("generation {} of an index has no policy", generation.0)))
    }

    /// The generations in which an item has entries.
    fn generations(&self, number: ItemNumber) -> impl Iterator<Item = (Generation, &Arc<Coverage>)> {
        let building = self.state.building.filter(|building| building.has(number));
        let generations = self.state.serving.into_iter().chain(building.map(|building| building.generation));
        generations.filter_map(|generation| Some((generation, self.indexes.coverage(generation)?)))
    }

    /// The generation of the policy in force, whether it serves already or not: its terms are what a write is charged for.
    /// How far a build has come must not show in a charge, because it depends on what the purge has left to build.
    fn charged(&self) -> Option<(Generation, &Arc<Coverage>)> {
        let building = self.state.building.map(|building| building.generation);
        let generation = building.or(self.state.serving)?;
        Some((generation, self.indexes.coverage(generation)?))
    }
}

/// Everything that one version of an item leaves in the index.
#[derive(Debug)]
pub(crate) struct IndexFootprint {
    partition: PartitionId,
    places: Places,
    generations: Vec<(Generation, Terms)>,
    /// The keys that a charge counts.
    charged: Charged,
}

/// Where the keys are that a charge counts.
#[derive(Debug)]
enum Charged {
    /// Nowhere: nothing is indexed.
    Nothing,
    /// In the generation at this position.
    At(usize),
    /// In a generation that is being built and does not have the item yet.
    Apart(Vec<Vec<u8>>),
}

impl IndexFootprint {
    /// The entries of a version; what `drafted` has of it need not be extracted again.
    pub(crate) fn new(upkeep: &Upkeep, record: &Record, mut drafted: Drafted) -> IndexFootprint {
        let terms = |(generation, coverage): (Generation, &Arc<Coverage>)| {
            let terms = drafted.take(generation);
            let extract = || Terms::extract(upkeep.partition, generation, coverage, record.body.root());
            let mut terms = terms.unwrap_or_else(extract);
            terms.complete(record.number, record.header.ts);
            (generation, terms)
        };
        let generations: Vec<_> = upkeep.generations(record.number).map(terms).collect();
        let charged = upkeep.charged().map_or(Charged::Nothing, |(wanted, coverage)| {
            let at = generations.iter().position(|(generation, _)| *generation == wanted);
            at.map_or_else(
                || {
                    let mut terms = drafted.take(wanted).unwrap_or_else(|| {
                        Terms::extract(upkeep.partition, wanted, coverage, record.body.root())
                    });
                    terms.complete(record.number, record.header.ts);
                    Charged::Apart(terms.entries.into_iter().map(|entry| entry.key).collect())
                },
                Charged::At,
            )
        });
        IndexFootprint { partition: upkeep.partition, places: record.header.places(), generations, charged }
    }

    /// The keys that a charge counts, in order.
    fn charged_keys(&self) -> Box<dyn ExactSizeIterator<Item = &[u8]> + '_> {
        match &self.charged {
            Charged::Nothing => Box::new(std::iter::empty()),
            Charged::At(position) => {
                Box::new(self.generations[*position].1.entries.iter().map(|entry| entry.key.as_slice()))
            }
            Charged::Apart(keys) => Box::new(keys.iter().map(Vec::as_slice)),
        }
    }

    /// How many terms the version has, as a charge counts them.
    pub(crate) fn terms(&self) -> u64 {
        self.charged_keys().len() as u64
    }

    /// In how many terms two versions differ, as a charge counts them. Marks do not count: they tell of expiry (T21).
    pub(crate) fn changed_terms(&self, old: &IndexFootprint) -> u64 {
        keys_apart(self.charged_keys(), old.charged_keys())
    }

    /// The entries of a stored item in one generation.
    pub(super) fn in_generation(
        partition: PartitionId,
        generation: Generation,
        coverage: &Coverage,
        record: &Record,
    ) -> IndexFootprint {
        let mut terms = Terms::extract(partition, generation, coverage, record.body.root());
        terms.complete(record.number, record.header.ts);
        let places = record.header.places();
        let charged = Charged::At(0);
        IndexFootprint { partition, places, generations: vec![(generation, terms)], charged }
    }

    /// Writes the entries of a new item.
    pub(crate) fn insert(self, tx: &mut Transaction<'_>) -> Result<()> {
        let values = Values::new(&self.places);
        for (generation, terms) in self.generations {
            if let Some(shape) = &terms.shape {
                shape.add(tx, self.partition, generation)?;
            }
            for Entry { key, inexact, .. } in terms.entries {
                tx.put(Keyspace::Index, key, values.of(inexact));
            }
        }
        Ok(())
    }

    /// Removes the entries of an item.
    pub(crate) fn remove(self, tx: &mut Transaction<'_>) -> Result<()> {
        for (generation, terms) in self.generations {
            if let Some(shape) = &terms.shape {
                shape.subtract(tx, self.partition, generation)?;
            }
            for entry in terms.entries {
                tx.remove(Keyspace::Index, entry.key);
            }
        }
        Ok(())
    }

    /// Turns the entries of `old` into those of `self`, leaving alone what both share.
    pub(crate) fn replace(self, old: IndexFootprint, tx: &mut Transaction<'_>) -> Result<()> {
        let values = Values::new(&self.places);
        // An entry's mark is at most the places of the version before, so what bounds those from above is enough.
        let kept = old.places.bounds(&self.places);
        for ((generation, new), (_, old)) in self.generations.into_iter().zip(old.generations) {
            if new.shape != old.shape {
                if let Some(shape) = &old.shape {
                    shape.subtract(tx, self.partition, generation)?;
                }
                if let Some(shape) = &new.shape {
                    shape.add(tx, self.partition, generation)?;
                }
            }
            merge(new.entries, old.entries, |entry| match entry {
                Difference::Gone(old) => tx.remove(Keyspace::Index, old.key),
                Difference::New(new) => tx.put(Keyspace::Index, new.key, values.of(new.inexact)),
                Difference::Both { new, old } if !kept || new.inexact != old.inexact => {
                    tx.put(Keyspace::Index, new.key, values.of(new.inexact));
                }
                Difference::Both { .. } => {}
            });
        }
        Ok(())
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.generations.iter().map(|(_, terms)| terms.entries.len()).sum()
    }

    /// All entries as they may lie in the store: key, and a mark that bounds theirs from above.
    pub(crate) fn expected(&self) -> impl Iterator<Item = (&[u8], Mark)> {
        let entries = self.generations.iter().flat_map(|(_, terms)| &terms.entries);
        entries
            .map(|entry| (entry.key.as_slice(), Mark { places: self.places.clone(), inexact: entry.inexact }))
    }
}

impl IndexFootprint {
    /// The shapes of the version, one in each generation that has one.
    pub(crate) fn shapes(&self) -> Vec<ClaimedShape> {
        let shape = |(generation, terms): &(Generation, Terms)| {
            terms.shape.as_ref().map(|shape| (*generation, shape.hash, shape.places.clone()))
        };
        self.generations.iter().filter_map(shape).collect()
    }
}

/// The two values that entries of one version can have.
struct Values {
    exact: Bytes,
    inexact: Bytes,
}

impl Values {
    fn new(places: &Places) -> Values {
        let value = |inexact| Mark { places: places.clone(), inexact }.encode().into();
        Values { exact: value(false), inexact: value(true) }
    }

    fn of(&self, inexact: bool) -> Bytes {
        if inexact { self.inexact.clone() } else { self.exact.clone() }
    }
}

/// What two versions of an item have at a key.
enum Difference {
    Gone(Entry),
    New(Entry),
    Both { new: Entry, old: Entry },
}

/// How many keys of two lists in order are in one of them alone.
pub(crate) fn keys_apart<'k>(
    new: impl Iterator<Item = &'k [u8]>,
    old: impl Iterator<Item = &'k [u8]>,
) -> u64 {
    let (mut new, mut old, mut apart) = (new.peekable(), old.peekable(), 0);
    while let (Some(left), Some(right)) = (new.peek(), old.peek()) {
        let order = left.cmp(right);
        if order != Ordering::Greater {
            new.next();
        }
        if order != Ordering::Less {
            old.next();
        }
        apart += u64::from(order != Ordering::Equal);
    }
    apart + new.count() as u64 + old.count() as u64
}

/// Walks two lists in key order side by side.
fn merge(new: Vec<Entry>, old: Vec<Entry>, mut visit: impl FnMut(Difference)) {
    let (mut new, mut old) = (new.into_iter().peekable(), old.into_iter().peekable());
    loop {
        let order = match (new.peek(), old.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(new), Some(old)) => new.key.cmp(&old.key),
        };
        let difference = match order {
            Ordering::Less => new.next().map(Difference::New),
            Ordering::Greater => old.next().map(Difference::Gone),
            Ordering::Equal => new.next().zip(old.next()).map(|(new, old)| Difference::Both { new, old }),
        };
        if let Some(difference) = difference {
            visit(difference);
        }
    }
}
