//! `$fill`: values for fields without one. It is an abbreviation of `$setWindowFields` and `$addFields`.

use std::sync::Arc;

use bson::{Document, Value, ValueRef};

use crate::error::{Error, Result};
use crate::pipeline::rewrite::Change;
use crate::pipeline::settings::PipelineContext;
use crate::pipeline::stage::Stage;
use crate::pipeline::stages::project::Project;
use crate::pipeline::values::{text, type_name};
use crate::pipeline::window::from_parts;

/// Reads `$fill`.
pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Vec<Stage>> {
    let ValueRef::Document(document) = argument else {
        let kind = type_name(argument);
        return Err(Error::failed_to_parse(format!(
            "the $fill stage specification must be an object, found {kind}"
        )));
    };
    for (name, _) in document.iter() {
        if !matches!(name, "partitionBy" | "partitionByFields" | "sortBy" | "output") {
            return Err(Error::location(40415, format!("BSON field '$fill.{name}' is an unknown field.")));
        }
    }
    let output = match document.get("output") {
        Some(ValueRef::Document(output)) if !output.is_empty() => output,
        Some(ValueRef::Document(_)) => {
            return Err(Error::location(6_050_203, "The output field of $fill must not be empty"));
        }
        _ => return Err(Error::location(40414, "BSON field '$fill.output' is missing but a required field")),
    };
    let sort = document.get("sortBy").and_then(ValueRef::as_document);
    let partition = read_partition(document.get("partitionBy"), document.get("partitionByFields"))?;
    let (mut windows, mut values) = (Document::new(), Document::new());
    for (field, fill) in output.iter() {
        let path = format!("${field}");
        match read_fill(field, fill)? {
            Fill::Value(value) => {
                let filled = Document::new().with("$ifNull", vec![Value::String(path), value.to_value()]);
                values.push(field, filled);
            }
            Fill::Method(method) => {
                if sort.is_none() && method == "$linearFill" {
                    return Err(Error::location(
                        605_001,
                        "$linearFill must be specified with a top level sortBy expression with exactly one element",
                    ));
                }
                windows.push(field, Document::new().with(method, path));
            }
        }
    }
    let mut stages = Vec::new();
    if !windows.is_empty() {
        let partition = partition.as_ref().map(Value::view);
        stages.push(Stage::SetWindowFields(Arc::new(from_parts(partition, sort, windows, around)?)));
    }
    if !values.is_empty() {
        let fields = Project::parse_add_fields("$fill", ValueRef::Document(values.view()), around)?;
        stages.push(Stage::Rewrite(Change::Project(Arc::new(fields))));
    }
    Ok(stages)
}

enum Fill<'a> {
    Value(ValueRef<'a>),
    Method(&'static str),
}

fn read_fill<'a>(field: &str, fill: ValueRef<'a>) -> Result<Fill<'a>> {
    let refused = || {
        let message = format!(
            "Exactly one of 'value' or 'method' is needed to fill '{field}', but found {}",
            text(fill)
        );
        Error::location(6_050_202, message)
    };
    let ValueRef::Document(document) = fill else { return Err(refused()) };
    let mut options = document.iter();
    match (options.next(), options.next()) {
        (Some(("value", value)), None) => Ok(Fill::Value(value)),
        (Some(("method", method)), None) => match method.as_str() {
            Some("linear") => Ok(Fill::Method("$linearFill")),
            Some("locf") => Ok(Fill::Method("$locf")),
            _ => {
                let message = format!("Method must be either locf or linear, but found {}", text(method));
                Err(Error::location(6_050_202, message))
            }
        },
        _ => Err(refused()),
    }
}

/// Returns the partition of rows: an expression, or a list of fields.
fn read_partition(by: Option<ValueRef<'_>>, fields: Option<ValueRef<'_>>) -> Result<Option<Value>> {
    match (by, fields) {
        (Some(_), Some(_)) => {
            let message = "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'";
            Err(Error::location(6_050_204, message))
        }
        (by, None) => Ok(by.map(ValueRef::to_value)),
        (None, Some(fields)) => {
            let ValueRef::Array(fields) = fields else {
                let message = "BSON field '$fill.partitionByFields' must be an array of strings";
                return Err(Error::type_mismatch(message));
            };
            let mut partition = Document::new();
            for (number, field) in fields.iter().enumerate() {
                let field = field.as_str().ok_or_else(|| {
                    Error::type_mismatch("BSON field '$fill.partitionByFields' must be an array of strings")
                })?;
                partition.push(format!("field{number}"), format!("${field}"));
            }
            Ok(Some(Value::Document(partition)))
        }
    }
}
