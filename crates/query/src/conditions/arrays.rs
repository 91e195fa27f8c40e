//! Conditions on elements of arrays: `JOIN`, `EXISTS`, `ARRAY_CONTAINS`, and equality with whole arrays and objects.
//!
//! The index has the scalars of all elements of an array under one path, so it shows only that *some* element has a value.
//! A row of `JOIN` is some element; conditions on one row that are joined by `AND` become separate conditions on the item,
//! which is a superset; the result is only exact if a single condition remains.

use document::Value;

use super::combine::{DerivedCondition, Draft, UNBOUND, all, any};
use super::filter::{ItemPath, Scope, leaf};
use super::interval::ValueSet;
use super::{Step, is_single};
use crate::logical::{Expression, Projection, Query, Rows, Source, SubqueryKind};

/// The number of values inside a constant array or object that are looked up; the filter checks the rest.
const VALUES_MAX: usize = 16;

/// Binds the slots of `FROM` and returns the condition under which there is a row.
pub(super) fn enter(scope: &mut Scope, sources: &[Source]) -> DerivedCondition {
    let mut found = Vec::new();
    for source in sources {
        let row = match &source.rows {
            Rows::Value(Expression::Path { slot, segments }) => scope.item_path(*slot, segments),
            Rows::Value(_) => None,
            Rows::Subquery(query) => inside(scope, query, |scope, sources, filter| {
                found.extend([sources, filter]);
                projected(scope, &query.select)
            }),
        };
        let row = row.map(|row| {
            let (row, present) = bind(scope, row, source.iterates);
            found.push(present);
            row
        });
        scope.slots.resize(source.slot, None);
        scope.slots.push(row);
    }
    if sources.is_empty() { DerivedCondition::constant(true) } else { all(found).at_most() }
}

/// Returns the path that a slot stands for whose rows are the values at a path, and the condition under which there
/// is a row.
fn bind(scope: &mut Scope, mut row: ItemPath, iterates: bool) -> (ItemPath, DerivedCondition) {
    let values = if iterates { ValueSet::array() } else { ValueSet::defined() };
    let present = if is_single(&row.path) { leaf(row.clone(), values) } else { DerivedCondition::unknown() };
    if iterates {
        row.path.push(Step::Each);
    }
    if !is_single(&row.path) {
        // Within its row a name stands for one value.
        row.binding = scope.new_binding();
    }
    row.present = true;
    (row, present)
}

/// Returns the path of a subquery's rows.
fn projected(scope: &Scope, select: &Projection) -> Option<ItemPath> {
    match select {
        Projection::Value(Expression::Path { slot, segments }) => scope.item_path(*slot, segments),
        _ => None,
    }
}

/// Calls `look` with the conditions under which the sources and the filter of a subquery yield a row. Its slots are
/// only visible during the call.
fn inside<T>(
    scope: &mut Scope,
    query: &Query,
    look: impl FnOnce(&mut Scope, DerivedCondition, DerivedCondition) -> T,
) -> T {
    let outer = scope.slots.clone();
    let sources = enter(scope, &query.sources);
    let filter =
        query.filter.as_ref().map_or(DerivedCondition::constant(true), |filter| scope.holds(filter, true));
    let answer = if query.nested.is_some() || (!query.aggregates.is_empty() && query.group_by.is_empty()) {
        // Aggregates of no rows are a row.
        look(scope, DerivedCondition::unknown(), DerivedCondition::unknown())
    } else if query.take == Some(0) {
        look(scope, DerivedCondition::constant(false), DerivedCondition::constant(false))
    } else {
        look(scope, sources, filter)
    };
    scope.slots = outer;
    answer
}

/// Returns the condition under which a subquery is exactly `wanted`.
pub(super) fn subquery(
    scope: &mut Scope,
    kind: SubqueryKind,
    query: &Query,
    wanted: bool,
) -> DerivedCondition {
    if kind != SubqueryKind::Exists || !wanted {
        return DerivedCondition::unknown();
    }
    inside(scope, query, |scope, sources, filter| {
        let element = only_element(scope, query);
        let about_it = matches!(
            (&filter.draft, element),
            (Draft::Leaf { binding, .. }, Some(element)) if *binding == element.binding && element.exact
        );
        // A matching element is a row, and implies that there is an array.
        if about_it && filter.exact { filter } else { all([sources, filter]).at_most() }
    })
}

