//! A walk through one collection that can rest: between two rows, and between two requests of a cursor.
//!
//! Rows are read some at a time. What was read ahead is thrown away at the end of a request, and the next request reads on
//! behind the last row that was asked for, at its own time: what died in between is not there (T16), what was written may be.
//! So a walk holds no snapshot while nobody asks.
//!
//! An index with several keys for one document (an array) meets the document several times, and so may several indexes; it is
//! taken once. A walk remembers so many of those that it has met; of the others it asks whether the key at hand is their first
//! on the way.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bson::{Document, Value};
use document::ItemNumber;
use engine::collection::{Collection, Found, Hit, IndexList, Reading};
use mql::filter::Filter;
use mql::index::Span;
use mql::pipeline::Row;
use mql::{Code, Context};
use storage::Direction;
use tokio::task::block_in_place;

use crate::error::{Error, Result};

/// How many documents are read at once: few at first, and no more than are wanted.
const FIRST_CHUNK: usize = 16;
const LAST_CHUNK: usize = 256;
/// A request that has looked at so much has turned out long: its walk reads on aside.
const LONG: usize = 16;
/// How many bytes are read at once.
const CHUNK_BYTES: usize = 4 << 20;
/// How many documents with several keys a walk remembers.
const MET_MAX: usize = 1 << 16;

/// Which documents are looked at, and in which order.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// None: the collection does not exist, or the conditions contradict each other.
    Nothing,
    /// The one with this `_id`.
    Id(Value),
    /// All, in the order of their insertion or against it.
    Natural(Direction),
    /// Those that indexes lead to, one leg after the other.
    Indexes(Vec<Leg>),
}

/// A part of a way: the documents that have keys in these spans of an index, in the order of the keys or against it.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    /// The number of the index.
    pub(crate) index: u32,
    pub(crate) spans: Vec<Span>,
    pub(crate) direction: Direction,
}

/// How far a walk has come.
#[derive(Debug, Clone)]
enum Position {
    Start,
    /// Behind this document of a natural walk.
    Item(ItemNumber),
    /// Behind this entry of an index, in this span of this leg; none: at the beginning of the span.
    Entry {
        leg: usize,
        span: usize,
        hit: Option<Hit>,
    },
    End,
}

/// What was looked at so far: of the living only, as nobody may tell whether the dead are still there (T14).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Examined {
    /// Keys, for each leg of the way.
    pub(crate) keys_by_leg: Vec<u64>,
    pub(crate) documents: u64,
}

impl Examined {
    /// Keys in all.
    pub(crate) fn keys(&self) -> u64 {
        self.keys_by_leg.iter().sum()
    }
}

/// A walk.
#[derive(Debug)]
pub(crate) struct Walk {
    collection: Option<Arc<Collection>>,
    filter: Arc<Filter>,
    way: Way,
    /// Behind the last row that was given out.
    position: Position,
    /// What was read ahead, each with the position behind it.
    ahead: VecDeque<(Found, Position)>,
    /// Behind what was read ahead.
    read_to: Position,
    chunk: usize,
    /// How many more rows this request can show, where rows are shown as they come.
    wanted: Option<usize>,
    /// How many it could show at first, where that was told.
    wanted_first: Option<usize>,
    /// Rows of this request that were given out.
    given: usize,
    /// Documents of this request that did not meet the filter.
    rejected: usize,
    /// Documents, spans and legs that this request has come by.
    looked: usize,
    /// Documents that an index with several keys for one has led to.
    met: HashSet<ItemNumber>,
    met_max: usize,
    keys_by_leg: Vec<u64>,
    documents: u64,
    /// Whether each row tells by which key it was found.
    pub(super) tells_index_key: bool,
}

/// What a document that a walk remembers takes.
const MET_BYTES: usize = 2 * size_of::<ItemNumber>();

impl Walk {
    /// How many bytes it holds between two requests, roughly: the documents that it remembers. Its spans count with the command
    /// that they were made of.
    pub(crate) fn bytes(&self) -> usize {
        self.met.capacity() * MET_BYTES
    }

