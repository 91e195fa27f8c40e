//! Queries: which way they take to their items, and page after page of what they find.
//!
//! ```text
//!  Query --analyse--> condition, order --choose--> a source of living items --take--> query::Run --> rows
//!                                                        |                                |
//!                                                     position ----------------------- resume ----> token
//! ```
//!
//! What a filter says is turned into places of the index (`query::Analysis`); [`choose`] picks what to walk along;
//! [`numbers`], [`by_path`], [`by_composite`], [`by_stamp`] and [`sources`] walk; [`refine`] makes the order of an index
//! the order that was asked for; [`pages`] takes items into a page. The gate decides who lives from the entry where it
//! can and from the item's header where it must; the dead are neither shown nor counted (T14).
//!
//! A page is a request of its own, with its own snapshot and `now` (T16). Between two pages items may come and go, the
//! purge may run, the indexing policy may change and the server may restart: an item that lives throughout and does not
//! change is shown exactly once.

mod by_composite;
mod by_path;
mod by_stamp;
mod choose;
mod desk;
mod numbers;
mod pages;
mod refine;
mod report;
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
use crate::charge::Charge;
use crate::container::{Container, Partition};
use crate::continuation::QueryToken;
use crate::error::Result;
use crate::gate::View;
use crate::operation::{QueryPage, QueryRequest, Scope};
use choose::{Purpose, Wish};
use desk::Desk;
use pages::{Outcome, Paging};
use tuning::Tuning;
use work::Work;

/// What a listing without a query asks for.
static EVERYTHING: LazyLock<Query> =
    LazyLock::new(|| query::parse("SELECT * FROM c", &[], &Dialect::default()).expect("a query of ours"));

impl Engine {
    /// One page of a query's rows, or of all items.
    pub fn query(&self, container: &Container, request: &QueryRequest<'_>) -> Result<QueryPage> {
        self.tuned_query(container, request, Tuning::default())
    }

    /// The same, unless it takes longer than somebody can wait on whose thread others wait, too, or fails: then none, and
    /// nothing was charged.
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
        let tolls = partitions.iter().map(|partition| self.admit(container, partition));
        let tolls = tolls.collect::<Result<Vec<_>>>()?;
        let views = View::open_all(&*self.store, &partitions)?;
        let (range, now) = match views.first() {
            Some(view) => (view.range, view.gate.now),
            None => (container.partitions[0].range_lsn(), self.store.now()?),
        };
        let context = Context::new(now.millis(), request.seed).with_memory(self.options.query_memory_bytes);
        let context = match tuning.steps {
            Some(steps) => context.with_budget(steps),
            None => context,
        };
        let work = Work::new(Arc::clone(&request.cancel), tuning);
        let desk = |(partition, view)| Desk::new(container, partition, view, &work);
        let desks = partitions.iter().map(|partition| &**partition).zip(&views);
        let desks = desks.map(desk).collect::<Result<Vec<_>>>()?;
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
        let Outcome { answer, token, metrics, report, touches } = paging.page(&desks, token)?;
        let charge = Charge::query(&metrics, partitions.len() as u64);
        // Which of them the work was done in is not told apart; most pages are of one.
        let share = Charge(charge.0 / tolls.len().max(1) as u64);
        for toll in tolls {
            toll.pay(share);
        }
        Ok(QueryPage {
            rows: answer,
            continuation: token.map(|token| token.to_string()),
            charge,
            range,
            metrics,
            index: report,
            touches,
        })
    }
}

/// Returns what tokens of a query are bound to: what its rows' positions depend on, and the part of the container that it
/// reads, in whatever way a request names it.
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

/// What a query wants of a partition.
fn wish<'q>(query: &Query, analysis: &'q Analysis, scope: &Scope, desk: &Desk<'_>) -> Wish<'q> {
    let definition = &desk.container.definition.partition_key;
    let range = scope.range.as_ref().map(|range| desk.partition.range.intersect(range));
    let range = range.filter(|range| *range != desk.partition.range);
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
    Wish {
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

/// A condition on the items of a partition key, and whether it says all of that.
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
    let mut told = true;
    let mut parts = match condition {
        Condition::Nothing => return (Condition::Nothing, true),
        Condition::Everything => Vec::new(),
        Condition::All(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    for (path, part) in definition.paths.iter().zip(key.parts()) {
        let path: Vec<Step> = path.segments().iter().cloned().map(Step::Name).collect();
        match (part, part.view()) {
            (KeyPart::Number(number), _) if number.abs() >= EXACT => told = false,
            (_, Some(value)) => parts.push(Condition::Leaf(Leaf::equal(path, value))),
            (_, None) => parts.push(Condition::Leaf(Leaf::no_scalar(path))),
        }
    }
    let condition = match parts.len() {
        0 => Condition::Everything,
        1 => parts.swap_remove(0),
        _ => Condition::All(parts),
    };
    (condition, told)
}

/// The keys of `known` that lie within the prefix `key`, or `key` itself.
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