/// Returns the element that `EXISTS (SELECT ... FROM x IN c.a WHERE ...)` looks for, if that is all the subquery does.
fn only_element(scope: &Scope, query: &Query) -> Option<ItemPath> {
    let [source @ Source { iterates: true, rows: Rows::Value(_), .. }] = query.sources.as_slice() else {
        return None;
    };
    let is_defined = match &query.select {
        Projection::Value(Expression::Literal(_)) | Projection::Members(_) => true,
        Projection::Value(Expression::Path { slot, segments }) => *slot == source.slot && segments.is_empty(),
        Projection::Value(_) => false,
    };
    let plain = query.skip == 0 && !query.is_grouped() && query.nested.is_none();
    if is_defined && plain { scope.slots.get(source.slot)?.clone() } else { None }
}

/// Returns the condition under which `ARRAY_CONTAINS(array, values...)` and similar functions are true.
pub(super) fn contains(
    scope: &mut Scope,
    name: &str,
    array: &Expression,
    values: &[Expression],
) -> DerivedCondition {
    match (array, values) {
        (Expression::Path { slot, segments }, _) => {
            let Some(mut element) = scope.item_path(*slot, segments) else {
                return DerivedCondition::unknown();
            };
            element.path.push(Step::Each);
            element.binding = UNBOUND;
            in_array(name, &element, values)
        }
        // With a list of constants it is another form of `IN`.
        (Expression::Literal(Value::Array(list)), [Expression::Path { slot, segments }])
            if name == "ARRAY_CONTAINS" =>
        {
            let Some(place) = scope.item_path(*slot, segments) else { return DerivedCondition::unknown() };
            any(list.iter().map(|value| equals(place.clone(), value)))
        }
        _ => DerivedCondition::unknown(),
    }
}

fn in_array(name: &str, element: &ItemPath, values: &[Expression]) -> DerivedCondition {
    let one = |value: &Expression| match value {
        Expression::Literal(value) => equals(element.clone(), value),
        _ => DerivedCondition::unknown(),
    };
    match (name, values) {
        // With a flag only the given members of an object need to be equal.
        ("ARRAY_CONTAINS", [value] | [value, Expression::Literal(Value::Bool(_))]) => one(value),
        ("ARRAY_CONTAINS_ANY", values) => any(values.iter().map(one)).at_most(),
        ("ARRAY_CONTAINS_ALL", values) => all(values.iter().map(one)).at_most(),
        _ => DerivedCondition::unknown(),
    }
}

fn equals(place: ItemPath, value: &Value) -> DerivedCondition {
    match value {
        Value::Array(_) | Value::Object(_) => holds_value(place, value),
        scalar => leaf(place, ValueSet::point(scalar.view())),
    }
}

/// Returns the type of a constant array or object.
fn shape(value: &Value) -> ValueSet {
    if matches!(value, Value::Array(_)) { ValueSet::array() } else { ValueSet::object() }
}

/// Returns the condition that the value at a path is defined and not this array or object.
pub(super) fn holds_other(place: ItemPath, value: &Value) -> DerivedCondition {
    let shape = shape(value);
    let another_type = shape.complement().intersect(&ValueSet::defined());
    any([leaf(place.clone(), another_type), leaf(place, shape).at_most()])
}

/// Returns the condition that the value at a path is this array or object, or at least has its values.
pub(super) fn holds_value(place: ItemPath, value: &Value) -> DerivedCondition {
    let mut found = Vec::new();
    if is_single(&place.path) {
        found.push(leaf(place.clone(), shape(value)));
    }
    gather(place, value, &mut found);
    all(found).at_most()
}

fn gather(place: ItemPath, value: &Value, found: &mut Vec<DerivedCondition>) {
    let within = |step: Step| {
        let mut within = place.clone();
        if step == Step::Each {
            within.binding = UNBOUND;
        }
        within.path.push(step);
        within
    };
    match value {
        Value::Array(items) => {
            for item in items.iter().take(VALUES_MAX) {
                gather(within(Step::Each), item, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members.iter().take(VALUES_MAX) {
                gather(within(Step::Name(name.to_owned())), member, found);
            }
        }
        scalar if found.len() < VALUES_MAX => found.push(leaf(place, ValueSet::point(scalar.view()))),
        _ => {}
    }
}