    /// A walk through the documents that meet the filter, of which so many are wanted at most.
    pub(crate) fn new(
        collection: Option<Arc<Collection>>,
        filter: Arc<Filter>,
        way: Way,
        limit: Option<u64>,
    ) -> Walk {
        let way = if collection.is_none() { Way::Nothing } else { way };
        let legs = if let Way::Indexes(legs) = &way { legs.len() } else { 0 };
        Walk {
            collection,
            filter,
            way,
            position: Position::Start,
            ahead: VecDeque::new(),
            read_to: Position::Start,
            chunk: limit.map_or(FIRST_CHUNK, |limit| limit.clamp(1, FIRST_CHUNK as u64) as usize),
            wanted: None,
            wanted_first: None,
            given: 0,
            rejected: 0,
            looked: 0,
            met: HashSet::new(),
            met_max: MET_MAX,
            keys_by_leg: vec![0; legs],
            documents: 0,
            tells_index_key: false,
        }
    }

    /// What was looked at.
    pub(crate) fn examined(&self) -> Examined {
        Examined { keys_by_leg: self.keys_by_leg.clone(), documents: self.documents }
    }

    /// Says how many more rows can be shown: no more are read ahead, but for those that make up for documents that do not
    /// meet the filter, and for rows that a stage has dropped.
    pub(crate) fn wants(&mut self, rows: Option<usize>) {
        self.wanted = rows;
        self.wanted_first = self.wanted_first.or(rows);
    }

    /// How many documents are read ahead at most. As many as were in vain are read once more: what is dropped by a stage
    /// behind the walk, as by `$skip`, is found in a few large steps.
    fn read_ahead_max(&self) -> usize {
        let Some(wanted) = self.wanted else { return usize::MAX };
        let shown = self.wanted_first.unwrap_or(wanted).saturating_sub(wanted);
        let dropped = self.given.saturating_sub(shown);
        wanted.max(1).saturating_add(self.rejected).saturating_add(dropped)
    }

    /// The next document that meets the filter.
    pub(crate) fn next(&mut self, reading: &Reading<'_>, context: &Context) -> Result<Option<Found>> {
        loop {
            while let Some((found, behind)) = self.ahead.pop_front() {
                self.position = behind;
                context.spend(1)?;
                self.documents += 1;
                if self.filter.matches(found.document.view(), context)? {
                    if let Some(collection) = &self.collection {
                        reading.rely_on(collection, found.number)?;
                    }
                    self.given += 1;
                    return Ok(Some(found));
                }
                self.rejected += 1;
            }
            if matches!(self.read_to, Position::End) {
                return Ok(None);
            }
            if self.looked >= LONG {
                block_in_place(|| self.read_ahead(reading, context))?;
            } else {
                self.read_ahead(reading, context)?;
            }
        }
    }

    /// How many entries the indexes have on the way. Some are counted here, the others aside.
    pub(crate) fn count_entries(&self, reading: &Reading<'_>, context: &Context) -> Result<u64> {
        let (Some(collection), Way::Indexes(legs)) = (&self.collection, &self.way) else { return Ok(0) };
        let (mut count, mut looked) = (0, 0);
        for leg in legs {
            for span in &leg.spans {
                let mut last: Option<Hit> = None;
                loop {
                    let range = (&span.lower[..], &span.upper[..]);
                    let read = || {
                        reading.index(collection, leg.index, range, last.as_ref(), leg.direction, LAST_CHUNK)
                    };
                    let hits = if looked < LAST_CHUNK { read() } else { block_in_place(read) }?;
                    context.spend(1 + hits.len() as u64)?;
                    count += hits.len() as u64;
                    looked += 1 + hits.len();
                    if hits.len() < LAST_CHUNK {
                        break;
                    }
                    last = hits.into_iter().next_back();
                }
            }
        }
        Ok(count)
    }

