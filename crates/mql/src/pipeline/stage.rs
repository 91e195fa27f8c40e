//! The table of stages: their names, and the type of each.

use std::sync::Arc;

use bson::{Document, DocumentRef, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::pipeline::chain::{Chain, Each, EachRow, ExecutionContext, Step};
use crate::pipeline::merge::Merge;
use crate::pipeline::rewrite::Change;
use crate::pipeline::row::Row;
use crate::pipeline::rules::{self, PipelineKind};
use crate::pipeline::settings::{Formula, PipelineContext};
use crate::pipeline::source::{Description, Namespace};
use crate::pipeline::stages::bucket_auto::BucketAuto;
use crate::pipeline::stages::change_stream::ChangeStream;
use crate::pipeline::stages::densify::Densify;
use crate::pipeline::stages::facet::Facet;
use crate::pipeline::stages::geo_near::GeoNear;
use crate::pipeline::stages::graph_lookup::GraphLookup;
use crate::pipeline::stages::group::{self, Count, Group};
use crate::pipeline::stages::limit_skip::{self, Limit, Skip};
use crate::pipeline::stages::lookup::Lookup;
use crate::pipeline::stages::matching::Match;
use crate::pipeline::stages::order::{self, SampleStep, Sorted};
use crate::pipeline::stages::out;
use crate::pipeline::stages::project::Project;
use crate::pipeline::stages::redact::Redact;
use crate::pipeline::stages::replace_root::ReplaceRoot;
use crate::pipeline::stages::union_with::UnionWith;
use crate::pipeline::stages::unwind::Unwind;
use crate::pipeline::stages::{bucket, fill};
use crate::pipeline::values::type_name;
use crate::pipeline::window::SetWindowFields;

/// A stage, checked. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    Match(Match),
    Rewrite(Change),
    Group(Arc<Group>),
    Sort(Sorted),
    Limit(u64),
    Skip(u64),
    Unwind(Arc<Unwind>),
    Lookup(Arc<Lookup>),
    Count(Arc<Count>),
    Facet(Arc<Facet>),
    BucketAuto(Arc<BucketAuto>),
    Sample(u64),
    UnionWith(Arc<UnionWith>),
    GraphLookup(Arc<GraphLookup>),
    Redact(Arc<Redact>),
    SetWindowFields(Arc<SetWindowFields>),
    Densify(Arc<Densify>),
    Out(Arc<Namespace>),
    Merge(Arc<Merge>),
    /// A source of rows other than the collection.
    Documents(Formula),
    GeoNear(Arc<GeoNear>),
    Describe(Description),
    ChangeStream(Arc<ChangeStream>),
}

impl Stage {
    /// Returns `true` if each row is passed on, changed, or left out when it comes.
    pub(crate) fn passes_rows_on(&self) -> bool {
        match self {
            Stage::Match(_)
            | Stage::Rewrite(_)
            | Stage::Limit(_)
            | Stage::Skip(_)
            | Stage::Unwind(_)
            | Stage::Lookup(_)
            | Stage::GraphLookup(_)
            | Stage::Redact(_) => true,
            Stage::Group(_)
            | Stage::Sort(_)
            | Stage::Count(_)
            | Stage::Facet(_)
            | Stage::BucketAuto(_)
            | Stage::Sample(_)
            | Stage::UnionWith(_)
            | Stage::SetWindowFields(_)
            | Stage::Densify(_)
            | Stage::Out(_)
            | Stage::Merge(_)
            | Stage::Documents(_)
            | Stage::GeoNear(_)
            | Stage::Describe(_)
            | Stage::ChangeStream(_) => false,
        }
    }
}

/// Stages of MongoDB that are not supported.
const REFUSED: &[&str] = &[
    "$changeStreamSplitLargeEvent",
    "$listCatalog",
    "$listClusterCatalog",
    "$listMqlEntities",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$listSessions",
    "$planCacheStats",
    "$queryStats",
    "$querySettings",
    "$rankFusion",
    "$score",
    "$scoreFusion",
    "$search",
    "$searchMeta",
    "$shardedDataDistribution",
    "$vectorSearch",
];

/// Returns `true` if MongoDB has this stage and this server does not.
pub(crate) fn is_refused(name: &str) -> bool {
    REFUSED.contains(&name)
}

