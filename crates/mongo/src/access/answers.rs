//! A pipeline at work, with everything that it needs between two requests of a cursor.

use std::sync::Arc;

use bson::{Collation, RawDocument};
use document::ItemNumber;
use engine::collection::{Collection, Reading};
use mql::filter::Filter;
use mql::index::Hint;
use mql::pipeline::{Namespace, Pipeline, Row, Running};
use mql::projection::{Beside, Projection};
use mql::{Code, Context, Scratch};
use storage::Time;

use super::library::Library;
use super::request_scratch::RequestScratch;
use super::scans::Scans;
use super::walk::Examined;
use crate::error::{Error, Result};
use crate::filling::{Filling, check_size};
use crate::room::Room;
use crate::service::Service;

/// What an answer reads: the collections by name, and how.
#[derive(Clone)]
pub(crate) struct Reads {
    /// The collection that is read first; it need not exist.
    pub(crate) leading: Option<Namespace>,
    /// Every collection that may be looked into.
    pub(crate) collections: Vec<Namespace>,
    pub(crate) collation: Collation,
    pub(crate) hint: Option<Hint>,
    /// Whether validators are passed by.
    pub(crate) bypass: bool,
    /// Digest of the user who asks.
    pub(crate) user: [u8; 32],
    pub(crate) service: Arc<Service>,
}

/// Documents that are computed when they are asked for.
pub(crate) struct Answers {
    running: Running,
    reads: Reads,
    scans: Scans,
    /// The leading collection.
    leading: Option<Arc<Collection>>,
    /// Which collections there were when the answer began.
    began_with: Vec<Option<[u8; 16]>>,
    /// What is shown of each document, and the filter that its positional operator asks.
    projection: Option<(Projection, Arc<Filter>)>,
    /// How many documents may still be given, if that is limited.
    left: Option<u64>,
    /// Whether nothing is done but to walk through a collection.
    only_walks: bool,
    /// Whether no more of the leading collection need be read than can be shown.
    shows_as_it_reads: bool,
    /// A document that did not fit into the last batch, and its origin.
    held: Option<(RawDocument, Option<u64>)>,
    batches: u64,
}

/// Some documents of an answer.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) documents: Vec<RawDocument>,
    /// Whether there are no more.
    pub(crate) finished: bool,
}

impl Answers {
    /// An answer that has not begun.
    pub(crate) fn new(pipeline: Pipeline, reads: Reads) -> Answers {
        Answers {
            shows_as_it_reads: pipeline.shows_as_it_reads(),
            running: pipeline.start(),
            reads,
            scans: Scans::default(),
            leading: None,
            began_with: Vec::new(),
            projection: None,
            left: None,
            only_walks: false,
            held: None,
            batches: 0,
        }
    }

    /// The same, showing parts of each document.
    pub(crate) fn projected(mut self, projection: Projection, filter: Arc<Filter>) -> Answers {
        self.projection = Some((projection, filter));
        self
    }

    /// The same, ending after so many documents.
    pub(crate) fn limited(mut self, limit: Option<u64>) -> Answers {
        self.left = limit;
        self
    }

    /// The same, known to do nothing but to walk through a collection: it steps aside by itself when that turns out long.
    pub(crate) fn walking(mut self) -> Answers {
        self.only_walks = true;
        self
    }

    /// Whether it need not be computed aside.
    pub(crate) fn only_walks(&self) -> bool {
        self.only_walks
    }

    /// The next documents: at most `count`, and no more than fit into a reply. One batch sees one time (T16).
    pub(crate) fn batch(
        &mut self,
        room: &Room,
        context: &mut Context,
        count: Option<usize>,
    ) -> Result<Batch> {
        let handles = self.handles(room)?;
        let collections: Vec<&Arc<Collection>> =
            handles.iter().filter_map(|(_, handle)| handle.as_ref()).collect();
        let batch = room.read(&collections, |reading| {
            context.set_scratch(self.scratch(&collections, reading.now()));
            self.fill(room, reading, &handles, context, count)
        });
        self.scans.rest();
        self.running.rest();
        self.batches += 1;
        if batch.is_err()
            && let Some(staged) = self.scans.output.take()
        {
            staged.abandon(room);
        }
        batch
    }

    /// Goes through all that is left, and shows each document.
    pub(crate) fn each(
        &mut self,
        room: &Room,
        context: &mut Context,
        mut visit: impl FnMut(&RawDocument, &Context) -> Result<()>,
    ) -> Result<()> {
        loop {
            let batch = self.batch(room, context, None)?;
            batch.documents.iter().try_for_each(|document| visit(document, context))?;
            if batch.finished {
                return Ok(());
            }
        }
    }

    /// How many bytes it holds between two requests, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let held = self.held.as_ref().map_or(0, |(document, _)| document.as_bytes().len());
        self.running.bytes() + self.scans.bytes() + held
    }

    /// What was looked at in the leading collection.
    pub(crate) fn examined(&self) -> Examined {
        self.scans.examined()
    }

    /// Where stages put what exceeds their memory, for a request that reads these collections.
    fn scratch(&self, collections: &[&Arc<Collection>], as_of: Time) -> Option<Arc<dyn Scratch>> {
        let service = &self.reads.service;
        let files = Arc::clone(service.settings.scratch.as_ref()?);
        let (engine, collections) =
            (Arc::clone(&service.engine), collections.iter().copied().cloned().collect());
        Some(Arc::new(RequestScratch { files, engine, collections, as_of }))
    }

    fn fill(
        &mut self,
        room: &Room,
        reading: &Reading<'_>,
        handles: &[(Namespace, Option<Arc<Collection>>)],
        context: &Context,
        count: Option<usize>,
    ) -> Result<Batch> {
        let (mut filling, mut finished) = (Filling::new(count), false);
        while !filling.is_complete() && self.left != Some(0) {
            let left = self.left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
            let wanted = left.into_iter().chain(filling.left()).min().filter(|_| self.shows_as_it_reads);
            let Some((document, origin)) = self.next(room, reading, handles, context, wanted)? else {
                finished = true;
                break;
            };
            if let Err(document) = filling.add(document) {
                self.held = Some((document, origin));
                break;
            }
            self.left = self.left.map(|left| left - 1);
        }
        Ok(Batch { documents: filling.documents, finished: finished || self.left == Some(0) })
    }

    /// The next document that still lives. What an earlier request computed may come from a document that has died since, or
    /// was deleted: it is left out. What this request has read lives.
    fn next(
        &mut self,
        room: &Room,
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
                let mut library =
                    Library::new(room, reading, handles, &self.reads, &mut self.scans, context, resumed)
                        .wanting(wanted);
                let row = self.running.next(&mut library, context);
                let row = row.map_err(|error| self.scans.failure.take().unwrap_or_else(|| error.into()))?;
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

    /// What is shown of a row.
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

    /// The collections as they are now. An answer that has begun ends if one of them is gone or another one.
    fn handles(&mut self, room: &Room) -> Result<Vec<(Namespace, Option<Arc<Collection>>)>> {
        let engine = room.engine();
        let handle = |name: &Namespace| engine.collection(&name.database, &name.collection);
        let names = self.reads.leading.iter().chain(&self.reads.collections);
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
            self.reads.leading.as_ref().and_then(|_| handles.first()).and_then(|(_, it)| it.clone());
        Ok(handles)
    }
}
