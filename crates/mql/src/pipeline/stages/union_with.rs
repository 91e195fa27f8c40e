//! `$unionWith`: after the last row, the rows of another collection.

use std::sync::Arc;

use bson::{RawDocument, ValueRef};

use crate::error::{Error, Result};
use crate::pipeline::chain::{ExecutionContext, Flow, Outbox, Step};
use crate::pipeline::row::Row;
use crate::pipeline::rules::PipelineKind;
use crate::pipeline::running::Running;
use crate::pipeline::settings::PipelineContext;
use crate::pipeline::source::{Description, Namespace, Source};
use crate::pipeline::stages::lookup::{read_stages, views};
use crate::pipeline::values::type_name;
use crate::pipeline::{Pipeline, parse_inner};

/// A `$unionWith` as parsed.
#[derive(Debug)]
pub(crate) struct UnionWith {
    from: Option<Namespace>,
    /// The collection itself, or the one behind it if it is a view.
    on: Option<Namespace>,
    pipeline: Arc<Pipeline>,
}

impl UnionWith {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<UnionWith> {
        let (from, stages): (Option<Namespace>, Vec<RawDocument>) = match argument {
            ValueRef::String(name) => (Some(around.namespace(name)), Vec::new()),
            ValueRef::Document(document) => {
                let (mut from, mut stages) = (None, None);
                for (name, value) in document.iter() {
                    match (name, value) {
                        ("coll", ValueRef::String(name)) => from = Some(around.namespace(name)),
                        ("coll", other) => {
                            let message = format!(
                                "BSON field '$unionWith.coll' is the wrong type '{}', expected type 'string'",
                                type_name(other)
                            );
                            return Err(Error::type_mismatch(message));
                        }
                        ("pipeline", value) => stages = Some(read_stages("$unionWith", value)?),
                        _ => {
                            let message = format!("BSON field '$unionWith.{name}' is an unknown field.");
                            return Err(Error::location(40415, message));
                        }
                    }
                }
                (from, stages.unwrap_or_default())
            }
            other => {
                let message = format!(
                    "the $unionWith stage specification must be an object or string, but found {}",
                    type_name(other)
                );
                return Err(Error::failed_to_parse(message));
            }
        };
        if from.is_none() && stages.first().is_none_or(|stage| stage.get("$documents").is_none()) {
            let message = "$unionWith stage without explicit collection must have a pipeline with $documents as first stage";
            return Err(Error::failed_to_parse(message));
        }
        let (on, view) = around.behind(from.as_ref());
        let stages: Vec<RawDocument> = view.into_iter().chain(stages).collect();
        let inner = around.inner(on.as_ref(), &[])?;
        let pipeline = Arc::new(parse_inner(&views(&stages), &inner, PipelineKind::Union)?);
        Ok(UnionWith { from, on, pipeline })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        Box::new(UnionWithStep { union: Arc::clone(self), outbox: Outbox::default(), other: None })
    }

    pub(crate) fn descriptions(&self, found: &mut Vec<(Namespace, Description)>) {
        found.extend(self.pipeline.descriptions());
    }

    pub(crate) fn collections(&self, found: &mut Vec<Namespace>) {
        found.extend(self.from.iter().chain(&self.on).cloned());
        found.extend(self.pipeline.collections());
    }
}

struct UnionWithStep {
    union: Arc<UnionWith>,
    outbox: Outbox,
    other: Option<Running>,
}

impl Step for UnionWithStep {
    fn push(&mut self, row: Row, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.outbox.put(row);
        Ok(())
    }

    fn end(&mut self, _world: &mut ExecutionContext<'_>) -> Result<()> {
        self.other = Some(Pipeline::clone(&self.union.pipeline).start());
        self.outbox.end();
        Ok(())
    }

    fn pop(&mut self, execution: &mut ExecutionContext<'_>) -> Result<Flow> {
        if let Some(other) = &mut self.other
            && let Some(row) = other.next(execution.source, execution.context)?
        {
            return Ok(Flow::Row(row));
        }
        Ok(self.outbox.pop())
    }

    fn close(&mut self, source: &mut dyn Source) {
        if let Some(other) = &mut self.other {
            other.close(source);
        }
    }

    fn rest(&mut self) {
        if let Some(other) = &mut self.other {
            other.rest();
        }
    }

    fn bytes(&self) -> usize {
        self.outbox.bytes() + self.other.as_ref().map_or(0, Running::bytes)
    }
}
