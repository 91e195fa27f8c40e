//! `$out`: the rows become a collection.

use std::sync::Arc;

use bson::{RawDocument, ValueRef};

use crate::error::{Code, Error, Result};
use crate::pipeline::chain::{ExecutionContext, Flow, Outbox, Step};
use crate::pipeline::row::Row;
use crate::pipeline::settings::PipelineContext;
use crate::pipeline::source::Namespace;
use crate::pipeline::values::type_name;

/// How many bytes of rows are passed to the source at once.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
const BATCH_ROWS: usize = 1000;

/// Reads `$out`: the collection that is replaced.
pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Arc<Namespace>> {
    match argument {
        ValueRef::String(name) if !name.is_empty() => Ok(Arc::new(around.namespace(name))),
        ValueRef::String(_) => {
            Err(Error::new(Code::INVALID_NAMESPACE, "Invalid $out target namespace: the collection is empty"))
        }
        ValueRef::Document(document) => {
            if document.get("timeseries").is_some() {
                let message = "$out with 'timeseries' is not supported";
                return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
            }
            for (name, value) in document.iter() {
                if !matches!(name, "db" | "coll") {
                    let message = format!("BSON field '$out.{name}' is an unknown field.");
                    return Err(Error::location(40415, message));
                }
                if value.as_str().is_none() {
                    let message = format!(
                        "BSON field '$out.{name}' is the wrong type '{}', expected type 'string'",
                        type_name(value)
                    );
                    return Err(Error::type_mismatch(message));
                }
            }
            let part = |name: &str| document.get(name).and_then(ValueRef::as_str);
            let missing = |name: &str| {
                let message = format!("BSON field '$out.{name}' is missing but a required field");
                Error::location(40414, message)
            };
            Ok(Arc::new(Namespace {
                database: part("db").ok_or_else(|| missing("db"))?.to_owned(),
                collection: part("coll").ok_or_else(|| missing("coll"))?.to_owned(),
            }))
        }
        other => {
            let message =
                format!("$out only supports a string or object argument, but found {}", type_name(other));
            Err(Error::location(16990, message))
        }
    }
}

pub(crate) struct OutStep {
    target: Arc<Namespace>,
    batch: Vec<RawDocument>,
    bytes: usize,
    outbox: Outbox,
}

impl OutStep {
    pub(crate) fn step(target: &Arc<Namespace>) -> Box<dyn Step> {
        let target = Arc::clone(target);
        Box::new(OutStep { target, batch: Vec::new(), bytes: 0, outbox: Outbox::default() })
    }

    fn hand_over(&mut self, execution: &mut ExecutionContext<'_>) -> Result<()> {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() { Ok(()) } else { execution.source.stage_documents(&self.target, batch) }
    }
}

impl Step for OutStep {
    fn push(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<()> {
        execution.context.spend(1)?;
        let document = row.body.into_raw();
        self.bytes += document.as_bytes().len();
        self.batch.push(document);
        if self.bytes >= BATCH_BYTES || self.batch.len() >= BATCH_ROWS {
            self.hand_over(execution)?;
        }
        Ok(())
    }

    fn end(&mut self, execution: &mut ExecutionContext<'_>) -> Result<()> {
        self.hand_over(execution)?;
        execution.source.replace_collection(&self.target)?;
        self.outbox.end();
        Ok(())
    }

    fn pop(&mut self, _world: &mut ExecutionContext<'_>) -> Result<Flow> {
        Ok(self.outbox.pop())
    }
}
