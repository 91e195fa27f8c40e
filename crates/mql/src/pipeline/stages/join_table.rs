//! The hash table of a `$lookup`: the other collection by the joined field, read once instead of once for each row.
//!
//! The table is an index for one request: keys and spans are those of a stored index on the field, so it finds what such an
//! index would find, and the whole condition is checked on every document found. So a join by table has the results of a
//! scan for each row, in the same order. It is made only where no stored index serves the join, and only within a bound:
//! larger collections are joined by scans.

use std::collections::{BTreeMap, BTreeSet};

use bson::{Collation, Document, Timestamp, Value};

use crate::context::Context;
use crate::error::Result;
use crate::filter::Filter;
use crate::index::{self, Available, Candidate, IndexSpec, UnknownOptions};
use crate::pipeline::row::Body;

/// How many bytes a table takes at most, if a stage may keep that much.
const TABLE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The bytes of an entry beside its key.
const ENTRY_BYTES: usize = 64;

/// The time of a request: a table is only valid within its request.
pub(super) type RequestTime = (i64, Timestamp);

/// Returns the time of a request.
pub(super) fn request_time(context: &Context) -> RequestTime {
    (context.now_millis, context.timestamp)
}

/// Documents by the keys of one field.
#[derive(Debug)]
pub(super) struct JoinTable {
    index: IndexSpec,
    /// In the order in which they came.
    documents: Vec<Body>,
    by_key: BTreeMap<Vec<u8>, Vec<usize>>,
    multikey: bool,
    cut: bool,
    bytes: usize,
}

impl JoinTable {
    /// Creates an empty table by that field; none if the field cannot be indexed.
    pub(super) fn new(field: &str, collation: &Collation) -> Option<JoinTable> {
        let key = Document::new().with(field, 1);
        let spec = Document::new().with("key", key).with("name", "join");
        let index = IndexSpec::parse_in(spec.view(), UnknownOptions::Refused, collation).ok()?;
        let (documents, by_key) = (Vec::new(), BTreeMap::new());
        Some(JoinTable { index, documents, by_key, multikey: false, cut: false, bytes: 0 })
    }

    /// Adds a document; returns false if there is no memory for it, or if it has no key.
    pub(super) fn add(&mut self, document: Body, context: &Context) -> Result<bool> {
        let Some(entries) = self.index.entries(document.view(), context)? else { return Ok(false) };
        (self.multikey, self.cut) = (self.multikey || entries.multikey, self.cut || entries.cut);
        let keys = entries.keys.iter().map(|key| key.len() + ENTRY_BYTES).sum::<usize>();
        self.bytes += size_of::<Body>() + document.bytes() + keys;
        let place = self.documents.len();
        for key in entries.keys {
            self.by_key.entry(key).or_default().push(place);
        }
        self.documents.push(document);
        Ok(self.bytes <= TABLE_BYTES_MAX.min(context.stage_bytes_max))
    }

    /// Returns whether the table can find the documents that match a filter.
    pub(super) fn serves(&self, filter: &Filter, collation: &Collation) -> Result<bool> {
        Ok(self.plan(filter, collation)?.is_some())
    }

    /// Returns the spans of keys of the documents that match a filter; none if the table cannot find them.
    fn plan(&self, filter: &Filter, collation: &Collation) -> Result<Option<Candidate>> {
        let available = Available { spec: &self.index, multikey: self.multikey, cut: self.cut };
        Ok(index::plan(filter, None, collation, &[available], None)?.into_iter().next())
    }

    /// Returns the documents that match a filter; none if the table cannot find them.
    pub(super) fn find(
        &self,
        filter: &Filter,
        collation: &Collation,
        context: &Context,
    ) -> Result<Option<Vec<Value>>> {
        let Some(candidate) = self.plan(filter, collation)? else { return Ok(None) };
        let mut places = BTreeSet::<usize>::new();
        for span in &candidate.spans {
            for (_, found) in self.by_key.range(span.lower.clone()..span.upper.clone()) {
                context.spend(found.len() as u64)?;
                places.extend(found.iter().copied());
            }
        }
        let mut found = Vec::new();
        for place in places {
            let document = &self.documents[place];
            if filter.matches(document.view(), context)? {
                found.push(Value::Document(document.clone().into_tree()));
            }
        }
        Ok(Some(found))
    }
}
