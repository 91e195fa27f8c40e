//! The sources of items of a query without order, and their positions for the next page.

use std::collections::VecDeque;

use document::{EffectiveRange, ItemNumber, PartitionKey};
use query::{Leaf, Stamps};
use storage::{Direction, KeyRange, Keyspace, Scan};

use super::by_path::{CursorStart, CursorStep, IndexedValue, PathCursor, SortedCursor};
use super::by_timestamp::{self, TimestampCursor};
use super::context::{QueryContext, coarse_key};
use super::numbers::{Candidate, Next, NumberStream};
use crate::access::continuation::Position;
use crate::access::gate::{ItemScan, ScannedItem, View};
use crate::entries::traces::Home;
use crate::expiry::header::Record;
use crate::keys;
use crate::types::error::Result;

/// A living item that a source returns.
#[derive(Debug)]
pub(super) struct SourceItem {
    pub(super) number: ItemNumber,
    /// Its position in the source.
    pub(super) position: Position,
    /// Whether it certainly meets the source's condition.
    pub(super) exact: bool,
    /// The value at the source's path, if the index has it.
    pub(super) indexed: Option<IndexedValue>,
    /// The item itself, if it was read.
    pub(super) record: Option<Record>,
}

/// The next step of a source.
#[derive(Debug)]
pub(super) enum SourceStep {
    /// A living item.
    Item(SourceItem),
    /// The page ends among expired entries; the next one continues behind this position.
    Pause(Position),
    /// Nothing more.
    End,
}

/// A sequence of living items.
pub(super) trait Source {
    fn next(&mut self) -> Result<SourceStep>;
}

/// Items of a stream of numbers.
pub(super) struct ByNumber<'a> {
    stream: Box<dyn NumberStream + 'a>,
    from: u64,
}

impl<'a> ByNumber<'a> {
    pub(super) fn new(stream: Box<dyn NumberStream + 'a>, after: Option<ItemNumber>) -> ByNumber<'a> {
        ByNumber { stream, from: after.map_or(0, |after| after.0.saturating_add(1)) }
    }
}

impl Source for ByNumber<'_> {
    fn next(&mut self) -> Result<SourceStep> {
        Ok(match self.stream.seek(self.from)? {
            Next::Found(Candidate { rank, exact }) => {
                self.from = rank.saturating_add(1);
                let number = ItemNumber(rank);
                let position = Position::Number(number);
                SourceStep::Item(SourceItem { number, position, exact, indexed: None, record: None })
            }
            Next::Pause(bound) => SourceStep::Pause(Position::Number(ItemNumber(bound.saturating_sub(1)))),
            Next::End => SourceStep::End,
        })
    }
}

/// All items, by number.
pub(super) struct FullScan<'a> {
    ctx: &'a QueryContext<'a>,
    items: ItemScan<'a>,
}

impl<'a> FullScan<'a> {
    pub(super) fn new(ctx: &'a QueryContext<'a>, after: Option<ItemNumber>) -> FullScan<'a> {
        let View { gate, snapshot, .. } = ctx.view;
        FullScan { ctx, items: gate.items(&**snapshot, after, Direction::Forward) }
    }
}

impl Source for FullScan<'_> {
    fn next(&mut self) -> Result<SourceStep> {
        for item in self.items.by_ref() {
            let ScannedItem { number, bytes, living } = item?;
            self.ctx.work.look()?;
            let position = Position::Number(number);
            self.ctx.work.load(bytes as u64)?;
            match living {
                Some(record) => {
                    let record = Some(record);
                    return Ok(SourceStep::Item(SourceItem {
                        number,
                        position,
                        exact: false,
                        indexed: None,
                        record,
                    }));
                }
                None if self.ctx.work.is_spent() => return Ok(SourceStep::Pause(position)),
                None => {}
            }
        }
        Ok(SourceStep::End)
    }
}

/// Items by their value at a path.
pub(super) struct ByPath<'a> {
    walk: PathCursor<'a>,
    /// The number of the leaf in the condition.
    leaf: u16,
    /// Where the previous page ended.
    after: Option<(Vec<u8>, u64)>,
}

