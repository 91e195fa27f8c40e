//! Reading accumulators.

use std::sync::Arc;

use bson::{DocumentRef, ValueRef};

use super::{Accumulator, Deviation, End, Kind, Several};
use crate::error::{Code, Error, Result};
use crate::pipeline::settings::{Formula, Given, PipelineContext};
use crate::pipeline::values::{as_double, text, type_name};
use crate::sort::Sort;

/// Returns `true` if there is an accumulator of that name.
pub(crate) fn is_accumulator(name: &str) -> bool {
    simple(name).is_some()
        || several(name).is_some()
        || ranked(name).is_some()
        || matches!(name, "$count" | "$median" | "$percentile")
}

fn simple(name: &str) -> Option<Kind> {
    Some(match name {
        "$sum" => Kind::Sum,
        "$avg" => Kind::Average,
        "$min" => Kind::Minimum,
        "$max" => Kind::Maximum,
        "$first" => Kind::First,
        "$last" => Kind::Last,
        "$push" => Kind::Push,
        "$addToSet" => Kind::AddToSet,
        "$mergeObjects" => Kind::MergeObjects,
        "$stdDevPop" => Kind::Deviation(Deviation::Population),
        "$stdDevSamp" => Kind::Deviation(Deviation::Sample),
        _ => return None,
    })
}

fn several(name: &str) -> Option<Several> {
    Some(match name {
        "$firstN" => Several::First,
        "$lastN" => Several::Last,
        "$minN" => Several::Smallest,
        "$maxN" => Several::Largest,
        _ => return None,
    })
}

fn ranked(name: &str) -> Option<End> {
    Some(match name {
        "$top" | "$topN" => End::Top,
        "$bottom" | "$bottomN" => End::Bottom,
        _ => return None,
    })
}

impl Accumulator {
    /// Returns a count of rows.
    pub(crate) fn count(around: &PipelineContext) -> Accumulator {
        Accumulator::of(Kind::Sum, around.constant(1), around)
    }

    fn of(kind: Kind, input: Formula, around: &PipelineContext) -> Accumulator {
        Accumulator { kind, input, collation: around.collation().clone() }
    }

    /// Reads the field of a group: a document with one accumulator in it.
    pub(crate) fn parse_field(
        field: &str,
        value: ValueRef<'_>,
        around: &PipelineContext,
    ) -> Result<Accumulator> {
        let ValueRef::Document(document) = value else {
            let message = format!("The field '{field}' must be an accumulator object");
            return Err(Error::location(40234, message));
        };
        if field.contains('.') {
            return Err(Error::location(40235, format!("The field name '{field}' cannot contain '.'")));
        }
        if field.starts_with('$') {
            return Err(Error::location(
                40236,
                format!("The field name '{field}' cannot be an operator name"),
            ));
        }
        let mut fields = document.iter();
        match (fields.next(), fields.next()) {
            (Some((name, argument)), None) => Accumulator::parse(name, argument, around),
            _ => Err(Error::location(40238, format!("The field '{field}' must specify one accumulator"))),
        }
    }

    /// Reads one accumulator.
    pub(crate) fn parse(name: &str, argument: ValueRef<'_>, around: &PipelineContext) -> Result<Accumulator> {
        if let Some(kind) = simple(name) {
            if matches!(argument, ValueRef::Array(_)) {
                return Err(Error::location(40237, format!("The {name} accumulator is a unary operator")));
            }
            return Ok(Accumulator::of(kind, around.formula(argument)?, around));
        }
        if let Some(which) = several(name) {
            let [input, n] = arguments(name, argument, ["input", "n"], NUMBERED)?;
            let kind = Kind::Several { which, n: around.formula(n)? };
            return Ok(Accumulator::of(kind, around.formula(input)?, around));
        }
        if let Some(end) = ranked(name) {
            return parse_ranked(name, argument, end, around);
        }
        match name {
            "$count" => match argument {
                ValueRef::Document(document) if document.is_empty() => Ok(Accumulator::count(around)),
                _ => Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
            },
            "$median" | "$percentile" => parse_percentiles(name, argument, around),
            "$accumulator" => Err(Error::new(
                Code::COMMAND_NOT_SUPPORTED,
                "$accumulator is not supported: JavaScript is not run",
            )),
            _ => Err(Error::location(15952, format!("unknown group operator '{name}'"))),
        }
    }
}

/// The codes of errors in a document of arguments: not a document, unknown, missing.
type Refusals = [i32; 3];
const NUMBERED: Refusals = [5_787_801, 5_787_901, 5_787_906];
const RANKED: Refusals = [5_788_001, 5_788_002, 5_788_003];

