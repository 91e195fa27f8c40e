//! SQL queries: the plan by which they find their items, and their results, page after page.
//!
//! ```text
//!  Query --analyse--> condition, order --choose--> a source of living items --take--> query::Run --> rows
//!                                                        |                                |
//!                                                     position ----------------------- resume ----> token
//! ```
//!
//! `query::Analysis` turns a filter into ranges of the index; [`choose`] picks a plan; [`numbers`], [`by_path`],
//! [`by_composite`], [`by_timestamp`] and [`sources`] read the entries; [`refine`] turns the order of an index into the
//! requested order; [`pages`] takes items into a page. The gate decides which items are living, from the entry where
//! it can and from the item's header where it must; expired items are neither shown nor counted (T14).
//!
//! A page is a request of its own, with its own snapshot and `now` (T16). Between two pages items may be written and
//! expire, the purge may run, the indexing policy may change and the server may restart: an item that stays living
//! and unchanged throughout is returned exactly once.

mod by_composite;
mod by_path;
mod by_timestamp;
mod choose;
mod composite_list;
mod context;
pub mod find;
mod item_reader;
mod numbers;
mod pages;
mod probe;
mod refine;
mod report;
pub(crate) mod request;
mod row;
mod sources;
#[cfg(test)]
mod tests;
mod tuning;
mod work;

use std::sync::{Arc, LazyLock};

use document::{KeyPart, PartitionKey, PartitionKeyDefinition, fingerprint};
use query::{Analysis, Condition, Context, Dialect, Leaf, Query, Sorting, Step};

use crate::Engine;
use crate::access::continuation::QueryToken;
use crate::access::gate::View;
use crate::catalog::container::{Container, Partition};
use crate::query::request::{QueryPage, QueryRequest};
use crate::types::charge::Charge;
use crate::types::error::Result;
use crate::types::request::Scope;
use choose::{PartitionQuery, Purpose};
use context::QueryContext;
use pages::{Outcome, Paging};
use tuning::Tuning;
use work::Work;

/// The query of a listing.
static EVERYTHING: LazyLock<Query> =
    LazyLock::new(|| query::parse("SELECT * FROM c", &[], &Dialect::default()).expect("a query of ours"));

impl Engine {
    /// Returns one page of a query's rows, or of all items.
    pub fn query(&self, container: &Container, request: &QueryRequest<'_>) -> Result<QueryPage> {
        self.tuned_query(container, request, Tuning::default())
    }

    /// Does the same with a small limit of work, for a thread on which other requests wait too. Returns `None` if the
    /// limit is exceeded or the query fails; then nothing was charged.
    pub fn query_briefly(&self, container: &Container, request: &QueryRequest<'_>) -> Option<QueryPage> {
        self.tuned_query(container, request, Tuning::brief()).ok()
    }

    fn tuned_query(
        &self,
        container: &Container,
        request: &QueryRequest<'_>,
        tuning: Tuning,
    ) -> Result<QueryPage> {
        let query = request.query.unwrap_or(&EVERYTHING);
        let partitions: Vec<_> = container.partitions_in(&request.scope).into_iter().cloned().collect();
        let binding = binding(query, &request.scope, &partitions);
        let token = request.continuation.as_deref();
        let token = token.map(|text| QueryToken::parse(text, binding)).transpose()?;
        let pending_charges = partitions.iter().map(|partition| self.admit(container, partition));
        let pending_charges = pending_charges.collect::<Result<Vec<_>>>()?;
        let views = View::open_all(&*self.store, &partitions)?;
        let (range, now) = match views.first() {
            Some(view) => (view.range, view.gate.now),
            None => (container.partitions[0].range_lsn(), self.store.now()?),
        };
        let context = Context::new(now.millis(), request.seed).with_memory(self.options.query_memory_bytes);
        let context = match tuning.steps {
            Some(steps) => context.with_budget(steps),
            None => context.with_cancelled(Arc::clone(&request.cancel)),
        };
        let work = Work::new(Arc::clone(&request.cancel), tuning);
        let ctx = |(partition, view)| QueryContext::new(container, partition, view, &work);
        let contexts = partitions.iter().map(|partition| &**partition).zip(&views);
        let contexts = contexts.map(ctx).collect::<Result<Vec<_>>>()?;
        let analysis = query.analyse(&container.definition.partition_key);
        let paging = Paging {
            container,
            query,
            request,
            analysis: &analysis,
            context: &context,
            work: &work,
            binding,
        };
        let Outcome { answer, token, metrics, report, renewals } = paging.page(&contexts, token)?;
        let charge = Charge::query(&metrics, partitions.len() as u64);
        // The charge is not tracked by partition; most pages read only one.
        let share = Charge(charge.0 / pending_charges.len().max(1) as u64);
        for pending in pending_charges {
            pending.pay(share);
        }
        Ok(QueryPage {
            rows: answer,
            continuation: token.map(|token| token.to_string()),
            charge,
            range,
            metrics,
            index: report,
            renewals,
        })
    }
}

