//! How a command finds its documents, as `explain` shows it: the plan that was chosen, those that were not, and what
//! running it examines.
//!
//! Nothing is written: of an update or a delete only the search is shown. All figures are of documents that have not expired,
//! so that they do not reveal whether the purge has run (T14).

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument, Value, ValueRef};
use engine::collection::Collection;
use engine::find::{self, AccessPath, Examined, Plan, PlanRequest, PlannedIndex};
use mql::Context;
use mql::filter::{Filter, Settings};
use mql::index::Hint;
use mql::pipeline::Find;
use mql::sort::Sort;
use mql::update::Update;
use storage::Direction;

use crate::access::PipelineCursor;
use crate::access::executor::Executor;
use crate::protocol::error::Result;
use crate::protocol::reply::list;
use crate::protocol::verbosity::Verbosity;

/// The memory limit of a sort, as tools expect to read it.
const SORT_BYTES_MAX: i32 = 104_857_600;

/// The part of a command that `explain` examines.
pub(crate) struct ExplainRequest {
    pub(crate) namespace: String,
    pub(crate) collection: Option<Arc<Collection>>,
    pub(crate) filter: Arc<Filter>,
    /// The filter as it was written.
    pub(crate) conditions: Document,
    pub(crate) sort: Option<(Arc<Sort>, Document)>,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) projection: Option<Document>,
    /// How the filter is read.
    pub(crate) language: Settings,
    pub(crate) hint: Option<Hint>,
    pub(crate) purpose: Purpose,
}

/// The purpose of the documents that are found.
pub(crate) enum Purpose {
    /// They are shown.
    Find,
    /// They are counted.
    Count,
    /// They are changed.
    Update { update: Box<Update>, upsert: bool },
    /// They are deleted.
    Delete,
}

/// The figures of running a plan.
#[derive(Debug, Default)]
pub(crate) struct Execution {
    examined: Examined,
    /// Documents that matched within the limit.
    found: u64,
    /// Of those, documents that an update would change.
    changed: u64,
    /// How long it took.
    millis: i32,
}

impl ExplainRequest {
    /// Returns the plan of the command; none if the collection does not exist.
    pub(crate) fn plan(&self, executor: &Executor) -> Result<Option<Plan>> {
        let Some(collection) = &self.collection else { return Ok(None) };
        let sort = self.sort.as_ref().map(|(sort, _)| &**sort);
        let limit = self.limit.map(|limit| limit.saturating_add(self.skip));
        let (collation, hint) = (&self.language.collation, self.hint.as_ref());
        executor.read(&[collection], |reading| {
            let request = PlanRequest { filter: &self.filter, sort, limit, collation, hint };
            Ok(Some(find::plan(reading, collection, &request)?))
        })
    }

