//! Operators on arrays as a whole: `$push`, `$addToSet`, `$pop`, `$pull`, `$pullAll`.

use std::cmp::Ordering;

use bson::{ArrayRef, DocumentRef, Value, ValueRef, shell_text};

use crate::error::{Error, Result};
use crate::filter::{self, Condition, Filter};
use crate::numbers;
use crate::path::FieldPath;
use crate::update::change::Change;
use crate::update::operator::{Operand, Outcome, encoded_bytes, field_text};

/// `$push`, with the options beside `$each`.
#[derive(Debug, Default)]
pub(super) struct Push {
    each: Vec<Operand>,
    position: Option<i64>,
    sort: Option<ArraySort>,
    slice: Option<i64>,
}

/// The order that `$push` leaves.
#[derive(Debug)]
enum ArraySort {
    /// Whole elements.
    Elements(Direction),
    /// Documents by their fields; other elements have no fields.
    Fields(Vec<(FieldPath, Direction)>),
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Ascending,
    Descending,
}

impl Push {
    pub(super) fn parse(operand: ValueRef<'_>) -> Result<Push> {
        let clauses = operand.as_document().filter(|document| document.get("$each").is_some());
        let Some(clauses) = clauses else {
            return Ok(Push { each: vec![Operand::new(operand)], ..Push::default() });
        };
        let mut push = Push::default();
        for (name, value) in clauses.iter() {
            match name {
                "$each" => push.each = operands(push_each(value)?),
                "$position" => push.position = Some(integer(value).ok_or_else(|| not_a_position(value))?),
                "$slice" => push.slice = Some(integer(value).ok_or_else(|| not_a_slice(value))?),
                "$sort" => push.sort = Some(ArraySort::parse(value)?),
                _ => return Err(Error::bad_value(format!("Unrecognized clause in $push: {name}"))),
            }
        }
        Ok(push)
    }

    pub(super) fn apply(&self, value: &mut Value, change: &mut Change<'_>) -> Result<Outcome> {
        let Value::Array(items) = value else {
            return Err(Error::bad_value(format!(
                "The field '{}' must be an array but is of type {} in document {{{}}}",
                change.path_text(),
                value.kind().alias(),
                change.id_text()
            )));
        };
        self.push_to(items, change)?;
        Ok(Outcome::Written)
    }

    pub(super) fn create(&self, change: &mut Change<'_>) -> Result<Value> {
        let mut items = Vec::new();
        self.push_to(&mut items, change)?;
        Ok(Value::Array(items))
    }

    fn push_to(&self, items: &mut Vec<Value>, change: &mut Change<'_>) -> Result<()> {
        change.context().spend((items.len() + self.each.len()) as u64)?;
        let at = match self.position {
            None => items.len(),
            Some(position) if position >= 0 => index(position).min(items.len()),
            Some(position) => items.len().saturating_sub(index(position)),
        };
        // Elements that a slice removes again do not make the document larger.
        if self.slice.is_none() {
            change.grow(self.each.iter().map(|operand| operand.bytes).sum())?;
        }
        items.splice(at..at, self.each.iter().map(|operand| operand.value.clone()));
        if let Some(sort) = &self.sort {
            sort.apply(items, change)?;
        }
        if let Some(slice) = self.slice {
            let kept = index(slice).min(items.len());
            if slice >= 0 {
                items.truncate(kept);
            } else {
                items.drain(..items.len() - kept);
            }
            change.grow(items.iter().map(encoded_bytes).sum())?;
        }
        Ok(())
    }
}

fn index(number: i64) -> usize {
    usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX)
}

fn operands(items: ArrayRef<'_>) -> Vec<Operand> {
    items.iter().map(Operand::new).collect()
}

