//! A cursor over one path of the index: items by their value there, then by number.
//!
//! ```text
//!   nothing | null  false  true  numbers  strings | arrays | objects          backward: the other way round
//!    shapes |          entries of the path        | shapes | shapes
//! ```
//!
//! The index distinguishes arrays from objects, and strings by their beginnings, but no more. Where it cannot
//! distinguish two items, they are returned by number and marked *vague*. Outliers have no entries; there are few of
//! them, so they are read first and merged into the cursor.
//!
//! The position of an item in the cursor depends on its value and its number alone, not on the state of any index, so
//! that a cursor can continue from the position of another one, under another policy, or without an index.

use std::collections::VecDeque;

use document::{ItemNumber, Value, ValueRef};
use query::{Interval, Kinds, Leaf};
use storage::{Direction, KeyRange, Keyspace, Scan};

use super::context::{ARRAY, MISSING, OBJECT, QueryContext, coarse_key};
use super::numbers::{Candidate, Next, NumberStream, number, rank};
use crate::expiry::header::Record;
use crate::index::{Index, IndexEntry, PathKey, Term};
use crate::types::error::Result;

/// An item that a cursor returns.
#[derive(Debug)]
pub(super) struct CursorItem {
    /// The bytes by which the cursor is sorted; their bits are inverted where it goes backward.
    pub(super) sort: Vec<u8>,
    /// Breaks ties: the number, or its complement.
    pub(super) rank: u64,
    /// The item.
    pub(super) number: ItemNumber,
    /// How much of `sort` is the same for items that the index cannot distinguish.
    pub(super) vague: Option<usize>,
    /// Whether the item certainly has the value that the cursor is about.
    pub(super) exact: bool,
    /// The value, if the index has it.
    pub(super) indexed: Option<IndexedValue>,
    /// The item itself, if it was read.
    pub(super) record: Option<Record>,
}

/// The value as the index has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum IndexedValue {
    /// There is no value.
    Undefined,
    /// This scalar, as it is stored.
    Scalar(Value),
}

/// The next step of a cursor.
#[derive(Debug)]
pub(super) enum CursorStep {
    /// A living item.
    Item(CursorItem),
    /// The page ends among expired entries.
    Pause(Pause),
    /// Nothing more.
    End,
}

/// A position up to which, included, no living item is left.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) sort: Vec<u8>,
    pub(super) rank: u64,
    /// Whether other items may have the same `sort` without being equal.
    pub(super) is_vague: bool,
}

/// Where a cursor begins: not before this position.
#[derive(Debug, Clone)]
pub(super) struct CursorStart {
    pub(super) sort: Vec<u8>,
    pub(super) rank: u64,
}

/// A cursor that returns items in a sorted order.
pub(super) trait SortedCursor {
    fn next(&mut self) -> Result<CursorStep>;
}

/// A cursor over one path.
pub(super) struct PathCursor<'a> {
    ctx: &'a QueryContext<'a>,
    leaf: Leaf,
    direction: Direction,
    start: Option<CursorStart>,
    prefix: Vec<u8>,
    stages: VecDeque<Stage<'a>>,
    /// The next step of the entries, if it was read.
    head: Option<CursorStep>,
    outliers: VecDeque<CursorItem>,
}

