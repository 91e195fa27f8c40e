//! Reading `$setWindowFields`.

use std::sync::Arc;

use bson::{Document, DocumentRef, Value, ValueRef};

use super::bounds::{Bound, Unit, Window};
use super::functions::Function;
use super::{SetWindowFields, single_field};
use crate::error::{Error, Result};
use crate::path::FieldPath;
use crate::pipeline::accumulator::{Accumulator, Deviation, is_accumulator};
use crate::pipeline::settings::{Formula, PipelineContext};
use crate::pipeline::values::{as_double, text, type_name, whole_number};
use crate::sort::{Direction, Sort};

fn refused(message: impl Into<String>) -> Error {
    Error::failed_to_parse(message)
}

impl SetWindowFields {
    pub(crate) fn parse(argument: ValueRef<'_>, around: &PipelineContext) -> Result<SetWindowFields> {
        let ValueRef::Document(document) = argument else {
            let kind = type_name(argument);
            return Err(refused(format!(
                "the $setWindowFields stage specification must be an object, found {kind}"
            )));
        };
        if let Some((name, _)) =
            document.iter().find(|(name, _)| !matches!(*name, "partitionBy" | "sortBy" | "output"))
        {
            let message = format!("BSON field '$setWindowFields.{name}' is an unknown field.");
            return Err(Error::location(40415, message));
        }
        let partition = document.get("partitionBy").map(|by| around.formula(by)).transpose()?;
        let sort = match document.get("sortBy") {
            None => None,
            Some(ValueRef::Document(sort)) => Some(Arc::new(Sort::parse(sort)?)),
            Some(other) => {
                let message = format!(
                    "BSON field '$setWindowFields.sortBy' is the wrong type '{}', expected type 'object'",
                    type_name(other)
                );
                return Err(Error::type_mismatch(message));
            }
        };
        let output = match document.get("output") {
            Some(ValueRef::Document(output)) => output,
            Some(other) => {
                let message = format!(
                    "BSON field '$setWindowFields.output' is the wrong type '{}', expected type 'object'",
                    type_name(other)
                );
                return Err(Error::type_mismatch(message));
            }
            None => {
                let message = "BSON field '$setWindowFields.output' is missing but a required field";
                return Err(Error::location(40414, message));
            }
        };
        let parser = Parser { around, sort: sort.as_ref() };
        let outputs = output
            .iter()
            .map(|(name, value)| Ok((FieldPath::parse_aggregation(name)?, parser.field(name, value)?)))
            .collect::<Result<_>>()?;
        let collation = around.collation().clone();
        Ok(SetWindowFields { partition, sort, outputs, collation })
    }
}

struct Parser<'a> {
    around: &'a PipelineContext,
    sort: Option<&'a Arc<Sort>>,
}

