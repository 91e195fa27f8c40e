//! The collections that a pipeline reads and writes, as one request sees them.

use std::sync::Arc;

use bson::{Document, RawDocument};
use engine::collection::{Collection, Reading};
use engine::find::{self, AccessPath, OpenScans, Plan, PlanRequest};
use mql::filter::Filter;
use mql::index::{PartKind, TextRules};
use mql::pipeline::{Description, Merge, Namespace, Order, Part, Row, Scan, ScanId, Source};
use mql::{Code, Context, Error};

use super::pipeline_cursor::{PipelineInputs, Writes};
use crate::access::executor::Executor;

/// The collections as one request sees them.
pub(crate) struct PipelineSource<'a> {
    executor: &'a Executor,
    reading: &'a Reading<'a>,
    handles: &'a [(Namespace, Option<Arc<Collection>>)],
    inputs: &'a PipelineInputs,
    scans: &'a mut OpenScans,
    writes: &'a mut Writes,
    context: &'a Context,
    /// Whether an earlier request began the pipeline.
    resumed: bool,
    /// How many more rows of the leading collection can be shown, if all that come from it are shown.
    wanted: Option<usize>,
}

impl<'a> PipelineSource<'a> {
    pub(crate) fn new(
        executor: &'a Executor,
        reading: &'a Reading<'a>,
        handles: &'a [(Namespace, Option<Arc<Collection>>)],
        inputs: &'a PipelineInputs,
        (scans, writes): (&'a mut OpenScans, &'a mut Writes),
        context: &'a Context,
        resumed: bool,
    ) -> PipelineSource<'a> {
        PipelineSource { executor, reading, handles, inputs, scans, writes, context, resumed, wanted: None }
    }

    /// Returns the same source for a batch that has room for so many more rows.
    pub(crate) fn wanting(self, rows: Option<usize>) -> PipelineSource<'a> {
        PipelineSource { wanted: rows, ..self }
    }

    /// Keeps an error while the language passes it on by code and message.
    fn note_failure(&mut self, error: crate::protocol::error::Error) -> Error {
        self.writes.failure = Some(error.clone());
        into_language(error)
    }

    fn plan(&self, collection: &Arc<Collection>, scan: &Scan) -> engine::Result<Plan> {
        let request = PlanRequest {
            filter: &scan.filter,
            sort: scan.sort.as_deref(),
            limit: scan.limit,
            collation: &self.inputs.collation,
            hint: self.inputs.hint.as_ref().filter(|_| scan.part == Part::Leading),
        };
        find::plan(self.reading, collection, &request)
    }

    fn handle(&self, name: &Namespace) -> Option<&Arc<Collection>> {
        self.handles.iter().find(|(known, _)| known == name).and_then(|(_, handle)| handle.as_ref())
    }
}

impl Source for PipelineSource<'_> {
    fn open(&mut self, scan: &Scan) -> mql::Result<(ScanId, Order)> {
        let known = self.handles.iter().find(|(known, _)| *known == scan.collection);
        // A collection that was not declared would look like one that does not exist.
        let (_, handle) = known.ok_or_else(|| {
            let text = format!("{} is not among the collections that the request reads", scan.collection);
            Error::new(Code::INTERNAL_ERROR, text)
        })?;
        let Some(collection) = handle.clone() else { return Ok(self.scans.open_empty(scan)) };
        let plan = self.plan(&collection, scan).map_err(|error| into_language(error.into()))?;
        let is_sorted = plan.sorted;
        let documents = self.executor.scan(plan, &collection, &scan.filter, scan.limit);
        Ok(self.scans.open(scan, documents, is_sorted))
    }

    fn next(&mut self, scan: ScanId) -> mql::Result<Option<Row>> {
        let row = self.scans.next(scan, self.wanted, self.resumed, self.reading, self.context);
        row.map_err(|error| into_language(error.into()))
    }

    fn close(&mut self, scan: ScanId) {
        self.scans.close(scan);
    }

    fn is_served(&mut self, collection: &Namespace, filter: &Filter) -> mql::Result<bool> {
        // A transaction relies on every document that it was shown, so it must be shown only those that match.
        let handle = self.handle(collection).filter(|_| !self.executor.is_transaction());
        let Some(handle) = handle else { return Ok(true) };
        let collation = &self.inputs.collation;
        let request = PlanRequest { filter, sort: None, limit: None, collation, hint: None };
        let plan = find::plan(self.reading, handle, &request);
        let plan = plan.map_err(|error| into_language(error.into()))?;
        Ok(!matches!(plan.path, AccessPath::CollectionScan(_)))
    }

    fn geospatial_field(&mut self, collection: &Namespace) -> mql::Result<String> {
        let missing = || {
            let text =
                format!("$geoNear requires a 2d or 2dsphere index, but none were found on {collection}");
            Error::new(Code::INDEX_NOT_FOUND, text)
        };
        let handle = self.handle(collection).ok_or_else(missing)?;
        let list = self.reading.indexes(handle).map_err(|error| into_language(error.into()))?;
        let parts = list.iter().flat_map(|index| index.spec.parts());
        let mut fields = parts.filter(|part| part.kind == PartKind::Sphere).map(|part| part.name.clone());
        let field = fields.next().ok_or_else(missing)?;
        if fields.next().is_some() {
            let text =
                "There is more than one geospatial index; the option 'key' of $geoNear must name a field";
            return Err(Error::new(Code::INDEX_NOT_FOUND, text));
        }
        Ok(field)
    }

    fn text_rules(&mut self, collection: &Namespace) -> mql::Result<Option<Arc<TextRules>>> {
        let Some(handle) = self.handle(collection) else { return Ok(None) };
        let list = self.reading.indexes(handle).map_err(|error| into_language(error.into()))?;
        Ok(list.text_rules())
    }

    fn describe(&mut self, collection: &Namespace, what: &Description) -> mql::Result<Vec<Document>> {
        (self.inputs.describe)(self.reading, self.handle(collection), collection, what).map_err(into_language)
    }

    fn stage_documents(&mut self, target: &Namespace, documents: Vec<RawDocument>) -> mql::Result<()> {
        super::output::stage(
            self.executor,
            &mut self.writes.staged,
            target,
            &documents,
            self.inputs.bypass,
            self.context,
        )
        .map_err(|error| self.note_failure(error))
    }

    fn replace_collection(&mut self, target: &Namespace) -> mql::Result<()> {
        super::output::replace(self.executor, &mut self.writes.staged, target)
            .map_err(|error| self.note_failure(error))
    }

    fn merge(&mut self, merge: &Arc<Merge>, document: RawDocument, context: &Context) -> mql::Result<()> {
        super::output::merge(self.executor, merge, &document, self.inputs.bypass, context)
            .map_err(|error| self.note_failure(error))
    }
}

/// Makes an error of the language, with the same code and message.
fn into_language(error: crate::protocol::error::Error) -> Error {
    Error::new(error.code, error.message)
}