    /// The next document as a row of a pipeline.
    pub(crate) fn next_row(&mut self, reading: &Reading<'_>, context: &Context) -> Result<Option<Row>> {
        let Some(found) = self.next(reading, context)? else { return Ok(None) };
        let key = if self.tells_index_key { self.index_key(&found, reading, context)? } else { None };
        let mut row = Row::of_item(found.document, found.number.0);
        row.meta = key.map(|key| Box::new(Document::new().with("indexKey", key)));
        Ok(Some(row))
    }

    /// The key by which the last document was found, as `{$meta: "indexKey"}` shows it.
    fn index_key(&self, found: &Found, reading: &Reading<'_>, context: &Context) -> Result<Option<Document>> {
        let Some(collection) = &self.collection else { return Ok(None) };
        match (&self.way, &self.position) {
            (Way::Id(id), _) => Ok(Some(Document::new().with("_id", id.clone()))),
            (Way::Indexes(legs), Position::Entry { leg, hit: Some(hit), .. }) => {
                let list = reading.indexes(collection)?;
                let index = legs.get(*leg).and_then(|leg| list.get(leg.index));
                let Some(index) = index else { return Ok(None) };
                Ok(index.spec.shown_key(found.document.view(), &hit.key, context)?)
            }
            _ => Ok(None),
        }
    }

    /// Ends a request: what was read ahead belongs to its time and is let go.
    pub(crate) fn rest(&mut self) {
        if !self.ahead.is_empty() {
            for (found, _) in self.ahead.drain(..) {
                self.met.remove(&found.number);
            }
            self.read_to = self.position.clone();
        }
        self.chunk = FIRST_CHUNK;
        (self.wanted, self.wanted_first) = (None, None);
        (self.given, self.rejected, self.looked) = (0, 0, 0);
    }

    fn read_ahead(&mut self, reading: &Reading<'_>, context: &Context) -> Result<()> {
        let Some(collection) = self.collection.clone() else {
            self.read_to = Position::End;
            return Ok(());
        };
        let room = self.chunk.min(self.read_ahead_max());
        self.chunk = (self.chunk * 4).min(LAST_CHUNK);
        match &self.way {
            Way::Nothing => self.read_to = Position::End,
            Way::Id(id) => {
                if let Some(found) = reading.by_id(&collection, id.view())? {
                    self.ahead.push_back((found, Position::End));
                }
                self.read_to = Position::End;
            }
            Way::Natural(direction) => {
                let after = if let Position::Item(number) = self.read_to { Some(number) } else { None };
                let found = reading.natural(&collection, after, *direction, room, CHUNK_BYTES)?;
                self.read_to = found.last().map_or(Position::End, |last| Position::Item(last.number));
                self.ahead.extend(found.into_iter().map(|found| {
                    let behind = Position::Item(found.number);
                    (found, behind)
                }));
            }
            Way::Indexes(_) => self.read_index(reading, &collection, room, context)?,
        }
        self.looked += 1 + self.ahead.len();
        Ok(())
    }

