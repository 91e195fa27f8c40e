//! The windows of rows: which rows around a row belong to it.

use std::ops::Range;

use bson::{Document, Value, ValueRef};

use super::{Entry, SetWindowFields, name_of};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::{Expression, Scope, Variables};
use crate::pipeline::values::as_double;

/// The rows around a row that are in its window.
#[derive(Debug, Clone)]
pub(crate) enum Window {
    /// All of the partition.
    All,
    /// By number, from the row itself.
    Documents(Bound<i64>, Bound<i64>),
    /// By the values that the rows are sorted by.
    Range(Bound<f64>, Bound<f64>, Option<Unit>),
}

/// One end of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound<T> {
    Unbounded,
    At(T),
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Always the same number of milliseconds.
    Fixed(i64),
    /// So many months.
    Months(i64),
}

impl Unit {
    pub(crate) fn parse(name: &str) -> Option<Unit> {
        Some(match name {
            "millisecond" => Unit::Fixed(1),
            "second" => Unit::Fixed(1000),
            "minute" => Unit::Fixed(60_000),
            "hour" => Unit::Fixed(3_600_000),
            "day" => Unit::Fixed(86_400_000),
            "week" => Unit::Fixed(604_800_000),
            "month" => Unit::Months(1),
            "quarter" => Unit::Months(3),
            "year" => Unit::Months(12),
            _ => return None,
        })
    }

    /// Returns a date so many units later.
    pub(crate) fn add(self, millis: i64, amount: i64, context: &Context) -> Result<i64> {
        match self {
            Unit::Fixed(unit) => Ok(millis.saturating_add(unit.saturating_mul(amount))),
            Unit::Months(months) => {
                let arguments = Document::new()
                    .with("startDate", Value::DateTime(millis))
                    .with("unit", "month")
                    .with("amount", months.saturating_mul(amount));
                let sum = Document::new().with("$dateAdd", arguments);
                let expression = Expression::parse(ValueRef::Document(sum.view()), &Variables::none())?;
                let empty = Document::new();
                match expression.evaluate(&Scope::root(empty.view()), context)? {
                    Some(Value::DateTime(later)) => Ok(later),
                    _ => Err(Error::bad_value("a date beyond what can be told")),
                }
            }
        }
    }
}

impl Window {
    /// Returns `true` if the window of a row begins with the partition, so that it only grows from row to row.
    pub(super) fn only_grows(&self) -> bool {
        matches!(
            self,
            Window::All | Window::Documents(Bound::Unbounded, _) | Window::Range(Bound::Unbounded, ..)
        )
    }

    /// Returns the rows that belong to each row, in order.
    pub(super) fn of_rows(
        &self,
        entries: &[Entry],
        stage: &SetWindowFields,
        context: &Context,
    ) -> Result<Vec<Range<usize>>> {
        let count = entries.len();
        context.spend(count as u64)?;
        match self {
            Window::All => Ok(vec![0..count; count]),
            Window::Documents(lower, upper) => {
                let place = |row: usize, by: i64| {
                    usize::try_from((row as i64).saturating_add(by)).unwrap_or(0).min(count)
                };
                let range = |row: usize| {
                    let start = match lower {
                        Bound::Unbounded => 0,
                        Bound::At(by) => place(row, *by),
                    };
                    let end = match upper {
                        Bound::Unbounded => count,
                        Bound::At(by) => place(row, by.saturating_add(1)),
                    };
                    start..end.max(start)
                };
                Ok((0..count).map(range).collect())
            }
            Window::Range(lower, upper, unit) => {
                let axis = Axis { unit: *unit, context };
                let values: Vec<Option<ValueRef<'_>>> =
                    entries.iter().map(|entry| stage.sort_value(entry)).collect();
                axis.check(&values)?;
                (0..count).map(|row| axis.range(&values, row, *lower, *upper)).collect()
            }
        }
    }
}

/// The axis of values that rows are sorted by.
struct Axis<'a> {
    unit: Option<Unit>,
    context: &'a Context,
}

impl Axis<'_> {
    fn check(&self, values: &[Option<ValueRef<'_>>]) -> Result<()> {
        for value in values {
            let (fits, code, wanted) = match self.unit {
                Some(_) => (matches!(value, Some(ValueRef::DateTime(_))), 5_429_513, "Date"),
                None => (value.is_some_and(ValueRef::is_number), 5_429_414, "number"),
            };
            if !fits {
                let message = format!(
                    "Invalid range: Expected the sortBy field to be a {wanted}, but it was {}",
                    name_of(*value)
                );
                return Err(Error::location(code, message));
            }
        }
        Ok(())
    }

    /// Finds both ends of each window by binary search: the values rise from row to row.
    fn range(
        &self,
        values: &[Option<ValueRef<'_>>],
        row: usize,
        lower: Bound<f64>,
        upper: Bound<f64>,
    ) -> Result<Range<usize>> {
        self.context.spend(1)?;
        let start = match lower {
            Bound::Unbounded => 0,
            Bound::At(by) => {
                let bound = self.moved(values[row], by)?;
                values.partition_point(|value| at(*value) < bound)
            }
        };
        let end = match upper {
            Bound::Unbounded => values.len(),
            Bound::At(by) => {
                let bound = self.moved(values[row], by)?;
                values.partition_point(|value| at(*value) <= bound)
            }
        };
        Ok(start..end.max(start))
    }

    fn moved(&self, value: Option<ValueRef<'_>>, by: f64) -> Result<f64> {
        match (self.unit, value) {
            (Some(unit), Some(ValueRef::DateTime(millis))) => {
                Ok(unit.add(millis, by as i64, self.context)? as f64)
            }
            _ => Ok(at(value) + by),
        }
    }
}

fn at(value: Option<ValueRef<'_>>) -> f64 {
    match value {
        Some(ValueRef::DateTime(millis)) => millis as f64,
        Some(number) => as_double(number).unwrap_or(f64::NAN),
        None => f64::NAN,
    }
}
