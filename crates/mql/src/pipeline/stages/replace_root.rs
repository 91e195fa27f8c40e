//! `$replaceRoot` and `$replaceWith`: a computed document replaces the original one.

use bson::{Value, ValueRef};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pipeline::row::Row;
use crate::pipeline::settings::{Formula, PipelineContext};
use crate::pipeline::values::{text, type_name};

/// The expression of the new document.
#[derive(Debug)]
pub(crate) struct ReplaceRoot {
    root: Formula,
    /// The name of the expression in messages.
    called: &'static str,
}

impl ReplaceRoot {
    pub(crate) fn parse_root(argument: ValueRef<'_>, around: &PipelineContext) -> Result<ReplaceRoot> {
        let ValueRef::Document(document) = argument else {
            let kind = type_name(argument);
            let message = format!("expected an object as specification for $replaceRoot stage, got {kind}");
            return Err(Error::location(40229, message));
        };
        if let Some((name, _)) = document.iter().find(|(name, _)| *name != "newRoot") {
            let message =
                format!("unrecognized option to $replaceRoot stage: {name}, only valid option is 'newRoot'.");
            return Err(Error::location(40230, message));
        }
        let root = document
            .get("newRoot")
            .ok_or_else(|| Error::location(40231, "no newRoot specified for the $replaceRoot stage"))?;
        Ok(ReplaceRoot { root: around.formula(root)?, called: "'newRoot' expression " })
    }

    pub(crate) fn parse_with(argument: ValueRef<'_>, around: &PipelineContext) -> Result<ReplaceRoot> {
        Ok(ReplaceRoot { root: around.formula(argument)?, called: "'replacement document' " })
    }

    pub(crate) fn apply(&self, row: Row, context: &Context) -> Result<Row> {
        match self.root.of_row(&row, context)? {
            Some(Value::Document(document)) => Ok(row.with_body(document)),
            other => {
                let (found, kind) = match &other {
                    Some(value) => (text(value.view()), type_name(value.view())),
                    None => ("MISSING".to_owned(), "missing"),
                };
                let message = format!(
                    "{}must evaluate to an object, but resulting value was: {found}. Type of resulting value: \
                     '{kind}'. Input document: {}",
                    self.called,
                    text(ValueRef::Document(row.view())),
                );
                Err(Error::location(40228, message))
            }
        }
    }
}
