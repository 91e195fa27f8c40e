//! A running pipeline, with everything that it needs between two requests of a cursor.

use std::sync::Arc;

use bson::{Collation, Document, RawDocument};
use document::ItemNumber;
use engine::collection::{Collection, Reading};
use engine::find::{Examined, OpenScans};
use mql::filter::Filter;
use mql::index::Hint;
use mql::pipeline::{Description, Namespace, Pipeline, Row, Running};
use mql::projection::{Beside, Projection};
use mql::{Code, Context, Scratch};
use storage::Time;

use super::output::Staged;
use super::pipeline_source::PipelineSource;
use super::request_scratch::RequestScratch;
use crate::access::executor::Executor;
use crate::protocol::batch_builder::{BatchBuilder, check_size};
use crate::protocol::error::{Error, Result};

/// Describes a collection, or the server, for stages.
pub(crate) type Describe = dyn Fn(&Reading<'_>, Option<&Arc<Collection>>, &Namespace, &Description) -> Result<Vec<Document>>
    + Send
    + Sync;

/// What a pipeline reads: the collections by name, and how.
#[derive(Clone)]
pub(crate) struct PipelineInputs {
    /// The collection that is read first; it need not exist.
    pub(crate) leading: Option<Namespace>,
    /// Every collection that may be read.
    pub(crate) collections: Vec<Namespace>,
    pub(crate) collation: Collation,
    pub(crate) hint: Option<Hint>,
    /// Whether validators are bypassed.
    pub(crate) bypass: bool,
    /// Where stages put what exceeds their memory, if anywhere.
    pub(crate) scratch: Option<Arc<dyn Scratch>>,
    pub(crate) describe: Arc<Describe>,
}

/// A pipeline whose documents are computed when they are asked for.
pub(crate) struct PipelineCursor {
    running: Running,
    inputs: PipelineInputs,
    scans: OpenScans,
    writes: Writes,
    /// The leading collection.
    leading: Option<Arc<Collection>>,
    /// Which collections there were when the pipeline began.
    began_with: Vec<Option<[u8; 16]>>,
    /// The projection of each document, and the filter that its positional operator needs.
    projection: Option<(Projection, Arc<Filter>)>,
    /// How many documents may still be given, if that is limited.
    left: Option<u64>,
    /// Whether it does nothing but scan a collection.
    only_scans: bool,
    /// Whether a batch need not read more of the leading collection than it can show.
    shows_as_it_reads: bool,
    /// A document that did not fit into the last batch, and its origin.
    held: Option<(RawDocument, Option<u64>)>,
    batches: u64,
}

/// What a pipeline writes.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// What `$out` has staged.
    pub(super) staged: Option<Staged>,
    /// Why a write failed, with labels and fields that errors of the language do not have.
    pub(super) failure: Option<Error>,
}

/// Some documents of a cursor.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) documents: Vec<RawDocument>,
    /// Whether there are no more.
    pub(crate) finished: bool,
}

impl PipelineCursor {
    /// Returns a pipeline that has not begun.
    pub(crate) fn new(pipeline: Pipeline, inputs: PipelineInputs) -> PipelineCursor {
        PipelineCursor {
            shows_as_it_reads: pipeline.shows_as_it_reads(),
            running: pipeline.start(),
            inputs,
            scans: OpenScans::default(),
            writes: Writes::default(),
            leading: None,
            began_with: Vec::new(),
            projection: None,
            left: None,
            only_scans: false,
            held: None,
            batches: 0,
        }
    }

    /// Returns the same, showing parts of each document.
    pub(crate) fn projected(mut self, projection: Projection, filter: Arc<Filter>) -> PipelineCursor {
        self.projection = Some((projection, filter));
        self
    }

    /// Returns the same, ending after so many documents.
    pub(crate) fn limited(mut self, limit: Option<u64>) -> PipelineCursor {
        self.left = limit;
        self
    }

    /// Returns the same, known to do nothing but scan a collection: the scan offloads itself when it turns out long.
    pub(crate) fn scanning(mut self) -> PipelineCursor {
        self.only_scans = true;
        self
    }

    /// Whether it need not be offloaded.
    pub(crate) fn only_scans(&self) -> bool {
        self.only_scans
    }

    /// Returns the next documents: at most `count`, and no more than fit into a reply. One batch sees one time (T16).
    pub(crate) fn batch(
        &mut self,
        executor: &Executor,
        context: &mut Context,
        count: Option<usize>,
    ) -> Result<Batch> {
        let handles = self.handles(executor)?;
        let collections: Vec<&Arc<Collection>> =
            handles.iter().filter_map(|(_, handle)| handle.as_ref()).collect();
        let batch = executor.read(&collections, |reading| {
            context.set_scratch(self.scratch(executor, &collections, reading.now()));
            self.fill(executor, reading, &handles, context, count)
        });
        self.scans.rest();
        self.running.rest();
        self.batches += 1;
        if batch.is_err()
            && let Some(staged) = self.writes.staged.take()
        {
            staged.abandon(executor);
        }
        batch
    }

