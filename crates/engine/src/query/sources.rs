//! Where the items of a query without order come from, and how to go on where a page ended.

use std::collections::VecDeque;

use document::{EffectiveRange, ItemNumber, PartitionKey};
use query::{Leaf, Stamps};
use storage::{Direction, KeyRange, Keyspace, Scan};

use super::by_path::{PathWalk, Start, Step, Told, Walk};
use super::by_stamp::{self, StampWalk};
use super::desk::{Desk, coarse_key};
use super::numbers::{Candidate, Next, Numbers};
use crate::continuation::Position;
use crate::error::Result;
use crate::footprint::Home;
use crate::header::Record;
use crate::keys::{self, Key};

/// A living item that a source has come to.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) number: ItemNumber,
    /// Where it stands in the source.
    pub(super) position: Position,
    /// Whether it surely has what the source is about.
    pub(super) exact: bool,
    /// What the index tells of the value at the source's path.
    pub(super) told: Option<Told>,
    /// The item itself, if it was read.
    pub(super) record: Option<Record>,
}

/// What a source has next.
#[derive(Debug)]
pub(super) enum Coming {
    /// A living item.
    Item(Arriving),
    /// The page has come to its end among the dead; go on behind this.
    Pause(Position),
    /// Nothing more.
    End,
}

/// A sequence of living items.
pub(super) trait Source {
    fn next(&mut self) -> Result<Coming>;
}

/// Items that a stream of numbers names.
pub(super) struct ByNumber<'a> {
    stream: Box<dyn Numbers + 'a>,
    from: u64,
}

impl<'a> ByNumber<'a> {
    pub(super) fn new(stream: Box<dyn Numbers + 'a>, after: Option<ItemNumber>) -> ByNumber<'a> {
        ByNumber { stream, from: after.map_or(0, |after| after.0.saturating_add(1)) }
    }
}

impl Source for ByNumber<'_> {
    fn next(&mut self) -> Result<Coming> {
        Ok(match self.stream.seek(self.from)? {
            Next::Found(Candidate { rank, exact }) => {
                self.from = rank.saturating_add(1);
                let number = ItemNumber(rank);
                let position = Position::Number(number);
                Coming::Item(Arriving { number, position, exact, told: None, record: None })
            }
            Next::Pause(bound) => Coming::Pause(Position::Number(ItemNumber(bound.saturating_sub(1)))),
            Next::End => Coming::End,
        })
    }
}

/// Every item, by number.
pub(super) struct Everything<'a> {
    desk: &'a Desk<'a>,
    scan: Scan<'a>,
}

impl<'a> Everything<'a> {
    pub(super) fn new(desk: &'a Desk<'a>, after: Option<ItemNumber>) -> Everything<'a> {
        let id = desk.partition.id;
        let mut range = KeyRange::prefix(keys::partition(id));
        if let Some(after) = after {
            range = range.after(Key::Item(id, after).encode().1);
        }
        Everything { desk, scan: desk.view.snapshot.scan(Keyspace::Item, range, Direction::Forward) }
    }
}

impl Source for Everything<'_> {
    fn next(&mut self) -> Result<Coming> {
        let gate = &self.desk.view.gate;
        for entry in self.scan.by_ref() {
            let (key, value) = entry?;
            let number = keys::item_number(&key)?;
            self.desk.work.look()?;
            let position = Position::Number(number);
            self.desk.work.load(value.len() as u64)?;
            match gate.judge(&*self.desk.view.snapshot, number, &value)? {
                Some(record) => {
                    let record = Some(record);
                    return Ok(Coming::Item(Arriving { number, position, exact: false, told: None, record }));
                }
                None if self.desk.work.is_spent() => return Ok(Coming::Pause(position)),
                None => {}
            }
        }
        Ok(Coming::End)
    }
}

/// Items by what stands at a path.
pub(super) struct ByPath<'a> {
    walk: PathWalk<'a>,
    /// Which leaf of the condition it is about.
    leaf: u16,
    /// Where the page before ended.
    after: Option<(Vec<u8>, u64)>,
}

impl<'a> ByPath<'a> {
    pub(super) fn new(walk: PathWalk<'a>, leaf: u16, after: Option<(Vec<u8>, u64)>) -> ByPath<'a> {
        ByPath { walk, leaf, after }
    }
}

impl Source for ByPath<'_> {
    fn next(&mut self) -> Result<Coming> {
        let position = |leaf, sort, rank| Position::Path { leaf, sort, number: ItemNumber(rank) };
        loop {
            return Ok(match self.walk.next()? {
                Step::Item(passing) => {
                    let place = (passing.sort, passing.rank);
                    if self.after.take_if(|after| *after == place).is_some() {
                        continue;
                    }
                    Coming::Item(Arriving {
                        number: passing.number,
                        position: position(self.leaf, place.0, place.1),
                        exact: passing.exact,
                        told: passing.told,
                        record: passing.record,
                    })
                }
                Step::Pause(pause) => Coming::Pause(position(self.leaf, pause.sort, pause.rank)),
                Step::End => Coming::End,
            });
        }
    }
}

/// What a walk along a path has not come to, by number: for a path that is no longer indexed.
pub(super) struct Remaining<'a> {
    items: Everything<'a>,
    leaf: Leaf,
    number_of_leaf: u16,
    /// Where the walk stood.
    stood: (Vec<u8>, ItemNumber),
}

