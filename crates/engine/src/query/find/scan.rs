//! A scan of one collection that can pause: between two rows, and between two requests of a cursor.
//!
//! Documents are read in chunks. Documents read ahead are dropped at the end of a request, and the next request continues after
//! the last row that was requested, at its own time: documents that have expired in between are not returned (T16), documents
//! written in between may be. So a scan holds no snapshot between requests.
//!
//! An index with several keys for one document (an array) leads to the document several times, and so may several indexes; it
//! is returned once. A scan remembers a bounded number of documents that it has seen; for the others it checks whether the key
//! at hand is their first on the path.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bson::Document;
use document::ItemNumber;
use mql::filter::Filter;
use mql::pipeline::Row;
use mql::{Code, Context};

use super::access_path::{AccessPath, IndexScan};
use crate::collection::{Collection, Hit, IndexList, LivingDocument, Reading};
use crate::types::error::{Error, Result};

/// How many documents are read at once: few at first, and no more than are wanted.
const FIRST_CHUNK: usize = 16;
pub(super) const LAST_CHUNK: usize = 256;
/// The number of documents, spans and index scans after which a request counts as long: it runs further reads aside.
const LONG: usize = 16;
/// How many bytes are read at once.
const CHUNK_BYTES: usize = 4 << 20;
/// How many documents with several keys a scan remembers.
pub(super) const SEEN_MAX: usize = 1 << 16;

/// The position of a scan.
#[derive(Debug, Clone)]
pub(super) enum Position {
    Start,
    /// After this document of a collection scan.
    Item(ItemNumber),
    /// After this entry of an index, in this span of this index scan; without an entry at the beginning of the span.
    Entry {
        scan: usize,
        span: usize,
        hit: Option<Hit>,
    },
    End,
}

/// The numbers of keys and documents that a scan has examined. Expired documents are not counted: no figure reveals whether the
/// purge has run (T14).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// Index keys, for each index scan of the path.
    pub keys_by_scan: Vec<u64>,
    /// Documents.
    pub documents: u64,
}

impl Examined {
    /// Returns the number of index keys in all.
    pub fn keys(&self) -> u64 {
        self.keys_by_scan.iter().sum()
    }
}

/// A scan of the documents on an access path that meet a filter.
#[derive(Debug)]
pub struct DocumentScan {
    collection: Option<Arc<Collection>>,
    filter: Arc<Filter>,
    path: AccessPath,
    /// The position after the last document that was returned.
    position: Position,
    /// Documents read ahead, each with the position after it.
    pub(super) ahead: VecDeque<(LivingDocument, Position)>,
    /// The position after the documents read ahead.
    read_to: Position,
    chunk: usize,
    /// How many more rows this request can return, where rows are returned as they are read.
    wanted: Option<usize>,
    /// How many documents were wanted at first, if that is known.
    wanted_first: Option<usize>,
    /// Documents that this request has returned.
    returned: usize,
    /// Documents of this request that did not meet the filter.
    rejected: usize,
    /// Documents, spans and index scans that this request has read.
    pub(super) read: usize,
    /// Documents that an index with several keys for one has led to.
    seen: HashSet<ItemNumber>,
    pub(super) seen_max: usize,
    keys_by_scan: Vec<u64>,
    pub(super) documents: u64,
    /// Whether each row has the key by which it was found.
    tells_index_key: bool,
}

/// How many bytes a document takes that a scan remembers.
const SEEN_BYTES: usize = 2 * size_of::<ItemNumber>();

impl DocumentScan {
    /// Returns roughly how many bytes it holds between two requests: the documents that it remembers. Its spans count with the
    /// command that they were made of.
    pub fn bytes(&self) -> usize {
        self.seen.capacity() * SEEN_BYTES
    }

    /// Begins a scan of the documents that meet the filter; at most `limit` of them are wanted.
    pub fn new(
        collection: Option<Arc<Collection>>,
        filter: Arc<Filter>,
        path: AccessPath,
        limit: Option<u64>,
    ) -> DocumentScan {
        let path = if collection.is_none() { AccessPath::Empty } else { path };
        let scans = if let AccessPath::IndexScans(scans) = &path { scans.len() } else { 0 };
        DocumentScan {
            collection,
            filter,
            path,
            position: Position::Start,
            ahead: VecDeque::new(),
            read_to: Position::Start,
            chunk: limit.map_or(FIRST_CHUNK, |limit| limit.clamp(1, FIRST_CHUNK as u64) as usize),
            wanted: None,
            wanted_first: None,
            returned: 0,
            rejected: 0,
            read: 0,
            seen: HashSet::new(),
            seen_max: SEEN_MAX,
            keys_by_scan: vec![0; scans],
            documents: 0,
            tells_index_key: false,
        }
    }

