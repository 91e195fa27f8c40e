//! The scans that a pipeline has open, by number. A cursor keeps them between two requests, together with the pipeline.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use mql::Context;
use mql::pipeline::{Order, Part, Row, Scan, ScanId};

use super::access_path::AccessPath;
use super::scan::{DocumentScan, Examined};
use crate::collection::Reading;
use crate::types::error::Result;

/// The most documents that a request remembers as read. Further ones are looked up again, which costs only time.
const READ_NOW_MAX: usize = 1 << 16;

/// The open scans of one pipeline.
#[derive(Debug, Default)]
pub struct OpenScans {
    last: u64,
    open: BTreeMap<u64, OpenScan>,
    /// The figures of the leading collection's scan when it was closed.
    examined: Examined,
    /// Documents of the leading collection that this request has read.
    read_now: HashSet<u64>,
}

#[derive(Debug)]
struct OpenScan {
    documents: DocumentScan,
    part: Part,
    /// Whether its rows are returned in the order in which they are read, so that no more rows need to be read than are
    /// returned.
    streams: bool,
}

impl OpenScans {
    /// Opens the scan that a pipeline has requested, over these documents; `is_sorted` is whether they come in the requested
    /// order. Returns the scan's number and the order of its rows.
    pub fn open(&mut self, wanted: &Scan, documents: DocumentScan, is_sorted: bool) -> (ScanId, Order) {
        // A scan that has to be sorted is read to its end before its first row is returned.
        let streams = is_sorted && wanted.filter.near().is_none();
        let documents = documents.telling_index_key(wanted.tells_index_key);
        let order = if wanted.sort.is_some() && is_sorted { Order::Sorted } else { Order::Any };
        (self.add(OpenScan { documents, part: wanted.part, streams }), order)
    }

    /// Opens a scan of a collection that does not exist.
    pub fn open_empty(&mut self, wanted: &Scan) -> (ScanId, Order) {
        let documents = DocumentScan::new(None, Arc::clone(&wanted.filter), AccessPath::Empty, None);
        (self.add(OpenScan { documents, part: wanted.part, streams: false }), Order::Sorted)
    }

    fn add(&mut self, scan: OpenScan) -> ScanId {
        self.last += 1;
        self.open.insert(self.last, scan);
        ScanId(self.last)
    }

    /// Returns the next row of a scan; `None` if there are no more. `shown_max` is how many more rows the request can return if the
    /// pipeline drops no row of the leading collection, and `is_resumed` whether an earlier request has begun the pipeline.
    pub fn next(
        &mut self,
        id: ScanId,
        shown_max: Option<usize>,
        is_resumed: bool,
        reading: &Reading<'_>,
        context: &Context,
    ) -> Result<Option<Row>> {
        let Some(OpenScan { documents, part, streams }) = self.open.get_mut(&id.0) else { return Ok(None) };
        let is_leading = *part == Part::Leading;
        if is_leading {
            documents.wants(shown_max.filter(|_| *streams));
        }
        let row = documents.next_row(reading, context)?;
        if is_resumed
            && is_leading
            && let Some(number) = row.as_ref().and_then(|row| row.origin)
        {
            self.note_read(number);
        }
        Ok(row)
    }

    /// Remembers a document of the leading collection that this request has read.
    fn note_read(&mut self, number: u64) {
        if self.read_now.len() >= READ_NOW_MAX {
            self.read_now.clear();
        }
        self.read_now.insert(number);
    }

    /// Returns whether this request is known to have read the document: then it has not expired.
    pub fn has_read(&self, number: u64) -> bool {
        self.read_now.contains(&number)
    }

    /// Closes a scan.
    pub fn close(&mut self, id: ScanId) {
        if let Some(OpenScan { documents, part: Part::Leading, .. }) = self.open.remove(&id.0) {
            self.examined = documents.examined();
        }
    }

    /// Returns the figures of the leading collection's scan.
    pub fn examined(&self) -> Examined {
        let leading = self.open.values().find(|scan| scan.part == Part::Leading);
        leading.map_or_else(|| self.examined.clone(), |scan| scan.documents.examined())
    }

    /// Returns how many bytes the scans hold between two requests, roughly.
    pub fn bytes(&self) -> usize {
        self.open.values().map(|scan| scan.documents.bytes()).sum()
    }

    /// Ends a request: rows that were read ahead are dropped.
    pub fn rest(&mut self) {
        self.read_now.clear();
        self.open.values_mut().for_each(|scan| scan.documents.rest());
    }
}
