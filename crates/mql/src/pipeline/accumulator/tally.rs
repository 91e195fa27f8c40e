//! One running count.

use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bson::{Collation, Document, Value};

use super::{Deviation, Input};
use crate::error::{Error, Result};
use crate::expression::number::{Number, Sum};
use crate::pipeline::row::value_bytes;
use crate::pipeline::values::{as_double, key_of, text};
use crate::sort::{Sort, SortKey};

/// A running count of one accumulator.
#[derive(Debug, Clone)]
pub(crate) enum Tally {
    Sum(Sum),
    Average { total: Sum, count: u64 },
    Smallest(Option<Value>, Collation),
    Largest(Option<Value>, Collation),
    First(Option<Value>),
    Last(Option<Value>),
    List(Vec<Value>),
    Set { seen: HashSet<Vec<u8>>, values: Vec<Value>, collation: Collation },
    Merged(Document),
    Deviation { over: Deviation, count: u64, mean: f64, squares: f64 },
    FirstN { n: usize, values: Vec<Value> },
    LastN { n: usize, values: VecDeque<Value> },
    Extremes { n: usize, values: Vec<Value>, reversed: bool, collation: Collation },
    Ranked { sort: Arc<Sort>, reversed: bool, n: usize, list: bool, values: Vec<(SortKey, Value)> },
    Percentiles { of: Vec<f64>, single: bool, values: Vec<f64> },
}

impl Tally {
    pub(super) fn set(collation: Collation) -> Tally {
        Tally::Set { seen: HashSet::new(), values: Vec::new(), collation }
    }

    pub(super) fn deviation(over: Deviation) -> Tally {
        Tally::Deviation { over, count: 0, mean: 0.0, squares: 0.0 }
    }

    pub(super) fn smallest_n(n: usize, collation: Collation) -> Tally {
        Tally::Extremes { n, values: Vec::new(), reversed: false, collation }
    }

    pub(super) fn largest_n(n: usize, collation: Collation) -> Tally {
        Tally::Extremes { n, values: Vec::new(), reversed: true, collation }
    }

    /// Adds the input of a row; returns how many more bytes are kept for it.
    pub(crate) fn add(&mut self, input: Input) -> Result<usize> {
        match (self, input) {
            (tally, Input::Value(Some(value))) => tally.add_value(value),
            (Tally::First(kept @ None) | Tally::Last(kept), Input::Value(None)) => {
                Ok(keep(kept, Value::Null))
            }
            (tally @ (Tally::FirstN { .. } | Tally::LastN { .. }), Input::Value(None)) => {
                tally.add_value(Value::Null)
            }
            (Tally::Ranked { sort, reversed, n, values, .. }, Input::Ranked(key, value)) => {
                let bytes = value_bytes(value.view()) + size_of::<SortKey>();
                let later = |other: &SortKey| {
                    let order = sort.compare(other, &key);
                    if *reversed { order == Ordering::Less } else { order == Ordering::Greater }
                };
                let at = values.partition_point(|(other, _)| !later(other));
                if at >= *n {
                    return Ok(0);
                }
                values.insert(at, (key, value));
                let dropped = values.len() > *n && values.pop().is_some();
                Ok(if dropped { 0 } else { bytes })
            }
            _ => Ok(0),
        }
    }

    fn add_value(&mut self, value: Value) -> Result<usize> {
        match self {
            Tally::Sum(total) => {
                if let Some(number) = Number::of(value.view()) {
                    total.add(number);
                }
            }
            Tally::Average { total, count } => {
                if let Some(number) = Number::of(value.view()) {
                    total.add(number);
                    *count += 1;
                }
            }
            Tally::Smallest(kept, collation) => {
                return Ok(keep_extreme(kept, value, collation, Ordering::Less));
            }
            Tally::Largest(kept, collation) => {
                return Ok(keep_extreme(kept, value, collation, Ordering::Greater));
            }
            Tally::First(kept) => {
                if kept.is_none() {
                    return Ok(keep(kept, value));
                }
            }
            Tally::Last(kept) => return Ok(keep(kept, value)),
            Tally::List(values) => {
                let bytes = value_bytes(value.view());
                values.push(value);
                return Ok(bytes);
            }
            Tally::Set { seen, values, collation } => {
                let key = key_of(value.view(), collation);
                let bytes = key.len() + value_bytes(value.view()) + size_of::<Vec<u8>>();
                if seen.insert(key) {
                    values.push(value);
                    return Ok(bytes);
                }
            }
            Tally::Merged(merged) => return merge(merged, value),
            Tally::Deviation { count, mean, squares, .. } => {
                if let Some(number) = as_double(value.view()) {
                    deviate(number, count, mean, squares);
                }
            }
            Tally::FirstN { n, values } => {
                if values.len() < *n {
                    let bytes = value_bytes(value.view());
                    values.push(value);
                    return Ok(bytes);
                }
            }
            Tally::LastN { n, values } => {
                let bytes = value_bytes(value.view());
                values.push_back(value);
                let dropped = values.len() > *n && values.pop_front().is_some();
                return Ok(if dropped { 0 } else { bytes });
            }
            Tally::Extremes { n, values, reversed, collation } => {
                return Ok(add_extreme(*n, values, *reversed, collation, value));
            }
            Tally::Percentiles { values, .. } => {
                if let Some(number) = as_double(value.view())
                    && !number.is_nan()
                {
                    values.push(number);
                    return Ok(size_of::<f64>());
                }
            }
            Tally::Ranked { .. } => {}
        }
        Ok(0)
    }