    fn read_index(
        &mut self,
        reading: &Reading<'_>,
        collection: &Arc<Collection>,
        room: usize,
        context: &Context,
    ) -> Result<()> {
        let Way::Indexes(legs) = &self.way else { return Ok(()) };
        let (number, at, after) = match &self.read_to {
            Position::Entry { leg, span, hit } => (*leg, *span, hit.as_ref()),
            Position::Start | Position::Item(_) => (0, 0, None),
            Position::End => return Ok(()),
        };
        let Some(leg) = legs.get(number) else {
            self.read_to = Position::End;
            return Ok(());
        };
        let Some(span) = leg.spans.get(at) else {
            self.read_to = Position::Entry { leg: number + 1, span: 0, hit: None };
            return Ok(());
        };
        let list = reading.indexes(collection)?;
        let Some(definition) = list.get(leg.index).filter(|index| index.is_searchable()) else {
            return Err(gone(collection));
        };
        let range = (&span.lower[..], &span.upper[..]);
        let hits = reading.index_with_items(collection, leg.index, range, after, leg.direction, room)?;
        self.read_to = match hits.last() {
            Some((hit, _)) if hits.len() == room => {
                Position::Entry { leg: number, span: at, hit: Some(hit.clone()) }
            }
            _ if at + 1 < leg.spans.len() => Position::Entry { leg: number, span: at + 1, hit: None },
            _ if number + 1 < legs.len() => Position::Entry { leg: number + 1, span: 0, hit: None },
            _ => Position::End,
        };
        let may_come_again = definition.multikey || legs.len() > 1;
        for (hit, found) in hits {
            context.spend(1)?;
            self.keys_by_leg[number] += 1;
            if may_come_again && self.met.contains(&hit.number) {
                continue;
            }
            let found = match found {
                Some(found) => found,
                None => match reading.by_number(collection, hit.number)? {
                    Some(found) => found,
                    None => continue,
                },
            };
            if may_come_again {
                if self.met.len() < self.met_max {
                    self.met.insert(hit.number);
                } else if !is_first_on_the_way(&found, &hit.key, legs, number, &list, context)? {
                    self.documents += 1;
                    continue;
                }
            }
            self.ahead.push_back((found, Position::Entry { leg: number, span: at, hit: Some(hit) }));
        }
        Ok(())
    }
}

/// The index that a walk reads was dropped while it rested.
fn gone(collection: &Collection) -> Error {
    let text = format!("the index that the query on {} reads was dropped", collection.namespace());
    Error::new(Code::QUERY_PLAN_KILLED, text)
}

