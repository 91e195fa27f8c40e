//! `$facet`: several pipelines over the same rows; each becomes a field of one document.

use std::sync::Arc;

use bson::{Document, DocumentRef, Value, ValueRef};

use crate::error::{Code, Error, Result};
use crate::pipeline::chain::{Chain, ExecutionContext, Flow, Outbox, Step};
use crate::pipeline::memory::Memory;
use crate::pipeline::row::{Row, document_bytes};
use crate::pipeline::rules::PipelineKind;
use crate::pipeline::settings::PipelineContext;
use crate::pipeline::source::{Description, Namespace, Source};
use crate::pipeline::stage::{Stage, parse_stages, start_stages};
use crate::pipeline::values::type_name;

/// A `$facet` as parsed.
#[derive(Debug)]
pub(crate) struct Facet {
    parts: Vec<(String, Vec<Stage>)>,
}

impl Facet {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Facet> {
        let document = match argument {
            ValueRef::Document(document) if !document.is_empty() => document,
            _ => {
                return Err(Error::location(40169, "the $facet specification must be a non-empty object"));
            }
        };
        let inner = around.within()?;
        let parts = document
            .iter()
            .map(|(name, value)| {
                check_name(name)?;
                let ValueRef::Array(items) = value else {
                    let kind = type_name(value);
                    let message = format!("arguments to $facet must be arrays, {name} is type {kind}");
                    return Err(Error::location(40170, message));
                };
                let stages: Vec<DocumentRef<'_>> = items
                    .iter()
                    .map(|item| {
                        item.as_document().ok_or_else(|| {
                            let kind = type_name(item);
                            let message = format!(
                                "elements of arrays in $facet spec must be non-empty objects, {name} argument \
                                 contained an element of type {kind}"
                            );
                            Error::location(40171, message)
                        })
                    })
                    .collect::<Result<_>>()?;
                Ok((name.to_owned(), parse_stages(&stages, &inner, PipelineKind::Facet)?))
            })
            .collect::<Result<_>>()?;
        Ok(Facet { parts })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        let parts = self
            .parts
            .iter()
            .map(|(name, stages)| Part {
                name: name.clone(),
                chain: start_stages(stages),
                done: false,
                found: Vec::new(),
            })
            .collect();
        let memory = Memory::with_code("$facet", Code(4_031_700));
        Box::new(FacetStep { parts, memory, outbox: Outbox::default() })
    }

    pub(crate) fn descriptions(&self, found: &mut Vec<(Namespace, Description)>) {
        self.parts.iter().flat_map(|(_, stages)| stages).for_each(|stage| stage.descriptions(found));
    }

    pub(crate) fn collections(&self, found: &mut Vec<Namespace>) {
        for (_, stages) in &self.parts {
            for stage in stages {
                stage.collections(found);
            }
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.contains('.') || name.starts_with('$') {
        let message =
            format!("the names of facets may not be empty, begin with '$' or contain '.': '{name}'");
        return Err(Error::failed_to_parse(message));
    }
    Ok(())
}

struct Part {
    name: String,
    chain: Chain,
    done: bool,
    found: Vec<Value>,
}

struct FacetStep {
    parts: Vec<Part>,
    memory: Memory,
    outbox: Outbox,
}

impl Part {
    /// Takes the rows that the chain has ready, until it needs input or has ended.
    fn drain(&mut self, memory: &mut Memory, execution: &mut ExecutionContext<'_>) -> Result<()> {
        while !self.done {
            match self.chain.pop(execution)? {
                Flow::Row(row) => {
                    memory.take(document_bytes(row.view()), execution.context)?;
                    self.found.push(Value::Document(row.body.into_tree()));
                }
                Flow::Wanting => return Ok(()),
                Flow::End => self.done = true,
            }
        }
        Ok(())
    }
}

impl Step for FacetStep {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        for part in &mut self.parts {
            part.drain(&mut self.memory, execution)?;
            if !part.done {
                part.chain.push(row.clone(), execution)?;
                part.drain(&mut self.memory, execution)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, execution: &mut ExecutionContext<'_>) -> Result<()> {
        let mut document = Document::new();
        for part in &mut self.parts {
            part.drain(&mut self.memory, execution)?;
            if !part.done {
                part.chain.end(execution)?;
                part.drain(&mut self.memory, execution)?;
            }
            document.push(part.name.as_str(), std::mem::take(&mut part.found));
        }
        self.outbox.put(Row::made(document)?);
        self.outbox.end();
        Ok(())
    }

    fn pop(&mut self, _world: &mut ExecutionContext<'_>) -> Result<Flow> {
        Ok(self.outbox.pop())
    }

    fn close(&mut self, source: &mut dyn Source) {
        self.parts.iter_mut().for_each(|part| part.chain.close(source));
    }

    fn rest(&mut self) {
        self.parts.iter_mut().for_each(|part| part.chain.rest());
    }

    fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.chain.bytes()).sum::<usize>() + self.outbox.bytes()
    }
}
