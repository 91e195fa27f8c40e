//! One partition as a query works on it: the view, its index, the work done so far.

use document::ItemNumber;
use query::{Kinds, Leaf, Standing, Step};
use storage::{Direction, KeyRange, Keyspace};

use super::numbers::{Either, Entries, Numbers};
use super::work::Work;
use crate::container::{Container, Partition};
use crate::definition;
use crate::error::Result;
use crate::gate::View;
use crate::header::Record;
use crate::index::{Index, IndexEntry, Kind, Mark, PathKey, Term};

/// Everything that a walk through one partition needs.
pub(super) struct Desk<'a> {
    pub(super) container: &'a Container,
    pub(super) partition: &'a Partition,
    pub(super) view: &'a View,
    pub(super) index: Option<Index>,
    pub(super) work: &'a Work,
}

impl<'a> Desk<'a> {
    pub(super) fn new(
        container: &'a Container,
        partition: &'a Partition,
        view: &'a View,
        work: &'a Work,
    ) -> Result<Desk<'a>> {
        let index = view.index(partition)?;
        Ok(Desk { container, partition, view, index, work })
    }

    /// Whether the item of an index entry lives.
    pub(super) fn is_living(&self, number: ItemNumber, mark: &Mark) -> Result<bool> {
        self.view.is_living(number, mark)
    }

    /// The living item of that number.
    pub(super) fn load(&self, number: ItemNumber) -> Result<Option<Record>> {
        let record = self.view.by_number(number)?;
        self.work.load(record.as_ref().map_or(0, Record::size))?;
        Ok(record)
    }

    /// The index and the path's key in it, if the index has every scalar that stands there.
    pub(super) fn indexed(&self, path: &[Step]) -> Option<(&Index, PathKey)> {
        let steps = index_steps(path);
        let index = self.index.as_ref().filter(|index| index.coverage.covers(&steps))?;
        Some((index, PathKey::new(&steps)?))
    }

    /// The index entries of a range whose keys begin with `prefix` bytes before the term.
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

    /// The items that have one of these kinds at a path without array steps; none if there are too many shapes to tell.
    pub(super) fn of_kinds(
        &'a self,
        index: &Index,
        path: &PathKey,
        kinds: Kinds,
        direction: Direction,
    ) -> Result<Option<Box<dyn Numbers + 'a>>> {
        let mut streams: Vec<Box<dyn Numbers + 'a>> = Vec::new();
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
        Ok(Some(Box::new(Either::new(streams))))
    }

    /// The items that the index knows nothing about but that they exist.
    pub(super) fn outliers(&'a self, index: &Index, direction: Direction) -> Entries<'a> {
        Entries::new(self, index.outlier_prefix(), direction, false)
    }
}

/// A path as the index writes it.
pub(super) fn index_steps(path: &[Step]) -> Vec<definition::Step> {
    let step = |step: &Step| match step {
        Step::Name(name) => definition::Step::Property(name.clone()),
        Step::Each => definition::Step::Items,
    };
    path.iter().map(step).collect()
}

/// Where an item stands in a walk along a leaf's path, as the index sees it: the bytes of what it has there. Of several
/// values the smallest one counts; none if nothing that it has there will do.
pub(super) fn coarse_key(leaf: &Leaf, record: &Record) -> Option<Vec<u8>> {
    let mut smallest: Option<Vec<u8>> = None;
    let mut found = false;
    each_value(record.body.root(), &leaf.path, &mut |value| {
        found = true;
        let key = admitted(&leaf.standing, value);
        if let Some(key) = key
            && smallest.as_ref().is_none_or(|smallest| key < *smallest)
        {
            smallest = Some(key);
        }
    });
    let missing = !found && leaf.standing.kinds.missing;
    smallest.or_else(|| missing.then(|| MISSING.to_vec()))
}

/// What stands before the number of an item without the property.
pub(super) const MISSING: &[u8] = &[0x01];
/// The same for an array, of which the index knows no more.
pub(super) const ARRAY: &[u8] = &[0x07];
/// The same for an object.
pub(super) const OBJECT: &[u8] = &[0x08];

fn admitted(standing: &Standing, value: document::ValueRef<'_>) -> Option<Vec<u8>> {
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

/// Every value at a path, through all elements of the arrays on the way.
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
