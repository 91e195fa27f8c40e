//! Pipelines: stages that documents pass through.
//!
//! ```text
//! BSON -> Pipeline (everything checked; conditions moved to the front) -> Running (rows pulled one by one) -> Row
//!                                                                            |
//!                                                                          Source: collections, as one request sees them
//! ```
//!
//! [`Pipeline::parse`] checks all stages, those of pipelines within pipelines too. The part that the leading collection
//! itself can answer - conditions, an order, a number of rows - is [`Pipeline::leading`], and reaches the source as a
//! [`Scan`]. [`Running`] pulls rows through the stages; it does not borrow the source, so a cursor can keep it until the
//! next request, which has its own source.
//!
//! Stages that must see all rows before they return one count the bytes they keep (`memory.rs`). Sorts and groups move rows
//! beyond their memory to scratch files (`sorter.rs`), the others fail with an error.

mod accumulator;
mod chain;
mod event_pipeline;
mod memory;
mod merge;
mod optimize;
mod path;
mod requested_meta;
mod rewrite;
mod row;
mod rules;
mod run;
mod running;
mod search_meta;
mod settings;
mod sorter;
mod source;
mod stage;
mod stages;
mod values;
mod window;

use std::sync::Arc;

use bson::{Document, DocumentRef, ValueRef};

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::sort::Sort;

pub use event_pipeline::EventPipeline;
pub use memory::DiskUse;
pub use merge::{Merge, Outcome, new_id};
pub use requested_meta::RequestedMeta;
pub use rewrite::Rewrite;
pub use row::{Body, Row};
pub use running::Running;
pub use settings::{Settings, View};
pub use source::{Description, Namespace, Order, Part, Scan, ScanId, Source};
pub use stages::change_stream::{ChangeStream, FullDocument};

use rules::PipelineKind;
use settings::PipelineContext;
use stage::{Stage, parse_stages};
use stages::matching::{Match, all_of};
use stages::order::Sorted;

/// A pipeline, checked and ready to start.
#[derive(Debug, Clone)]
pub struct Pipeline {
    leading: Leading,
    /// The stages after the scan.
    stages: Vec<Stage>,
    around: PipelineContext,
    part: Part,
}

/// The part of a pipeline that the collection itself answers.
#[derive(Debug, Clone)]
pub struct Leading {
    /// The conditions at the beginning.
    pub filter: Arc<Filter>,
    /// The order that the next stage requires, if there is one.
    pub sort: Option<Arc<Sort>>,
    /// The largest number of rows that the pipeline needs.
    pub limit: Option<u64>,
    /// The same conditions as they were written.
    pub conditions: Document,
}

/// The parts of a `find`.
#[derive(Debug, Clone, Copy)]
pub struct Find<'a> {
    /// The conditions.
    pub filter: DocumentRef<'a>,
    /// The order.
    pub sort: Option<DocumentRef<'a>>,
    /// How many documents are skipped at the beginning.
    pub skip: u64,
    /// The largest number of documents.
    pub limit: Option<u64>,
    /// The projection; the metadata for its `$meta` is kept beside the rows.
    pub projection: Option<DocumentRef<'a>>,
}

