//! Arrays as sets: order and repetition do not count. The order of all values and the collation decide which items are
//! equal.

use std::cmp::Ordering;

use bson::{ArrayRef, Value, ValueRef};

use crate::error::{Error, Result};
use crate::expression::operand::{Budget, array, is_nullish, is_true, type_name};
use crate::expression::table::{Arity, Call, Group, Refusal, positional};

pub(crate) const GROUP: Group = Group {
    foldable: false,
    operators: &[
        positional("$setUnion", Arity::Any, union),
        positional("$setIntersection", Arity::Any, intersection),
        positional("$setDifference", Arity::Exactly(2), difference),
        positional("$setEquals", Arity::Any, equals),
        positional("$setIsSubset", Arity::Exactly(2), is_subset),
        positional("$allElementsTrue", Arity::Exactly(1), all_elements_true),
        positional("$anyElementTrue", Arity::Exactly(1), any_element_true),
    ],
};

/// Returns the items in their order, each once.
fn sorted<'a>(call: &Call<'_>, items: ArrayRef<'a>) -> Result<Vec<ValueRef<'a>>> {
    let mut set: Vec<ValueRef<'a>> = items.iter().collect();
    call.context.spend(set.len() as u64 * 8)?;
    let compare = |left: &ValueRef<'_>, right: &ValueRef<'_>| call.scope.compare(Some(*left), Some(*right));
    set.sort_by(compare);
    set.dedup_by(|right, left| compare(left, right) == Ordering::Equal);
    Ok(set)
}

fn contains(call: &Call<'_>, set: &[ValueRef<'_>], value: ValueRef<'_>) -> bool {
    set.binary_search_by(|item| call.scope.compare(Some(*item), Some(value))).is_ok()
}

fn owned(set: &[ValueRef<'_>]) -> Option<Value> {
    Some(Value::Array(set.iter().map(|item| item.to_value()).collect()))
}

fn union(call: &Call<'_>) -> Result<Option<Value>> {
    let mut all: Vec<Value> = Vec::new();
    let mut budget = Budget::new(call.context);
    for value in call.values() {
        if is_nullish(value) {
            return Ok(Some(Value::Null));
        }
        let refusal = Refusal(17043, "All operands of $setUnion must be arrays. One argument is of type: {}");
        for item in sorted(call, array(value, refusal)?)? {
            budget.item(item)?;
            all.push(item.to_value());
        }
    }
    Ok(owned(&sorted(call, ArrayRef::of_tree(&all))?))
}

fn intersection(call: &Call<'_>) -> Result<Option<Value>> {
    let mut common: Option<Vec<ValueRef<'_>>> = None;
    for value in call.values() {
        if is_nullish(value) {
            return Ok(Some(Value::Null));
        }
        let refusal =
            Refusal(17047, "All operands of $setIntersection must be arrays. One argument is of type: {}");
        let set = sorted(call, array(value, refusal)?)?;
        common = Some(match common {
            None => set,
            Some(mut common) => {
                common.retain(|item| contains(call, &set, *item));
                common
            }
        });
    }
    Ok(owned(&common.unwrap_or_default()))
}

fn difference(call: &Call<'_>) -> Result<Option<Value>> {
    if is_nullish(call.get(0)) || is_nullish(call.get(1)) {
        return Ok(Some(Value::Null));
    }
    let words = "both operands of $setDifference must be arrays. First argument is of type: {}";
    let left = array(call.get(0), Refusal(17048, words))?;
    let words = "both operands of $setDifference must be arrays. Second argument is of type: {}";
    let right = sorted(call, array(call.get(1), Refusal(17049, words))?)?;
    // The result keeps the order of the first array, each item at its first position.
    let mut remaining: Vec<(usize, ValueRef<'_>)> =
        left.iter().enumerate().filter(|(_, item)| !contains(call, &right, *item)).collect();
    call.context.spend(remaining.len() as u64 * 8)?;
    let compare = |left: ValueRef<'_>, right: ValueRef<'_>| call.scope.compare(Some(left), Some(right));
    remaining.sort_by(|left, right| compare(left.1, right.1).then(left.0.cmp(&right.0)));
    remaining.dedup_by(|right, left| compare(left.1, right.1).is_eq());
    remaining.sort_by_key(|(position, _)| *position);
    Ok(Some(Value::Array(remaining.into_iter().map(|(_, item)| item.to_value()).collect())))
}

fn equals(call: &Call<'_>) -> Result<Option<Value>> {
    let count = call.values().count();
    if count < 2 {
        let message = format!("$setEquals needs at least two arguments had: {count}");
        return Err(Error::location(17045, message));
    }
    let mut first: Option<Vec<ValueRef<'_>>> = None;
    let mut equal = true;
    for (position, value) in call.values().enumerate() {
        let Some(ValueRef::Array(items)) = value else {
            let (nth, found) = (position + 1, type_name(value));
            let message =
                format!("All operands of $setEquals must be arrays. {nth}-th argument is of type: {found}");
            return Err(Error::location(17044, message));
        };
        let set = sorted(call, items)?;
        match &first {
            None => first = Some(set),
            Some(first) => {
                equal = equal
                    && first.len() == set.len()
                    && first
                        .iter()
                        .zip(&set)
                        .all(|(left, right)| call.scope.compare(Some(*left), Some(*right)).is_eq());
            }
        }
    }
    Ok(Some(Value::Bool(equal)))
}

fn is_subset(call: &Call<'_>) -> Result<Option<Value>> {
    let words = "both operands of $setIsSubset must be arrays. First argument is of type: {}";
    let left = array(call.get(0), Refusal(17046, words))?;
    let words = "both operands of $setIsSubset must be arrays. Second argument is of type: {}";
    let right = sorted(call, array(call.get(1), Refusal(17042, words))?)?;
    call.context.spend(left.len() as u64)?;
    Ok(Some(Value::Bool(left.iter().all(|item| contains(call, &right, item)))))
}

fn all_elements_true(call: &Call<'_>) -> Result<Option<Value>> {
    let items =
        array(call.get(0), Refusal(17040, "$allElementsTrue's argument must be an array, but is {}"))?;
    Ok(Some(Value::Bool(items.iter().all(is_true))))
}

fn any_element_true(call: &Call<'_>) -> Result<Option<Value>> {
    let items = array(call.get(0), Refusal(17041, "$anyElementTrue's argument must be an array, but is {}"))?;
    Ok(Some(Value::Bool(items.iter().any(is_true))))
}