    /// Returns the result.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Tally::List(values)
            | Tally::Set { values, .. }
            | Tally::FirstN { values, .. }
            | Tally::Extremes { values, .. } => Value::Array(values),
            Tally::Merged(merged) => Value::Document(merged),
            Tally::Smallest(kept, _) | Tally::Largest(kept, _) | Tally::First(kept) | Tally::Last(kept) => {
                kept.unwrap_or(Value::Null)
            }
            other => other.value(),
        }
    }

    /// Returns the result so far.
    pub(crate) fn value(&self) -> Value {
        match self {
            Tally::Sum(total) => total.total().into(),
            Tally::Average { count: 0, .. } => Value::Null,
            Tally::Average { total, count } => total.average(*count).into(),
            Tally::Smallest(kept, _) | Tally::Largest(kept, _) | Tally::First(kept) | Tally::Last(kept) => {
                kept.clone().unwrap_or(Value::Null)
            }
            Tally::List(values)
            | Tally::Set { values, .. }
            | Tally::FirstN { values, .. }
            | Tally::Extremes { values, .. } => Value::Array(values.clone()),
            Tally::LastN { values, .. } => Value::Array(values.iter().cloned().collect()),
            Tally::Merged(merged) => Value::Document(merged.clone()),
            Tally::Deviation { over, count, squares, .. } => {
                let divisor = match over {
                    Deviation::Population => *count,
                    Deviation::Sample => count.saturating_sub(1),
                };
                if divisor == 0 { Value::Null } else { Value::Double((squares / divisor as f64).sqrt()) }
            }
            Tally::Ranked { list: true, reversed, values, .. } => {
                let values = values.iter().map(|(_, value)| value.clone());
                Value::Array(if *reversed { values.rev().collect() } else { values.collect() })
            }
            Tally::Ranked { values, .. } => values.first().map_or(Value::Null, |(_, value)| value.clone()),
            Tally::Percentiles { of, single, values } => percentiles(of, *single, values),
        }
    }
}

/// Adds a number by Welford's algorithm, which does not subtract large squares.
fn deviate(number: f64, count: &mut u64, mean: &mut f64, squares: &mut f64) {
    *count += 1;
    let distance = number - *mean;
    *mean += distance / *count as f64;
    *squares += distance * (number - *mean);
}

fn keep(kept: &mut Option<Value>, value: Value) -> usize {
    let bytes = value_bytes(value.view());
    let before = kept.replace(value).map_or(0, |before| value_bytes(before.view()));
    bytes.saturating_sub(before)
}

fn is_nullish(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Undefined)
}

fn keep_extreme(kept: &mut Option<Value>, value: Value, collation: &Collation, wanted: Ordering) -> usize {
    let better = |kept: &Value| collation.compare_values(value.view(), kept.view()) == wanted;
    if is_nullish(&value) || !kept.as_ref().is_none_or(better) {
        return 0;
    }
    keep(kept, value)
}

fn add_extreme(
    n: usize,
    values: &mut Vec<Value>,
    reversed: bool,
    collation: &Collation,
    value: Value,
) -> usize {
    if is_nullish(&value) {
        return 0;
    }
    let at = values.partition_point(|kept| {
        let order = collation.compare_values(kept.view(), value.view());
        if reversed { order != Ordering::Less } else { order != Ordering::Greater }
    });
    if at >= n {
        return 0;
    }
    let bytes = value_bytes(value.view());
    values.insert(at, value);
    let dropped = values.len() > n && values.pop().is_some();
    if dropped { 0 } else { bytes }
}

fn merge(merged: &mut Document, value: Value) -> Result<usize> {
    match value {
        Value::Null | Value::Undefined => Ok(0),
        Value::Document(document) => {
            let bytes =
                value_bytes(Value::Null.view()) + crate::pipeline::row::document_bytes(document.view());
            for (name, value) in document {
                merged.insert(name, value);
            }
            Ok(bytes)
        }
        other => {
            let kind = other.kind().alias();
            let text = text(other.view());
            let message = format!("$mergeObjects requires object inputs, but input {text} is of type {kind}");
            Err(Error::location(40400, message))
        }
    }
}

/// Returns the smallest value that at least such a share of all values does not exceed.
fn percentiles(of: &[f64], single: bool, values: &[f64]) -> Value {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let one = |share: &f64| {
        let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
        sorted.get(rank - 1).map_or(Value::Null, |value| Value::Double(*value))
    };
    if single { of.first().map_or(Value::Null, one) } else { Value::Array(of.iter().map(one).collect()) }
}
