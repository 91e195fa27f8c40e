//! The functions over windows: each computes one value for each row of a partition.

use std::ops::Range;

use bson::{Value, ValueRef};

use super::bounds::Window;
use super::{Entry, SetWindowFields, name_of, position};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::pipeline::accumulator::{Accumulator, Deviation, Input};
use crate::pipeline::memory::Memory;
use crate::pipeline::row::value_bytes;
use crate::pipeline::settings::Formula;
use crate::pipeline::values::as_double;

/// The computation for a row.
#[derive(Debug)]
pub(crate) enum Function {
    Accumulate(Accumulator, Window),
    Rank,
    DenseRank,
    DocumentNumber,
    Shift {
        output: Formula,
        by: i64,
        default: Value,
    },
    /// The slope between the ends of the window, by the unit of time.
    Derivative {
        input: Formula,
        unit_ms: Option<i64>,
        window: Window,
    },
    /// The area under the values of the window.
    Integral {
        input: Formula,
        unit_ms: Option<i64>,
        window: Window,
    },
    ExpMovingAverage {
        input: Formula,
        alpha: f64,
    },
    Covariance {
        left: Formula,
        right: Formula,
        over: Deviation,
        window: Window,
    },
    LinearFill(Formula),
    LastObserved(Formula),
}

impl Function {
    /// Returns the values of a partition, one for each row.
    pub(super) fn column(
        &self,
        entries: &[Entry],
        stage: &SetWindowFields,
        memory: &mut Memory,
        context: &Context,
    ) -> Result<Vec<Value>> {
        if let Function::Accumulate(accumulator, window) = self {
            let windows = window.of_rows(entries, stage, context)?;
            return accumulate(accumulator, &windows, window, entries, memory, context);
        }
        let column = self.small_column(entries, stage, context)?;
        memory.take(column.iter().map(|value| value_bytes(value.view())).sum(), context)?;
        Ok(column)
    }

    /// Returns the values of functions whose values are never larger than their inputs.
    fn small_column(
        &self,
        entries: &[Entry],
        stage: &SetWindowFields,
        context: &Context,
    ) -> Result<Vec<Value>> {
        let values = |formula: &Formula| -> Result<Vec<Value>> {
            entries
                .iter()
                .map(|entry| Ok(formula.of_row(&entry.row, context)?.unwrap_or(Value::Null)))
                .collect()
        };
        let points = |formula: &Formula, unit: Option<i64>, name: &str| {
            points(entries, &values(formula)?, stage, unit, name)
        };
        match self {
            // Charged above, value by value.
            Function::Accumulate(..) => Ok(Vec::new()),
            Function::Rank | Function::DenseRank | Function::DocumentNumber => Ok(self.ranks(entries, stage)),
            Function::Shift { output, by, default } => {
                let values = values(output)?;
                Ok((0..values.len())
                    .map(|row| {
                        let place = usize::try_from((row as i64).saturating_add(*by)).ok();
                        place.and_then(|place| values.get(place)).unwrap_or(default).clone()
                    })
                    .collect())
            }
            Function::Derivative { input, unit_ms, window } => {
                let points = points(input, *unit_ms, "$derivative")?;
                let windows = window.of_rows(entries, stage, context)?;
                Ok(windows.into_iter().map(|rows| slope(&points[rows])).collect())
            }
            Function::Integral { input, unit_ms, window } => {
                let points = points(input, *unit_ms, "$integral")?;
                over_windows(window.of_rows(entries, stage, context)?, context, |rows| area(&points[rows]))
            }
            Function::ExpMovingAverage { input, alpha } => Ok(moving_average(values(input)?, *alpha)),
            Function::Covariance { left, right, over, window } => {
                let pairs: Vec<_> = values(left)?
                    .iter()
                    .zip(&values(right)?)
                    .map(|(left, right)| Some((as_double(left.view())?, as_double(right.view())?)))
                    .collect();
                let windows = window.of_rows(entries, stage, context)?;
                over_windows(windows, context, |rows| covariance(&pairs[rows], *over))
            }
            Function::LinearFill(input) => linear_fill(entries, values(input)?, stage),
            Function::LastObserved(input) => {
                let mut last = Value::Null;
                let mut filled = values(input)?;
                for value in &mut filled {
                    if is_nullish(value) {
                        *value = last.clone();
                    } else {
                        last = value.clone();
                    }
                }
                Ok(filled)
            }
        }
    }

    fn ranks(&self, entries: &[Entry], stage: &SetWindowFields) -> Vec<Value> {
        let (mut rank, mut dense) = (1, 1);
        let mut ranks = Vec::with_capacity(entries.len());
        for (number, entry) in entries.iter().enumerate() {
            if number > 0 && !stage.are_peers(&entries[number - 1], entry) {
                rank = number + 1;
                dense += 1;
            }
            let value = match self {
                Function::Rank => rank,
                Function::DenseRank => dense,
                _ => number + 1,
            };
            ranks.push(i32::try_from(value).map_or(Value::Int64(value as i64), Value::Int32));
        }
        ranks
    }
}

fn over_windows(
    windows: Vec<Range<usize>>,
    context: &Context,
    each: impl Fn(Range<usize>) -> Value,
) -> Result<Vec<Value>> {
    windows
        .into_iter()
        .map(|rows| {
            context.spend(rows.len() as u64)?;
            Ok(each(rows))
        })
        .collect()
}

