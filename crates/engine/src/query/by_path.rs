//! A walk along one path of the index: items by what stands there, then by number.
//!
//! ```text
//!   nothing | null  false  true  numbers  strings | arrays | objects          backward: the other way round
//!    shapes |          entries of the path        | shapes | shapes
//! ```
//!
//! The index tells arrays from objects, and the beginning of a long string, but no more: where it cannot tell two items
//! apart, they come by number and are marked *vague*. Outliers have no entries; they are few, so they are looked at
//! beforehand and join the walk where they belong.
//!
//! The place of an item in the walk depends on its value and its number alone, not on the state of any index, so that a
//! walk can go on where another one stopped, under another policy, or without one.

use std::collections::VecDeque;

use document::{ItemNumber, Value, ValueRef};
use query::{Interval, Kinds, Leaf};
use storage::{Direction, KeyRange, Keyspace, Scan};

use super::desk::{ARRAY, Desk, MISSING, OBJECT, coarse_key};
use super::numbers::{Candidate, Next, Numbers, number, rank};
use crate::error::Result;
use crate::header::Record;
use crate::index::{Index, IndexEntry, PathKey, Term};

/// An item that a walk has come to.
#[derive(Debug)]
pub(super) struct Passing {
    /// What the walk is sorted by; bits are turned around where it goes backward.
    pub(super) sort: Vec<u8>,
    /// Breaks ties: the number, or its complement.
    pub(super) rank: u64,
    /// The item.
    pub(super) number: ItemNumber,
    /// How much of `sort` is the same for items that the index cannot tell apart.
    pub(super) vague: Option<usize>,
    /// Whether the item surely has what the walk is about.
    pub(super) exact: bool,
    /// The value, if the index tells it.
    pub(super) told: Option<Told>,
    /// The item itself, if it was read.
    pub(super) record: Option<Record>,
}

/// What the index tells of the value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Told {
    /// There is none.
    Undefined,
    /// This scalar, as it is stored.
    Scalar(Value),
}

/// What a walk has next.
#[derive(Debug)]
pub(super) enum Step {
    /// A living item.
    Item(Passing),
    /// The page has come to its end among the dead.
    Pause(Pause),
    /// Nothing more.
    End,
}

/// A place up to which, included, nothing living is left.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) sort: Vec<u8>,
    pub(super) rank: u64,
    /// Whether other items may have the same `sort` without being equal.
    pub(super) is_vague: bool,
}

/// Where a walk begins: not before this place.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) sort: Vec<u8>,
    pub(super) rank: u64,
}

/// Anything that comes by items in a sorted order.
pub(super) trait Walk {
    fn next(&mut self) -> Result<Step>;
}

/// The walk.
pub(super) struct PathWalk<'a> {
    desk: &'a Desk<'a>,
    leaf: Leaf,
    direction: Direction,
    start: Option<Start>,
    prefix: Vec<u8>,
    stages: VecDeque<Stage<'a>>,
    /// What the entries have next, if it was looked at.
    head: Option<Step>,
    outliers: VecDeque<Passing>,
}