    /// Sets whether each row has the index key by which it was found.
    #[must_use]
    pub(super) fn telling_index_key(self, tells_index_key: bool) -> DocumentScan {
        DocumentScan { tells_index_key, ..self }
    }

    /// Returns the numbers of keys and documents examined.
    pub fn examined(&self) -> Examined {
        Examined { keys_by_scan: self.keys_by_scan.clone(), documents: self.documents }
    }

    /// Sets how many more rows can be returned: no more documents are read ahead, except to replace documents that do not meet the
    /// filter and rows that a stage has dropped.
    pub fn wants(&mut self, rows: Option<usize>) {
        self.wanted = rows;
        self.wanted_first = self.wanted_first.or(rows);
    }

    /// Returns how many documents are read ahead at most. For each document or row dropped so far one more is read: rows that a
    /// later stage drops, as `$skip` does, are read in a few large steps.
    fn read_ahead_max(&self) -> usize {
        let Some(wanted) = self.wanted else { return usize::MAX };
        let shown = self.wanted_first.unwrap_or(wanted).saturating_sub(wanted);
        let dropped = self.returned.saturating_sub(shown);
        wanted.max(1).saturating_add(self.rejected).saturating_add(dropped)
    }

    /// Returns the next document that meets the filter.
    pub fn next(&mut self, reading: &Reading<'_>, context: &Context) -> Result<Option<LivingDocument>> {
        loop {
            while let Some((found, behind)) = self.ahead.pop_front() {
                self.position = behind;
                context.spend(1)?;
                self.documents += 1;
                if self.filter.matches(found.document.view(), context)? {
                    if let Some(collection) = &self.collection {
                        reading.rely_on(collection, found.number)?;
                    }
                    self.returned += 1;
                    return Ok(Some(found));
                }
                self.rejected += 1;
            }
            if matches!(self.read_to, Position::End) {
                return Ok(None);
            }
            if self.read >= LONG {
                reading.aside(&mut || self.read_ahead(reading, context))?;
            } else {
                self.read_ahead(reading, context)?;
            }
        }
    }

    /// Returns how many entries the indexes have on the path. The first ones are counted at once, the others aside.
    pub fn count_entries(&self, reading: &Reading<'_>, context: &Context) -> Result<u64> {
        let (Some(collection), AccessPath::IndexScans(scans)) = (&self.collection, &self.path) else {
            return Ok(0);
        };
        let (mut count, mut read) = (0, 0);
        for scan in scans {
            for span in &scan.spans {
                let mut last: Option<Hit> = None;
                loop {
                    let range = (&span.lower[..], &span.upper[..]);
                    let mut hits = Vec::new();
                    let mut read_some = || {
                        let (after, direction) = (last.as_ref(), scan.direction);
                        hits = reading.index(collection, scan.index, range, after, direction, LAST_CHUNK)?;
                        Ok(())
                    };
                    if read < LAST_CHUNK { read_some() } else { reading.aside(&mut read_some) }?;
                    context.spend(1 + hits.len() as u64)?;
                    count += hits.len() as u64;
                    read += 1 + hits.len();
                    if hits.len() < LAST_CHUNK {
                        break;
                    }
                    last = hits.into_iter().next_back();
                }
            }
        }
        Ok(count)
    }

    /// Returns the next document as a row of a pipeline.
    pub fn next_row(&mut self, reading: &Reading<'_>, context: &Context) -> Result<Option<Row>> {
        let Some(found) = self.next(reading, context)? else { return Ok(None) };
        let key = if self.tells_index_key { self.index_key(&found, reading, context)? } else { None };
        let mut row = Row::of_item(found.document, found.number.0);
        row.meta = key.map(|key| Box::new(Document::new().with("indexKey", key)));
        Ok(Some(row))
    }

    /// Returns the key by which the last document was found, as `{$meta: "indexKey"}` shows it.
    fn index_key(
        &self,
        found: &LivingDocument,
        reading: &Reading<'_>,
        context: &Context,
    ) -> Result<Option<Document>> {
        let Some(collection) = &self.collection else { return Ok(None) };
        match (&self.path, &self.position) {
            (AccessPath::Id(id), _) => Ok(Some(Document::new().with("_id", id.clone()))),
            (AccessPath::IndexScans(scans), Position::Entry { scan, hit: Some(hit), .. }) => {
                let list = reading.indexes(collection)?;
                let index = scans.get(*scan).and_then(|scan| list.get(scan.index));
                let Some(index) = index else { return Ok(None) };
                Ok(index.spec.shown_key(found.document.view(), &hit.key, context)?)
            }
            _ => Ok(None),
        }
    }