impl<'a> ByPath<'a> {
    pub(super) fn new(walk: PathCursor<'a>, leaf: u16, after: Option<(Vec<u8>, u64)>) -> ByPath<'a> {
        ByPath { walk, leaf, after }
    }
}

impl Source for ByPath<'_> {
    fn next(&mut self) -> Result<SourceStep> {
        let position = |leaf, sort, rank| Position::Path { leaf, sort, number: ItemNumber(rank) };
        loop {
            return Ok(match self.walk.next()? {
                CursorStep::Item(passing) => {
                    let place = (passing.sort, passing.rank);
                    if self.after.take_if(|after| *after == place).is_some() {
                        continue;
                    }
                    SourceStep::Item(SourceItem {
                        number: passing.number,
                        position: position(self.leaf, place.0, place.1),
                        exact: passing.exact,
                        indexed: passing.indexed,
                        record: passing.record,
                    })
                }
                CursorStep::Pause(pause) => SourceStep::Pause(position(self.leaf, pause.sort, pause.rank)),
                CursorStep::End => SourceStep::End,
            });
        }
    }
}

/// The items that a cursor over a path has not returned, by number: for a path that is no longer indexed.
pub(super) struct Remaining<'a> {
    items: FullScan<'a>,
    leaf: Leaf,
    number_of_leaf: u16,
    /// The last position of the cursor.
    stood: (Vec<u8>, ItemNumber),
}

impl<'a> Remaining<'a> {
    pub(super) fn new(
        ctx: &'a QueryContext<'a>,
        (number_of_leaf, leaf): (u16, Leaf),
        stood: (Vec<u8>, ItemNumber),
        after: Option<ItemNumber>,
    ) -> Remaining<'a> {
        Remaining { items: FullScan::new(ctx, after), leaf, number_of_leaf, stood }
    }

    fn position(&self, scanned: ItemNumber) -> Position {
        let (sort, number) = self.stood.clone();
        Position::Remaining { leaf: self.number_of_leaf, sort, number, scanned }
    }
}

impl Source for Remaining<'_> {
    fn next(&mut self) -> Result<SourceStep> {
        loop {
            match self.items.next()? {
                SourceStep::Item(arriving) => {
                    let key = arriving.record.as_ref().and_then(|record| coarse_key(&self.leaf, record));
                    let place = key.map(|key| (key, arriving.number));
                    if place.is_some_and(|place| place > self.stood) {
                        let position = self.position(arriving.number);
                        return Ok(SourceStep::Item(SourceItem { position, ..arriving }));
                    }
                    if self.items.ctx.work.is_spent() {
                        return Ok(SourceStep::Pause(self.position(arriving.number)));
                    }
                }
                SourceStep::Pause(Position::Number(number)) => {
                    return Ok(SourceStep::Pause(self.position(number)));
                }
                other => return Ok(other),
            }
        }
    }
}

/// Items by (effective key, partition key, id).
pub(super) struct ById<'a> {
    ctx: &'a QueryContext<'a>,
    pieces: VecDeque<Piece>,
    scan: Option<Scan<'a>>,
}

/// A part of a scan of the `Id` entries.
enum Piece {
    Lookup(Vec<u8>),
    Range(KeyRange),
}

impl Piece {
    fn start(&self) -> &[u8] {
        use std::ops::Bound;
        match self {
            Piece::Lookup(key) => key,
            Piece::Range(range) => match &range.start {
                Bound::Included(start) | Bound::Excluded(start) => start,
                Bound::Unbounded => &[],
            },
        }
    }
}

/// With more (key, id) pairs than this, single lookups are no better than a scan of the keys.
const LOOKUPS_MAX: usize = 4096;

impl<'a> ById<'a> {
    /// Returns the items of some partition keys, or of a range of effective keys.
    pub(super) fn new(
        ctx: &'a QueryContext<'a>,
        range: &EffectiveRange,
        wanted: Option<&[PartitionKey]>,
        ids: Option<&[String]>,
        after: Option<&[u8]>,
    ) -> ById<'a> {
        let mut pieces = pieces(ctx, range, wanted, ids);
        if let Some(after) = after {
            pieces.retain_mut(|piece| match piece {
                Piece::Lookup(key) => key.as_slice() > after,
                Piece::Range(range) => {
                    if range.contains(after) {
                        let rest = std::mem::replace(range, KeyRange::all());
                        *range = rest.after(after);
                    }
                    !range.is_empty()
                        && !matches!(&range.end, std::ops::Bound::Excluded(end) if end.as_slice() <= after)
                }
            });
        }
        ById { ctx, pieces: pieces.into(), scan: None }
    }

    fn arriving(&self, key: Vec<u8>, record: Option<Record>) -> Option<SourceStep> {
        let position = Position::Id(key);
        match record {
            Some(record) => {
                let number = record.number;
                let record = Some(record);
                Some(SourceStep::Item(SourceItem { number, position, exact: false, indexed: None, record }))
            }
            None => self.ctx.work.is_spent().then_some(SourceStep::Pause(position)),
        }
    }
}