    /// Returns the search of the command, as a `find`. A count searches everything and cuts the number.
    pub(crate) fn as_find(&self) -> Find<'_> {
        let counts = matches!(self.purpose, Purpose::Count);
        Find {
            filter: self.conditions.view(),
            sort: self.sort.as_ref().map(|(_, sort)| sort.view()),
            skip: if counts { 0 } else { self.skip },
            limit: if counts { None } else { self.limit },
            projection: None,
        }
    }

    /// Runs that `find` to its end, and changes nothing.
    pub(crate) fn execute(
        &self,
        mut pipeline_cursor: PipelineCursor,
        executor: &Executor,
        context: &mut Context,
    ) -> Result<Execution> {
        let started = tokio::time::Instant::now();
        let mut execution = Execution::default();
        pipeline_cursor.each(executor, context, |document, context| {
            execution.found += 1;
            if let Purpose::Update { update, .. } = &self.purpose
                && update.apply(document, Some(&self.filter), false, context)?.is_some()
            {
                execution.changed += 1;
            }
            Ok(())
        })?;
        if matches!(self.purpose, Purpose::Count) {
            execution.found = execution.found.saturating_sub(self.skip).min(self.limit.unwrap_or(u64::MAX));
        }
        execution.examined = pipeline_cursor.examined();
        execution.millis = i32::try_from(started.elapsed().as_millis()).unwrap_or(i32::MAX);
        Ok(execution)
    }

    /// `queryPlanner`, and `executionStats` if it was run.
    pub(crate) fn to_document(
        &self,
        plan: Option<&Plan>,
        execution: Option<&Execution>,
        verbosity: Verbosity,
    ) -> Document {
        let rejected = plan.iter().flat_map(|plan| &plan.rejected).map(fetch);
        let mut planner = Document::new()
            .with("namespace", self.namespace.as_str())
            .with("parsedQuery", parsed(self.conditions.view()))
            .with("indexFilterSet", false);
        if !self.language.collation.is_simple() {
            planner.push("collation", self.language.collation.to_document());
        }
        planner.push("maxIndexedOrSolutionsReached", false);
        planner.push("maxIndexedAndSolutionsReached", false);
        planner.push("maxScansToExplodeReached", false);
        planner.push("winningPlan", self.stages(plan, None));
        planner.push("rejectedPlans", list(rejected));
        let mut document = Document::new().with("queryPlanner", planner);
        if let Some(execution) = execution {
            document.push("executionStats", self.execution_stats(plan, execution, verbosity));
        }
        document
    }

    fn execution_stats(&self, plan: Option<&Plan>, execution: &Execution, verbosity: Verbosity) -> Document {
        let documents = if self.counts_entries(plan) { 0 } else { execution.examined.documents };
        let mut stats = Document::new()
            .with("executionSuccess", true)
            .with("nReturned", number(self.returned(execution)))
            .with("executionTimeMillis", execution.millis)
            .with("totalKeysExamined", number(execution.examined.keys()))
            .with("totalDocsExamined", number(documents))
            .with("executionStages", self.stages(plan, Some(execution)));
        if verbosity == Verbosity::AllPlans {
            stats.push("allPlansExecution", Value::Array(Vec::new()));
        }
        stats
    }

    fn returned(&self, execution: &Execution) -> u64 {
        match self.purpose {
            Purpose::Find => execution.found,
            Purpose::Count => 1,
            Purpose::Update { .. } | Purpose::Delete => 0,
        }
    }

    /// Returns the stages from the collection up to the command, each around the one below it.
    fn stages(&self, plan: Option<&Plan>, execution: Option<&Execution>) -> Document {
        let mut tree = StageTree { execution, top: Document::new() };
        match plan {
            None => tree.around("EOF", Document::new()),
            Some(plan) => {
                self.path(plan, &mut tree);
                self.order(plan, &mut tree);
            }
        }
        let number = |count: fn(&Execution) -> u64| execution.map(|execution| number(count(execution)));
        let mut last = Document::new();
        let name = match &self.purpose {
            Purpose::Find => return tree.top,
            Purpose::Count => {
                last.fields_mut()
                    .extend(number(|execution| execution.found).map(|it| ("nCounted".to_owned(), it)));
                "COUNT"
            }
            Purpose::Delete => {
                let count = number(|execution| execution.found);
                last.fields_mut().extend(count.map(|it| ("nWouldDelete".to_owned(), it)));
                "DELETE"
            }
            Purpose::Update { upsert, .. } => {
                if let Some(execution) = execution {
                    last.push("nMatched", self::number(execution.found));
                    last.push("nWouldModify", self::number(execution.changed));
                    last.push("nWouldUpsert", i32::from(*upsert && execution.found == 0));
                }
                "UPDATE"
            }
        };
        tree.around(name, last);
        tree.top
    }

    /// Whether the command examines nothing but entries of an index.
    fn counts_entries(&self, plan: Option<&Plan>) -> bool {
        matches!(self.purpose, Purpose::Count) && plan.is_some_and(|plan| plan.covered)
    }

    /// The stages that lead to documents.
    fn path(&self, plan: &Plan, tree: &mut StageTree<'_>) {
        let examined = tree.execution.map(|execution| &execution.examined);
        let documents = examined.map(|examined| ("docsExamined".to_owned(), number(examined.documents)));
        let mut filter = Document::new();
        if !self.conditions.is_empty() {
            filter.push("filter", parsed(self.conditions.view()));
        }
        match &plan.path {
            AccessPath::Empty => tree.around("EOF", Document::new()),
            AccessPath::Id(_) => {
                let mut express = Document::new()
                    .with("keyPattern", Document::new().with("_id", 1))
                    .with("indexName", "_id_");
                if examined.is_some() {
                    express.push("keysExamined", number(examined.map_or(0, |it| it.documents)));
                    express.fields_mut().extend(documents);
                }
                tree.around("EXPRESS_IXSCAN", express);
            }
            AccessPath::CollectionScan(order) => {
                let mut scan = filter.with("direction", direction(*order));
                scan.fields_mut().extend(documents);
                tree.around("COLLSCAN", scan);
            }
            AccessPath::IndexScans(_) if self.counts_entries(Some(plan)) => {
                tree.over_indexes("COUNT_SCAN", &plan.indexes);
            }
            AccessPath::IndexScans(_) => {
                tree.over_indexes("IXSCAN", &plan.indexes);
                filter.fields_mut().extend(documents);
                tree.around("FETCH", filter);
            }
        }
    }

    /// The stages that put documents in order, cut them and show parts of them.
    fn order(&self, plan: &Plan, tree: &mut StageTree<'_>) {
        let mut limit = self.limit;
        if let Some((_, pattern)) = self.sort.as_ref().filter(|_| !plan.sorted) {
            let mut sort =
                Document::new().with("sortPattern", pattern.clone()).with("memLimit", SORT_BYTES_MAX);
            if let Some(limit) = limit.take() {
                sort.push("limitAmount", number(limit.saturating_add(self.skip)));
            }
            tree.around("SORT", sort.with("type", "simple"));
        }
        if self.skip > 0 {
            tree.around("SKIP", Document::new().with("skipAmount", number(self.skip)));
        }
        if let Some(projection) = &self.projection {
            let name = if is_simple(projection) { "PROJECTION_SIMPLE" } else { "PROJECTION_DEFAULT" };
            tree.around(name, Document::new().with("transformBy", projection.clone()));
        }
        if let Some(limit) = limit.filter(|_| matches!(self.purpose, Purpose::Find | Purpose::Count)) {
            tree.around("LIMIT", Document::new().with("limitAmount", number(limit)));
        }
    }
}

