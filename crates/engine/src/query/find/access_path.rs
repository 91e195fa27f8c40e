//! Access paths: the documents of a collection that a query reads, and their order.

use bson::Value;
use mql::index::Span;
use storage::Direction;

/// Which documents are read, and in which order.
#[derive(Debug, Clone)]
pub enum AccessPath {
    /// No document: the collection does not exist, or the conditions contradict each other.
    Empty,
    /// The document with this `_id`.
    Id(Value),
    /// All documents, in the order of their insertion or against it.
    CollectionScan(Direction),
    /// The documents that scans of indexes lead to, one scan after the other.
    IndexScans(Vec<IndexScan>),
}

/// The documents that have keys in these spans of an index, in the order of the keys or against it.
#[derive(Debug, Clone)]
pub struct IndexScan {
    /// The number of the index.
    pub index: u32,
    /// The spans, in the order in which they are read.
    pub spans: Vec<Span>,
    /// The direction in which each span is read.
    pub direction: Direction,
}

impl IndexScan {
    /// Returns the position of the span that holds a key.
    pub(super) fn span_of(&self, key: &[u8]) -> Option<usize> {
        let holds = |span: &Span| *span.lower <= *key && (span.upper.is_empty() || *key < *span.upper);
        self.spans.iter().position(holds)
    }

    /// Returns whether another key, in its span, is read before this one. Spans are read in the order of the list; within
    /// one, keys come in their order or against it.
    pub(super) fn reads_before(
        &self,
        (other_span, other): (Option<usize>, &[u8]),
        (span, key): (Option<usize>, &[u8]),
    ) -> bool {
        match (other_span, span) {
            (None, _) => false,
            (Some(other_span), Some(span)) if other_span == span => match self.direction {
                Direction::Forward => other < key,
                Direction::Backward => other > key,
            },
            (other_span, span) => other_span < span,
        }
    }
}
