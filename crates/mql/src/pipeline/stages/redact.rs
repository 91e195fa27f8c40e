//! `$redact`: an expression decides for each document, outermost first, whether it is kept whole, descended into, or left out.

use std::sync::Arc;

use bson::{Document, DocumentRef, Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Scope;
use crate::pipeline::chain::{Each, EachRow, ExecutionContext, Step};
use crate::pipeline::row::Row;
use crate::pipeline::settings::{Formula, PipelineContext};
use crate::pipeline::values::text;

/// A `$redact` as parsed.
#[derive(Debug)]
pub(crate) struct Redact {
    verdict: Formula,
}

/// The variables for these decisions, and their values while the expression is evaluated.
const VERDICTS: [&str; 3] = ["DESCEND", "PRUNE", "KEEP"];

impl Redact {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Redact> {
        Ok(Redact { verdict: around.formula_with(argument, &VERDICTS)? })
    }

    pub(crate) fn start(self: &Arc<Self>) -> Box<dyn Step> {
        EachRow::step(RedactStep(Arc::clone(self)))
    }

    fn document(
        &self,
        scope: &Scope<'_>,
        document: DocumentRef<'_>,
        context: &Context,
    ) -> Result<Option<Document>> {
        context.spend(1)?;
        let here = scope.with("CURRENT", Some(ValueRef::Document(document)));
        let verdict = self.verdict.expression.evaluate(&here, context)?;
        match verdict.as_ref().and_then(Value::as_str) {
            Some("keep") => Ok(Some(document.to_document())),
            Some("prune") => Ok(None),
            Some("descend") => {
                let mut kept = Document::new();
                for (name, value) in document.iter() {
                    if let Some(value) = self.value(scope, value, context)? {
                        kept.push(name, value);
                    }
                }
                Ok(Some(kept))
            }
            _ => {
                let shown = verdict.as_ref().map_or_else(|| "MISSING".to_owned(), |value| text(value.view()));
                let message = format!(
                    "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, \
                     and $$PRUNE, but returned {shown}"
                );
                Err(Error::location(17053, message))
            }
        }
    }

    fn value(&self, scope: &Scope<'_>, value: ValueRef<'_>, context: &Context) -> Result<Option<Value>> {
        match value {
            ValueRef::Document(document) => Ok(self.document(scope, document, context)?.map(Value::Document)),
            ValueRef::Array(items) => {
                let mut kept = Vec::new();
                for item in items.iter() {
                    kept.extend(self.value(scope, item, context)?);
                }
                Ok(Some(Value::Array(kept)))
            }
            other => Ok(Some(other.to_value())),
        }
    }
}

struct RedactStep(Arc<Redact>);

impl Each for RedactStep {
    fn apply(&mut self, row: Row, execution: &mut ExecutionContext<'_>) -> Result<Option<Row>> {
        let kept = {
            let scope = self.0.verdict.scope_of_row(&row);
            self.0.document(&scope, row.view(), execution.context)?
        };
        Ok(kept.map(|document| row.with_body(document)))
    }
}
