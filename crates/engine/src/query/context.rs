//! The context of a query in one partition: the view, its index, the work done so far.

use document::ItemNumber;
use query::{Kinds, Leaf, Step, ValueSet};
use storage::{Direction, KeyRange, Keyspace};

use super::numbers::{Entries, NumberStream, Union};
use super::probe::Probes;
use super::work::Work;
use crate::access::gate::View;
use crate::catalog::container::{Container, Partition};
use crate::definition;
use crate::entries::mark::Mark;
use crate::expiry::header::Record;
use crate::index::{Index, IndexEntry, Kind, PathKey, Term};
use crate::types::error::Result;

/// The context of the cursors and sources over one partition.
pub(super) struct QueryContext<'a> {
    pub(super) container: &'a Container,
    pub(super) partition: &'a Partition,
    pub(super) view: &'a View,
    pub(super) index: Option<Index>,
    pub(super) work: &'a Work,
    /// The entries that were counted to choose a plan.
    pub(super) probes: Probes,
}

impl<'a> QueryContext<'a> {
    pub(super) fn new(
        container: &'a Container,
        partition: &'a Partition,
        view: &'a View,
        work: &'a Work,
    ) -> Result<QueryContext<'a>> {
        let index = view.index(partition)?;
        Ok(QueryContext { container, partition, view, index, work, probes: Probes::default() })
    }

    /// Returns whether the item of an index entry is living.
    pub(super) fn is_living(&self, number: ItemNumber, mark: &Mark) -> Result<bool> {
        self.view.is_living(number, mark)
    }

    /// Returns the living item of that number.
    pub(super) fn load(&self, number: ItemNumber) -> Result<Option<Record>> {
        let record = self.view.by_number(number)?;
        self.count_load(record.as_ref())?;
        Ok(record)
    }

    /// Counts the work of reading an item, which is `None` if it has expired.
    pub(super) fn count_load(&self, record: Option<&Record>) -> Result<()> {
        self.work.load(record.map_or(0, Record::size))
    }

    /// Returns the index and the path's key in it, if the index has every scalar at the path.
    pub(super) fn indexed(&self, path: &[Step]) -> Option<(&Index, PathKey)> {
        let steps = index_steps(path);
        let index = self.index.as_ref().filter(|index| index.coverage.covers(&steps))?;
        Some((index, PathKey::new(&steps)?))
    }

    /// Returns the index entries of a range whose keys have `prefix` bytes before the term.
    pub(super) fn entries(
        &self,
        range: KeyRange,
        prefix: usize,
        direction: Direction,
    ) -> impl Iterator<Item = Result<IndexEntry>> {
        let scan = self.view.snapshot.scan(Keyspace::Index, range, direction);
        scan.map(move |entry| {
            let (key, value) = entry?;
            IndexEntry::decode(prefix, &key, &value)
        })
    }

    /// Returns the items that have a value of one of these kinds at a path without array steps, or `None` if there
    /// are too many shapes to search.
    pub(super) fn of_kinds(
        &'a self,
        index: &Index,
        path: &PathKey,
        kinds: Kinds,
        direction: Direction,
    ) -> Result<Option<Box<dyn NumberStream + 'a>>> {
        let mut streams: Vec<Box<dyn NumberStream + 'a>> = Vec::new();
        for (count, shape) in index.shapes(&*self.view.snapshot).enumerate() {
            let shape = shape?;
            if count == self.work.tuning.shapes {
                return Ok(None);
            }
            let wanted = match shape.places.kind_at(path) {
                None => kinds.missing,
                Some(Kind::Array) => kinds.array,
                Some(Kind::Object) => kinds.object,
                Some(Kind::Scalar) => false,
            };
            if wanted {
                let prefix = index.shape_prefix(&shape.hash);
                streams.push(Box::new(Entries::new(self, prefix, direction, true)));
            }
            if streams.len() > self.work.tuning.shape_streams {
                return Ok(None);
            }
        }
        Ok(Some(Box::new(Union::new(streams))))
    }

    /// Returns the outliers: the index has no entries for their values.
    pub(super) fn outliers(&'a self, index: &Index, direction: Direction) -> Entries<'a> {
        Entries::new(self, index.outlier_prefix(), direction, false)
    }
}

/// Returns a path as the index writes it.
pub(super) fn index_steps(path: &[Step]) -> Vec<definition::Step> {
    let step = |step: &Step| match step {
        Step::Name(name) => definition::Step::Property(name.clone()),
        Step::Each => definition::Step::Items,
    };
    path.iter().map(step).collect()
}

/// Returns the position of an item in a cursor over a leaf's path, as the index sees it: the bytes of its value
/// there. Of several values the smallest counts. Returns `None` if the item has no value that the leaf admits.
pub(super) fn coarse_key(leaf: &Leaf, record: &Record) -> Option<Vec<u8>> {
    let mut smallest: Option<Vec<u8>> = None;
    let mut found = false;
    each_value(record.body.root(), &leaf.path, &mut |value| {
        found = true;
        let key = admitted(&leaf.values, value);
        if let Some(key) = key
            && smallest.as_ref().is_none_or(|smallest| key < *smallest)
        {
            smallest = Some(key);
        }
    });
    let missing = !found && leaf.values.kinds.missing;
    smallest.or_else(|| missing.then(|| MISSING.to_vec()))
}

/// The bytes before the number of an item without the property.
pub(super) const MISSING: &[u8] = &[0x01];
/// The same for an array, of which the index has no more than the type.
pub(super) const ARRAY: &[u8] = &[0x07];
/// The same for an object.
pub(super) const OBJECT: &[u8] = &[0x08];

fn admitted(standing: &ValueSet, value: document::ValueRef<'_>) -> Option<Vec<u8>> {
    match value {
        document::ValueRef::Array(_) => standing.kinds.array.then(|| ARRAY.to_vec()),
        document::ValueRef::Object(_) => standing.kinds.object.then(|| OBJECT.to_vec()),
        scalar => {
            let mut key = Vec::new();
            document::encode_key(Some(scalar), &mut key);
            let term = Term::new(scalar)?;
            standing.admits(&key).then(|| term.as_bytes().to_vec())
        }
    }
}

/// Visits every value at a path, through all elements of the arrays on the way.
fn each_value<'v>(
    value: document::ValueRef<'v>,
    path: &[Step],
    visit: &mut dyn FnMut(document::ValueRef<'v>),
) {
    match path.split_first() {
        None => visit(value),
        Some((Step::Name(name), rest)) => {
            if let Some(member) = value.get(name) {
                each_value(member, rest, visit);
            }
        }
        Some((Step::Each, rest)) => {
            for element in value.as_array().into_iter().flat_map(document::ArrayRef::iter) {
                each_value(element, rest, visit);
            }
        }
    }
}