/// A tree of stages, built from the bottom up.
struct StageTree<'a> {
    execution: Option<&'a Execution>,
    top: Document,
}

impl StageTree<'_> {
    /// Begins with the scans of indexes: one, or several that are united.
    fn over_indexes(&mut self, name: &str, indexes: &[PlannedIndex]) {
        let mut scans = Vec::new();
        for (at, used) in indexes.iter().enumerate() {
            let mut scan = index_scan(used);
            if let Some(keys) = self.execution.and_then(|execution| execution.examined.keys_by_scan.get(at)) {
                scan.push("keysExamined", number(*keys));
            }
            scans.push(scan);
        }
        match <[Document; 1]>::try_from(scans) {
            Ok([scan]) => self.around(name, scan),
            Err(scans) => {
                let scans = scans.into_iter().map(|scan| {
                    let mut stage = Document::new().with("stage", name);
                    stage.fields_mut().extend(scan);
                    stage
                });
                self.around("OR", Document::new().with("inputStages", list(scans)));
            }
        }
    }

    /// Puts a stage on top of the others.
    fn around(&mut self, name: &str, fields: Document) {
        let mut stage = Document::new().with("stage", name);
        if let Some(execution) = self.execution {
            stage.push("nReturned", number(execution.found));
        }
        stage.fields_mut().extend(fields);
        let below = std::mem::take(&mut self.top);
        if !below.is_empty() {
            stage.push("inputStage", below);
        }
        self.top = stage;
    }
}

fn fetch(used: &PlannedIndex) -> Document {
    let mut scan = Document::new().with("stage", "IXSCAN");
    scan.fields_mut().extend(index_scan(used));
    Document::new().with("stage", "FETCH").with("inputStage", scan)
}

fn index_scan(used: &PlannedIndex) -> Document {
    let index = used.index();
    let spec = index.map_or_else(Document::new, |index| index.spec.to_document());
    let option = |name: &str| spec.get(name).cloned();
    let is_set = |name: &str| option(name) == Some(Value::Bool(true));
    Document::new()
        .with("keyPattern", option("key").unwrap_or(Value::Null))
        .with("indexName", option("name").unwrap_or(Value::Null))
        .with("isMultiKey", index.is_some_and(|index| index.multikey))
        .with("isUnique", is_set("unique"))
        .with("isSparse", is_set("sparse"))
        .with("isPartial", spec.contains("partialFilterExpression"))
        .with("indexVersion", 2)
        .with("direction", direction(used.direction))
        .with("indexBounds", used.bounds.clone())
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
    }
}

/// Returns a filter in its long form: every condition with its operator, several under `$and`.
fn parsed(filter: DocumentRef<'_>) -> Document {
    let mut all: Vec<Document> = Vec::new();
    for (name, value) in filter.iter() {
        match value {
            ValueRef::Document(tests)
                if !name.starts_with('$')
                    && tests.iter().next().is_some_and(|(operator, _)| operator.starts_with('$')) =>
            {
                all.extend(tests.iter().map(|(operator, operand)| {
                    Document::new().with(name, Document::new().with(operator, operand.to_value()))
                }));
            }
            ValueRef::Regex(_) => {
                all.push(Document::new().with(name, Document::new().with("$regex", value.to_value())));
            }
            value if name.starts_with('$') => all.push(Document::new().with(name, value.to_value())),
            value => all.push(Document::new().with(name, Document::new().with("$eq", value.to_value()))),
        }
    }
    match all.len() {
        0 => Document::new(),
        1 => all.remove(0),
        _ => Document::new().with("$and", list(all)),
    }
}

/// Whether a projection only picks whole fields.
fn is_simple(projection: &Document) -> bool {
    projection
        .iter()
        .all(|(name, value)| !name.contains('.') && crate::protocol::fields::truth(value.view()).is_some())
}

/// Returns a count as clients read it: small where it is small.
fn number(count: u64) -> Value {
    i32::try_from(count).map_or_else(|_| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)), Value::Int32)
}

/// Returns documents as the client sent them, for a command that `explain` shows.
pub(crate) fn shown(stages: &[RawDocument]) -> Vec<Value> {
    stages.iter().map(|stage| Value::Document(stage.to_document())).collect()
}