/// Returns the arguments of these names, all of them and no other.
fn arguments<'a, const N: usize>(
    operator: &str,
    argument: ValueRef<'a>,
    names: [&str; N],
    refusals: Refusals,
) -> Result<[ValueRef<'a>; N]> {
    let ValueRef::Document(document) = argument else {
        let message = format!("specification must be an object; found {operator}: {}", text(argument));
        return Err(Error::location(refusals[0], message));
    };
    if let Some((unknown, _)) = document.iter().find(|(name, _)| !names.contains(name)) {
        return Err(Error::location(refusals[1], format!("Unknown argument to {operator} '{unknown}'")));
    }
    let mut found = [ValueRef::Null; N];
    for (place, name) in found.iter_mut().zip(names) {
        *place = document
            .get(name)
            .ok_or_else(|| Error::location(refusals[2], format!("Missing value for '{name}'")))?;
    }
    Ok(found)
}

fn parse_ranked(
    name: &str,
    argument: ValueRef<'_>,
    end: End,
    around: &PipelineContext,
) -> Result<Accumulator> {
    let (output, sort, n) = if name.ends_with('N') {
        let [n, output, sort] = arguments(name, argument, ["n", "output", "sortBy"], RANKED)?;
        (output, sort, Some(around.formula(n)?))
    } else {
        let [output, sort] = arguments(name, argument, ["output", "sortBy"], RANKED)?;
        (output, sort, None)
    };
    let ValueRef::Document(sort) = sort else {
        return Err(Error::location(5_788_604, "expected 'sortBy' to be an object"));
    };
    let sort = Arc::new(Sort::parse(sort)?);
    Ok(Accumulator::of(Kind::Ranked { sort, end, n }, around.formula(output)?, around))
}

fn parse_percentiles(name: &str, argument: ValueRef<'_>, around: &PipelineContext) -> Result<Accumulator> {
    let ValueRef::Document(document) = argument else {
        let message = format!("specification must be an object; found {name} :{}", text(argument));
        return Err(Error::location(7_436_200, message));
    };
    let single = name == "$median";
    let known: &[&str] = if single { &["input", "method"] } else { &["input", "method", "p"] };
    if let Some((unknown, _)) = document.iter().find(|(field, _)| !known.contains(field)) {
        return Err(Error::location(40415, format!("BSON field '{name}.{unknown}' is an unknown field.")));
    }
    let required = |field: &str| {
        document.get(field).ok_or_else(|| {
            let message = format!("BSON field '{name}.{field}' is missing but a required field");
            Error::location(40414, message)
        })
    };
    let input = around.formula(required("input")?)?;
    let method = required("method")?;
    if method.as_str() != Some("approximate") {
        let message = format!(
            "Currently only 'approximate' can be used as percentile 'method', found {}",
            text(method)
        );
        return Err(Error::bad_value(message));
    }
    let of = if single { vec![0.5] } else { shares(required("p")?, around)? };
    Ok(Accumulator::of(Kind::Percentiles { of, single }, input, around))
}

fn shares(written: ValueRef<'_>, around: &PipelineContext) -> Result<Vec<f64>> {
    let p = match around.given(written)? {
        Given::Value(p) => p,
        // A pipeline without the values is checked and not run: any share is good enough.
        Given::Awaited => return Ok(vec![0.5]),
        Given::No => {
            let message = format!(
                "The $percentile 'p' field must be an array of constant values, but found value: {}.",
                text(written)
            );
            return Err(Error::location(7_750_300, message));
        }
    };
    let refused = |code, found: ValueRef<'_>| {
        let message = format!(
            "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found {} of type {}",
            text(found),
            type_name(found)
        );
        Error::location(code, message)
    };
    let items = match p.view() {
        ValueRef::Array(items) if !items.is_empty() => items,
        other => return Err(refused(7_750_301, other)),
    };
    items
        .iter()
        .map(|item| match as_double(item) {
            Some(share) if (0.0..=1.0).contains(&share) => Ok(share),
            Some(_) => Err(refused(7_750_303, item)),
            None => Err(refused(7_750_302, item)),
        })
        .collect()
}

/// Reads the fields of a group beside its `_id`.
pub(crate) fn parse_fields(
    fields: DocumentRef<'_>,
    around: &PipelineContext,
) -> Result<Vec<(String, Accumulator)>> {
    fields
        .iter()
        .map(|(name, value)| Ok((name.to_owned(), Accumulator::parse_field(name, value, around)?)))
        .collect()
}