/// Returns the binding of a query's tokens: a hash of what its rows' positions depend on, and of the part of the
/// container that it reads, however a request names it.
fn binding(query: &Query, scope: &Scope, partitions: &[Arc<Partition>]) -> u64 {
    let mut bytes = query.resume_fingerprint().to_be_bytes().to_vec();
    for partition in partitions {
        let range =
            scope.range.as_ref().map_or(partition.range.clone(), |range| range.intersect(&partition.range));
        bytes.extend_from_slice(&partition.id.0.to_be_bytes());
        bytes.extend_from_slice(range.to_string().as_bytes());
    }
    if let Some(key) = &scope.key {
        bytes.push(0);
        key.encode(&mut bytes);
    }
    fingerprint(&bytes)
}

/// Returns the query of one partition.
fn partition_query<'q>(
    query: &Query,
    analysis: &'q Analysis,
    scope: &Scope,
    ctx: &QueryContext<'_>,
) -> PartitionQuery<'q> {
    let definition = &ctx.container.definition.partition_key;
    let range = scope.range.as_ref().map(|range| ctx.partition.range.intersect(range));
    let range = range.filter(|range| *range != ctx.partition.range);
    let (condition, scope_is_told) = match &scope.key {
        None => (analysis.condition.clone(), true),
        Some(key) => within(&analysis.condition, definition, key),
    };
    let keys = analysis.access.keys.clone();
    let purpose = match analysis.sorting {
        _ if query.counts_only() => Purpose::Count,
        Sorting::Unsorted if query.is_streaming(query::Arrival::Any) => Purpose::Show,
        _ => Purpose::Gather,
    };
    PartitionQuery {
        condition,
        exact: analysis.exact && scope_is_told && range.is_none(),
        unscoped: scope.key.is_none() && range.is_none(),
        keys: match &scope.key {
            Some(key) => Some(narrow(keys, key)),
            None => keys,
        },
        ids: analysis.access.ids.as_deref(),
        stamps: analysis.access.stamps,
        range,
        references: &analysis.references,
        purpose,
    }
}

/// Returns a condition on the items of a partition key, and whether it is exact.
fn within(
    condition: &Condition,
    definition: &PartitionKeyDefinition,
    key: &PartitionKey,
) -> (Condition, bool) {
    /// Larger numbers are not exact as parts of a key, but they are as values.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if definition.system_key {
        return (condition.clone(), false);
    }
    let mut indexed = true;
    let mut parts = match condition {
        Condition::Nothing => return (Condition::Nothing, true),
        Condition::Everything => Vec::new(),
        Condition::All(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    for (path, part) in definition.paths.iter().zip(key.parts()) {
        let path: Vec<Step> = path.segments().iter().cloned().map(Step::Name).collect();
        match (part, part.view()) {
            (KeyPart::Number(number), _) if number.abs() >= EXACT => indexed = false,
            (_, Some(value)) => parts.push(Condition::Leaf(Leaf::equal(path, value))),
            (_, None) => parts.push(Condition::Leaf(Leaf::no_scalar(path))),
        }
    }
    let condition = match parts.len() {
        0 => Condition::Everything,
        1 => parts.swap_remove(0),
        _ => Condition::All(parts),
    };
    (condition, indexed)
}

/// Returns the keys of `known` within the prefix `key`, or `key` itself.
fn narrow(known: Option<Vec<PartitionKey>>, key: &PartitionKey) -> Vec<PartitionKey> {
    match known {
        None => vec![key.clone()],
        Some(known) => {
            let longer = known.iter().filter(|other| key.is_prefix_of(other)).cloned();
            let shorter = known.iter().any(|other| other.is_prefix_of(key) && other != key);
            longer.chain(shorter.then(|| key.clone())).collect()
        }
    }
}