fn push_each(value: ValueRef<'_>) -> Result<ArrayRef<'_>> {
    value.as_array().ok_or_else(|| {
        let kind = value.kind().alias();
        Error::bad_value(format!(
            "The argument to $each in $push must be an array but it was of type: {kind}"
        ))
    })
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    numbers::integer(value)
}

fn not_a_position(value: ValueRef<'_>) -> Error {
    let kind = value.kind().alias();
    Error::bad_value(format!("The value for $position must be an integer value, not of type: {kind}"))
}

fn not_a_slice(value: ValueRef<'_>) -> Error {
    let kind = value.kind().alias();
    Error::bad_value(format!("The value for $slice must be an integer value but was given type: {kind}"))
}

impl ArraySort {
    fn parse(value: ValueRef<'_>) -> Result<ArraySort> {
        match value {
            ValueRef::Document(fields) => ArraySort::parse_fields(fields),
            number if number.is_number() => Ok(ArraySort::Elements(Direction::parse(number)?)),
            _ => Err(Error::bad_value(
                "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
            )),
        }
    }

    fn parse_fields(fields: DocumentRef<'_>) -> Result<ArraySort> {
        if fields.is_empty() {
            return Err(Error::bad_value("The $sort pattern is empty when it should be a set of fields."));
        }
        let fields = fields.iter().map(|(name, direction)| {
            if name.is_empty() {
                return Err(Error::bad_value("The $sort field cannot be empty"));
            }
            if name.split('.').any(str::is_empty) {
                let message = format!("The $sort field is a dotted field but has an empty part: {name}");
                return Err(Error::bad_value(message));
            }
            Ok((FieldPath::parse(name)?, Direction::parse(direction)?))
        });
        fields.collect::<Result<_>>().map(ArraySort::Fields)
    }

    fn apply(&self, items: &mut Vec<Value>, change: &Change<'_>) -> Result<()> {
        let comparisons = items.len() as u64 * u64::from(items.len().max(1).ilog2() + 1);
        change.context().spend(comparisons)?;
        match self {
            ArraySort::Elements(direction) => {
                items.sort_by(|one, other| direction.apply(change.compare(one.view(), other.view())));
            }
            ArraySort::Fields(fields) => {
                let keys: Vec<Vec<ValueRef<'_>>> = items.iter().map(|item| sort_key(item, fields)).collect();
                let mut order: Vec<usize> = (0..items.len()).collect();
                order.sort_by(|one, other| {
                    let pairs = keys[*one].iter().zip(&keys[*other]).zip(fields);
                    pairs.fold(Ordering::Equal, |order, ((one, other), (_, direction))| {
                        order.then_with(|| direction.apply(change.compare(*one, *other)))
                    })
                });
                let mut unsorted: Vec<Option<Value>> = std::mem::take(items).into_iter().map(Some).collect();
                items.extend(order.into_iter().filter_map(|position| unsorted[position].take()));
            }
        }
        Ok(())
    }
}

fn sort_key<'v>(item: &'v Value, fields: &[(FieldPath, Direction)]) -> Vec<ValueRef<'v>> {
    let value = |path: &FieldPath| item.as_document().and_then(|document| path.get(document.view()));
    fields.iter().map(|(path, _)| value(path).unwrap_or(ValueRef::Null)).collect()
}

impl Direction {
    fn parse(value: ValueRef<'_>) -> Result<Direction> {
        match integer(value) {
            Some(1) => Ok(Direction::Ascending),
            Some(-1) => Ok(Direction::Descending),
            _ => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
        }
    }

    fn apply(self, order: Ordering) -> Ordering {
        match self {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }
}

/// `$addToSet`: values that are missing, each once, in the order given.
#[derive(Debug)]
pub(super) struct Union(Vec<Operand>);

impl Union {
    pub(super) fn parse(operand: ValueRef<'_>, settings: &filter::Settings) -> Result<Union> {
        let clauses = operand.as_document();
        let each = clauses.and_then(|clauses| clauses.iter().next()).filter(|(name, _)| *name == "$each");
        let Some((clauses, (_, each))) = clauses.zip(each) else {
            return Ok(Union(vec![Operand::new(operand)]));
        };
        let each = each.as_array().ok_or_else(|| {
            let kind = each.kind().alias();
            let message =
                format!("The argument to $each in $addToSet must be an array but it was of type {kind}");
            Error::type_mismatch(message)
        })?;
        if clauses.iter().nth(1).is_some() {
            let message =
                format!("Found unexpected fields after $each in $addToSet: {}", shell_text(operand));
            return Err(Error::bad_value(message));
        }
        let mut values = operands(each);
        keep_first_of_equals(&mut values, settings);
        Ok(Union(values))
    }

    pub(super) fn apply(&self, value: &mut Value, change: &mut Change<'_>) -> Result<Outcome> {
        let Value::Array(items) = value else {
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                change.last_name(),
                value.kind().alias()
            )));
        };
        change.context().spend((items.len() + self.0.len()) as u64)?;
        let missing: Vec<&Operand> = match self.0.as_slice() {
            [one] => {
                let is_there = items.iter().any(|item| change.compare(item.view(), one.value.view()).is_eq());
                if is_there { Vec::new() } else { vec![one] }
            }
            several => {
                // Sorted once, so that two long lists do not cost the product of their lengths.
                let mut known: Vec<ValueRef<'_>> = items.iter().map(Value::view).collect();
                known.sort_by(|one, other| change.compare(*one, *other));
                let is_new = |operand: &&Operand| {
                    known.binary_search_by(|item| change.compare(*item, operand.value.view())).is_err()
                };
                several.iter().filter(is_new).collect()
            }
        };
        if missing.is_empty() {
            return Ok(Outcome::Untouched);
        }
        for operand in missing {
            items.push(change.take(operand)?);
        }
        Ok(Outcome::Written)
    }

    pub(super) fn create(&self, change: &mut Change<'_>) -> Result<Value> {
        self.0.iter().map(|operand| change.take(operand)).collect::<Result<_>>().map(Value::Array)
    }
}