    /// Ends a request: documents read ahead belong to its time and are dropped.
    pub fn rest(&mut self) {
        if !self.ahead.is_empty() {
            for (found, _) in self.ahead.drain(..) {
                self.seen.remove(&found.number);
            }
            self.read_to = self.position.clone();
        }
        self.chunk = FIRST_CHUNK;
        (self.wanted, self.wanted_first) = (None, None);
        (self.returned, self.rejected, self.read) = (0, 0, 0);
    }

    fn read_ahead(&mut self, reading: &Reading<'_>, context: &Context) -> Result<()> {
        let Some(collection) = self.collection.clone() else {
            self.read_to = Position::End;
            return Ok(());
        };
        let most = self.chunk.min(self.read_ahead_max());
        self.chunk = (self.chunk * 4).min(LAST_CHUNK);
        match &self.path {
            AccessPath::Empty => self.read_to = Position::End,
            AccessPath::Id(id) => {
                if let Some(found) = reading.by_id(&collection, id.view())? {
                    self.ahead.push_back((found, Position::End));
                }
                self.read_to = Position::End;
            }
            AccessPath::CollectionScan(direction) => {
                let after = if let Position::Item(number) = self.read_to { Some(number) } else { None };
                let found = reading.natural(&collection, after, *direction, most, CHUNK_BYTES)?;
                self.read_to = found.last().map_or(Position::End, |last| Position::Item(last.number));
                self.ahead.extend(found.into_iter().map(|found| {
                    let behind = Position::Item(found.number);
                    (found, behind)
                }));
            }
            AccessPath::IndexScans(_) => self.read_index(reading, &collection, most, context)?,
        }
        self.read += 1 + self.ahead.len();
        Ok(())
    }

    fn read_index(
        &mut self,
        reading: &Reading<'_>,
        collection: &Arc<Collection>,
        most: usize,
        context: &Context,
    ) -> Result<()> {
        let AccessPath::IndexScans(scans) = &self.path else { return Ok(()) };
        let (number, at, after) = match &self.read_to {
            Position::Entry { scan, span, hit } => (*scan, *span, hit.as_ref()),
            Position::Start | Position::Item(_) => (0, 0, None),
            Position::End => return Ok(()),
        };
        let Some(index_scan) = scans.get(number) else {
            self.read_to = Position::End;
            return Ok(());
        };
        let Some(span) = index_scan.spans.get(at) else {
            self.read_to = Position::Entry { scan: number + 1, span: 0, hit: None };
            return Ok(());
        };
        let list = reading.indexes(collection)?;
        let Some(definition) = list.get(index_scan.index).filter(|index| index.is_searchable()) else {
            return Err(gone(collection));
        };
        let range = (&span.lower[..], &span.upper[..]);
        let hits = reading.index_with_items(
            collection,
            index_scan.index,
            range,
            after,
            index_scan.direction,
            most,
        )?;
        self.read_to = match hits.last() {
            Some((hit, _)) if hits.len() == most => {
                Position::Entry { scan: number, span: at, hit: Some(hit.clone()) }
            }
            _ if at + 1 < index_scan.spans.len() => Position::Entry { scan: number, span: at + 1, hit: None },
            _ if number + 1 < scans.len() => Position::Entry { scan: number + 1, span: 0, hit: None },
            _ => Position::End,
        };
        let may_come_again = definition.multikey || scans.len() > 1;
        for (hit, found) in hits {
            context.spend(1)?;
            self.keys_by_scan[number] += 1;
            if may_come_again && self.seen.contains(&hit.number) {
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
                if self.seen.len() < self.seen_max {
                    self.seen.insert(hit.number);
                } else if !is_first_on_the_path(&found, &hit.key, scans, number, &list, context)? {
                    self.documents += 1;
                    continue;
                }
            }
            self.ahead.push_back((found, Position::Entry { scan: number, span: at, hit: Some(hit) }));
        }
        Ok(())
    }
}

/// Returns the error for an index that was dropped while a scan of it was paused.
fn gone(collection: &Collection) -> Error {
    let text = format!("the index that the query on {} reads was dropped", collection.namespace());
    mql::Error::new(Code::QUERY_PLAN_KILLED, text).into()
}

/// Returns whether this key, of this index scan, is the first of a document's keys on the path.
fn is_first_on_the_path(
    found: &LivingDocument,
    key: &[u8],
    scans: &[IndexScan],
    number: usize,
    list: &IndexList,
    context: &Context,
) -> Result<bool> {
    for (earlier, scan) in scans.iter().enumerate().take(number + 1) {
        let Some(index) = list.get(scan.index) else { continue };
        let Some(keys) = index.spec.keys(found.document.view(), context)? else { continue };
        let is_read_before = if earlier == number {
            let this = (scan.span_of(key), key);
            keys.iter().any(|other| scan.reads_before((scan.span_of(other), other), this))
        } else {
            keys.iter().any(|other| scan.span_of(other).is_some())
        };
        if is_read_before {
            return Ok(false);
        }
    }
    Ok(true)
}
