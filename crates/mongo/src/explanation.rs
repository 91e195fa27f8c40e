//! How a command finds its documents, as `explain` shows it: the way that was chosen, those that were not, and what a walk along
//! it looks at.
//!
//! Nothing is written: of an update or a delete only the looking is shown. All figures are of living documents alone, so that
//! nobody can tell from them whether the purge has run (T14).

use std::sync::Arc;

use bson::{Document, DocumentRef, RawDocument, Value, ValueRef};
use engine::collection::Collection;
use mql::filter::{Filter, Settings};
use mql::index::Hint;
use mql::pipeline::Find;
use mql::sort::Sort;
use mql::update::Update;
use mql::{Code, Context};
use storage::Direction;

use crate::access::{Answers, Examined, Plan, Used, Way, choose};
use crate::error::{Error, Result};
use crate::reply::list;
use crate::room::Room;

/// What a sort may hold in memory, as tools expect to read it.
const SORT_BYTES_MAX: i32 = 104_857_600;

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// The way.
    Planner,
    /// Also what the walk looks at.
    Execution,
    /// Also of the ways that were not chosen.
    AllPlans,
}

impl Verbosity {
    /// Reads it; the most if nothing is said.
    pub(crate) fn parse(text: Option<&str>) -> Result<Verbosity> {
        match text {
            Some("queryPlanner") => Ok(Verbosity::Planner),
            Some("executionStats") => Ok(Verbosity::Execution),
            None | Some("allPlansExecution") => Ok(Verbosity::AllPlans),
            Some(other) => Err(Error::new(
                Code::BAD_VALUE,
                format!("Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."),
            )),
        }
    }
}

/// What a command asks of its collection.
pub(crate) struct Inquiry {
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

/// What is done with the documents that are found.
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

/// What a walk came to.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    examined: Examined,
    /// Documents that matched and were wanted.
    found: u64,
    /// Of those, documents that an update would change.
    changed: u64,
    /// How long it took.
    millis: i32,
}

impl Inquiry {
    /// The way that the command takes; none if the collection does not exist.
    pub(crate) fn plan(&self, room: &Room) -> Result<Option<Plan>> {
        let Some(collection) = &self.collection else { return Ok(None) };
        let sort = self.sort.as_ref().map(|(sort, _)| &**sort);
        let limit = self.limit.map(|limit| limit.saturating_add(self.skip));
        let (collation, hint) = (&self.language.collation, self.hint.as_ref());
        room.read(&[collection], |reading| {
            choose(reading, collection, &self.filter, sort, limit, collation, hint).map(Some)
        })
    }

    /// What the command asks of its collection, as a `find`. A count counts everything and cuts the number.
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

    /// Goes through the answers of that `find`, and changes nothing.
    pub(crate) fn walk(&self, mut answers: Answers, room: &Room, context: &mut Context) -> Result<Walked> {
        let started = tokio::time::Instant::now();
        let mut walked = Walked::default();
        answers.each(room, context, |document, context| {
            walked.found += 1;
            if let Purpose::Update { update, .. } = &self.purpose
                && update.apply(document, Some(&self.filter), false, context)?.is_some()
            {
                walked.changed += 1;
            }
            Ok(())
        })?;
        if matches!(self.purpose, Purpose::Count) {
            walked.found = walked.found.saturating_sub(self.skip).min(self.limit.unwrap_or(u64::MAX));
        }
        walked.examined = answers.examined();
        walked.millis = i32::try_from(started.elapsed().as_millis()).unwrap_or(i32::MAX);
        Ok(walked)
    }

    /// `queryPlanner`, and `executionStats` if the way was walked.
    pub(crate) fn told(
        &self,
        plan: Option<&Plan>,
        walked: Option<&Walked>,
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
        let mut told = Document::new().with("queryPlanner", planner);
        if let Some(walked) = walked {
            told.push("executionStats", self.execution(plan, walked, verbosity));
        }
        told
    }

    fn execution(&self, plan: Option<&Plan>, walked: &Walked, verbosity: Verbosity) -> Document {
        let documents = if self.counts_entries(plan) { 0 } else { walked.examined.documents };
        let mut stats = Document::new()
            .with("executionSuccess", true)
            .with("nReturned", number(self.returned(walked)))
            .with("executionTimeMillis", walked.millis)
            .with("totalKeysExamined", number(walked.examined.keys()))
            .with("totalDocsExamined", number(documents))
            .with("executionStages", self.stages(plan, Some(walked)));
        if verbosity == Verbosity::AllPlans {
            stats.push("allPlansExecution", Value::Array(Vec::new()));
        }
        stats
    }

    fn returned(&self, walked: &Walked) -> u64 {
        match self.purpose {
            Purpose::Find => walked.found,
            Purpose::Count => 1,
            Purpose::Update { .. } | Purpose::Delete => 0,
        }
    }