    /// Goes through all that is left, and shows each document.
    pub(crate) fn each(
        &mut self,
        executor: &Executor,
        context: &mut Context,
        mut visit: impl FnMut(&RawDocument, &Context) -> Result<()>,
    ) -> Result<()> {
        loop {
            let batch = self.batch(executor, context, None)?;
            batch.documents.iter().try_for_each(|document| visit(document, context))?;
            if batch.finished {
                return Ok(());
            }
        }
    }

    /// Returns how many bytes it holds between two requests, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let held = self.held.as_ref().map_or(0, |(document, _)| document.as_bytes().len());
        self.running.bytes() + self.scans.bytes() + held
    }

    /// Returns what the pipeline has examined in the leading collection.
    pub(crate) fn examined(&self) -> Examined {
        self.scans.examined()
    }

    /// Where stages put what exceeds their memory, for a request that reads these collections.
    fn scratch(
        &self,
        executor: &Executor,
        collections: &[&Arc<Collection>],
        as_of: Time,
    ) -> Option<Arc<dyn Scratch>> {
        let files = Arc::clone(self.inputs.scratch.as_ref()?);
        let (engine, collections) =
            (Arc::clone(executor.engine()), collections.iter().copied().cloned().collect());
        Some(Arc::new(RequestScratch { files, engine, collections, as_of }))
    }

    fn fill(
        &mut self,
        executor: &Executor,
        reading: &Reading<'_>,
        handles: &[(Namespace, Option<Arc<Collection>>)],
        context: &Context,
        count: Option<usize>,
    ) -> Result<Batch> {
        let (mut batch_builder, mut finished) = (BatchBuilder::new(count), false);
        while !batch_builder.is_complete() && self.left != Some(0) {
            let left = self.left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
            let wanted =
                left.into_iter().chain(batch_builder.left()).min().filter(|_| self.shows_as_it_reads);
            let Some((document, origin)) = self.next(executor, reading, handles, context, wanted)? else {
                finished = true;
                break;
            };
            if let Err(document) = batch_builder.add(document) {
                self.held = Some((document, origin));
                break;
            }
            self.left = self.left.map(|left| left - 1);
        }
        Ok(Batch { documents: batch_builder.documents, finished: finished || self.left == Some(0) })
    }

    /// Returns the next document that has not expired. Documents that an earlier request computed are left out if their
    /// origin has been deleted or has expired since; what this request reads has not expired.
    fn next(
        &mut self,
        executor: &Executor,
        reading: &Reading<'_>,
        handles: &[(Namespace, Option<Arc<Collection>>)],
        context: &Context,
        wanted: Option<usize>,
    ) -> Result<Option<(RawDocument, Option<u64>)>> {
        loop {
            let (document, origin) = if let Some(held) = self.held.take() {
                held
            } else {
                let resumed = self.batches > 0;
                let mut pipeline_source = PipelineSource::new(
                    executor,
                    reading,
                    handles,
                    &self.inputs,
                    (&mut self.scans, &mut self.writes),
                    context,
                    resumed,
                )
                .wanting(wanted);
                let row = self.running.next(&mut pipeline_source, context);
                let row = row.map_err(|error| self.writes.failure.take().unwrap_or_else(|| error.into()))?;
                let Some(row) = row else { return Ok(None) };
                let origin = row.origin;
                let document = self.show(row, context)?;
                check_size(&document)?;
                (document, origin)
            };
            if self.batches == 0 || self.lives(reading, origin)? {
                return Ok(Some((document, origin)));
            }
        }
    }

    /// Returns what is shown of a row.
    fn show(&self, row: Row, context: &Context) -> Result<RawDocument> {
        let Some((projection, filter)) = &self.projection else { return Ok(row.body.into_raw()) };
        let beside = Beside { filter: Some(filter), meta: row.meta.as_deref() };
        Ok(RawDocument::from_document(&projection.apply(row.view(), beside, context)?))
    }

    fn lives(&self, reading: &Reading<'_>, origin: Option<u64>) -> Result<bool> {
        match (origin, &self.leading) {
            (Some(number), Some(_)) if self.scans.has_read(number) => Ok(true),
            (Some(number), Some(leading)) => Ok(reading.by_number(leading, ItemNumber(number))?.is_some()),
            _ => Ok(true),
        }
    }

    /// Returns the collections as they are now. A pipeline that has begun ends if one of them was dropped or replaced.
    fn handles(&mut self, executor: &Executor) -> Result<Vec<(Namespace, Option<Arc<Collection>>)>> {
        let engine = executor.engine();
        let handle = |name: &Namespace| engine.collection(&name.database, &name.collection);
        let names = self.inputs.leading.iter().chain(&self.inputs.collections);
        let handles: Vec<_> = names.map(|name| (name.clone(), handle(name))).collect();
        let ids = || handles.iter().map(|(_, handle)| handle.as_ref().map(|it| it.definition.uuid));
        if self.batches == 0 {
            self.began_with = ids().collect();
        } else if let Some(changed) = ids().zip(&self.began_with).position(|(now, before)| now != *before) {
            let name = &handles[changed].0;
            let text = format!("collection dropped: '{name}' is not the one that the cursor was opened on");
            return Err(Error::new(Code::QUERY_PLAN_KILLED, text));
        }
        self.leading =
            self.inputs.leading.as_ref().and_then(|_| handles.first()).and_then(|(_, it)| it.clone());
        Ok(handles)
    }
}