/// The target of a pipeline that writes.
#[derive(Debug, Clone, Copy)]
pub enum Writes<'a> {
    /// `$out`: the collection is replaced.
    Out(&'a Namespace),
    /// `$merge`.
    Merge(&'a Merge),
}

impl Pipeline {
    /// Reads a pipeline and checks all of it.
    pub fn parse(stages: &[DocumentRef<'_>], settings: &Settings) -> Result<Pipeline> {
        let around = PipelineContext::new(settings).asking(stages.iter().copied());
        Pipeline::of(parse_stages(stages, &around, PipelineKind::Top)?, &around, Part::Leading)
    }

    /// Returns the pipeline of a `find`. Unlike stages, it may require the nearest first (`$near`) and the order in which
    /// documents are stored (`$natural`), which only the source knows. `view` has the stages of the collection, if it is a
    /// view.
    pub fn find(view: &[DocumentRef<'_>], find: &Find<'_>, settings: &Settings) -> Result<Pipeline> {
        let asking = view.iter().copied().chain(find.sort).chain(find.projection);
        let around = PipelineContext::new(settings).asking(asking);
        let mut stages = parse_stages(view, &around, PipelineKind::Top)?;
        let direct = stages.is_empty();
        if !find.filter.is_empty() {
            stages.push(Stage::Match(if direct {
                Match::of(find.filter.to_document(), &around)?
            } else {
                Match::parse(ValueRef::Document(find.filter), &around)?
            }));
        }
        if let Some(sort) = find.sort.filter(|sort| !sort.is_empty()) {
            stages.push(Stage::Sort(if direct {
                Sorted::of(Sort::parse(sort)?, &around)
            } else {
                Sorted::parse(ValueRef::Document(sort), &around)?
            }));
        }
        if find.skip > 0 {
            stages.push(Stage::Skip(find.skip));
        }
        stages.extend(find.limit.map(Stage::Limit));
        let sorts = find.sort.is_some_and(|sort| !sort.is_empty());
        if !sorts && RequestedMeta::of(find.projection).sort_key {
            return Err(Error::bad_value("cannot use sortKey $meta projection without a sort"));
        }
        Pipeline::of(stages, &around, Part::Leading)
    }

    fn of(stages: Vec<Stage>, around: &PipelineContext, part: Part) -> Result<Pipeline> {
        let mut stages = optimize::move_conditions(stages, around)?;
        optimize::bound_sorts(&mut stages);
        let requested_meta = optimize::take_leading(&mut stages);
        let conditions = all_of(requested_meta.conditions);
        let filter = Arc::new(around.filter(conditions.view())?);
        around.requested_meta.check(&filter)?;
        let leading = Leading { filter, sort: requested_meta.sort, limit: requested_meta.limit, conditions };
        Ok(Pipeline { leading, stages, around: around.clone(), part })
    }

    /// Returns the part of the pipeline that the collection itself answers.
    pub fn leading(&self) -> &Leading {
        &self.leading
    }

    /// Returns `true` if the documents of the collection are read at all: not by `$collStats` and the like.
    pub fn reads_collection(&self) -> bool {
        !matches!(
            self.stages.first(),
            Some(Stage::Documents(_) | Stage::Describe(_) | Stage::ChangeStream(_))
        )
    }

    /// Returns the other collections that it reads, by the names in the request: some may be views.
    pub fn collections(&self) -> Vec<Namespace> {
        let mut found = Vec::new();
        self.stages.iter().for_each(|stage| stage.collections(&mut found));
        found.sort();
        found.dedup();
        found
    }

    /// Returns the descriptions that stages request besides documents, including pipelines within this one, and their
    /// collections.
    pub fn descriptions(&self) -> Vec<(Namespace, Description)> {
        let mut found = Vec::new();
        if let Some(Stage::Describe(what)) = self.stages.first() {
            found.push((self.around.own_namespace(), what.clone()));
        }
        self.stages.iter().for_each(|stage| stage.descriptions(&mut found));
        found
    }

    /// Returns the target of the rows. Such a pipeline returns none.
    pub fn writes(&self) -> Option<Writes<'_>> {
        match self.stages.last()? {
            Stage::Out(target) => Some(Writes::Out(target)),
            Stage::Merge(merge) => Some(Writes::Merge(merge)),
            _ => None,
        }
    }

    /// Returns the `$changeStream` at the beginning.
    pub fn change_stream(&self) -> Option<&ChangeStream> {
        match self.stages.first()? {
            Stage::ChangeStream(stream) => Some(stream),
            _ => None,
        }
    }

    /// Returns the `$changeStream` at the beginning and the stages after it; none if the pipeline does not begin with one.
    pub fn follow(&self) -> Option<(Arc<ChangeStream>, EventPipeline)> {
        match self.stages.first()? {
            Stage::ChangeStream(stream) => {
                Some((Arc::clone(stream), EventPipeline::new(stage::start_stages(&self.stages))))
            }
            _ => None,
        }
    }

    /// Returns `true` if each document of the collection is shown, or not, as soon as it is read: no stage collects rows
    /// before it returns some. An order in which the collection itself comes collects none.
    pub fn shows_as_it_reads(&self) -> bool {
        let own_order = usize::from(matches!(self.stages.first(), Some(Stage::Sort(_))));
        self.stages.iter().skip(own_order).all(Stage::passes_rows_on)
    }

    /// Returns `true` if it only reads a collection by conditions.
    fn only_matches(&self) -> bool {
        self.stages.is_empty() && self.leading.filter.near().is_none() && self.leading.filter.text().is_none()
    }

    /// Starts the pipeline. Nothing is read before the first row is requested.
    pub fn start(self) -> Running {
        Running::new(self)
    }

    /// Returns a copy with one more condition, before everything else.
    fn with_condition(&self, condition: Option<&Document>) -> Result<Pipeline> {
        let mut pipeline = self.clone();
        let Some(condition) = condition else { return Ok(pipeline) };
        let plain =
            pipeline.reads_collection() && !matches!(pipeline.stages.first(), Some(Stage::GeoNear(_)));
        if plain {
            let mut both = vec![condition.clone()];
            if !pipeline.leading.conditions.is_empty() {
                both.push(pipeline.leading.conditions);
            }
            pipeline.leading.conditions = all_of(both);
            let filter = pipeline.around.filter(pipeline.leading.conditions.view())?;
            pipeline.leading.filter = Arc::new(filter);
        } else {
            let matching = Match::of(condition.clone(), &pipeline.around)?;
            let behind = pipeline.stages.len().min(1);
            pipeline.stages.insert(behind, Stage::Match(matching));
        }
        Ok(pipeline)
    }
}

/// Reads a pipeline over another collection.
fn parse_inner(
    stages: &[DocumentRef<'_>],
    around: &PipelineContext,
    place: PipelineKind,
) -> Result<Pipeline> {
    let around = around.clone().asking(stages.iter().copied());
    Pipeline::of(parse_stages(stages, &around, place)?, &around, Part::Foreign)
}
