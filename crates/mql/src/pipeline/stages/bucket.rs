//! `$bucket`: groups by given boundaries.

use bson::{Collation, Value, ValueRef};

use std::cmp::Ordering;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::pipeline::accumulator::{Accumulator, parse_fields};
use crate::pipeline::row::Row;
use crate::pipeline::settings::{Formula, PipelineContext};
use crate::pipeline::stages::group::{Group, Key};
use crate::pipeline::values::{text, type_name};

/// The buckets and their accumulators.
#[derive(Debug)]
pub(crate) struct Buckets {
    by: Formula,
    boundaries: Vec<Value>,
    default: Option<Value>,
    collation: Collation,
}

impl Buckets {
    /// Returns the bucket of a row: its lower boundary, or the default.
    pub(crate) fn of_row(&self, row: &Row, context: &Context) -> Result<Value> {
        let value = self.by.of_row(row, context)?;
        let not_above = |boundary: &Value| match &value {
            Some(value) => self.collation.compare_values(boundary.view(), value.view()) != Ordering::Greater,
            None => false,
        };
        let above = self.boundaries.partition_point(not_above);
        if above > 0 && above < self.boundaries.len() {
            return Ok(self.boundaries[above - 1].clone());
        }
        self.default.clone().ok_or_else(|| {
            let message =
                "$switch could not find a matching branch for an input, and no default was specified.";
            Error::location(40066, message)
        })
    }
}

/// Returns the accumulators of each bucket; a count by default.
pub(crate) fn parse_output(
    stage: &str,
    code: i32,
    output: Option<ValueRef<'_>>,
    around: &PipelineContext,
) -> Result<Vec<(String, Accumulator)>> {
    match output {
        None => Ok(vec![("count".to_owned(), Accumulator::count(around))]),
        Some(ValueRef::Document(fields)) => parse_fields(fields, around),
        Some(other) => {
            let kind = type_name(other);
            let message = format!("The {stage} 'output' field must be an object, but found type: {kind}.");
            Err(Error::location(code, message))
        }
    }
}

/// Reads the expression of the groups, which must depend on the document.
pub(crate) fn parse_group_by(
    stage: &str,
    code: i32,
    by: ValueRef<'_>,
    around: &PipelineContext,
) -> Result<Formula> {
    let path = by.as_str().is_some_and(|text| text.starts_with('$'));
    let operator = by
        .as_document()
        .is_some_and(|document| document.iter().next().is_some_and(|(name, _)| name.starts_with('$')));
    if !path && !operator {
        let message = format!(
            "The {stage} 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {}.",
            text(by)
        );
        return Err(Error::location(code, message));
    }
    around.formula(by)
}

/// Reads `$bucket`: returns the group that it abbreviates; the sort by `_id` follows it.
pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<Group> {
    let ValueRef::Document(document) = argument else {
        let message =
            format!("Argument to $bucket stage must be an object, but found type: {}.", type_name(argument));
        return Err(Error::location(40201, message));
    };
    for (name, _) in document.iter() {
        if !matches!(name, "groupBy" | "boundaries" | "default" | "output") {
            return Err(Error::location(40197, format!("Unrecognized option to $bucket: {name}.")));
        }
    }
    let (Some(by), Some(boundaries)) = (document.get("groupBy"), document.get("boundaries")) else {
        let message = "$bucket requires 'groupBy' and 'boundaries' to be specified.";
        return Err(Error::location(40198, message));
    };
    let by = parse_group_by("$bucket", 40202, by, around)?;
    let boundaries = parse_boundaries(boundaries, around)?;
    let default =
        document.get("default").map(|value| constant("default", 40195, value, around)).transpose()?;
    let collation = around.collation().clone();
    if let (Some(default), Some(first), Some(last)) = (&default, boundaries.first(), boundaries.last()) {
        let compare = |other: &Value| collation.compare_values(default.view(), other.view());
        if compare(first) != Ordering::Less && compare(last) == Ordering::Less {
            let message = "The $bucket 'default' field must be less than the lowest boundary or greater than or \
                           equal to the highest boundary.";
            return Err(Error::location(40199, message));
        }
    }
    let fields = parse_output("$bucket", 40196, document.get("output"), around)?;
    let buckets = Buckets { by, boundaries, default, collation };
    Ok(Group::new("$bucket", Key::Bucket(buckets), fields, around))
}

fn constant(field: &str, code: i32, value: ValueRef<'_>, around: &PipelineContext) -> Result<Value> {
    let formula = around.formula(value)?;
    formula.constant().ok_or_else(|| {
        let shown = text(value);
        let message =
            format!("The $bucket '{field}' field must be a constant expression, but found: {shown}.");
        Error::location(code, message)
    })
}

fn parse_boundaries(value: ValueRef<'_>, around: &PipelineContext) -> Result<Vec<Value>> {
    let ValueRef::Array(items) = value else {
        let message =
            format!("The $bucket 'boundaries' field must be an array, but found type: {}.", type_name(value));
        return Err(Error::location(40200, message));
    };
    let boundaries: Vec<Value> = items
        .iter()
        .map(|item| {
            around.formula(item)?.constant().ok_or_else(|| {
                let message = format!(
                    "The $bucket 'boundaries' field must be an array of constant values, but found value: {}.",
                    text(item)
                );
                Error::location(40191, message)
            })
        })
        .collect::<Result<_>>()?;
    if boundaries.len() < 2 {
        let message = format!(
            "The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).",
            boundaries.len()
        );
        return Err(Error::location(40192, message));
    }
    for (number, pair) in boundaries.windows(2).enumerate() {
        let (left, right) = (pair[0].view(), pair[1].view());
        if left.kind().class() != right.kind().class() {
            let message = format!(
                "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting \
                 types {} and {}.",
                type_name(left),
                type_name(right)
            );
            return Err(Error::location(40193, message));
        }
        if around.collation().compare_values(left, right) != Ordering::Less {
            let message = format!(
                "The 'boundaries' option to $bucket must be sorted, but elements {number} and {} are not in \
                 ascending order ({} is not less than {}).",
                number + 1,
                text(left),
                text(right)
            );
            return Err(Error::location(40194, message));
        }
    }
    Ok(boundaries)
}