/// Accumulates over windows: continues one that only grows, and computes others again for each row.
fn accumulate(
    accumulator: &Accumulator,
    windows: &[Range<usize>],
    window: &Window,
    entries: &[Entry],
    memory: &mut Memory,
    context: &Context,
) -> Result<Vec<Value>> {
    let inputs: Vec<Input> =
        entries.iter().map(|entry| accumulator.input(&entry.row, context)).collect::<Result<_>>()?;
    let mut values: Vec<Value> = Vec::with_capacity(windows.len());
    let mut tally = accumulator.begin(&Value::Null, context)?;
    let mut counted = 0..0;
    for rows in windows {
        if *rows == counted
            && let Some(same) = values.last()
        {
            let bytes = value_bytes(same.view());
            context.spend(1 + bytes as u64 / 64)?;
            memory.take(bytes, context)?;
            values.push(same.clone());
            continue;
        }
        if !window.only_grows() || rows.end < counted.end {
            tally = accumulator.begin(&Value::Null, context)?;
            counted = rows.start..rows.start;
        }
        for input in &inputs[counted.end.max(rows.start)..rows.end.max(rows.start)] {
            context.spend(1)?;
            tally.add(input.clone())?;
        }
        counted = rows.clone();
        let value = tally.value();
        let bytes = value_bytes(value.view());
        context.spend(1 + bytes as u64 / 64)?;
        memory.take(bytes, context)?;
        values.push(value);
    }
    Ok(values)
}

/// Returns the position of each row and its value there; none where it has no number.
fn points(
    entries: &[Entry],
    values: &[Value],
    stage: &SetWindowFields,
    unit_ms: Option<i64>,
    name: &str,
) -> Result<Vec<Option<(f64, f64)>>> {
    entries
        .iter()
        .zip(values)
        .map(|(entry, value)| {
            let along = stage.sort_value(entry);
            let is_date = matches!(along, Some(ValueRef::DateTime(_)));
            if unit_ms.is_some() && !is_date {
                let message = format!("{name} with 'unit' expects the sortBy field to be a Date");
                return Err(Error::location(5_624_900, message));
            }
            if unit_ms.is_none() && is_date {
                let message = format!("{name} where the sortBy is a Date requires an 'unit'");
                return Err(Error::location(5_624_901, message));
            }
            let scale = unit_ms.map_or(1.0, |unit| unit as f64);
            Ok(position(along).zip(as_double(value.view())).map(|(x, y)| (x / scale, y)))
        })
        .collect()
}

fn slope(points: &[Option<(f64, f64)>]) -> Value {
    match (points.first(), points.last()) {
        (Some(Some((x1, y1))), Some(Some((x2, y2)))) if points.len() > 1 && x1 < x2 => {
            Value::Double((y2 - y1) / (x2 - x1))
        }
        (Some(Some((x1, y1))), Some(Some((x2, y2)))) if points.len() > 1 && x1 > x2 => {
            Value::Double((y2 - y1) / (x2 - x1))
        }
        _ => Value::Null,
    }
}

fn area(points: &[Option<(f64, f64)>]) -> Value {
    if points.is_empty() || points.iter().any(Option::is_none) {
        return Value::Null;
    }
    let points: Vec<(f64, f64)> = points.iter().copied().flatten().collect();
    let parts = points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0);
    Value::Double(parts.fold(0.0, |sum, part| sum + part))
}

fn moving_average(values: Vec<Value>, alpha: f64) -> Vec<Value> {
    let mut last: Option<f64> = None;
    values
        .into_iter()
        .map(|value| match (as_double(value.view()), last) {
            (None, _) => Value::Null,
            (Some(number), None) => {
                last = Some(number);
                value
            }
            (Some(number), Some(before)) => {
                let average = number * alpha + before * (1.0 - alpha);
                last = Some(average);
                Value::Double(average)
            }
        })
        .collect()
}

fn covariance(pairs: &[Option<(f64, f64)>], over: Deviation) -> Value {
    let (mut count, mut mean_left, mut mean_right, mut sum) = (0.0, 0.0, 0.0, 0.0);
    for (left, right) in pairs.iter().flatten() {
        count += 1.0;
        let distance = left - mean_left;
        mean_left += distance / count;
        mean_right += (right - mean_right) / count;
        sum += distance * (right - mean_right);
    }
    let divisor = match over {
        Deviation::Population => count,
        Deviation::Sample => count - 1.0,
    };
    if divisor > 0.0 { Value::Double(sum / divisor) } else { Value::Null }
}

fn is_nullish(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Undefined)
}

/// Fills gaps: values between two known ones lie on the line between them.
fn linear_fill(entries: &[Entry], mut values: Vec<Value>, stage: &SetWindowFields) -> Result<Vec<Value>> {
    let mut along = Vec::with_capacity(entries.len());
    for entry in entries {
        let value = stage.sort_value(entry);
        let place = position(value).ok_or_else(|| {
            let message =
                format!("$linearFill needs numbers or dates in the sortBy field, found {}", name_of(value));
            Error::location(605_001, message)
        })?;
        if along.last().is_some_and(|last: &f64| last.total_cmp(&place).is_eq()) {
            let message = "There can be no repeated values in the sort field";
            return Err(Error::location(6_050_106, message));
        }
        along.push(place);
    }
    let mut known: Option<usize> = None;
    for row in 0..values.len() {
        if is_nullish(&values[row]) {
            continue;
        }
        let Some(right) = as_double(values[row].view()) else {
            let kind = name_of(Some(values[row].view()));
            let message = format!("Value to be filled must be numeric or nullish, but found {kind}");
            return Err(Error::location(605_002, message));
        };
        if let Some(before) = known
            && let Some(left) = as_double(values[before].view())
        {
            for between in before + 1..row {
                let share = (along[between] - along[before]) / (along[row] - along[before]);
                values[between] = Value::Double(left + (right - left) * share);
            }
        }
        known = Some(row);
    }
    for value in &mut values {
        if is_nullish(value) {
            *value = Value::Null;
        }
    }
    Ok(values)
}