impl Parser<'_> {
    fn field(&self, field: &str, value: ValueRef<'_>) -> Result<Function> {
        let ValueRef::Document(document) = value else {
            let message = format!("The field '{field}' must be an object");
            return Err(refused(message));
        };
        let mut function = None;
        let mut window = None;
        for (name, argument) in document.iter() {
            if name == "window" {
                window = Some(argument);
            } else if !name.starts_with('$') {
                return Err(refused(format!("Window function found an unknown argument: {name}")));
            } else if function.replace((name, argument)).is_some() {
                let message = format!("Cannot specify two functions in window function spec: {field}");
                return Err(refused(message));
            }
        }
        let Some((name, argument)) = function else {
            return Err(refused("Must specify a window function in output field"));
        };
        self.function(name, argument, window)
    }

    fn function(&self, name: &str, argument: ValueRef<'_>, window: Option<ValueRef<'_>>) -> Result<Function> {
        let whole = |function: Function| match window {
            None => Ok(function),
            Some(_) => Err(refused(format!("{name} does not accept a 'window' field"))),
        };
        match name {
            "$rank" | "$denseRank" | "$documentNumber" => whole(self.rank(name, argument)?),
            "$shift" => whole(self.shift(argument)?),
            "$expMovingAvg" => whole(self.moving_average(argument)?),
            "$linearFill" => {
                if single_field(self.sort).is_none() {
                    let message = "$linearFill must be specified with a top level sortBy expression with exactly \
                                   one element";
                    return Err(Error::location(605_001, message));
                }
                whole(Function::LinearFill(self.around.formula(argument)?))
            }
            "$locf" => whole(Function::LastObserved(self.around.formula(argument)?)),
            "$derivative" | "$integral" => self.along(name, argument, window),
            "$covariancePop" | "$covarianceSamp" => {
                let ValueRef::Array(items) = argument else {
                    return Err(self.two_arguments(name));
                };
                let (Some(left), Some(right), None) = (items.get(0), items.get(1), items.get(2)) else {
                    return Err(self.two_arguments(name));
                };
                let over = if name == "$covariancePop" { Deviation::Population } else { Deviation::Sample };
                Ok(Function::Covariance {
                    left: self.around.formula(left)?,
                    right: self.around.formula(right)?,
                    over,
                    window: self.window(window)?,
                })
            }
            name if is_accumulator(name) => {
                let accumulator = Accumulator::parse(name, argument, self.around)?;
                Ok(Function::Accumulate(accumulator, self.window(window)?))
            }
            name => Err(refused(format!("Unrecognized window function, {name}"))),
        }
    }

    #[expect(clippy::unused_self, reason = "reads as the other refusals")]
    fn two_arguments(&self, name: &str) -> Error {
        refused(format!("{name} expects an array of two expressions"))
    }

    fn rank(&self, name: &str, argument: ValueRef<'_>) -> Result<Function> {
        if !matches!(argument, ValueRef::Document(document) if document.is_empty()) {
            let message = format!("{name} must be specified with '{{}}' as the value");
            return Err(Error::location(5_371_603, message));
        }
        if self.sort.is_none()
            || name != "$documentNumber" && self.sort.is_none_or(|sort| sort.fields().len() != 1)
        {
            let message = format!(
                "{name} must be specified with a top level sortBy expression with exactly one element"
            );
            return Err(Error::location(5_371_602, message));
        }
        Ok(match name {
            "$rank" => Function::Rank,
            "$denseRank" => Function::DenseRank,
            _ => Function::DocumentNumber,
        })
    }

    fn shift(&self, argument: ValueRef<'_>) -> Result<Function> {
        let ValueRef::Document(document) = argument else {
            return Err(refused(format!(
                "Argument to $shift must be an object, but got {}",
                type_name(argument)
            )));
        };
        if let Some((name, _)) =
            document.iter().find(|(name, _)| !matches!(*name, "output" | "by" | "default"))
        {
            return Err(refused(format!("Unknown argument in $shift: {name}")));
        }
        let missing = |name: &str| refused(format!("$shift requires an '{name}' argument"));
        let output = document.get("output").ok_or_else(|| missing("output"))?;
        let by = document.get("by").ok_or_else(|| missing("by"))?;
        let by = whole_number(by).ok_or_else(|| {
            refused(format!("'$shift:by' field must be an integer, but found by: {}", text(by)))
        })?;
        if self.sort.is_none() {
            return Err(Error::location(5_371_700, "$shift requires a sortBy"));
        }
        let default = match document.get("default") {
            None => Value::Null,
            Some(value) => self.around.formula(value)?.constant().ok_or_else(|| {
                let shown = text(value);
                refused(format!("'$shift:default' expression must yield a constant value, found {shown}"))
            })?,
        };
        Ok(Function::Shift { output: self.around.formula(output)?, by, default })
    }

    fn moving_average(&self, argument: ValueRef<'_>) -> Result<Function> {
        let ValueRef::Document(document) = argument else {
            return Err(refused(
                "$expMovingAvg must have exactly 2 arguments: 'input' and either 'N' or 'alpha'",
            ));
        };
        if self.sort.is_none() {
            return Err(refused("$expMovingAvg requires an explicit 'sortBy'"));
        }
        let [input, rate] = ["input", "N"].map(|name| document.get(name));
        let alpha = document.get("alpha");
        let (Some(input), 2) = (input, document.iter().count()) else {
            return Err(refused(
                "$expMovingAvg must have exactly 2 arguments: 'input' and either 'N' or 'alpha'",
            ));
        };
        let alpha = match (rate, alpha) {
            (Some(n), None) => match whole_number(n) {
                Some(n) if n > 0 => 2.0 / (n as f64 + 1.0),
                Some(n) => {
                    return Err(refused(format!("'N' must be greater than zero. Got {n}")));
                }
                None => {
                    return Err(refused(format!(
                        "'N' field must be an integer, but found type {}",
                        type_name(n)
                    )));
                }
            },
            (None, Some(alpha)) => match as_double(alpha) {
                Some(alpha) if alpha > 0.0 && alpha < 1.0 => alpha,
                _ => {
                    return Err(refused(format!(
                        "'alpha' must be between 0 and 1 (exclusive), found alpha: {}",
                        text(alpha)
                    )));
                }
            },
            _ => {
                return Err(refused(
                    "$expMovingAvg must have exactly 2 arguments: 'input' and either 'N' or 'alpha'",
                ));
            }
        };
        Ok(Function::ExpMovingAverage { input: self.around.formula(input)?, alpha })
    }

    fn along(&self, name: &str, argument: ValueRef<'_>, window: Option<ValueRef<'_>>) -> Result<Function> {
        let ValueRef::Document(document) = argument else {
            return Err(refused(format!(
                "{name} only accepts an object as its argument, got {}",
                type_name(argument)
            )));
        };
        if let Some((unknown, _)) = document.iter().find(|(name, _)| !matches!(*name, "input" | "unit")) {
            return Err(refused(format!("{name} got unexpected argument: {unknown}")));
        }
        let input: Formula = self.around.formula(
            document.get("input").ok_or_else(|| refused(format!("{name} requires an 'input' expression")))?,
        )?;
        let unit_ms = match document.get("unit") {
            None => None,
            Some(unit) => match unit.as_str().and_then(Unit::parse) {
                Some(Unit::Fixed(unit)) => Some(unit),
                Some(Unit::Months(_)) => {
                    return Err(Error::location(5_490_704, "unit must be 'week' or smaller"));
                }
                None => return Err(refused(format!("unknown time unit value: {}", text(unit)))),
            },
        };
        if single_field(self.sort).is_none() {
            return Err(refused(format!("{name} requires a sortBy with exactly one element")));
        }
        if window.is_none() && name == "$derivative" {
            return Err(refused(format!("{name} requires explicit window bounds")));
        }
        let window = self.window(window)?;
        Ok(match name {
            "$derivative" => Function::Derivative { input, unit_ms, window },
            _ => Function::Integral { input, unit_ms, window },
        })
    }

    fn window(&self, window: Option<ValueRef<'_>>) -> Result<Window> {
        let Some(window) = window else { return Ok(Window::All) };
        let ValueRef::Document(document) = window else {
            return Err(refused("'window' field must be an object"));
        };
        if let Some((name, _)) =
            document.iter().find(|(name, _)| !matches!(*name, "documents" | "range" | "unit"))
        {
            return Err(refused(format!("'window' field that specifies an unknown argument: {name}")));
        }
        match (document.get("documents"), document.get("range"), document.get("unit")) {
            (None, None, None) => Ok(Window::All),
            (Some(_), Some(_), _) => {
                Err(refused("Window bounds can specify either 'documents' or 'range', not both."))
            }
            (Some(_), None, Some(_)) => {
                Err(refused("Window bounds can only specify 'unit' with range-based bounds."))
            }
            (None, None, Some(_)) => Err(refused("Window bounds with 'unit' must specify 'range'.")),
            (Some(documents), None, None) => self.documents(documents),
            (None, Some(range), unit) => self.range(range, unit),
        }
    }

    fn documents(&self, value: ValueRef<'_>) -> Result<Window> {
        let (lower, upper) = both_ends(value)?;
        let (lower, upper) = (document_bound(lower)?, document_bound(upper)?);
        if let (Bound::At(low), Bound::At(high)) = (lower, upper)
            && low > high
        {
            let message = format!("Lower bound must not exceed upper bound: [{low}, {high}]");
            return Err(Error::location(5_339_900, message));
        }
        let bounded = lower != Bound::Unbounded || upper != Bound::Unbounded;
        if bounded && self.sort.is_none() {
            return Err(Error::location(5_339_901, "Document-based bounds require a sortBy"));
        }
        Ok(Window::Documents(lower, upper))
    }

    fn range(&self, value: ValueRef<'_>, unit: Option<ValueRef<'_>>) -> Result<Window> {
        let (lower, upper) = both_ends(value)?;
        let unit = match unit {
            None => None,
            Some(unit) => Some(
                unit.as_str()
                    .and_then(Unit::parse)
                    .ok_or_else(|| refused(format!("unknown time unit value: {}", text(unit))))?,
            ),
        };
        let (lower, upper) = (range_bound(lower, unit)?, range_bound(upper, unit)?);
        if let (Bound::At(low), Bound::At(high)) = (lower, upper)
            && low > high
        {
            let message = format!("Lower bound must not exceed upper bound: [{low}, {high}]");
            return Err(Error::location(5_339_900, message));
        }
        match single_field(self.sort) {
            None => Err(Error::location(5_339_902, "Range-based bounds require sortBy a single field")),
            Some((_, Direction::Descending)) => {
                Err(Error::location(8_947_401, "Range-based bounds require an ascending sortBy"))
            }
            Some(_) => Ok(Window::Range(lower, upper, unit)),
        }
    }
}