/// Parses the stages of a pipeline of some kind.
pub(crate) fn parse_stages(
    stages: &[DocumentRef<'_>],
    around: &PipelineContext,
    place: PipelineKind,
) -> Result<Vec<Stage>> {
    rules::check(stages, place, around)?;
    let mut parsed = Vec::new();
    for stage in stages {
        parsed.extend(parse_stage(*stage, around)?);
    }
    rules::check_following(stages)?;
    if parsed.iter().skip(1).any(|stage| matches!(stage, Stage::Match(matching) if matching.searches_text()))
    {
        let message = "$match with $text is only allowed as the first pipeline stage";
        return Err(Error::location(17313, message));
    }
    Ok(parsed)
}

/// Parses one stage. Some are abbreviations of two.
pub(crate) fn parse_stage(stage: DocumentRef<'_>, around: &PipelineContext) -> Result<Vec<Stage>> {
    let mut fields = stage.iter();
    let (Some((name, argument)), None) = (fields.next(), fields.next()) else {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return Err(Error::location(40323, message));
    };
    if let Some(stage) = parse_source(name, argument, around)? {
        return Ok(vec![stage]);
    }
    if let Some(change) = parse_change(name, argument, around)? {
        return Ok(vec![Stage::Rewrite(change)]);
    }
    Ok(vec![match name {
        "$match" => Stage::Match(Match::parse(argument, around)?),
        "$group" => Stage::Group(Arc::new(Group::parse(argument, around)?)),
        "$sort" => Stage::Sort(Sorted::parse(argument, around)?),
        "$limit" => Stage::Limit(limit_skip::parse_limit(argument)?),
        "$skip" => Stage::Skip(limit_skip::parse_skip(argument)?),
        "$unwind" => Stage::Unwind(Arc::new(Unwind::parse(argument)?)),
        "$lookup" => Stage::Lookup(Arc::new(Lookup::parse(argument, around)?)),
        "$count" => Stage::Count(Arc::new(Count::parse(argument)?)),
        "$facet" => Stage::Facet(Arc::new(Facet::parse(argument, around)?)),
        "$bucketAuto" => Stage::BucketAuto(Arc::new(BucketAuto::parse(argument, around)?)),
        "$sample" => Stage::Sample(order::parse_sample(argument)?),
        "$unionWith" => Stage::UnionWith(Arc::new(UnionWith::parse(argument, around)?)),
        "$graphLookup" => Stage::GraphLookup(Arc::new(GraphLookup::parse(argument, around)?)),
        "$redact" => Stage::Redact(Arc::new(Redact::parse(argument, around)?)),
        "$setWindowFields" => Stage::SetWindowFields(Arc::new(SetWindowFields::parse(argument, around)?)),
        "$densify" => Stage::Densify(Arc::new(Densify::parse(argument, around)?)),
        "$out" => Stage::Out(out::parse(argument, around)?),
        "$merge" => Stage::Merge(Arc::new(Merge::parse(argument, around)?)),
        "$sortByCount" => {
            let group = Stage::Group(Arc::new(group::parse_sort_by_count(argument, around)?));
            return Ok(vec![group, sort_by("count", -1, around)?]);
        }
        "$bucket" => {
            let group = Stage::Group(Arc::new(bucket::parse(argument, around)?));
            return Ok(vec![group, sort_by("_id", 1, around)?]);
        }
        "$fill" => return fill::parse(argument, around),
        name if is_refused(name) => {
            let need =
                if name.contains("earch") { ": it needs the search service of MongoDB Atlas" } else { "" };
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, format!("{name} is not supported{need}")));
        }
        name => {
            return Err(Error::location(40324, format!("Unrecognized pipeline stage name: '{name}'")));
        }
    }])
}

fn parse_change(name: &str, argument: ValueRef<'_>, around: &PipelineContext) -> Result<Option<Change>> {
    let project = match name {
        "$project" => Project::parse_project(argument, around)?,
        "$addFields" | "$set" => Project::parse_add_fields(name, argument, around)?,
        "$unset" => Project::parse_unset(argument, around)?,
        "$replaceRoot" => {
            return Ok(Some(Change::ReplaceRoot(Arc::new(ReplaceRoot::parse_root(argument, around)?))));
        }
        "$replaceWith" => {
            return Ok(Some(Change::ReplaceRoot(Arc::new(ReplaceRoot::parse_with(argument, around)?))));
        }
        _ => return Ok(None),
    };
    Ok(Some(Change::Project(Arc::new(project))))
}