impl<'a> Remaining<'a> {
    pub(super) fn new(
        desk: &'a Desk<'a>,
        (number_of_leaf, leaf): (u16, Leaf),
        stood: (Vec<u8>, ItemNumber),
        after: Option<ItemNumber>,
    ) -> Remaining<'a> {
        Remaining { items: Everything::new(desk, after), leaf, number_of_leaf, stood }
    }

    fn position(&self, scanned: ItemNumber) -> Position {
        let (sort, number) = self.stood.clone();
        Position::Remaining { leaf: self.number_of_leaf, sort, number, scanned }
    }
}

impl Source for Remaining<'_> {
    fn next(&mut self) -> Result<Coming> {
        loop {
            match self.items.next()? {
                Coming::Item(arriving) => {
                    let key = arriving.record.as_ref().and_then(|record| coarse_key(&self.leaf, record));
                    let place = key.map(|key| (key, arriving.number));
                    if place.is_some_and(|place| place > self.stood) {
                        let position = self.position(arriving.number);
                        return Ok(Coming::Item(Arriving { position, ..arriving }));
                    }
                    if self.items.desk.work.is_spent() {
                        return Ok(Coming::Pause(self.position(arriving.number)));
                    }
                }
                Coming::Pause(Position::Number(number)) => return Ok(Coming::Pause(self.position(number))),
                other => return Ok(other),
            }
        }
    }
}

/// Items by (effective key, partition key, id).
pub(super) struct ById<'a> {
    desk: &'a Desk<'a>,
    pieces: VecDeque<Piece>,
    scan: Option<Scan<'a>>,
}

/// A piece of a walk along the `Id` entries.
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

/// Beyond this many (key, id) pairs single lookups are no better than a walk through the keys.
const LOOKUPS_MAX: usize = 4096;

impl<'a> ById<'a> {
    /// The items of some partition keys, or of a range of effective keys.
    pub(super) fn new(
        desk: &'a Desk<'a>,
        range: &EffectiveRange,
        wanted: Option<&[PartitionKey]>,
        ids: Option<&[String]>,
        after: Option<&[u8]>,
    ) -> ById<'a> {
        let mut pieces = pieces(desk, range, wanted, ids);
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
        ById { desk, pieces: pieces.into(), scan: None }
    }

    fn arriving(&self, key: Vec<u8>, record: Option<Record>) -> Option<Coming> {
        let position = Position::Id(key);
        match record {
            Some(record) => {
                let number = record.number;
                let record = Some(record);
                Some(Coming::Item(Arriving { number, position, exact: false, told: None, record }))
            }
            None => self.desk.work.is_spent().then_some(Coming::Pause(position)),
        }
    }
}

/// Where matching items can lie among the `Id` entries of a partition, in ascending order without overlap.
fn pieces(
    desk: &Desk<'_>,
    range: &EffectiveRange,
    wanted: Option<&[PartitionKey]>,
    ids: Option<&[String]>,
) -> Vec<Piece> {
    let (definition, partition) = (&desk.container.definition.partition_key, desk.partition.id);
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
    fn next(&mut self) -> Result<Coming> {
        loop {
            if let Some(scan) = &mut self.scan {
                let Some(entry) = scan.next() else {
                    self.scan = None;
                    continue;
                };
                let (key, value) = entry?;
                self.desk.work.look()?;
                let record = self.desk.load(keys::number_from_value(&value)?)?;
                if let Some(coming) = self.arriving(key.to_vec(), record) {
                    return Ok(coming);
                }
                continue;
            }
            match self.pieces.pop_front() {
                None => return Ok(Coming::End),
                Some(Piece::Range(range)) => {
                    self.scan = Some(self.desk.view.snapshot.scan(Keyspace::Id, range, Direction::Forward));
                }
                Some(Piece::Lookup(key)) => {
                    self.desk.work.look()?;
                    let record = self.desk.view.by_id_key(&key)?;
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
    walk: StampWalk<'a>,
    /// Where the page before ended.
    after: Option<(u64, ItemNumber)>,
}

impl<'a> ByStamp<'a> {
    pub(super) fn new(desk: &'a Desk<'a>, stamps: Stamps, after: Option<(u64, ItemNumber)>) -> ByStamp<'a> {
        let start = after.map(|(seconds, number)| Start {
            sort: by_stamp::sort_of(i64::try_from(seconds).unwrap_or(i64::MAX), Direction::Forward),
            rank: number.0,
        });
        ByStamp { walk: StampWalk::open(desk, stamps, Direction::Forward, start.as_ref()), after }
    }
}

impl Source for ByStamp<'_> {
    fn next(&mut self) -> Result<Coming> {
        loop {
            let passing = match self.walk.next()? {
                Step::End => return Ok(Coming::End),
                Step::Pause(pause) => {
                    let (seconds, number) = (by_stamp::seconds(&pause.sort), ItemNumber(pause.rank));
                    return Ok(Coming::Pause(Position::Stamp { seconds, number }));
                }
                Step::Item(passing) => passing,
            };
            let (seconds, number, told) = (by_stamp::seconds(&passing.sort), passing.number, passing.told);
            if self.after.take_if(|after| *after == (seconds, number)).is_none() {
                let position = Position::Stamp { seconds, number };
                return Ok(Coming::Item(Arriving { number, position, exact: false, told, record: None }));
            }
        }
    }
}
