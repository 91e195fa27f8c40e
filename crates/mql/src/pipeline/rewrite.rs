//! Stages that change one document without looking at any other: what updates with a pipeline and `$merge` may use.

use std::sync::Arc;

use bson::{Document, DocumentRef};

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::pipeline::row::Row;
use crate::pipeline::settings::{PipelineContext, Settings};
use crate::pipeline::stage::{Stage, parse_stage};
use crate::pipeline::stages::project::Project;
use crate::pipeline::stages::replace_root::ReplaceRoot;

/// A pipeline of such stages.
#[derive(Debug, Clone)]
pub struct Rewrite(Vec<Change>);

/// One such stage.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Project(Arc<Project>),
    ReplaceRoot(Arc<ReplaceRoot>),
}

impl Change {
    pub(crate) fn apply(&self, row: Row, context: &Context) -> Result<Row> {
        match self {
            Change::Project(project) => project.apply(row, context),
            Change::ReplaceRoot(root) => root.apply(row, context),
        }
    }
}

impl Rewrite {
    /// Reads `$set`, `$addFields`, `$unset`, `$project`, `$replaceRoot` and `$replaceWith`; others are refused.
    pub fn parse(stages: &[DocumentRef<'_>], settings: &Settings) -> Result<Rewrite> {
        Rewrite::parse_at(stages, &PipelineContext::new(settings))
    }

    pub(crate) fn parse_at(stages: &[DocumentRef<'_>], around: &PipelineContext) -> Result<Rewrite> {
        let mut changes = Vec::new();
        for stage in stages {
            for parsed in parse_stage(*stage, around)? {
                let Stage::Rewrite(change) = parsed else {
                    let name = stage.iter().next().map_or("", |(name, _)| name);
                    let message = format!("{name} is not allowed to be used within an update");
                    return Err(Error::new(Code::INVALID_OPTIONS, message));
                };
                changes.push(change);
            }
        }
        Ok(Rewrite(changes))
    }

    /// Returns the document after all changes.
    pub fn apply(&self, document: DocumentRef<'_>, context: &Context) -> Result<Document> {
        let mut row = Row::from(document.to_document());
        for change in &self.0 {
            row = change.apply(row, context)?;
        }
        Ok(row.body.into_tree())
    }
}