fn keep_first_of_equals(values: &mut Vec<Operand>, settings: &filter::Settings) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| settings.compare(values[*one].value.view(), values[*other].value.view()));
    let mut keep = vec![true; values.len()];
    // The sort is stable, so the first of some equal values comes first among them.
    for pair in order.windows(2) {
        keep[pair[1]] = settings.compare(values[pair[0]].value.view(), values[pair[1]].value.view()).is_ne();
    }
    let mut keep = keep.into_iter();
    values.retain(|_| keep.next().unwrap_or(true));
}

/// `$pop`: the end to remove.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pop {
    First,
    Last,
}

impl Pop {
    pub(super) fn parse(path: &str, operand: ValueRef<'_>) -> Result<Pop> {
        let field = || field_text(path, operand);
        if !operand.is_number() {
            return Err(Error::failed_to_parse(format!("Expected a number in: {}", field())));
        }
        match integer(operand) {
            Some(1) => Ok(Pop::Last),
            Some(-1) => Ok(Pop::First),
            Some(other) => Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {other}"))),
            None => Err(Error::failed_to_parse(format!("Expected an integer: {}", field()))),
        }
    }

    pub(super) fn apply(self, value: &mut Value, change: &Change<'_>) -> Result<Outcome> {
        let Value::Array(items) = value else {
            return Err(Error::type_mismatch(format!(
                "Path '{}' contains an element of non-array type '{}'",
                change.path_text(),
                value.kind().alias()
            )));
        };
        match self {
            _ if items.is_empty() => return Ok(Outcome::Untouched),
            Pop::First => drop(items.remove(0)),
            Pop::Last => drop(items.pop()),
        }
        Ok(Outcome::Written)
    }
}

/// `$pull`, `$pullAll`: the elements to remove.
#[derive(Debug)]
pub(super) enum Pull {
    /// Elements that equal one of these, in their order.
    Among(Vec<Value>),
    /// Documents that match a filter.
    Documents(Box<Filter>),
    /// Elements that meet a condition.
    Elements(Box<Condition>),
}

/// Returns `true` if a document of `$pull` is a condition on elements; otherwise it is a filter over elements that are
/// documents.
fn is_condition(document: DocumentRef<'_>) -> bool {
    let first = document.iter().next().map_or("", |(name, _)| name);
    first.starts_with('$')
        && !matches!(
            first,
            "$and" | "$or" | "$nor" | "$expr" | "$jsonSchema" | "$comment" | "$where" | "$text"
        )
}

impl Pull {
    pub(super) fn parse(operand: ValueRef<'_>, settings: &filter::Settings) -> Result<Pull> {
        Ok(match operand {
            ValueRef::Document(document) if is_condition(document) => {
                Pull::Elements(Box::new(Condition::parse(operand, settings)?))
            }
            ValueRef::Document(document) => Pull::Documents(Box::new(Filter::parse(document, settings)?)),
            ValueRef::Regex(_) => Pull::Elements(Box::new(Condition::parse(operand, settings)?)),
            value => Pull::Among(vec![value.to_value()]),
        })
    }

    pub(super) fn parse_all(operand: ValueRef<'_>, settings: &filter::Settings) -> Result<Pull> {
        let values = operand.as_array().ok_or_else(|| {
            let kind = operand.kind().alias();
            Error::bad_value(format!("$pullAll requires an array argument but was given a {kind}"))
        })?;
        let mut values: Vec<Value> = values.iter().map(ValueRef::to_value).collect();
        values.sort_by(|one, other| settings.compare(one.view(), other.view()));
        Ok(Pull::Among(values))
    }

    pub(super) fn apply(&self, value: &mut Value, change: &Change<'_>) -> Result<Outcome> {
        let Value::Array(items) = value else {
            return Err(Error::bad_value("Cannot apply $pull to a non-array value"));
        };
        let mut goes = Vec::with_capacity(items.len());
        for item in items.iter() {
            change.context().spend(1)?;
            goes.push(self.takes(item, change)?);
        }
        if !goes.contains(&true) {
            return Ok(Outcome::Untouched);
        }
        let mut goes = goes.into_iter();
        items.retain(|_| !goes.next().unwrap_or(false));
        Ok(Outcome::Written)
    }

    fn takes(&self, item: &Value, change: &Change<'_>) -> Result<bool> {
        match self {
            Pull::Among(values) => {
                Ok(values.binary_search_by(|value| change.compare(value.view(), item.view())).is_ok())
            }
            Pull::Documents(filter) => match item {
                Value::Document(document) => filter.matches(document.view(), change.context()),
                _ => Ok(false),
            },
            Pull::Elements(condition) => condition.matches(item.view(), change.context()),
        }
    }
}