/// Returns the ranges of `Id` entries of a partition that can have matching items, in ascending order without
/// overlap.
fn pieces(
    ctx: &QueryContext<'_>,
    range: &EffectiveRange,
    wanted: Option<&[PartitionKey]>,
    ids: Option<&[String]>,
) -> Vec<Piece> {
    let (definition, partition) = (&ctx.container.definition.partition_key, ctx.partition.id);
    let ranged = |range: &EffectiveRange| {
        let bound = |key| keys::effective_bound(partition, key);
        Piece::Range(KeyRange::between(bound(&range.min), bound(&range.max)))
    };
    let Some(wanted) = wanted else { return vec![ranged(range)] };
    let ids = ids.filter(|ids| ids.len() * wanted.len() <= LOOKUPS_MAX);
    let mut pieces = Vec::new();
    for key in wanted {
        if key.len() < definition.paths.len() {
            let covered = key.effective_range(definition).intersect(range);
            if !covered.is_empty() {
                pieces.push(ranged(&covered));
            }
            continue;
        }
        let effective = key.effective(definition);
        if !range.contains(&effective) {
            continue;
        }
        let home = Home { partition, key: key.clone(), effective };
        match ids {
            Some(ids) => pieces.extend(ids.iter().map(|id| Piece::Lookup(home.id_key(id)))),
            None => pieces.push(Piece::Range(KeyRange::prefix(home.id_key("")))),
        }
    }
    pieces.sort_by(|one, other| one.start().cmp(other.start()));
    pieces
}

impl Source for ById<'_> {
    fn next(&mut self) -> Result<SourceStep> {
        loop {
            if let Some(scan) = &mut self.scan {
                let Some(entry) = scan.next() else {
                    self.scan = None;
                    continue;
                };
                let (key, value) = entry?;
                self.ctx.work.look()?;
                let record = self.ctx.load(keys::number_from_value(&value)?)?;
                if let Some(coming) = self.arriving(key.to_vec(), record) {
                    return Ok(coming);
                }
                continue;
            }
            match self.pieces.pop_front() {
                None => return Ok(SourceStep::End),
                Some(Piece::Range(range)) => {
                    self.scan = Some(self.ctx.view.snapshot.scan(Keyspace::Id, range, Direction::Forward));
                }
                Some(Piece::Lookup(key)) => {
                    self.ctx.work.look()?;
                    let record = self.ctx.view.by_id_key(&key)?;
                    if let Some(coming) = self.arriving(key, record) {
                        return Ok(coming);
                    }
                }
            }
        }
    }
}

/// Items by `_ts`.
pub(super) struct ByStamp<'a> {
    walk: TimestampCursor<'a>,
    /// Where the previous page ended.
    after: Option<(u64, ItemNumber)>,
}

impl<'a> ByStamp<'a> {
    pub(super) fn new(
        ctx: &'a QueryContext<'a>,
        stamps: Stamps,
        after: Option<(u64, ItemNumber)>,
    ) -> ByStamp<'a> {
        let start = after.map(|(seconds, number)| CursorStart {
            sort: by_timestamp::sort_of(i64::try_from(seconds).unwrap_or(i64::MAX), Direction::Forward),
            rank: number.0,
        });
        ByStamp { walk: TimestampCursor::open(ctx, stamps, Direction::Forward, start.as_ref()), after }
    }
}

impl Source for ByStamp<'_> {
    fn next(&mut self) -> Result<SourceStep> {
        loop {
            let passing = match self.walk.next()? {
                CursorStep::End => return Ok(SourceStep::End),
                CursorStep::Pause(pause) => {
                    let (seconds, number) = (by_timestamp::seconds(&pause.sort), ItemNumber(pause.rank));
                    return Ok(SourceStep::Pause(Position::Stamp { seconds, number }));
                }
                CursorStep::Item(passing) => passing,
            };
            let (seconds, number, indexed) =
                (by_timestamp::seconds(&passing.sort), passing.number, passing.indexed);
            if self.after.take_if(|after| *after == (seconds, number)).is_none() {
                let position = Position::Stamp { seconds, number };
                return Ok(SourceStep::Item(SourceItem {
                    number,
                    position,
                    exact: false,
                    indexed,
                    record: None,
                }));
            }
        }
    }
}