enum Stage<'a> {
    /// All items of one kind, by number.
    Kind { items: Box<dyn NumberStream + 'a>, from: u64, sort: Vec<u8>, undefined: bool },
    /// Scalars of a range.
    Scalars(Scan<'a>),
}

impl<'a> PathCursor<'a> {
    /// Opens a cursor over the items that a leaf admits. Returns `None` if the index cannot serve it.
    pub(super) fn open(
        ctx: &'a QueryContext<'a>,
        leaf: &Leaf,
        direction: Direction,
        start: Option<CursorStart>,
    ) -> Result<Option<PathCursor<'a>>> {
        let Some((index, path)) = ctx.indexed(&leaf.path) else { return Ok(None) };
        let Some(outliers) = outliers(ctx, index, leaf, direction, start.as_ref())? else { return Ok(None) };
        let prefix = index.path_prefix(&path);
        let mut walk = PathCursor {
            ctx,
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

    /// Puts the stages into the order of the cursor. Returns `false` if the index cannot serve one.
    fn stages(&mut self, index: &Index, path: &PathKey) -> Result<bool> {
        let Kinds { missing, array, object } = self.leaf.values.kinds;
        let none = Kinds::default();
        let before = [(missing, Kinds { missing, ..none }, MISSING)];
        let behind = [(array, Kinds { array, ..none }, ARRAY), (object, Kinds { object, ..none }, OBJECT)];
        for (wanted, kinds, sort) in before {
            if wanted && !self.kind(index, path, kinds, sort)? {
                return Ok(false);
            }
        }
        let ranges: Vec<KeyRange> =
            self.leaf.values.scalars.iter().map(|interval| scalars(&self.prefix, interval)).collect();
        for range in ranges {
            if let Some(range) = self.trimmed(range) {
                let scan = self.ctx.view.snapshot.scan(Keyspace::Index, range, self.direction);
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
        let Some(items) = self.ctx.of_kinds(index, path, kinds, self.direction)? else { return Ok(false) };
        self.stage(Stage::Kind { items, from, sort, undefined: kinds.missing });
        Ok(true)
    }

    /// Returns a range of keys without what lies before the start.
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

    /// Returns the next item that has entries.
    fn main(&mut self) -> Result<CursorStep> {
        loop {
            let Some(stage) = self.stages.front_mut() else { return Ok(CursorStep::End) };
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
                    None => CursorStep::End,
                },
            };
            if !matches!(step, CursorStep::End) {
                return Ok(step);
            }
            self.stages.pop_front();
        }
    }

    /// Returns the step for an entry, or `None` for an expired item, and for an item that is returned elsewhere.
    fn scalar(&mut self, entry: &IndexEntry) -> Result<Option<CursorStep>> {
        let work = self.ctx.work;
        work.look()?;
        let rank = rank(entry.number, self.direction);
        let sort = directed(&entry.term, self.direction);
        if !self.ctx.is_living(entry.number, &entry.mark)? {
            let is_vague = is_vague(&entry.term);
            return Ok(work.is_spent().then_some(CursorStep::Pause(Pause { sort, rank, is_vague })));
        }
        work.count_entry();
        let mut record = None;
        if !self.leaf.is_single() {
            // One item may have several entries here; it is returned with the smallest.
            record = self.ctx.load(entry.number)?;
            let key = record.as_ref().and_then(|record| coarse_key(&self.leaf, record));
            if key.is_none_or(|key| key != entry.term) {
                return Ok(None);
            }
        }
        let scalar = entry.scalar()?;
        let exact = scalar.is_some();
        let vague = (!exact).then_some(sort.len());
        let indexed =
            scalar.filter(|_| !entry.mark.inexact && self.leaf.is_single()).map(IndexedValue::Scalar);
        Ok(Some(CursorStep::Item(CursorItem {
            sort,
            rank,
            number: entry.number,
            vague,
            exact,
            indexed,
            record,
        })))
    }
}

impl SortedCursor for PathCursor<'_> {
    fn next(&mut self) -> Result<CursorStep> {
        let main = match self.head.take() {
            Some(head) => head,
            None => self.main()?,
        };
        let Some(outlier) = self.outliers.front() else { return Ok(main) };
        let outlier_first = match &main {
            CursorStep::Item(passing) => (&outlier.sort, outlier.rank) < (&passing.sort, passing.rank),
            CursorStep::Pause(pause) => (&outlier.sort, outlier.rank) < (&pause.sort, pause.rank),
            CursorStep::End => true,
        };
        if !outlier_first {
            return Ok(main);
        }
        self.head = Some(main);
        Ok(self.outliers.pop_front().map_or(CursorStep::End, CursorStep::Item))
    }
}

fn kind_step(
    items: &mut dyn NumberStream,
    from: &mut u64,
    sort: &[u8],
    undefined: bool,
    direction: Direction,
) -> Result<CursorStep> {
    Ok(match items.seek(*from)? {
        Next::Found(Candidate { rank, .. }) => {
            *from = rank.saturating_add(1);
            CursorStep::Item(CursorItem {
                sort: sort.to_vec(),
                rank,
                number: number(rank, direction),
                vague: (!undefined).then_some(sort.len()),
                exact: true,
                indexed: undefined.then_some(IndexedValue::Undefined),
                record: None,
            })
        }
        Next::Pause(bound) => {
            let (sort, rank) = (sort.to_vec(), bound.saturating_sub(1));
            CursorStep::Pause(Pause { sort, rank, is_vague: !undefined })
        }
        Next::End => CursorStep::End,
    })
}

/// Returns the outliers that a leaf admits, in the order of the cursor, or `None` if there are too many.
fn outliers(
    ctx: &QueryContext<'_>,
    index: &Index,
    leaf: &Leaf,
    direction: Direction,
    start: Option<&CursorStart>,
) -> Result<Option<VecDeque<CursorItem>>> {
    let mut outliers = Vec::new();
    for entry in ctx.entries(index.outliers(), index.outlier_prefix().len(), direction) {
        let entry = entry?;
        ctx.work.look()?;
        let Some(record) = ctx.load(entry.number)? else { continue };
        if outliers.len() == ctx.work.tuning.outliers {
            return Ok(None);
        }
        let Some(key) = coarse_key(leaf, &record) else { continue };
        let (sort, rank) = (directed(&key, direction), rank(entry.number, direction));
        if start.is_some_and(|start| (&sort, rank) < (&start.sort, start.rank)) {
            continue;
        }
        let vague = is_vague(&key).then_some(sort.len());
        let number = entry.number;
        outliers.push(CursorItem { sort, rank, number, vague, exact: true, indexed: None, record: None });
    }
    outliers.sort_by(|one, other| (&one.sort, one.rank).cmp(&(&other.sort, other.rank)));
    Ok(Some(outliers.into()))
}

/// The last byte of a string's term that was cut; no other string ends with it.
const CUT: u8 = 0xFE;

/// Returns whether other values may have the same key in the index.
fn is_vague(key: &[u8]) -> bool {
    match key {
        [0x06, .., last] => *last == CUT,
        [first, ..] => *first >= ARRAY[0],
        [] => false,
    }
}

/// Returns where a cursor over a path begins that has to return everything behind an item with this value.
pub(super) fn start(value: Option<ValueRef<'_>>, rank: u64, descending: bool) -> CursorStart {
    let key = match value {
        None => MISSING.to_vec(),
        Some(ValueRef::Array(_)) => ARRAY.to_vec(),
        Some(ValueRef::Object(_)) => OBJECT.to_vec(),
        Some(scalar) => Term::new(scalar).map(|term| term.as_bytes().to_vec()).unwrap_or_default(),
    };
    let direction = if descending { Direction::Backward } else { Direction::Forward };
    // Vague items are sorted only afterwards: all of them have to be returned again.
    let rank = if is_vague(&key) { 0 } else { rank };
    CursorStart { sort: directed(&key, direction), rank }
}

/// Returns bytes in the order of a cursor.
pub(super) fn directed(bytes: &[u8], direction: Direction) -> Vec<u8> {
    match direction {
        Direction::Forward => bytes.to_vec(),
        Direction::Backward => bytes.iter().map(|byte| !byte).collect(),
    }
}

/// Returns whether a whole range lies before a key in the order of a cursor.
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

/// Returns the keys behind a path's prefix that may stand for a scalar of an interval. A cut string stands for
/// several strings, so a bound among them includes all of them.
pub(super) fn scalars(prefix: &[u8], interval: &Interval) -> KeyRange {
    let with = |bound: Vec<u8>| [prefix, &bound].concat();
    KeyRange::between(with(bound(&interval.low, CUT)), with(bound(&interval.high, CUT + 1)))
}

/// Returns the same keys for a path whose values are sorted in descending order.
pub(super) fn scalars_descending(prefix: &[u8], interval: &Interval) -> KeyRange {
    // Inverted, the keys that begin with a bound are the first ones beyond it.
    let behind = |bound: Vec<u8>| {
        let inverted = directed(&bound, Direction::Backward);
        KeyRange::prefix([prefix, &inverted].concat()).end
    };
    let start = match behind(bound(&interval.high, CUT + 1)) {
        std::ops::Bound::Excluded(start) => std::ops::Bound::Included(start),
        other => other,
    };
    KeyRange { start, end: behind(bound(&interval.low, CUT)) }
}

/// Returns a bound as the index cuts it: `end` follows what is kept of a long string.
fn bound(bytes: &[u8], end: u8) -> Vec<u8> {
    let mut kept = crate::index::kept_of_text(bytes).map_or(Vec::new(), <[u8]>::to_vec);
    if kept.is_empty() {
        return bytes.to_vec();
    }
    kept.push(end);
    kept
}