/// Parses a stage that is a source of rows.
fn parse_source(name: &str, argument: ValueRef<'_>, around: &PipelineContext) -> Result<Option<Stage>> {
    let options = |code: i32| match argument {
        ValueRef::Document(options) => Ok(options.to_document()),
        other => {
            let kind = type_name(other);
            let message = format!("{name} must take a nested object but found a value of type {kind}");
            Err(Error::location(code, message))
        }
    };
    Ok(Some(match name {
        "$documents" => Stage::Documents(around.formula(argument)?),
        "$geoNear" => Stage::GeoNear(Arc::new(GeoNear::parse(argument, around)?)),
        "$collStats" => Stage::Describe(Description::Collection(options(5_447_000)?)),
        "$currentOp" => Stage::Describe(Description::Operations(options(9)?)),
        "$indexStats" => {
            let empty = matches!(argument, ValueRef::Document(document) if document.is_empty());
            if !empty {
                let message = "The $indexStats stage specification must be an empty object";
                return Err(Error::location(28803, message));
            }
            Stage::Describe(Description::Indexes)
        }
        "$listLocalSessions" => {
            // A client sees its own sessions, whatever its rights.
            let is_default =
                |(field, value): &(&str, &Value)| (*field, *value) == ("allUsers", &Value::Bool(false));
            if let Some((field, _)) = options(9)?.iter().find(|option| !is_default(option)) {
                let message = format!("the option '{field}' of $listLocalSessions is not supported");
                return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
            }
            Stage::Describe(Description::Sessions)
        }
        "$changeStream" => Stage::ChangeStream(Arc::new(ChangeStream::parse(argument)?)),
        _ => return Ok(None),
    }))
}

fn sort_by(field: &str, direction: i32, around: &PipelineContext) -> Result<Stage> {
    let order = Document::new().with(field, direction);
    Ok(Stage::Sort(Sorted::parse(ValueRef::Document(order.view()), around)?))
}

impl Stage {
    /// Starts the stage. Sources of rows are not run as steps: see `running`.
    fn start(&self) -> Option<Box<dyn Step>> {
        Some(match self {
            Stage::Match(matching) => matching.start(),
            Stage::Rewrite(change) => EachRow::step(change.clone()),
            Stage::Group(group) => group.start(),
            Stage::Sort(sorted) => sorted.start("$sort"),
            Stage::Limit(limit) => Limit::step(*limit),
            Stage::Skip(skip) => Skip::step(*skip),
            Stage::Unwind(unwind) => unwind.start(),
            Stage::Lookup(lookup) => lookup.start(),
            Stage::Count(count) => count.start(),
            Stage::Facet(facet) => facet.start(),
            Stage::BucketAuto(bucket) => bucket.start(),
            Stage::Sample(size) => SampleStep::step(*size),
            Stage::UnionWith(union) => union.start(),
            Stage::GraphLookup(lookup) => lookup.start(),
            Stage::Redact(redact) => redact.start(),
            Stage::SetWindowFields(window) => window.start(),
            Stage::Densify(densify) => densify.start(),
            Stage::Out(target) => out::OutStep::step(target),
            Stage::Merge(merge) => merge.start(),
            Stage::GeoNear(near) => near.start(),
            Stage::Documents(_) | Stage::Describe(_) | Stage::ChangeStream(_) => return None,
        })
    }

    /// Adds the collections that the stage reads.
    pub(crate) fn collections(&self, found: &mut Vec<Namespace>) {
        match self {
            Stage::Lookup(lookup) => lookup.collections(found),
            Stage::UnionWith(union) => union.collections(found),
            Stage::GraphLookup(lookup) => lookup.collections(found),
            Stage::Facet(facet) => facet.collections(found),
            _ => {}
        }
    }

    /// Adds the descriptions that pipelines within the stage request besides documents.
    pub(crate) fn descriptions(&self, found: &mut Vec<(Namespace, Description)>) {
        match self {
            Stage::Lookup(lookup) => lookup.descriptions(found),
            Stage::UnionWith(union) => union.descriptions(found),
            Stage::Facet(facet) => facet.descriptions(found),
            _ => {}
        }
    }
}

/// Starts stages that are fed from outside.
pub(crate) fn start_stages(stages: &[Stage]) -> Chain {
    start_behind(Vec::new(), stages)
}

/// Returns the same, after other steps.
pub(crate) fn start_behind(mut steps: Vec<Box<dyn Step>>, stages: &[Stage]) -> Chain {
    steps.extend(stages.iter().filter_map(Stage::start));
    Chain::new(steps)
}

impl Each for Change {
    fn apply(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        Change::apply(self, row, execution.context).map(Some)
    }
}
