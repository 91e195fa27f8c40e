//! The rules of stage order.

use bson::DocumentRef;

use crate::error::{Code, Error, Result};
use crate::pipeline::settings::PipelineContext;
use crate::pipeline::stage::is_refused;

/// The kind of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PipelineKind {
    /// The request's own.
    Top,
    /// Within `$lookup`.
    Lookup,
    /// Within `$unionWith`.
    Union,
    /// Within `$facet`.
    Facet,
}

/// How many stages a pipeline has at most.
const STAGES_MAX: usize = 1000;

/// Stages that do not read the rows before them.
const FIRST: &[&str] = &[
    "$collStats",
    "$indexStats",
    "$currentOp",
    "$listLocalSessions",
    "$changeStream",
    "$documents",
    "$geoNear",
];
/// Stages that write.
const LAST: &[&str] = &["$out", "$merge"];
/// The stages that may follow a `$changeStream`.
const AFTER_CHANGE_STREAM: &[&str] = &[
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$replaceRoot",
    "$replaceWith",
    "$redact",
    "$changeStreamSplitLargeEvent",
];

/// Checks the order of stages by their names alone.
pub(crate) fn check(stages: &[DocumentRef<'_>], place: PipelineKind, around: &PipelineContext) -> Result<()> {
    if stages.len() > STAGES_MAX {
        let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages.");
        return Err(Error::location(7_749_501, message));
    }
    let names: Vec<&str> =
        stages.iter().map(|stage| stage.iter().next().map_or("", |(name, _)| name)).collect();
    for (number, name) in names.iter().enumerate() {
        within(name, place)?;
        if number > 0 && FIRST.contains(name) {
            let message = format!("{name} is only valid as the first stage in a pipeline");
            return Err(Error::location(40602, message));
        }
        if number + 1 < names.len() && LAST.contains(name) {
            let message = format!("{name} can only be the final stage in the pipeline");
            return Err(Error::location(40601, message));
        }
    }
    if matches!(place, PipelineKind::Facet) {
        return Ok(());
    }
    collection(names.first().copied(), around)
}

/// Checks the stages after a `$changeStream`, all of them known.
pub(crate) fn check_following(stages: &[DocumentRef<'_>]) -> Result<()> {
    let mut names = stages.iter().map(|stage| stage.iter().next().map_or("", |(name, _)| name));
    if names.next() != Some("$changeStream") {
        return Ok(());
    }
    match names.find(|name| !AFTER_CHANGE_STREAM.contains(name)) {
        Some(name) => {
            let message = format!("{name} is not permitted in a $changeStream pipeline");
            Err(Error::new(Code::ILLEGAL_OPERATION, message))
        }
        None => Ok(()),
    }
}

/// Whether the stage may stand in a pipeline at that place.
fn within(name: &str, place: PipelineKind) -> Result<()> {
    match place {
        PipelineKind::Lookup if LAST.contains(&name) || name == "$changeStream" => {
            Err(Error::location(51047, format!("{name} is not allowed within a $lookup's sub-pipeline")))
        }
        PipelineKind::Union if LAST.contains(&name) || name == "$changeStream" => {
            Err(Error::location(31441, format!("{name} is not allowed within a $unionWith's sub-pipeline")))
        }
        PipelineKind::Facet if LAST.contains(&name) || FIRST.contains(&name) || name == "$facet" => {
            let message = format!("{name} is not allowed to be used within a $facet stage");
            Err(Error::location(40600, message))
        }
        PipelineKind::Top | PipelineKind::Lookup | PipelineKind::Union | PipelineKind::Facet => Ok(()),
    }
}

/// Whether a pipeline that begins so may run with or without a collection.
fn collection(first: Option<&str>, around: &PipelineContext) -> Result<()> {
    let alone = matches!(first, Some("$documents" | "$currentOp" | "$listLocalSessions"));
    // A stage that is not here is refused as that.
    let either = first == Some("$changeStream") || first.is_some_and(is_refused);
    match (&around.settings.collection, first) {
        (Some(_), Some(name)) if alone => {
            let message = format!("{name} must be run with {{aggregate: 1}}");
            Err(Error::new(Code::INVALID_NAMESPACE, message))
        }
        (None, Some(name)) if !alone && !either => {
            let message = format!("{{aggregate: 1}} is not valid for '{name}'; a collection is required.");
            Err(Error::new(Code::INVALID_NAMESPACE, message))
        }
        (None, None) => {
            let message = "{aggregate: 1} is not valid for an empty pipeline.";
            Err(Error::new(Code::INVALID_NAMESPACE, message))
        }
        _ => Ok(()),
    }
}
