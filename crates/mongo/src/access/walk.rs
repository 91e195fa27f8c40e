//! A walk through one collection that can rest: between two rows, and between two requests of a cursor.
//!
//! Rows are read some at a time. What was read ahead is thrown away at the end of a request, and the next request reads on
//! behind the last row that was asked for, at its own time: what died in between is not there (T16), what was written may be.
//! So a walk holds no snapshot while nobody asks.
//!
//! An index with several keys for one document (an array) meets the document several times, and takes it once. A walk
//! remembers so many of those that it has met; of the others it asks whether the key at hand is their first on the way.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bson::Value;
use document::ItemNumber;
use engine::collection::{Collection, Found, Hit, Reading};
use mql::filter::Filter;
use mql::index::Span;
use mql::pipeline::Row;
use mql::{Code, Context};
use storage::Direction;

use crate::error::{Error, Result};

/// How many documents are read at once: few at first, because many requests want but one.
const FIRST_CHUNK: usize = 4;
const LAST_CHUNK: usize = 256;
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
    /// Those that have keys in these spans of an index, in the order of the keys or against it.
    Index { number: u32, spans: Vec<Span>, direction: Direction },
}

/// How far a walk has come.
#[derive(Debug, Clone)]
enum Position {
    Start,
    /// Behind this document of a natural walk.
    Item(ItemNumber),
    /// Behind this entry of an index, in this span; none: at the beginning of the span.
    Entry {
        span: usize,
        hit: Option<Hit>,
    },
    End,
}

/// What was looked at so far: of the living only, as nobody may tell whether the dead are still there (T14).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Examined {
    pub(crate) keys: u64,
    pub(crate) documents: u64,
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
    /// Documents that an index with several keys for one has led to.
    met: HashSet<ItemNumber>,
    examined: Examined,
}

impl Walk {
    /// A walk through the documents that meet the filter.
    pub(crate) fn new(collection: Option<Arc<Collection>>, filter: Arc<Filter>, way: Way) -> Walk {
        let way = if collection.is_none() { Way::Nothing } else { way };
        Walk {
            collection,
            filter,
            way,
            position: Position::Start,
            ahead: VecDeque::new(),
            read_to: Position::Start,
            chunk: FIRST_CHUNK,
            met: HashSet::new(),
            examined: Examined::default(),
        }
    }

    /// What was looked at.
    pub(crate) fn examined(&self) -> Examined {
        self.examined
    }

    /// The next document that meets the filter.
    pub(crate) fn next(&mut self, reading: &Reading<'_>, context: &Context) -> Result<Option<Found>> {
        loop {
            while let Some((found, behind)) = self.ahead.pop_front() {
                self.position = behind;
                context.spend(1)?;
                self.examined.documents += 1;
                if self.filter.matches(found.document.view(), context)? {
                    return Ok(Some(found));
                }
            }
            if matches!(self.read_to, Position::End) {
                return Ok(None);
            }
            self.read_ahead(reading, context)?;
        }
    }

    /// The next document as a row of a pipeline.
    pub(crate) fn next_row(&mut self, reading: &Reading<'_>, context: &Context) -> Result<Option<Row>> {
        Ok(self.next(reading, context)?.map(|found| Row::of_item(found.document, found.number.0)))
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
    }

    fn read_ahead(&mut self, reading: &Reading<'_>, context: &Context) -> Result<()> {
        let Some(collection) = self.collection.clone() else {
            self.read_to = Position::End;
            return Ok(());
        };
        let room = self.chunk;
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
            Way::Index { .. } => self.read_index(reading, &collection, room, context)?,
        }
        Ok(())
    }

    fn read_index(
        &mut self,
        reading: &Reading<'_>,
        collection: &Arc<Collection>,
        room: usize,
        context: &Context,
    ) -> Result<()> {
        let Way::Index { number: index, spans, direction } = &self.way else { return Ok(()) };
        let (at, after) = match &self.read_to {
            Position::Entry { span, hit } => (*span, hit.as_ref()),
            Position::Start | Position::Item(_) => (0, None),
            Position::End => return Ok(()),
        };
        let Some(span) = spans.get(at) else {
            self.read_to = Position::End;
            return Ok(());
        };
        let list = reading.indexes(collection)?;
        let Some(definition) = list.get(*index).filter(|index| index.is_searchable()) else {
            return Err(gone(collection));
        };
        let hits = reading.index(collection, *index, (&span.lower, &span.upper), after, *direction, room)?;
        if hits.len() < room {
            self.read_to = Position::Entry { span: at + 1, hit: None };
        } else if let Some(last) = hits.last() {
            self.read_to = Position::Entry { span: at, hit: Some(last.clone()) };
        }
        for hit in hits {
            context.spend(1)?;
            self.examined.keys += 1;
            if definition.multikey && self.met.contains(&hit.number) {
                continue;
            }
            let Some(found) = reading.by_number(collection, hit.number)? else { continue };
            if definition.multikey {
                if self.met.len() < MET_MAX {
                    self.met.insert(hit.number);
                } else if let Some(keys) = definition.spec.keys(found.document.view(), context)?
                    && !is_first_on_the_way(&keys, &hit.key, spans, *direction)
                {
                    self.examined.documents += 1;
                    continue;
                }
            }
            self.ahead.push_back((found, Position::Entry { span: at, hit: Some(hit) }));
        }
        Ok(())
    }
}

/// The index that a walk reads was dropped while it rested.
fn gone(collection: &Collection) -> Error {
    let text = format!("the index that the query on {} reads was dropped", collection.namespace());
    Error::new(Code::QUERY_PLAN_KILLED, text)
}

/// Whether of all keys of a document this one is met first.
fn is_first_on_the_way(keys: &[Vec<u8>], key: &[u8], spans: &[Span], direction: Direction) -> bool {
    if keys.len() <= 1 {
        return true;
    }
    // Spans are walked in the order in which they stand; within one, keys come in their order or against it.
    let place = |key: &[u8]| {
        let holds = |span: &Span| *span.lower <= *key && (span.upper.is_empty() || *key < *span.upper);
        spans.iter().position(holds)
    };
    let mine = place(key);
    !keys.iter().any(|other| {
        let theirs = place(other);
        theirs.is_some()
            && match theirs.cmp(&mine) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Greater => false,
                std::cmp::Ordering::Equal => match direction {
                    Direction::Forward => other.as_slice() < key,
                    Direction::Backward => other.as_slice() > key,
                },
            }
    })
}
