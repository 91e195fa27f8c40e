//! The door through which pipelines read and write collections: one request long.

use std::sync::Arc;

use bson::{Document, RawDocument};
use engine::collection::{Collection, Reading};
use mql::filter::Filter;
use mql::index::{PartKind, TextRules};
use mql::pipeline::{Description, Merge, Namespace, Order, Part, Row, Scan, ScanId, Source};
use mql::{Code, Context, Error};

use super::answers::Reads;
use super::choose::choose;
use super::scans::Scans;
use super::walk::{Walk, Way};
use crate::room::Room;

/// The collections as one request sees them.
pub(crate) struct Library<'a> {
    room: &'a Room,
    reading: &'a Reading<'a>,
    handles: &'a [(Namespace, Option<Arc<Collection>>)],
    reads: &'a Reads,
    scans: &'a mut Scans,
    context: &'a Context,
    /// Whether the answer goes on that an earlier request began.
    resumed: bool,
    /// How many more rows of the leading collection can be shown, if all that come from it are shown.
    wanted: Option<usize>,
}

impl<'a> Library<'a> {
    pub(crate) fn new(
        room: &'a Room,
        reading: &'a Reading<'a>,
        handles: &'a [(Namespace, Option<Arc<Collection>>)],
        reads: &'a Reads,
        scans: &'a mut Scans,
        context: &'a Context,
        resumed: bool,
    ) -> Library<'a> {
        Library { room, reading, handles, reads, scans, context, resumed, wanted: None }
    }

    /// The same, with so many more rows to be shown as they come.
    pub(crate) fn wanting(self, rows: Option<usize>) -> Library<'a> {
        Library { wanted: rows, ..self }
    }

    /// Keeps an error aside while the language passes it on by code and words.
    fn note_failure(&mut self, error: crate::error::Error) -> Error {
        self.scans.failure = Some(error.clone());
        into_language(error)
    }

    fn handle(&self, name: &Namespace) -> Option<&Arc<Collection>> {
        self.handles.iter().find(|(known, _)| known == name).and_then(|(_, handle)| handle.as_ref())
    }
}

impl Source for Library<'_> {
    fn open(&mut self, scan: &Scan) -> mql::Result<(ScanId, Order)> {
        let known = self.handles.iter().find(|(known, _)| *known == scan.collection);
        // One that nobody has declared would look like one that does not exist.
        let (_, handle) = known.ok_or_else(|| {
            let text = format!("{} is not among the collections that the request reads", scan.collection);
            Error::new(Code::INTERNAL_ERROR, text)
        })?;
        let Some(collection) = handle.clone() else {
            let walk = Walk::new(None, Arc::clone(&scan.filter), Way::Nothing, None);
            return Ok((self.scans.add(walk, scan.part), Order::Sorted));
        };
        let hint = self.reads.hint.as_ref().filter(|_| scan.part == Part::Leading);
        let sort = scan.sort.as_deref();
        let plan =
            choose(self.reading, &collection, &scan.filter, sort, scan.limit, &self.reads.collation, hint)
                .map_err(into_language)?;
        let order = if sort.is_some() && plan.sorted { Order::Sorted } else { Order::Any };
        // What has to be put in order is read whole before anything is shown.
        let as_they_come = (sort.is_none() || plan.sorted) && scan.filter.near().is_none();
        let mut walk = plan.into_walk(self.room, &collection, &scan.filter, scan.limit);
        walk.tells_index_key = scan.tells_index_key;
        let scan = self.scans.add(walk, scan.part);
        if as_they_come {
            self.scans.show_as_they_come(scan);
        }
        Ok((scan, order))
    }

    fn next(&mut self, scan: ScanId) -> mql::Result<Option<Row>> {
        let wanted = self.wanted.filter(|_| self.scans.is_shown_as_it_comes(scan));
        let Some((walk, part)) = self.scans.get(scan) else { return Ok(None) };
        if *part == Part::Leading {
            walk.wants(wanted);
        }
        let row = walk.next_row(self.reading, self.context).map_err(into_language)?;
        if self.resumed
            && *part == Part::Leading
            && let Some(number) = row.as_ref().and_then(|row| row.origin)
        {
            self.scans.note_read(number);
        }
        Ok(row)
    }

    fn close(&mut self, scan: ScanId) {
        self.scans.remove(scan);
    }

    fn is_served(&mut self, collection: &Namespace, filter: &Filter) -> mql::Result<bool> {
        // A transaction relies on what it was shown: that must not be more than what was found.
        let handle = self.handle(collection).filter(|_| !self.room.is_transaction());
        let Some(handle) = handle else { return Ok(true) };
        let plan = choose(self.reading, handle, filter, None, None, &self.reads.collation, None);
        Ok(!matches!(plan.map_err(into_language)?.way, Way::Natural(_)))
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
        crate::describe::describe(
            &self.reads.service,
            self.reading,
            self.handle(collection),
            collection,
            what,
            &self.reads.user,
        )
        .map_err(into_language)
    }

    fn stage_documents(&mut self, target: &Namespace, documents: Vec<RawDocument>) -> mql::Result<()> {
        super::output::stage(
            self.room,
            &mut self.scans.output,
            target,
            &documents,
            self.reads.bypass,
            self.context,
        )
        .map_err(|error| self.note_failure(error))
    }

    fn replace_collection(&mut self, target: &Namespace) -> mql::Result<()> {
        super::output::replace(self.room, &mut self.scans.output, target)
            .map_err(|error| self.note_failure(error))
    }

    fn merge(&mut self, merge: &Arc<Merge>, document: RawDocument, context: &Context) -> mql::Result<()> {
        super::output::merge(self.room, merge, &document, self.reads.bypass, context)
            .map_err(|error| self.note_failure(error))
    }
}

/// An error as the language tells it: code and words stay.
fn into_language(error: crate::error::Error) -> Error {
    Error::new(error.code, error.message)
}
