//! A query request, and a page of its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use document::{ItemNumber, Value};
use query::Query;

use crate::access::renewal::SlidingRenewal;
use crate::types::charge::Charge;
use crate::types::lsn::RangeLsn;
use crate::types::request::{IndexUse, QueryMetrics, Scope};

/// The parameters of a page of a query.
#[derive(Debug, Clone)]
pub struct QueryRequest<'q> {
    /// The query; `None` lists all items as they are.
    pub query: Option<&'q Query>,
    /// The part of the container to read.
    pub scope: Scope,
    /// At most this many rows; the engine may stop earlier.
    pub max_items: usize,
    /// What follows a page of that many rows.
    pub full_page: FullPage,
    /// The token of the previous page.
    pub continuation: Option<String>,
    /// Where an ordered query begins, by the client's own values; a token takes precedence.
    pub resume_filter: Option<ResumeFilter>,
    /// The seed of `RAND`.
    pub seed: u64,
    /// Set when the client no longer waits for the answer.
    pub cancel: Arc<AtomicBool>,
}

impl<'q> QueryRequest<'q> {
    /// Requests the first page of a query over a whole container.
    pub fn new(query: Option<&'q Query>, max_items: usize) -> QueryRequest<'q> {
        QueryRequest {
            query,
            scope: Scope::default(),
            max_items,
            full_page: FullPage::default(),
            continuation: None,
            resume_filter: None,
            seed: 1,
            cancel: Arc::default(),
        }
    }
}

/// What follows a page that has as many rows as were requested, where rows come in the order in which items are read: in
/// lists, and in queries that neither sort nor join rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FullPage {
    /// A page if there are more rows, otherwise none.
    #[default]
    MayBeLast,
    /// A page unless the query's own limit is reached. It is empty if there are no more rows.
    HasSuccessor,
}

/// Cancels a request whose caller stops waiting for the answer: it holds the flag of [`QueryRequest::cancel`] and sets it
/// when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(pub Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A row of an ordered query to begin with.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumeFilter {
    /// The values of its `ORDER BY` keys; `None` is undefined.
    pub values: Vec<Option<Value>>,
    /// Its item; `None` for the first item with these values.
    pub number: Option<ItemNumber>,
    /// Whether to begin behind it.
    pub exclude: bool,
}

/// One page of a query or listing.
#[derive(Debug, Clone)]
pub struct QueryPage {
    /// The rows, each as JSON text.
    pub rows: Vec<Vec<u8>>,
    /// The token of the next page, if there may be more.
    pub continuation: Option<String>,
    /// The charge.
    pub charge: Charge,
    /// One of the ranges that were read, at the LSN that a session must have seen to see this page.
    pub range: RangeLsn,
    /// What was read for the answer; expired items are not counted (T14).
    pub metrics: QueryMetrics,
    /// The indexes that were used, and those that would have helped.
    pub index: IndexUse,
    /// The renewals that the page calls for.
    pub renewals: Vec<SlidingRenewal>,
}