fn both_ends(value: ValueRef<'_>) -> Result<(ValueRef<'_>, ValueRef<'_>)> {
    match value {
        ValueRef::Array(items) => match (items.get(0), items.get(1), items.get(2)) {
            (Some(lower), Some(upper), None) => Ok((lower, upper)),
            _ => Err(refused("Window bounds must be a 2-element array")),
        },
        other => Err(refused(format!("Window bounds must be a 2-element array: {}", text(other)))),
    }
}

fn document_bound(value: ValueRef<'_>) -> Result<Bound<i64>> {
    match value {
        ValueRef::String("unbounded") => Ok(Bound::Unbounded),
        ValueRef::String("current") => Ok(Bound::At(0)),
        other => whole_number(other).map(Bound::At).ok_or_else(|| {
            refused(format!(
                "Numeric document-based bounds must be an integer, 'unbounded' or 'current', found {}",
                text(other)
            ))
        }),
    }
}

fn range_bound(value: ValueRef<'_>, unit: Option<Unit>) -> Result<Bound<f64>> {
    match value {
        ValueRef::String("unbounded") => Ok(Bound::Unbounded),
        ValueRef::String("current") => Ok(Bound::At(0.0)),
        other => {
            let number =
                if unit.is_some() { whole_number(other).map(|whole| whole as f64) } else { as_double(other) };
            number.map(Bound::At).ok_or_else(|| {
                let message = match unit {
                    Some(_) => "With 'unit', range-based bounds must be an integer",
                    None => "Range-based bounds expression must be a number",
                };
                refused(format!("{message}, found {}", text(other)))
            })
        }
    }
}

/// Returns a `$setWindowFields` that another stage abbreviates.
pub(crate) fn from_parts(
    partition: Option<ValueRef<'_>>,
    sort: Option<DocumentRef<'_>>,
    output: Document,
    around: &PipelineContext,
) -> Result<SetWindowFields> {
    let mut document = Document::new();
    if let Some(partition) = partition {
        document.push("partitionBy", partition.to_value());
    }
    if let Some(sort) = sort {
        document.push("sortBy", sort.to_document());
    }
    document.push("output", output);
    SetWindowFields::parse(ValueRef::Document(document.view()), around)
}