enum Stage<'a> {
    /// All items of one kind, by number.
    Kind { items: Box<dyn Numbers + 'a>, from: u64, sort: Vec<u8>, undefined: bool },
    /// Scalars of a range.
    Scalars(Scan<'a>),
}

impl<'a> PathWalk<'a> {
    /// The walk over what a leaf admits; none if the index cannot serve it.
    pub(super) fn open(
        desk: &'a Desk<'a>,
        leaf: &Leaf,
        direction: Direction,
        start: Option<Start>,
    ) -> Result<Option<PathWalk<'a>>> {
        let Some((index, path)) = desk.indexed(&leaf.path) else { return Ok(None) };
        let Some(outliers) = outliers(desk, index, leaf, direction, start.as_ref())? else { return Ok(None) };
        let prefix = index.path_prefix(&path);
        let mut walk = PathWalk {
            desk,
            leaf: leaf.clone(),
            direction,
            start,
            prefix,
            stages: VecDeque::new(),
            head: None,
            outliers,
        };
        Ok(walk.stages(index, &path)?.then_some(walk))
    }

    /// Lines up the stages in the order of the walk; false if the index cannot serve one.
    fn stages(&mut self, index: &Index, path: &PathKey) -> Result<bool> {
        let Kinds { missing, array, object } = self.leaf.standing.kinds;
        let none = Kinds::default();
        let before = [(missing, Kinds { missing, ..none }, MISSING)];
        let behind = [(array, Kinds { array, ..none }, ARRAY), (object, Kinds { object, ..none }, OBJECT)];
        for (wanted, kinds, sort) in before {
            if wanted && !self.kind(index, path, kinds, sort)? {
                return Ok(false);
            }
        }
        let ranges: Vec<KeyRange> =
            self.leaf.standing.scalars.iter().map(|interval| scalars(&self.prefix, interval)).collect();
        for range in ranges {
            if let Some(range) = self.trimmed(range) {
                let scan = self.desk.view.snapshot.scan(Keyspace::Index, range, self.direction);
                self.stage(Stage::Scalars(scan));
            }
        }
        for (wanted, kinds, sort) in behind {
            if wanted && !self.kind(index, path, kinds, sort)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn stage(&mut self, stage: Stage<'a>) {
        match self.direction {
            Direction::Forward => self.stages.push_back(stage),
            Direction::Backward => self.stages.push_front(stage),
        }
    }

    fn kind(&mut self, index: &Index, path: &PathKey, kinds: Kinds, key: &[u8]) -> Result<bool> {
        let sort = directed(key, self.direction);
        let from = match &self.start {
            Some(start) if sort < start.sort => return Ok(true),
            Some(start) if sort == start.sort => start.rank,
            _ => 0,
        };
        let Some(items) = self.desk.of_kinds(index, path, kinds, self.direction)? else { return Ok(false) };
        self.stage(Stage::Kind { items, from, sort, undefined: kinds.missing });
        Ok(true)
    }

    /// A range of keys without what lies before the start.
    fn trimmed(&self, mut range: KeyRange) -> Option<KeyRange> {
        if let Some(start) = &self.start {
            let mut bound = self.prefix.clone();
            bound.extend_from_slice(&directed(&start.sort, self.direction));
            bound.extend_from_slice(&number(start.rank, self.direction).0.to_be_bytes());
            if range.contains(&bound) {
                match self.direction {
                    Direction::Forward => range.start = std::ops::Bound::Included(bound),
                    Direction::Backward => range.end = std::ops::Bound::Included(bound),
                }
            } else if is_passed(&range, &bound, self.direction) {
                return None;
            }
        }
        (!range.is_empty()).then_some(range)
    }

    /// The next item that has entries.
    fn main(&mut self) -> Result<Step> {
        loop {
            let Some(stage) = self.stages.front_mut() else { return Ok(Step::End) };
            let step = match stage {
                Stage::Kind { items, from, sort, undefined } => {
                    kind_step(items.as_mut(), from, sort, *undefined, self.direction)?
                }
                Stage::Scalars(scan) => match scan.next() {
                    Some(entry) => {
                        let (key, value) = entry?;
                        let entry = IndexEntry::decode(self.prefix.len(), &key, &value)?;
                        match self.scalar(&entry)? {
                            Some(step) => step,
                            None => continue,
                        }
                    }
                    None => Step::End,
                },
            };
            if !matches!(step, Step::End) {
                return Ok(step);
            }
            self.stages.pop_front();
        }
    }

    /// What an entry is to the walk; none for the dead, and for an item that comes elsewhere.
    fn scalar(&mut self, entry: &IndexEntry) -> Result<Option<Step>> {
        let work = self.desk.work;
        work.look()?;
        let rank = rank(entry.number, self.direction);
        let sort = directed(&entry.term, self.direction);
        if !self.desk.is_living(entry.number, &entry.mark)? {
            let is_vague = is_vague(&entry.term);
            return Ok(work.is_spent().then_some(Step::Pause(Pause { sort, rank, is_vague })));
        }
        work.touch();
        let mut record = None;
        if !self.leaf.is_single() {
            // One item may have several entries here; it comes with the smallest.
            record = self.desk.load(entry.number)?;
            let key = record.as_ref().and_then(|record| coarse_key(&self.leaf, record));
            if key.is_none_or(|key| key != entry.term) {
                return Ok(None);
            }
        }
        let scalar = entry.scalar()?;
        let exact = scalar.is_some();
        let vague = (!exact).then_some(sort.len());
        let told = scalar.filter(|_| !entry.mark.inexact && self.leaf.is_single()).map(Told::Scalar);
        Ok(Some(Step::Item(Passing { sort, rank, number: entry.number, vague, exact, told, record })))
    }
}

impl Walk for PathWalk<'_> {
    fn next(&mut self) -> Result<Step> {
        let main = match self.head.take() {
            Some(head) => head,
            None => self.main()?,
        };
        let Some(outlier) = self.outliers.front() else { return Ok(main) };
        let outlier_first = match &main {
            Step::Item(passing) => (&outlier.sort, outlier.rank) < (&passing.sort, passing.rank),
            Step::Pause(pause) => (&outlier.sort, outlier.rank) < (&pause.sort, pause.rank),
            Step::End => true,
        };
        if !outlier_first {
            return Ok(main);
        }
        self.head = Some(main);
        Ok(self.outliers.pop_front().map_or(Step::End, Step::Item))
    }
}

fn kind_step(
    items: &mut dyn Numbers,
    from: &mut u64,
    sort: &[u8],
    undefined: bool,
    direction: Direction,
) -> Result<Step> {
    Ok(match items.seek(*from)? {
        Next::Found(Candidate { rank, .. }) => {
            *from = rank.saturating_add(1);
            Step::Item(Passing {
                sort: sort.to_vec(),
                rank,
                number: number(rank, direction),
                vague: (!undefined).then_some(sort.len()),
                exact: true,
                told: undefined.then_some(Told::Undefined),
                record: None,
            })
        }
        Next::Pause(bound) => {
            let (sort, rank) = (sort.to_vec(), bound.saturating_sub(1));
            Step::Pause(Pause { sort, rank, is_vague: !undefined })
        }
        Next::End => Step::End,
    })
}

/// The outliers that a leaf admits, in the order of the walk; none if there are too many.
fn outliers(
    desk: &Desk<'_>,
    index: &Index,
    leaf: &Leaf,
    direction: Direction,
    start: Option<&Start>,
) -> Result<Option<VecDeque<Passing>>> {
    let mut outliers = Vec::new();
    for entry in desk.entries(index.outliers(), index.outlier_prefix().len(), direction) {
        let entry = entry?;
        desk.work.look()?;
        let Some(record) = desk.load(entry.number)? else { continue };
        if outliers.len() == desk.work.tuning.outliers {
            return Ok(None);
        }
        let Some(key) = coarse_key(leaf, &record) else { continue };
        let (sort, rank) = (directed(&key, direction), rank(entry.number, direction));
        if start.is_some_and(|start| (&sort, rank) < (&start.sort, start.rank)) {
            continue;
        }
        let vague = is_vague(&key).then_some(sort.len());
        let number = entry.number;
        outliers.push(Passing { sort, rank, number, vague, exact: true, told: None, record: None });
    }
    outliers.sort_by(|one, other| (&one.sort, one.rank).cmp(&(&other.sort, other.rank)));
    Ok(Some(outliers.into()))
}

/// The last byte of a string's term that was cut; no other string ends so.
const CUT: u8 = 0xFE;

/// Whether the index knows no more of a value than other values may have.
fn is_vague(key: &[u8]) -> bool {
    match key {
        [0x06, .., last] => *last == CUT,
        [first, ..] => *first >= ARRAY[0],
        [] => false,
    }
}

/// Where a walk along a path begins that shall come to everything behind an item with this value.
pub(super) fn start(value: Option<ValueRef<'_>>, rank: u64, descending: bool) -> Start {
    let key = match value {
        None => MISSING.to_vec(),
        Some(ValueRef::Array(_)) => ARRAY.to_vec(),
        Some(ValueRef::Object(_)) => OBJECT.to_vec(),
        Some(scalar) => Term::new(scalar).map(|term| term.as_bytes().to_vec()).unwrap_or_default(),
    };
    let direction = if descending { Direction::Backward } else { Direction::Forward };
    // What is vague is put into order only afterwards: all of it has to come by again.
    let rank = if is_vague(&key) { 0 } else { rank };
    Start { sort: directed(&key, direction), rank }
}

/// Bytes in the order of a walk.
pub(super) fn directed(bytes: &[u8], direction: Direction) -> Vec<u8> {
    match direction {
        Direction::Forward => bytes.to_vec(),
        Direction::Backward => bytes.iter().map(|byte| !byte).collect(),
    }
}

/// Whether a whole range lies before a key in the order of a walk.
fn is_passed(range: &KeyRange, key: &[u8], direction: Direction) -> bool {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    match direction {
        Direction::Forward => match &range.end {
            Included(end) | Excluded(end) => end.as_slice() <= key,
            Unbounded => false,
        },
        Direction::Backward => match &range.start {
            Included(start) | Excluded(start) => start.as_slice() > key,
            Unbounded => false,
        },
    }
}

/// The keys behind a path's prefix that may stand for a scalar of an interval. A string that was cut stands for
/// several, so a bound that lies among them includes them.
pub(super) fn scalars(prefix: &[u8], interval: &Interval) -> KeyRange {
    let with = |bound: Vec<u8>| [prefix, &bound].concat();
    KeyRange::between(with(bound(&interval.low, CUT)), with(bound(&interval.high, CUT + 1)))
}

/// A bound as the index cuts it: `end` follows what is kept of a long string.
fn bound(bytes: &[u8], end: u8) -> Vec<u8> {
    let mut kept = crate::index::kept_of_text(bytes).map_or(Vec::new(), <[u8]>::to_vec);
    if kept.is_empty() {
        return bytes.to_vec();
    }
    kept.push(end);
    kept
}