/// Whether of all keys of a document this one, of this leg, is met first.
fn is_first_on_the_way(
    found: &Found,
    key: &[u8],
    legs: &[Leg],
    number: usize,
    list: &IndexList,
    context: &Context,
) -> Result<bool> {
    for (earlier, leg) in legs.iter().enumerate().take(number + 1) {
        let Some(index) = list.get(leg.index) else { continue };
        let Some(keys) = index.spec.keys(found.document.view(), context)? else { continue };
        let comes_before = if earlier == number {
            let mine = leg.place(key);
            keys.iter().any(|other| leg.is_before(leg.place(other), other, mine, key))
        } else {
            keys.iter().any(|other| leg.place(other).is_some())
        };
        if comes_before {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Leg {
    /// The span that holds a key.
    fn place(&self, key: &[u8]) -> Option<usize> {
        let holds = |span: &Span| *span.lower <= *key && (span.upper.is_empty() || *key < *span.upper);
        self.spans.iter().position(holds)
    }

    /// Whether another key, in its span, is met before this one. Spans are walked in the order in which they stand; within
    /// one, keys come in their order or against it.
    fn is_before(&self, theirs: Option<usize>, other: &[u8], mine: Option<usize>, key: &[u8]) -> bool {
        match (theirs, mine) {
            (None, _) => false,
            (Some(theirs), Some(mine)) if theirs == mine => match self.direction {
                Direction::Forward => other < key,
                Direction::Backward => other > key,
            },
            (theirs, mine) => theirs < mine,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bson::{Collation, Document, RawDocument};
    use engine::Engine;
    use mql::filter::Settings;
    use mql::index::IndexSpec;
    use storage::{ClockOptions, ManualClock, MemoryStore, Time};

    use super::super::choose::{Plan, choose};
    use super::*;
    use crate::room::{Common, Room};

    const INDEXES: &[&str] = &[
        r#"{"key": {"a": 1}, "name": "a"}"#,
        r#"{"key": {"b": -1}, "name": "b"}"#,
        r#"{"key": {"c": 1, "a": 1}, "name": "ca"}"#,
        r#"{"key": {"d": 1, "c": 1}, "name": "dc"}"#,
        r#"{"key": {"c": 1}, "name": "partial", "partialFilterExpression": {"c": {"$gt": 5}}}"#,
    ];

    fn json(text: &str) -> Document {
        match bson::parse_extended_json(text).unwrap() {
            Value::Document(document) => document,
            other => panic!("not a document but {other:?}"),
        }
    }

    fn filled(random: &mut fastrand::Rng) -> (Room, Arc<Collection>) {
        let clock = Arc::new(ManualClock::new(Time::from_seconds(1_700_000_000)));
        let store = Arc::new(MemoryStore::new(ClockOptions::new(clock)).unwrap());
        let engine = Arc::new(Engine::open(store).unwrap());
        let definition = crate::catalog::definition(RawDocument::default()).unwrap();
        let collection = engine.create_collection("db", "c", definition, None).unwrap();
        let specs = INDEXES.iter().map(|spec| IndexSpec::parse(json(spec).view()).unwrap());
        engine.create_indexes(&collection, specs.collect()).unwrap();
        let value = |random: &mut fastrand::Rng| match random.u8(..4) {
            0 => {
                let items = (0..random.usize(..4)).map(|_| Value::Int32(random.i32(0..10)));
                Value::Array(items.collect())
            }
            _ => Value::Int32(random.i32(0..10)),
        };
        let documents = (0..60).map(|id| {
            let document = Document::new().with("_id", id).with("a", value(random)).with("b", value(random));
            // Two arrays cannot be in one index.
            let document = document.with("c", random.i32(0..10));
            RawDocument::from_document(&match random.u8(..4) {
                0 => document,
                1 => document.with("d", "text"),
                _ => document.with("d", random.i32(0..4)),
            })
        });
        let documents = documents.collect();
        for outcome in engine.insert(&collection, documents, false, None).wait().unwrap() {
            outcome.unwrap();
        }
        (Room::new(&Arc::new(Common::new(engine, 64)), None), collection)
    }

    fn branch(random: &mut fastrand::Rng) -> String {
        let condition = |random: &mut fastrand::Rng| {
            let (field, number) = (random.choice(["a", "b", "c"]).unwrap(), random.i32(0..10));
            match random.u8(..3) {
                0 => format!(r#""{field}": {number}"#),
                1 => format!(r#""{field}": {{"$gte": {number}}}"#),
                _ => format!(r#""{field}": {{"$in": [{number}, {}]}}"#, random.i32(0..10)),
            }
        };
        format!("{{{}}}", condition(random))
    }

    fn planned(room: &Room, collection: &Arc<Collection>, filter: &Filter) -> Plan {
        let simple = Collation::simple();
        room.read(&[collection], |reading| choose(reading, collection, filter, None, None, &simple, None))
            .unwrap()
    }

    /// The ids that a walk gives, which rests now and then.
    fn walked(
        mut walk: Walk,
        room: &Room,
        collection: &Arc<Collection>,
        random: &mut fastrand::Rng,
    ) -> Vec<i32> {
        let context = Context::at(0);
        let mut ids = Vec::new();
        loop {
            let some = random.usize(1..9);
            let given: Vec<Found> = room
                .read(&[collection], |reading| {
                    (0..some).filter_map(|_| walk.next(reading, &context).transpose()).collect()
                })
                .unwrap();
            walk.rest();
            let id = |found: &Found| match found.document.get("_id") {
                Some(bson::ValueRef::Int32(id)) => id,
                other => panic!("no _id but {other:?}"),
            };
            ids.extend(given.iter().map(id));
            if given.len() < some {
                return ids;
            }
        }
    }

    #[test]
    fn branches_find_what_a_look_at_everything_finds_each_document_once() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut several = 0;
        for _ in 0..8 {
            let (room, collection) = filled(&mut random);
            for _ in 0..25 {
                let branches: Vec<String> = (0..random.usize(2..5)).map(|_| branch(&mut random)).collect();
                let filter = json(&format!(r#"{{"$or": [{}]}}"#, branches.join(", ")));
                let parsed = Arc::new(Filter::parse(filter.view(), &Settings::default()).unwrap());
                let all = Walk::new(
                    Some(Arc::clone(&collection)),
                    Arc::clone(&parsed),
                    Way::Natural(Direction::Forward),
                    None,
                );
                let expected: BTreeSet<i32> =
                    walked(all, &room, &collection, &mut random).into_iter().collect();
                let plan = planned(&room, &collection, &parsed);
                several += usize::from(plan.indexes.len() > 1);
                for met_max in [0, 3, MET_MAX] {
                    let mut walk = plan.clone().into_walk(&room, &collection, &parsed, None);
                    walk.met_max = met_max;
                    let given = walked(walk, &room, &collection, &mut random);
                    let once: BTreeSet<i32> = given.iter().copied().collect();
                    assert_eq!(given.len(), once.len(), "each once: {filter:?}, {met_max}");
                    assert_eq!(once, expected, "{filter:?}, {met_max}");
                }
            }
        }
        assert!(several > 20, "only {several} of 200 filters were answered by several indexes");
    }

    /// A stage behind the walk, as `$skip`, drops rows that the walk gave out: as many as that are read at once.
    #[test]
    fn rows_that_are_dropped_behind_the_walk_are_read_in_larger_and_larger_chunks() {
        let (room, collection) = filled(&mut fastrand::Rng::with_seed(1));
        let document = |id: i32| RawDocument::from_document(&Document::new().with("_id", id));
        let more = (60..3_000).map(document).collect();
        room.engine().insert(&collection, more, true, None).wait().unwrap();
        let filter = Arc::new(Filter::parse(Document::new().view(), &Settings::default()).unwrap());
        let reads = |shown_before: usize, wanted: usize| {
            let way = Way::Natural(Direction::Forward);
            let mut walk = Walk::new(Some(Arc::clone(&collection)), Arc::clone(&filter), way, None);
            room.read(&[&collection], |reading| {
                let mut given = 0;
                while given < 2_000 {
                    // So many are shown, all others are dropped.
                    walk.wants(Some(wanted - given.min(shown_before)));
                    assert!(walk.next(reading, &Context::at(0))?.is_some());
                    given += 1;
                }
                Ok(())
            })
            .unwrap();
            let ahead = walk.ahead.len();
            (walk.looked - walk.documents as usize - ahead, ahead)
        };
        for (shown_before, wanted) in [(0, 1), (3, 5)] {
            let (reads, ahead) = reads(shown_before, wanted);
            assert!(reads < 25, "{reads} scans for 2,000 documents");
            assert!(ahead <= LAST_CHUNK, "{ahead} are read ahead");
        }
    }

    #[test]
    fn where_entries_alone_are_counted_there_are_as_many_documents() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut covered = 0;
        for _ in 0..8 {
            let (room, collection) = filled(&mut random);
            for _ in 0..25 {
                let number = random.i32(0..4);
                let condition = match random.u8(..8) {
                    0 => format!("{number}"),
                    1 => format!(r#"{{"$lt": {number}}}"#),
                    2 => format!(r#"{{"$in": [{number}, "text", 3]}}"#),
                    3 => r#"{"$in": [null, 1]}"#.to_owned(),
                    4 => "null".to_owned(),
                    5 => r#"{"$exists": true}"#.to_owned(),
                    6 => format!(r#"{{"$ne": {number}}}"#),
                    _ => r#"{"$type": "string"}"#.to_owned(),
                };
                let other = random.choice(["", r#", "c": {"$gte": 5}"#, r#", "a": 3"#]).unwrap();
                let filter = json(&format!(r#"{{"d": {condition}{other}}}"#));
                let parsed = Arc::new(Filter::parse(filter.view(), &Settings::default()).unwrap());
                let plan = planned(&room, &collection, &parsed);
                if !plan.covered {
                    continue;
                }
                covered += 1;
                let walk = plan.into_walk(&room, &collection, &parsed, None);
                let counted = room
                    .read(&[&collection], |reading| walk.count_entries(reading, &Context::at(0)))
                    .unwrap();
                let found = walked(walk, &room, &collection, &mut random).len();
                assert_eq!(counted, found as u64, "{filter:?}");
            }
        }
        assert!(covered > 20, "only {covered} of 200 filters were answered by entries alone");
    }
}