    /// The stages from the collection up to the command, each around the one below it.
    fn stages(&self, plan: Option<&Plan>, walked: Option<&Walked>) -> Document {
        let mut tree = Tree { walked, top: Document::new() };
        match plan {
            None => tree.around("EOF", Document::new()),
            Some(plan) => {
                self.way(plan, &mut tree);
                self.order(plan, &mut tree);
            }
        }
        let number = |count: fn(&Walked) -> u64| walked.map(|walked| number(count(walked)));
        let mut last = Document::new();
        let name = match &self.purpose {
            Purpose::Find => return tree.top,
            Purpose::Count => {
                last.fields_mut().extend(number(|walked| walked.found).map(|it| ("nCounted".to_owned(), it)));
                "COUNT"
            }
            Purpose::Delete => {
                let count = number(|walked| walked.found);
                last.fields_mut().extend(count.map(|it| ("nWouldDelete".to_owned(), it)));
                "DELETE"
            }
            Purpose::Update { upsert, .. } => {
                if let Some(walked) = walked {
                    last.push("nMatched", self::number(walked.found));
                    last.push("nWouldModify", self::number(walked.changed));
                    last.push("nWouldUpsert", i32::from(*upsert && walked.found == 0));
                }
                "UPDATE"
            }
        };
        tree.around(name, last);
        tree.top
    }

    /// Whether nothing is looked at but entries of an index.
    fn counts_entries(&self, plan: Option<&Plan>) -> bool {
        matches!(self.purpose, Purpose::Count) && plan.is_some_and(|plan| plan.covered)
    }

    /// The stages that lead to documents.
    fn way(&self, plan: &Plan, tree: &mut Tree<'_>) {
        let examined = tree.walked.map(|walked| &walked.examined);
        let documents = examined.map(|examined| ("docsExamined".to_owned(), number(examined.documents)));
        let mut filter = Document::new();
        if !self.conditions.is_empty() {
            filter.push("filter", parsed(self.conditions.view()));
        }
        match &plan.way {
            Way::Nothing => tree.around("EOF", Document::new()),
            Way::Id(_) => {
                let mut express = Document::new()
                    .with("keyPattern", Document::new().with("_id", 1))
                    .with("indexName", "_id_");
                if examined.is_some() {
                    express.push("keysExamined", number(examined.map_or(0, |it| it.documents)));
                    express.fields_mut().extend(documents);
                }
                tree.around("EXPRESS_IXSCAN", express);
            }
            Way::Natural(way) => {
                let mut scan = filter.with("direction", direction(*way));
                scan.fields_mut().extend(documents);
                tree.around("COLLSCAN", scan);
            }
            Way::Indexes(_) if self.counts_entries(Some(plan)) => {
                tree.over_indexes("COUNT_SCAN", &plan.indexes);
            }
            Way::Indexes(_) => {
                tree.over_indexes("IXSCAN", &plan.indexes);
                filter.fields_mut().extend(documents);
                tree.around("FETCH", filter);
            }
        }
    }

    /// The stages that put documents in order, cut them and show parts of them.
    fn order(&self, plan: &Plan, tree: &mut Tree<'_>) {
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

/// Stages in the making, from the bottom up.
struct Tree<'a> {
    walked: Option<&'a Walked>,
    top: Document,
}

impl Tree<'_> {
    /// Begins with the scans of indexes: one, or several that are united.
    fn over_indexes(&mut self, name: &str, indexes: &[Used]) {
        let mut scans = Vec::new();
        for (leg, used) in indexes.iter().enumerate() {
            let mut scan = index_scan(used);
            if let Some(keys) = self.walked.and_then(|walked| walked.examined.keys_by_leg.get(leg)) {
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
        if let Some(walked) = self.walked {
            stage.push("nReturned", number(walked.found));
        }
        stage.fields_mut().extend(fields);
        let below = std::mem::take(&mut self.top);
        if !below.is_empty() {
            stage.push("inputStage", below);
        }
        self.top = stage;
    }
}

fn fetch(used: &Used) -> Document {
    let mut scan = Document::new().with("stage", "IXSCAN");
    scan.fields_mut().extend(index_scan(used));
    Document::new().with("stage", "FETCH").with("inputStage", scan)
}

fn index_scan(used: &Used) -> Document {
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

/// A filter in its long form: every condition with its operator, several under `$and`.
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
    projection.iter().all(|(name, value)| !name.contains('.') && crate::fields::truth(value.view()).is_some())
}

/// A count as clients read it: small where it is small.
fn number(count: u64) -> Value {
    i32::try_from(count).map_or_else(|_| Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)), Value::Int32)
}

/// Documents as they were sent, for what is told of a command.
pub(crate) fn shown(stages: &[RawDocument]) -> Vec<Value> {
    stages.iter().map(|stage| Value::Document(stage.to_document())).collect()
}
