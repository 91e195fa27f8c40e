//! All entries that one version of an item has in the index, for both APIs.
//!
//! The entries of a container's item are in *sets*, one for each generation of the path index that has the item; each set may
//! have a shape beside its entries. The entries of a document of a collection are one set, over all its indexes. Within a set
//! entries are in key order.
//!
//! A replace merges the sets of both versions: shared entries stay as they are, unless the new version may expire earlier than the
//! entry's mark, or by another rule (decision 0004).

use std::cmp::Ordering;

use bytes::Bytes;
use storage::{Keyspace, Transaction};

use super::maintained::{ExtractedTerms, MaintainedIndexes};
use super::policy::Coverage;
use super::shape::ExpectedShape;
use super::terms::{Entry, Terms};
use crate::entries::expected::{ExpectedEntry, ExpectedValue};
use crate::entries::mark::Mark;
use crate::expiry::QueuePositions;
use crate::expiry::header::Record;
use crate::keys::{Generation, PartitionId};
use crate::types::error::Result;

/// Stands for the indexes of a collection, which have no generations.
const NO_GENERATION: Generation = Generation(0);

/// All entries of one version of an item in the index.
#[derive(Debug)]
pub(crate) struct IndexFootprint {
    partition: PartitionId,
    places: QueuePositions,
    sets: Vec<(Generation, Terms)>,
    /// The entries that a charge counts.
    charged: Charged,
}

/// Where the entries are that a charge counts. The progress of a build must not show in a charge, because it depends on how many
/// expired items the purge has removed before.
#[derive(Debug)]
enum Charged {
    /// Nowhere: nothing is indexed.
    Nothing,
    /// In the set at this position.
    At(usize),
    /// In no set: an index that is being built does not have the item yet.
    Apart(Vec<Entry>),
}

impl IndexFootprint {
    /// Returns the entries of an item of a container; terms in `extracted` are not extracted again.
    pub(crate) fn of_item(
        maintained: &MaintainedIndexes,
        record: &Record,
        extracted: &mut ExtractedTerms,
    ) -> IndexFootprint {
        let partition = maintained.partition();
        let mut terms = |generation: Generation, coverage: &Coverage| {
            let known = extracted.take(generation);
            let extract = || Terms::extract(partition, generation, coverage, record.body.root());
            let mut terms = known.unwrap_or_else(extract);
            terms.complete(record.number, record.header.ts);
            terms
        };
        let generations = maintained.generations(record.number);
        let sets: Vec<_> =
            generations.map(|(generation, coverage)| (generation, terms(generation, coverage))).collect();
        let charged = maintained.charged().map_or(Charged::Nothing, |(wanted, coverage)| {
            let at = sets.iter().position(|(generation, _)| *generation == wanted);
            at.map_or_else(|| Charged::Apart(terms(wanted, coverage).entries), Charged::At)
        });
        IndexFootprint { partition, places: record.header.places(), sets, charged }
    }

    /// Returns the entries of a stored item in one generation.
    pub(crate) fn in_generation(
        partition: PartitionId,
        generation: Generation,
        coverage: &Coverage,
        record: &Record,
    ) -> IndexFootprint {
        let mut terms = Terms::extract(partition, generation, coverage, record.body.root());
        terms.complete(record.number, record.header.ts);
        let (places, sets) = (record.header.places(), vec![(generation, terms)]);
        IndexFootprint { partition, places, sets, charged: Charged::At(0) }
    }

    /// Returns the entries of a document of a collection, by their keys; a charge counts `charged` if those are others.
    pub(crate) fn of_document(
        partition: PartitionId,
        places: QueuePositions,
        keys: Vec<Vec<u8>>,
        charged: Option<Vec<Vec<u8>>>,
    ) -> IndexFootprint {
        let entries = |mut keys: Vec<Vec<u8>>| {
            keys.sort_unstable();
            keys.into_iter().map(Entry::exact).collect()
        };
        let charged = charged.map_or(Charged::At(0), |keys| Charged::Apart(entries(keys)));
        let terms = Terms { entries: entries(keys), shape: None };
        IndexFootprint { partition, places, sets: vec![(NO_GENERATION, terms)], charged }
    }

    /// Returns the entries that a charge counts, in order.
    fn charged_entries(&self) -> &[Entry] {
        match &self.charged {
            Charged::Nothing => &[],
            Charged::At(position) => &self.sets[*position].1.entries,
            Charged::Apart(entries) => entries,
        }
    }

    /// Returns how many terms the version has, as a charge counts them.
    pub(crate) fn terms(&self) -> u64 {
        self.charged_entries().len() as u64
    }

    /// Returns in how many terms two versions differ, as a charge counts them. Marks do not count: they depend on expiry (T21).
    pub(crate) fn changed_terms(&self, old: &IndexFootprint) -> u64 {
        let (mut new, mut old) =
            (self.charged_entries().iter().peekable(), old.charged_entries().iter().peekable());
        let mut apart = 0;
        while let (Some(left), Some(right)) = (new.peek(), old.peek()) {
            let order = left.key.cmp(&right.key);
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

    /// Writes the entries of a new item.
    pub(crate) fn insert(self, tx: &mut Transaction<'_>) -> Result<()> {
        let values = Values::new(&self.places);
        for (generation, terms) in self.sets {
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
    pub(super) fn remove(self, tx: &mut Transaction<'_>) -> Result<()> {
        for (generation, terms) in self.sets {
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
    pub(super) fn replace(self, old: IndexFootprint, tx: &mut Transaction<'_>) -> Result<()> {
        let values = Values::new(&self.places);
        // An entry's mark is at most the positions of the version before, so an upper bound of those is enough.
        let kept = old.places.bounds(&self.places);
        for ((generation, new), (_, old)) in self.sets.into_iter().zip(old.sets) {
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

    /// Returns how many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.sets.iter().map(|(_, terms)| terms.entries.len()).sum()
    }

    /// Returns all entries as the store may have them, each with an upper bound of its mark.
    pub(super) fn expected(&self) -> impl Iterator<Item = ExpectedEntry> {
        self.sets.iter().flat_map(|(_, terms)| &terms.entries).map(|Entry { key, inexact, .. }| {
            let mark = Mark { places: self.places.clone(), inexact: *inexact };
            let (keyspace, key) = (Keyspace::Index, key.clone());
            ExpectedEntry { keyspace, key, value: ExpectedValue::Bounded(mark) }
        })
    }

    /// Returns the shapes of the version, one in each generation that has one.
    pub(crate) fn shapes(&self) -> Vec<ExpectedShape> {
        let shape = |(generation, terms): &(Generation, Terms)| {
            terms.shape.as_ref().map(|shape| (*generation, shape.hash, shape.places.clone()))
        };
        self.sets.iter().filter_map(shape).collect()
    }
}

/// The two values that entries of one version can have.
struct Values {
    exact: Bytes,
    inexact: Bytes,
}

impl Values {
    fn new(places: &QueuePositions) -> Values {
        let value = |inexact| Mark { places: places.clone(), inexact }.encode().into();
        Values { exact: value(false), inexact: value(true) }
    }

    fn of(&self, inexact: bool) -> Bytes {
        if inexact { self.inexact.clone() } else { self.exact.clone() }
    }
}

/// The entries of two versions of an item at a key.
enum Difference {
    Gone(Entry),
    New(Entry),
    Both { new: Entry, old: Entry },
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
